package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// queryPlan is the answer of `plan --explain-queries -o json`.
type queryPlan struct {
	web.Meta
	Services int `json:"services"`
	Windows  int `json:"windows"`
	Queries  int `json:"queries"`
	Grouped  int `json:"grouped"`
	// Alone could be grouped, if there were others like them.
	Alone int `json:"alone"`
	// Single counts those that cannot be grouped, by reason.
	Single map[string]int `json:"single"`
	// QueriesPerMinute is the steady load: each window at its cadence.
	QueriesPerMinute float64        `json:"queriesPerMinute"`
	Sources          []sourceAsked  `json:"sources"`
	Refused          []refusedQuery `json:"refused"`
}

// sourceAsked is what is sent to one source.
type sourceAsked struct {
	Source           string        `json:"source"`
	QueriesPerMinute float64       `json:"queriesPerMinute"`
	Windows          []windowAsked `json:"windows"`
}

// What a window is asked for.
const (
	forMeasure  = "measure"
	forCoverage = "coverage"
	forTraffic  = "traffic"
)

// windowAsked is what is sent for one window at one instant.
type windowAsked struct {
	Window string `json:"window"`
	// For is measure, coverage (does the data cover a longer window?) or traffic
	// (was there any in the hour before?).
	For    string    `json:"for"`
	Covers string    `json:"covers,omitempty"`
	Time   time.Time `json:"time"`
	// EverySeconds is the cadence; null: only when needed.
	EverySeconds *float64       `json:"everySeconds"`
	Queries      []plannedQuery `json:"queries"`

	length, covers, every time.Duration
}

// plannedQuery is one query that would be sent.
type plannedQuery struct {
	// Objectives is how many objectives' expressions it answers.
	Objectives int `json:"objectives"`
	// Single says why it is not grouped, where it cannot be.
	Single string `json:"single,omitempty"`
	// Recorded: it asks for counts that rules may have recorded; without them
	// the raw samples are asked.
	Recorded bool   `json:"recorded,omitempty"`
	Expr     string `json:"expr"`
}

// refusedQuery is an objective that cannot be asked at all.
type refusedQuery struct {
	Service   string `json:"service"`
	Objective string `json:"objective"`
	Source    string `json:"source"`
	Reason    string `json:"reason"`
}

// explainQueries shows what a pass would send, and sends nothing.
func (a *app) explainQueries(services []string, output string) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	set, err := s.documents()
	if err != nil {
		return err
	}
	for _, name := range services {
		if _, ok := set.Service(name); !ok {
			return unknownService(set, name)
		}
	}
	p := planQueries(set, services, s.cfg, a.now())
	if output == formatJSON || output == formatYAML {
		return emit(a.out, output, p)
	}
	w := &paper{w: a.out, now: a.now()}
	w.queries(p)
	return w.err
}

// asking is one window of one source.
type asking struct {
	source                string
	window, covers, every time.Duration
	at                    time.Time
	totalOnly             bool
}

func (k asking) purpose() string {
	switch {
	case k.covers > 0:
		return forCoverage
	case k.totalOnly:
		return forTraffic
	}
	return forMeasure
}

// planQueries makes the queries of a pass in which every window is due.
func planQueries(set spec.Set, services []string, cfg config.Config, now time.Time) queryPlan {
	out := queryPlan{
		Meta: web.Meta{APIVersion: spec.Group, Kind: "QueryPlan"}, Single: map[string]int{},
		Sources: []sourceAsked{}, Refused: []refusedQuery{},
	}
	plans := measure.Compile(set.Services, nil)
	byKey := map[asking][]measure.Query{}
	windows := map[time.Duration]bool{}
	for _, svc := range set.Services {
		if len(services) > 0 && !slices.Contains(services, svc.Name) {
			continue
		}
		out.Services++
		for _, q := range plans.Service(svc.Name).Pass(now) {
			source := sourceName(cfg.Sources, q.Source)
			if q.Refused != "" {
				out.refuse(q, source)
				continue
			}
			if !q.ID.TotalOnly {
				windows[q.ID.Window] = true
			}
			key := asking{source, q.ID.Window, q.Covers(), q.Every(cfg.Sweep.Interval), q.ID.At, q.ID.TotalOnly}
			byKey[key] = append(byKey[key], q)
		}
	}
	out.Windows = len(windows)
	for _, src := range cfg.Sources {
		out.ask(src, byKey)
	}
	return out
}

func (p *queryPlan) refuse(q measure.Query, source string) {
	r := refusedQuery{q.ID.Service, q.ID.Objective, source, q.Refused}
	if !slices.Contains(p.Refused, r) {
		p.Refused = append(p.Refused, r)
	}
}

// ask plans what one source is sent. What two windows need at one instant, such
// as the time of the newest sample, is asked once, with the more frequent one.
func (p *queryPlan) ask(src config.Source, byKey map[asking][]measure.Query) {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(byKey)), func(k asking) bool { return k.source != src.Name })
	slices.SortFunc(keys, func(a, b asking) int {
		return cmp.Or(cmp.Compare(a.every, b.every), cmp.Compare(a.covers, b.covers), cmp.Compare(a.window, b.window), a.at.Compare(b.at))
	})
	if len(keys) == 0 {
		return
	}
	out := sourceAsked{Source: src.Name}
	seen := map[string]bool{}
	for _, k := range keys {
		w := windowAsked{
			Window: spec.FormatDuration(k.window), For: k.purpose(), Time: k.at,
			length: k.window, covers: k.covers, every: k.every, Queries: planned(byKey[k], src.Chunk, seen),
		}
		if k.covers > 0 {
			w.Covers = spec.FormatDuration(k.covers)
		}
		if k.every > 0 {
			every := k.every.Seconds()
			w.EverySeconds = &every
			out.QueriesPerMinute += perMinute(len(w.Queries), every)
		}
		p.count(w.Queries)
		out.Windows = append(out.Windows, w)
	}
	rank := map[string]int{forMeasure: 0, forCoverage: 1, forTraffic: 2}
	slices.SortStableFunc(out.Windows, func(a, b windowAsked) int {
		return cmp.Or(cmp.Compare(rank[a.For], rank[b.For]), cmp.Compare(a.covers, b.covers), cmp.Compare(a.length, b.length))
	})
	p.QueriesPerMinute += out.QueriesPerMinute
	p.Sources = append(p.Sources, out)
}

