package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// sourceChecks ask each source by itself, so that a slow one delays no other.
func (e *examination) sourceChecks() []examine {
	cfg := e.site.cfg
	if len(cfg.Sources) == 0 {
		return skipAll(aboutSources, "no source is configured")
	}
	planned := sync.OnceValue(func() map[string]float64 { return perMinuteOf(e.set, cfg, e.now) })
	var out []examine
	for _, src := range cfg.Sources {
		limit := min(max(4*src.Timeout, localLimit), 2*time.Minute)
		out = append(out, examine{group: aboutSources, subject: src.Name, limit: limit, run: func(ctx context.Context) []checkItem {
			seen, err := e.lookAtSource(ctx, src)
			if err != nil {
				return []checkItem{subject{"sources/answers", src.Name}.failed(
					execute.CleanText(err.Error(), execute.MaxDetail), "correct source "+src.Name+" in setpoint.yaml; `setpoint validate` says where")}
			}
			if e.setErr == nil {
				load := planned()[src.Name]
				seen.perMinute = &load
			}
			return seen.verdicts()
		}})
	}
	return out
}

// perMinuteOf is how many queries each source is sent in a minute.
func perMinuteOf(set spec.Set, cfg config.Config, now time.Time) map[string]float64 {
	out := map[string]float64{}
	for _, s := range planQueries(set, nil, cfg, now).Sources {
		out[s.Source] = s.QueriesPerMinute
	}
	return out
}

// sourceSeen is what one source showed.
type sourceSeen struct {
	src config.Source
	// at is what it says of itself, findings what is wrong with that.
	at       liveSource
	findings []liveFinding
	// remarks came with the answer to a trivial query.
	remarks []string
	// longest is the longest window that it is asked for.
	longest time.Duration
	// objective is one that is measured there, "" when there is none; newest is
	// its reading at now.
	objective string
	newest    measure.Measurement
	now       time.Time
	// perMinute is the load of all documents; nil without documents.
	perMinute *float64
}

// lookAtSource asks one source what `validate --live` asks, and of the
// objectives there only the first.
func (e *examination) lookAtSource(ctx context.Context, src config.Source) (*sourceSeen, error) {
	seen := &sourceSeen{src: src}
	var mu sync.Mutex
	listening := true
	f, err := newFleet([]config.Source{src}, e.app.now, purpose{onNote: func(_, text string) {
		mu.Lock()
		defer mu.Unlock()
		if listening {
			seen.remarks = append(seen.remarks, text)
		}
	}})
	if err != nil {
		return nil, err
	}
	quiet := *e.app
	quiet.err = discard{} // The doctor shows progress of its own.
	i := &inspection{
		app: &quiet, cfg: e.site.cfg, set: spec.Set{Services: e.services()}, fleet: f,
		now: measure.Instant(e.app.now()), sources: map[string]*liveSource{},
	}
	for _, other := range e.site.cfg.Sources {
		i.sources[other.Name] = &liveSource{Source: other.Name}
	}
	from, _ := f.Source(src.Name)
	i.lookAt(ctx, from, i.sources[src.Name])
	mu.Lock()
	listening = false
	mu.Unlock()
	i.see()
	i.retention()
	for _, p := range i.points {
		seen.longest = max(seen.longest, slices.Max(append(p.o.Windows(), 0)))
	}
	if len(i.points) > 0 {
		i.points = i.points[:1]
		p := i.points[0]
		i.measure(ctx)
		seen.objective, seen.newest = p.service+"/"+p.o.ID, i.judged[p.key()]
	}
	seen.at, seen.findings, seen.now = *i.sources[src.Name], i.findings, i.now
	return seen, nil
}

// discard is a writer that is no terminal.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// verdicts are the lines about one source.
func (s *sourceSeen) verdicts() []checkItem {
	out := []checkItem{s.answers()}
	if s.at.Reachable {
		out = append(out, s.whole(), s.clock(), s.retention(), s.fresh())
	}
	return append(out, s.load())
}

func (s *sourceSeen) about(what string) subject { return subject{"sources/" + what, s.src.Name} }

func (s *sourceSeen) answers() checkItem {
	if s.at.Reachable {
		version := ""
		if s.at.Version != "" {
			version = ", version " + s.at.Version
		}
		return s.about("answers").fine("answers a query%s", version)
	}
	return s.about("answers").failed(s.at.Error, sourceRemedy(s.src.Name, s.at.Error))
}

// sourceRemedy says what to do about a source that cannot be asked.
func sourceRemedy(name, text string) string {
	from := server{
		name: "source " + name, key: "url of source " + name + " in setpoint.yaml",
		credentials: fmt.Sprintf("give source %s credentials that may query: http.basic_auth or http.authorization in setpoint.yaml, and the file that they name", name),
	}
	if strings.HasPrefix(text, string(measure.Partial)) {
		return fmt.Sprintf("look which store behind source %s is down, or ask for whole answers only (params of the source, e.g. partial_response: \"false\")", name)
	}
	if remedy := from.remedy(text); remedy != "" {
		return remedy + "; `curl <url>/api/v1/query?query=1` asks it the same"
	}
	if strings.HasPrefix(text, string(measure.SourceRefused)) {
		return fmt.Sprintf("correct url, http.tls_config or credentials of source %s in setpoint.yaml; time does not heal this", name)
	}
	return fmt.Sprintf("look whether source %s runs and its url in setpoint.yaml is reached from this host (`curl <url>/api/v1/query?query=1`)", name)
}

