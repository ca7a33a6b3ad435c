package gate

import "slices"

// Finding is one rule or floor that spoke of a case.
type Finding struct {
	// Effect is what it does to the verdict: deny, silent (policy grants nothing),
	// escalate, hold, approval or auto, strictest first.
	Effect string `json:"effect"`
	Reason Reason `json:"reason"`
	// Deciding: the verdict is what this one, alone or with others, makes it. What
	// is milder only stands beside it.
	Deciding bool `json:"deciding"`
}

// Findings are what Join decides by, in the order of its reasons.
func (f Floors) Findings(r Ruling) []Finding {
	fs, _ := f.findings(r)
	d := f.Join(r)
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b finding) int { return int(a.Effect) - int(b.Effect) })
	out := make([]Finding, 0, len(fs))
	for _, x := range fs {
		out = append(out, Finding{Effect: effectWords[x.Effect], Reason: x.Reason, Deciding: d.decidedBy(x.Effect)})
	}
	return out
}

// decidedBy reports whether a finding of that effect made the verdict. A held
// decision is what passes, and a policy that is silent beside it.
func (d Decision) decidedBy(e effect) bool {
	if d.Hold {
		return e == effectHold
	}
	return e != effectHold && e.cap() == d.Verdict
}
