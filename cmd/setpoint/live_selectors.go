package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// What a selector that selects nothing is called.
const (
	codeNeverExisted = "metric-never-existed"
	codeNeverMatched = "never-matched"
	codeStopped      = "stopped"
	codeLeSpelling   = "le-spelling"
	codeBadNeverSeen = "bad-never-seen"
)

// maxDiagnosed bounds for how many selectors of one source the cause is looked
// for. Where more select nothing, they mostly have one cause.
const maxDiagnosed = 50

// wanted is one selector that a vantage point needs.
type wanted struct {
	point    vantagePoint
	role     string
	pos      spec.Position
	selector string
}

// selectors looks whether everything that the queries select is there now, or
// was within a day, or never.
func (i *inspection) selectors(ctx context.Context) error {
	perSource := map[string][]wanted{}
	for _, p := range i.points {
		ws, err := selectorsOf(p)
		if err != nil {
			return err
		}
		perSource[p.src.Name] = append(perSource[p.src.Name], ws...)
	}
	for _, src := range i.cfg.Sources {
		if ws := perSource[src.Name]; len(ws) > 0 {
			if err := i.selectorsAt(ctx, ws); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectorsOf are those of all queries. The name of a recorded series holds its
// window, so that there is one for each.
func selectorsOf(p vantagePoint) ([]wanted, error) {
	var out []wanted
	for role, q := range map[string]*spec.Query{"good": p.in.Good, "bad": p.in.Bad, "total": p.in.Total, "raw": p.in.Raw} {
		if q == nil {
			continue
		}
		windows := []time.Duration{p.o.JudgeWindow}
		if q.Recorded {
			windows = p.o.Windows()
		}
		for _, w := range windows {
			found, err := q.SelectorsAt(w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", q.Pos, err)
			}
			for _, s := range found {
				out = append(out, wanted{p, role, q.Pos, s})
			}
		}
	}
	return out, nil
}

// selectorsAt looks at the selectors of one source.
func (i *inspection) selectorsAt(ctx context.Context, ws []wanted) error {
	ask := i.asker(ws[0].point, "looking for series")
	there := ask.present(ctx, selectorTexts(ws), "count(%s)")
	absent := slices.DeleteFunc(slices.Clone(ws), func(w wanted) bool { return there[w.selector] != nothing })
	if len(absent) == 0 {
		return nil
	}
	d := &diagnosis{asker: i.asker(ws[0].point, "looking for what is missing"), found: map[string]cause{}}
	if err := d.diagnose(ctx, selectorTexts(absent)); err != nil {
		return err
	}
	for _, w := range absent {
		if f, ok := d.found[w.selector].finding(w, i.judged[w.point.key()].Known()); ok {
			i.found(w.point, w.pos, f)
		}
	}
	return nil
}

func selectorTexts(ws []wanted) []string {
	var out []string
	for _, w := range ws {
		out = append(out, w.selector)
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

func (i *inspection) asker(p vantagePoint, doing string) asker {
	return asker{source: p.source, src: p.src, at: i.now, asked: func(left int) {
		i.app.progress("%s: %s, %d left", p.src.Name, doing, left)
	}}
}

// presence is whether something is there.
type presence int

const (
	unsure presence = iota // the source did not say
	nothing
	something
)

// present asks the same of many selectors, e.g. count(%s).
func (a asker) present(ctx context.Context, selectors []string, form string) map[string]presence {
	exprs := make([]string, len(selectors))
	for i, s := range selectors {
		exprs[i] = fmt.Sprintf(form, s)
	}
	answers := a.all(ctx, exprs)
	out := map[string]presence{}
	for i, s := range selectors {
		switch r := answers[exprs[i]]; {
		case r.Reason != "":
			out[s] = unsure
		case len(r.Series) == 0:
			out[s] = nothing
		default:
			out[s] = something
		}
	}
	return out
}

// key identifies a vantage point.
func (p vantagePoint) key() pointKey { return pointKey{p.service, p.o.ID, p.vantage} }

type pointKey struct {
	service, objective string
	vantage            int
}

// queriesOf are the measurements to take of the vantage points, by source.
func queriesOf(points []vantagePoint, plans *measure.Plans, now time.Time, want func(vantagePoint, measure.Query) bool) []measure.Query {
	byKey := map[pointKey]vantagePoint{}
	services := map[string]bool{}
	for _, p := range points {
		byKey[p.key()], services[p.service] = p, true
	}
	var out []measure.Query
	for _, name := range slices.Sorted(maps.Keys(services)) {
		for _, q := range plans.Service(name).Pass(now) {
			if p, ok := byKey[pointKey{q.ID.Service, q.ID.Objective, q.ID.Vantage}]; ok && want(p, q) {
				out = append(out, q)
			}
		}
	}
	return out
}
