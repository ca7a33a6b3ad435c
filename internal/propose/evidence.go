package propose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// What the evidence holds at most, so that its size does not depend on the
// fleet, nor on what others can make more of.
const (
	maxObjectives   = 20
	maxBreakdowns   = 8
	maxRows         = 10
	maxChanges      = 5
	maxDependencies = 20
	maxTried        = 10
)

// Evidence is what a model may know of a request, as JSON with one fact a
// line: measured numbers, names of reviewed documents, words of the catalogue,
// and placeholders for what anybody else wrote. No label's value, version,
// annotation, description, source's message or other free text is in it, unless
// the document lists the label in showValues and the value is one plain word,
// or it is a word that the catalogue shows in this pass anyway. Equal requests
// give equal bytes.
func Evidence(r Request) []byte { return newEvidence(r).bytes() }

// evidence is the document. A test refuses any field whose type would let a
// stranger's text through.
type evidence struct {
	Service             serviceFacts
	Objectives          []objectiveFacts
	ObjectivesOmitted   int
	Breakdowns          []breakdownFacts
	BreakdownsOmitted   int
	Changes             []changeFacts
	ChangesOmitted      int
	Dependencies        []dependencyFacts
	DependenciesOmitted int
	Tried               []triedFacts
	TriedOmitted        int
	Remaining           number
	Catalogue           []actionFacts
}

// newEvidence builds the document in the order in which it is written, for that
// is the order in which placeholders are numbered.
func newEvidence(r Request) evidence {
	a := r.Assessment
	n := newRegister(r)
	e := evidence{
		Service: serviceFacts{
			Name: word(r.Service.Name), State: word(a.State), Reason: word(a.Reason),
			SinceSeconds: ago(r.Now, r.Since), Warming: a.Warming,
		},
		Remaining: remaining(r, ""),
	}
	objectives := most(a.Objectives, maxObjectives, func(o compare.Objective) int { return rank(o.State) })
	e.ObjectivesOmitted = len(a.Objectives) - len(objectives)
	for _, o := range objectives {
		e.Objectives = append(e.Objectives, factsOfObjective(n, o))
	}
	e.BreakdownsOmitted = max(0, len(r.Breakdowns)-maxBreakdowns)
	for i := range len(r.Breakdowns) - e.BreakdownsOmitted {
		e.Breakdowns = append(e.Breakdowns, factsOfBreakdown(n, r, i))
	}
	e.Changes, e.ChangesOmitted = factsOfChanges(n, r)
	e.Dependencies, e.DependenciesOmitted = factsOfDependencies(r)
	older := max(0, len(r.Tried)-maxTried)
	e.TriedOmitted = r.TriedOmitted + older
	for _, t := range r.Tried[older:] {
		e.Tried = append(e.Tried, factsOfTried(n, r, t))
	}
	for _, it := range r.Catalogue {
		e.Catalogue = append(e.Catalogue, factsOfItem(n, r, it))
	}
	return e
}

// most keeps so many, those of the lowest rank, in their order.
func most[T any](all []T, limit int, rank func(T) int) []T {
	if len(all) <= limit {
		return all
	}
	at := make([]int, len(all))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int { return cmp.Compare(rank(all[i]), rank(all[j])) })
	at = at[:limit]
	slices.Sort(at)
	out := make([]T, limit)
	for i, j := range at {
		out[i] = all[j]
	}
	return out
}

// rank puts what is wrong before what is well.
func rank(s compare.State) int {
	switch s {
	case compare.Breached:
		return 0
	case compare.Met:
		return 2
	}
	return 1
}

func (e evidence) bytes() []byte {
	var d document
	d.member("service", e.Service)
	list(&d, "objectives", e.Objectives)
	d.member("objectivesOmitted", e.ObjectivesOmitted)
	list(&d, "breakdowns", e.Breakdowns)
	d.member("breakdownsOmitted", e.BreakdownsOmitted)
	list(&d, "changes", e.Changes)
	d.member("changesOmitted", e.ChangesOmitted)
	d.member("dependencies", notNil(e.Dependencies))
	d.member("dependenciesOmitted", e.DependenciesOmitted)
	list(&d, "tried", e.Tried)
	d.member("triedOmitted", e.TriedOmitted)
	d.member("autonomyBudgetRemaining", e.Remaining)
	list(&d, "catalogue", e.Catalogue)
	return d.end()
}

// document writes one JSON object with one entry a line, which reads well and
// costs few tokens.
type document struct{ out bytes.Buffer }

func (d *document) key(name string) {
	if d.out.Len() == 0 {
		d.out.WriteString("{\n")
	} else {
		d.out.WriteString(",\n")
	}
	d.out.WriteString(strconv.Quote(name) + ":")
}

func (d *document) value(v any) {
	b, err := json.Marshal(v)
	if err != nil { // not reached: every type here has a JSON form
		b = []byte(`"` + unknownWord + `"`)
	}
	d.out.Write(b)
}

func (d *document) member(name string, v any) {
	d.key(name)
	d.value(v)
}

func list[T any](d *document, name string, all []T) {
	d.key(name)
	d.out.WriteByte('[')
	for i, one := range all {
		if i > 0 {
			d.out.WriteByte(',')
		}
		d.out.WriteByte('\n')
		d.value(one)
	}
	d.out.WriteByte(']')
}

func notNil[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func (d *document) end() []byte {
	d.out.WriteString("\n}\n")
	return d.out.Bytes()
}

// ago is how long before now something was; at least 0, because the ledger may
// stamp an entry a moment after the instant of its pass.
func ago(now, at time.Time) number {
	s := before(now, at)
	if s < 0 {
		return 0
	}
	return s
}

// before is how many seconds one time is before another; negative after it.
func before(then, at time.Time) number {
	if at.IsZero() || then.IsZero() {
		return notKnown
	}
	return number(math.Round(then.Sub(at).Seconds()))
}

func ratio(m measure.Measurement) number {
	if !m.Known() || (m.HasEvents && m.Total == 0) {
		return notKnown
	}
	return number(m.ErrorRatio)
}

// remaining is the autonomy budget left of an action; of all for "".
func remaining(r Request, action string) number {
	if left, ok := r.Remaining[action]; ok {
		return number(left)
	}
	return notKnown
}