// perMinute is the load of queries that are sent once in so many seconds, with
// the digits that matter.
func perMinute(queries int, every float64) float64 {
	return math.Round(float64(queries)*60/every*1e6) / 1e6
}

func (p *queryPlan) count(qs []plannedQuery) {
	for _, q := range qs {
		p.Queries++
		switch {
		case q.Single != "":
			p.Single[q.Single]++
		case q.Objectives > 1:
			p.Grouped++
		default:
			p.Alone++
		}
	}
}

// planned are the requests of some queries, each once. What would be asked next
// depends on what was answered only where counts may be recorded: they are taken
// to be missing, so that the raw queries show.
func planned(qs []measure.Query, chunk int, seen map[string]bool) []plannedQuery {
	b := measure.NewBatch(qs)
	out := []plannedQuery{}
	for {
		rs := b.Requests(func(string, time.Duration) int { return chunk })
		if len(rs) == 0 {
			return out
		}
		for _, r := range rs {
			recorded := strings.Contains(r.Expr, measure.CountTotal+"{")
			answer := measure.Reading{Reason: measure.NotMeasured}
			if recorded {
				answer = measure.Reading{}
			}
			b.Put(r, answer)
			if key := r.At.String() + r.Expr; !seen[key] {
				seen[key] = true
				out = append(out, plannedQuery{r.Members, r.Single, recorded, r.Expr})
			}
		}
	}
}

// queries writes the plan for people.
func (p *paper) queries(plan queryPlan) {
	for _, s := range plan.Sources {
		p.line("%s: %.3g queries a minute", s.Source, s.QueriesPerMinute)
		for _, w := range s.Windows {
			p.line("  %s", windowText(w))
			for _, q := range w.Queries {
				p.line("    %s: %s", answersWhom(q), q.Expr)
			}
		}
		p.line("")
	}
	for _, r := range plan.Refused {
		p.line("%s/%s is not asked of %s: %s", r.Service, r.Objective, r.Source, r.Reason)
	}
	p.line("%s, %s: %s", count(plan.Services, "service"), count(plan.Windows, "window"), queriesText(plan))
	p.line("in steady state %.3g queries a minute; the first pass after a start sends all of them", plan.QueriesPerMinute)
	for _, reason := range slices.Sorted(maps.Keys(plan.Single)) {
		p.line("%s: %s", reason, singleText(reason))
	}
}

func windowText(w windowAsked) string {
	text := w.Window + " until " + clock(w.Time)
	switch w.For {
	case forCoverage:
		text += ", to see whether data covers " + w.Covers
	case forTraffic:
		return text + ", only where traffic is low"
	}
	return text + ", every " + spec.FormatDuration(w.every)
}

func answersWhom(q plannedQuery) string {
	text := count(q.Objectives, "objective")
	if q.Recorded {
		text += ", recorded counts, without which the raw ones are asked"
	}
	if q.Single != "" {
		text += ", one by one (" + q.Single + ")"
	}
	return text
}

// queriesText is the summary, e.g. "12 queries, 9 of them grouped, 1 without
// others like it; one by one: 2 (vector)".
func queriesText(plan queryPlan) string {
	text := fmt.Sprintf("%s, %d of them grouped, %d without others like them", queryCount(plan.Queries), plan.Grouped, plan.Alone)
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(plan.Single)) {
		parts = append(parts, fmt.Sprintf("%d (%s)", plan.Single[reason], reason))
	}
	if len(parts) > 0 {
		text += "; one by one: " + strings.Join(parts, ", ")
	}
	return text
}

func queryCount(n int) string {
	if n == 1 {
		return "1 query"
	}
	return fmt.Sprintf("%d queries", n)
}

// singles word the reasons for which an expression is asked alone.
var singles = map[string]string{
	"no-equality":              `no label has one and the same equality, such as service="checkout", in all of its selectors`,
	"not-a-vector":             "its value is no instant vector",
	"not-parsed":               "it is not valid PromQL here",
	"group-left":               "it joins many series to one (group_left, group_right)",
	"operator":                 "it holds an operator whose grouping is not proved",
	"unknown-expression":       "it holds an expression whose grouping is not proved",
	"label-ignored":            "it leaves the only label that differs out of a match (ignoring)",
	"label-on-one-side":        "only one side of an operation carries the label that differs",
	"labels-on-one-side":       "only one side of an operation carries labels",
	"label-changed":            "it rewrites the label that differs",
	"bucket-label":             "the only equality is that of a histogram's le",
	"set-operator-with-vector": "it adds a constant where nothing is there (or vector(0)), which one query for many cannot tell apart; absentBad does the same",
}

func singleText(reason string) string {
	if text, ok := singles[reason]; ok {
		return text
	}
	return "it uses " + strings.ReplaceAll(reason, "-", "_") + ", whose grouping is not proved"
}
