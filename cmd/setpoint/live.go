package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// liveItem is what the sources say about the documents.
type liveItem struct {
	Sources  []liveSource  `json:"sources"`
	Findings []liveFinding `json:"findings"`
}

// liveSource is one source as it answers. What it does not say is null.
type liveSource struct {
	Source             string   `json:"source"`
	Reachable          bool     `json:"reachable"`
	Version            string   `json:"version,omitempty"`
	ClockOffsetSeconds *float64 `json:"clockOffsetSeconds"`
	RetentionSeconds   *float64 `json:"retentionSeconds"`
	Error              string   `json:"error,omitempty"`
}

// The severities of a finding.
const (
	isError   = "error"
	isWarning = "warning"
)

// liveFinding is one thing that a source showed.
type liveFinding struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Severity  string `json:"severity"`
	Code      string `json:"code"`
	Source    string `json:"source"`
	Service   string `json:"service,omitempty"`
	Objective string `json:"objective,omitempty"`
	Text      string `json:"text"`
	// Do says what to do about it.
	Do string `json:"do"`
}

// maxApart is how far a source's clock may be from this host's.
const maxApart = 5 * time.Second

// inspection asks every source whether the documents can be measured there.
type inspection struct {
	app     *app
	cfg     config.Config
	set     spec.Set
	fleet   *prom.Fleet
	now     time.Time
	sources map[string]*liveSource
	// points are the vantage points whose source answers.
	points []vantagePoint
	// judged is the judge window of each of them; young shows whether data covers
	// the SLO's own window.
	judged, young map[pointKey]measure.Measurement

	mu       sync.Mutex
	findings []liveFinding
}

// vantagePoint is one objective as one source sees it.
type vantagePoint struct {
	service string
	o       spec.Objective
	vantage int
	in      spec.Indicator
	source  *prom.Source
	src     config.Source
}

// live inspects the documents at their sources.
func (a *app) live(ctx context.Context, s site, set spec.Set) (*liveItem, error) {
	f, err := newFleet(s.cfg.Sources, a.now, purpose{})
	if err != nil {
		return nil, err
	}
	i := &inspection{app: a, cfg: s.cfg, set: set, fleet: f, now: measure.Instant(a.now()), sources: map[string]*liveSource{}}
	defer a.progress("")
	i.lookAtSources(ctx)
	i.see()
	i.retention()
	i.measure(ctx)
	if err := i.selectors(ctx); err != nil {
		return nil, err
	}
	i.judge(ctx)
	i.evidence(ctx)
	if ctx.Err() != nil {
		return nil, errors.New("interrupted before every source had answered")
	}
	return i.item(), nil
}

func (i *inspection) item() *liveItem {
	out := &liveItem{Sources: []liveSource{}, Findings: i.findings}
	for _, src := range i.cfg.Sources {
		out.Sources = append(out.Sources, *i.sources[src.Name])
	}
	slices.SortFunc(out.Findings, func(a, b liveFinding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Service, b.Service), cmp.Compare(a.Objective, b.Objective), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
	out.Findings = slices.Compact(out.Findings)
	if out.Findings == nil {
		out.Findings = []liveFinding{}
	}
	return out
}

// healthy reports whether no finding is an error.
func (l *liveItem) healthy() bool {
	return !slices.ContainsFunc(l.Findings, func(f liveFinding) bool { return f.Severity == isError })
}

// add keeps a finding about a source.
func (i *inspection) add(f liveFinding) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.findings = append(i.findings, f)
}

// found keeps a finding about one vantage point, at its place in the documents.
func (i *inspection) found(p vantagePoint, at spec.Position, f liveFinding) {
	if at == (spec.Position{}) {
		at = p.o.Pos
	}
	f.File, f.Line, f.Source, f.Service, f.Objective = at.File, at.Line, p.src.Name, p.service, p.o.ID
	i.add(f)
}

// has reports whether one of these findings stands, as an error, against a
// vantage point.
func (i *inspection) has(p vantagePoint, codes ...string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.findings, func(f liveFinding) bool {
		same := f.Source == p.src.Name && f.Service == p.service && f.Objective == p.o.ID
		return same && f.Severity == isError && slices.Contains(codes, f.Code)
	})
}

// lookAtSources asks all sources at once who they are.
func (i *inspection) lookAtSources(ctx context.Context) {
	i.app.progress("asking %s", count(len(i.cfg.Sources), "source"))
	var wg sync.WaitGroup
	for _, src := range i.cfg.Sources {
		at := &liveSource{Source: src.Name}
		i.sources[src.Name] = at
		from, ok := i.fleet.Source(src.Name)
		if !ok {
			continue
		}
		wg.Go(func() { i.lookAt(ctx, from, at) })
	}
	wg.Wait()
}