// whole: an answer with a warning is never believed, so a source that warns
// about everything makes everything unknown.
func (s *sourceSeen) whole() checkItem {
	if len(s.remarks) > 0 {
		return s.about("whole").warned(
			fmt.Sprintf("a trivial query is answered with %s, the first: %s", count(len(s.remarks), "remark"), s.remarks[0]),
			fmt.Sprintf("look at what source %s remarks: an answer that it calls incomplete is unknown, and nothing is done on it", s.src.Name))
	}
	return s.about("whole").fine("a trivial query is answered without a warning")
}

func (s *sourceSeen) clock() checkItem {
	at := s.about("clock")
	if s.at.ClockOffsetSeconds == nil {
		return at.warned(s.findingText("clock-unknown"), "look whether source "+s.src.Name+", or a proxy before it, is slow: a clock that cannot be read holds nothing, and guards nothing")
	}
	return clockVerdict(at, time.Duration(*s.at.ClockOffsetSeconds*float64(time.Second)))
}

// clockVerdict judges how far a clock is ahead of this host's.
func clockVerdict(at subject, offset time.Duration) checkItem {
	text := fmt.Sprintf("%+.3fs from this host's", offset.Seconds())
	switch {
	case offset.Abs() > maxApart:
		return at.failed(fmt.Sprintf("its clock is %s, more than %s hold everything", text, maxApart),
			"set the clocks right on both hosts: `timedatectl` or `chronyc tracking` says which one is wrong")
	case offset.Abs() > maxApart/2:
		return at.warned(fmt.Sprintf("its clock is %s; %s hold everything", text, maxApart),
			"look at NTP on both hosts before it is more: `timedatectl` or `chronyc tracking`")
	}
	return at.fine("its clock is %s", text)
}

func (s *sourceSeen) findingText(code string) string {
	for _, f := range s.findings {
		if f.Code == code {
			return f.Text
		}
	}
	return "it did not say"
}

func (s *sourceSeen) retention() checkItem {
	at := s.about("retention")
	if s.at.RetentionSeconds == nil {
		return at.skipped("it does not say how long it keeps samples")
	}
	return retentionVerdict(at, time.Duration(*s.at.RetentionSeconds*float64(time.Second)), s.longest)
}

// retentionVerdict compares how long samples are kept with the longest window.
func retentionVerdict(at subject, kept, longest time.Duration) checkItem {
	text := "it keeps samples for " + spec.FormatDuration(kept)
	switch {
	case longest == 0:
		return at.fine("%s; no objective asks it", text)
	case longest > kept:
		return at.failed(fmt.Sprintf("%s, the longest window is %s: its value would be that of a shorter one", text, spec.FormatDuration(longest)),
			"raise --storage.tsdb.retention.time there, name a source that keeps more, or give the SLO a shorter window; `setpoint validate --live` names the objectives")
	}
	return at.fine("%s, the longest window is %s", text, spec.FormatDuration(longest))
}

func (s *sourceSeen) fresh() checkItem {
	at := s.about("freshness")
	if s.objective == "" {
		return at.skipped("no objective is measured there")
	}
	return freshVerdict(at, s.objective, reading{s.newest, s.now.Sub(s.newest.SampleAt), s.src.MaxSampleAge})
}

// reading is one measurement with the age of its newest sample, and the most
// that it may be.
type reading struct {
	measure.Measurement
	age, limit time.Duration
}

// freshVerdict judges the newest sample of one objective.
func freshVerdict(at subject, objective string, r reading) checkItem {
	const all = "; `setpoint validate --live` looks at every objective"
	switch {
	case !r.Known() && r.Reason.SourceFault():
		return at.failed(fmt.Sprintf("%s cannot be measured: %s: %s", objective, r.Reason, r.Detail), doAbout(string(r.Reason))+all)
	case !r.Known():
		return at.warned(fmt.Sprintf("%s is unknown: %s: %s", objective, r.Reason, r.Detail), doAbout(string(r.Reason))+all)
	case r.SampleAt.IsZero():
		return at.skipped("the newest sample of %s has no time", objective)
	case r.age > r.limit:
		return at.failed(fmt.Sprintf("the newest sample of %s is %s old, maxSampleAge is %s: unknown while it is so", objective, r.age.Round(time.Second), spec.FormatDuration(r.limit)),
			"look at the scrape (up == 0) or at what ships the samples; for a source that lags by design raise its maxSampleAge in setpoint.yaml")
	case r.age < -maxApart:
		return at.failed(fmt.Sprintf("the newest sample of %s lies %s in the future", objective, (-r.age).Round(time.Second)), doAbout(string(measure.ClockSkew)))
	}
	return at.fine("the newest sample of %s is %s old, maxSampleAge is %s", objective, max(r.age, 0).Round(time.Second), spec.FormatDuration(r.limit))
}

func (s *sourceSeen) load() checkItem {
	at := s.about("load")
	if s.perMinute == nil {
		return at.skipped("the documents have faults")
	}
	return loadVerdict(at, *s.perMinute/60, s.src.QueriesPerSecond)
}

// loadVerdict compares the queries a second that the documents need with those
// that a source may be sent.
func loadVerdict(at subject, need, allowed float64) checkItem {
	text := fmt.Sprintf("the documents need %.3g queries a second, queriesPerSecond is %.3g", need, allowed)
	remedy := fmt.Sprintf("raise queriesPerSecond (or chunk) of source %s in setpoint.yaml, or sweep.interval; `setpoint plan --explain-queries` shows what is asked", at.name)
	switch {
	case need > allowed:
		return at.failed(text+": readings would fall behind and be stale", remedy)
	case need > allowed/2:
		return at.warned(text+": more than half, and a start sends all at once", remedy)
	}
	return at.fine("%s", text)
}
