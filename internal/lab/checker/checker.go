// Package checker takes a ledger's export and the actuator's own journal, and
// names the invariants that broke.
//
// It is a second opinion, so it shares no judgement with what it checks: it
// decodes entries, and keeps its own books. It calls no fold, no transition, no
// gate and no budget of the product; a bug in those cannot hide itself here.
package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Budget is the size of an autonomy budget. Without a period it is not
// checked.
type Budget struct {
	Period   time.Duration
	Capacity float64
}

// Options are what the ledger does not say of itself: limits, and how exact
// clocks are. A limit that is zero is not checked.
type Options struct {
	// Slack is how long a request may be under way: an effect that long after
	// its claim expired is no violation.
	Slack time.Duration
	// Skew is how far the clocks of actuator, hosts and store may differ.
	Skew time.Duration
	// MinSpacing is between two starts on one service.
	MinSpacing time.Duration
	// Sweep is the sweep interval; with it a claim by a ticket that waited too
	// long is found.
	Sweep time.Duration
	// EffectsPerHour and EffectsPerServicePerHour cap the starts.
	EffectsPerHour, EffectsPerServicePerHour int
	// Budget is of every action of every service but those in Budgets, which
	// are named "service/action"; Global is of all of them together.
	Budget, Global Budget
	Budgets        map[string]Budget
	// DuplicateDelivery: something between may deliver one request twice. Then
	// the same bytes under the same signature are not a second send; a second
	// effect is still one.
	DuplicateDelivery bool
	// Acknowledged are the positions of appends that somebody was told of.
	Acknowledged []ledger.Position
}

// Violation is one instance of an invariant that broke.
type Violation struct {
	Invariant Invariant `json:"invariant"`
	Word      string    `json:"word"`
	Key       gate.Key  `json:"key,omitempty"`
	// Seq is the entry that shows it; 0 where only the journal does.
	Seq  uint64 `json:"seq,omitempty"`
	Text string `json:"text"`
}

// String is one line for people.
func (v Violation) String() string {
	s := string(v.Invariant)
	if v.Word != s {
		s += " " + v.Word
	}
	if v.Seq > 0 {
		s += fmt.Sprintf(" at entry %d", v.Seq)
	}
	if v.Key != "" {
		s += " of " + string(v.Key)
	}
	return s + ": " + v.Text
}

// Checked is how often an invariant was held against something. One with no
// instance said nothing.
type Checked struct {
	Invariant Invariant `json:"invariant"`
	Word      string    `json:"word"`
	Instances int       `json:"instances"`
	Broken    int       `json:"broken"`
}

// Report is what a check found.
type Report struct {
	// Checked has every invariant, in a fixed order.
	Checked    []Checked   `json:"checked"`
	Violations []Violation `json:"violations"`
	Entries    int         `json:"entries"`
	// Keys were claimed, Requests reached the actuator, Effects changed the
	// target.
	Keys     int `json:"keys"`
	Requests int `json:"requests"`
	Effects  int `json:"effects"`
	// DoubleEffects are effects beyond the first of a key.
	DoubleEffects int `json:"doubleEffects"`
	// AfterHorizon are effects later than the action's timeout and maxLateness
	// allow: the actuator broke its promise, which no ledger can mend.
	AfterHorizon     int `json:"afterHorizon"`
	Acknowledged     int `json:"acknowledged"`
	LostAcknowledged int `json:"lostAcknowledged"`
}

// Clean reports whether nothing broke.
func (r Report) Clean() bool { return len(r.Violations) == 0 }

// Named are the invariants that broke, each once, in the order of Checked.
func (r Report) Named() []Invariant {
	var out []Invariant
	for _, c := range r.Checked {
		if c.Broken > 0 {
			out = append(out, c.Invariant)
		}
	}
	return out
}

// Add counts another history in, so that many can be told of as one.
func (r Report) Add(o Report) Report {
	sum := r
	sum.Checked = slices.Clone(o.Checked)
	if len(sum.Checked) == 0 {
		sum.Checked = slices.Clone(r.Checked)
	} else {
		for i := range r.Checked {
			sum.Checked[i].Instances += r.Checked[i].Instances
			sum.Checked[i].Broken += r.Checked[i].Broken
		}
	}
	sum.Violations = slices.Concat(r.Violations, o.Violations)
	sum.Entries += o.Entries
	sum.Keys += o.Keys
	sum.Requests += o.Requests
	sum.Effects += o.Effects
	sum.DoubleEffects += o.DoubleEffects
	sum.AfterHorizon += o.AfterHorizon
	sum.Acknowledged += o.Acknowledged
	sum.LostAcknowledged += o.LostAcknowledged
	return sum
}

// Check holds a ledger against a journal. A nil journal is none at all: then
// only the ledger is checked. An empty one is that of an actuator to which
// nothing came.
func Check(x ledger.Exported, journal []executetest.Record, o Options) Report {
	r := newRun(x, o)
	r.chain(x.Entries)
	for _, e := range x.Entries {
		body, err := ledger.Decode(e)
		if err != nil {
			r.broke(ChainWhole, "", e.Seq, "the entry cannot be read: %v", err)
			continue
		}
		r.now = e
		r.see(body)
	}
	r.acknowledged(x.Entries)
	if journal != nil {
		r.journal(journal)
		r.agree()
	}
	r.frozenStarts()
	return r.done()
}

// Corrupt is the report of an export that is broken: nothing else in it can be
// believed.
func Corrupt(err error) Report {
	r := newRun(ledger.Exported{}, Options{})
	r.hold(ChainWhole)
	r.broke(ChainWhole, "", 0, "%v", err)
	return r.done()
}

func (r *run) done() Report {
	for _, i := range invariants {
		c := Checked{Invariant: i.name, Word: i.word, Instances: r.instances[i.name]}
		for _, v := range r.report.Violations {
			if v.Invariant == i.name {
				c.Broken++
			}
		}
		r.report.Checked = append(r.report.Checked, c)
	}
	r.report.Keys = len(r.lives)
	slices.SortStableFunc(r.report.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(rank(a.Invariant), rank(b.Invariant)),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Text, b.Text))
	})
	return r.report
}

// hold counts an instance.
func (r *run) hold(i Invariant) { r.instances[i]++ }

func (r *run) broke(i Invariant, key gate.Key, seq uint64, format string, args ...any) {
	r.report.Violations = append(r.report.Violations, Violation{
		Invariant: i, Word: i.Word(), Key: key, Seq: seq, Text: fmt.Sprintf(format, args...),
	})
}