// lookAt asks a number first: what a server says of itself is not what a query
// through a proxy meets.
func (i *inspection) lookAt(ctx context.Context, src *prom.Source, into *liveSource) {
	if r := src.Ask(ctx, "vector(1)", i.now); r.Reason != "" {
		into.Error = string(r.Reason) + ": " + r.Detail
		i.add(liveFinding{
			Severity: isError, Code: string(r.Reason), Source: src.Name(), Text: "the source cannot be asked: " + r.Detail,
			Do: doAbout(string(r.Reason)),
		})
		return
	}
	into.Reachable = true
	into.Version, _ = src.Version(ctx)
	if kept, ok := src.Retention(ctx); ok {
		s := kept.Seconds()
		into.RetentionSeconds = &s
	}
	c := src.Clock(ctx)
	if c.Err != nil {
		i.add(liveFinding{
			Severity: isWarning, Code: "clock-unknown", Source: src.Name(), Text: "its clock cannot be read: " + c.Err.Error(),
			Do: "look whether the source, or a proxy before it, is slow",
		})
		return
	}
	s := c.Offset.Round(time.Millisecond).Seconds()
	into.ClockOffsetSeconds = &s
	if c.Offset.Abs() > maxApart {
		i.add(liveFinding{
			Severity: isError, Code: string(measure.ClockSkew), Source: src.Name(),
			Text: fmt.Sprintf("its clock is %s from this host's, more than %s hold everything", c.Offset.Round(time.Millisecond), maxApart),
			Do:   doAbout(string(measure.ClockSkew)),
		})
	}
}

// see collects the vantage points whose source can be asked.
func (i *inspection) see() {
	for _, svc := range i.set.Services {
		for _, o := range svc.Objectives {
			for n, in := range o.Vantages() {
				name := sourceName(i.cfg.Sources, vantageSource(in))
				src, ok := i.fleet.Source(name)
				at := slices.IndexFunc(i.cfg.Sources, func(c config.Source) bool { return c.Name == name })
				if !ok || at < 0 || !i.sources[name].Reachable {
					continue
				}
				i.points = append(i.points, vantagePoint{svc.Name, o, n, in, src, i.cfg.Sources[at]})
			}
		}
	}
}

func vantageSource(in spec.Indicator) string {
	for _, q := range in.Queries() {
		return q.Source
	}
	return ""
}

// retention refuses a window that the server does not keep: its value would be
// that of a shorter one. A recorded ratio is one sample and needs no window.
func (i *inspection) retention() {
	for _, p := range i.points {
		kept := i.sources[p.src.Name].RetentionSeconds
		if kept == nil || p.in.Raw != nil && p.in.Raw.Recorded {
			continue
		}
		for _, w := range p.o.Windows() {
			if w.Seconds() <= *kept {
				continue
			}
			server := spec.FormatDuration(time.Duration(*kept * float64(time.Second)))
			i.found(p, p.o.Pos, liveFinding{
				Severity: isError, Code: "window-beyond-retention",
				Text: fmt.Sprintf("window %s, the server keeps %s", spec.FormatDuration(w), server),
				Do:   "keep samples longer (--storage.tsdb.retention.time), ask a source that does, or give the SLO a shorter window",
			})
		}
	}
}

// progress shows what is being done, on a terminal only; "" wipes it away.
func (a *app) progress(format string, args ...any) {
	if f, ok := a.err.(*os.File); ok && isTerminal(f) {
		_, _ = fmt.Fprintf(a.err, "\r\x1b[K"+format, args...) // Nobody is left to tell.
	}
}

// showLive writes sources and findings for people.
func (a *app) showLive(l *liveItem) error {
	t := &table{header: []string{"SOURCE", "ANSWERS", "VERSION", "CLOCK", "KEEPS"}}
	for _, s := range l.Sources {
		apart, kept := "", ""
		if s.ClockOffsetSeconds != nil {
			apart = fmt.Sprintf("%+.3fs", *s.ClockOffsetSeconds)
		}
		if s.RetentionSeconds != nil {
			kept = spec.FormatDuration(time.Duration(*s.RetentionSeconds * float64(time.Second)))
		}
		t.add(s.Source, yesNo(s.Reachable), s.Version, apart, kept)
	}
	if err := t.write(a.out, a.colour); err != nil {
		return err
	}
	if len(l.Findings) == 0 {
		return a.print("live: nothing found\n")
	}
	t = &table{header: []string{"WHERE", "SEVERITY", "FINDING", "OBJECTIVE", "SOURCE", "WHAT, AND WHAT TO DO"}, coloured: []int{1}}
	errs := 0
	for _, f := range l.Findings {
		where, about := a.configFile(), ""
		if f.File != "" {
			where = spec.Position{File: f.File, Line: f.Line}.String()
		}
		if f.Objective != "" {
			about = f.Service + "/" + f.Objective
		}
		if f.Severity == isError {
			errs++
		}
		t.add(where, f.Severity, f.Code, about, f.Source, strings.TrimSuffix(f.Text, ".")+": "+f.Do)
	}
	if err := t.write(a.out, a.colour); err != nil {
		return err
	}
	return a.print("live: %s, %s\n", count(errs, isError), count(len(l.Findings)-errs, isWarning))
}
