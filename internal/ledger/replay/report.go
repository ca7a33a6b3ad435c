package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// mostFaults is how many decisions that were not reproduced are named; the
// others are counted.
const mostFaults = 100

// Summary counts decisions.
type Summary struct {
	// Decisions are those in the time and of the service that were asked for:
	// Reproduced, NotReproduced and NotReplayable together.
	Decisions, Reproduced, NotReproduced, NotReplayable int
	// Of the reproduced ones: Changed bind otherwise, Loosened and Tightened of
	// them in that way. OtherReasons come out alike by other rules, Hidden only
	// because floors bind.
	Changed, Loosened, Tightened, OtherReasons, Hidden int
}

// Report is what changes, by service, action and rules. Its size does not grow
// with the past.
type Report struct {
	Summary

	items map[string]*Item
	// Faults are decisions that were not reproduced, the first hundred of them.
	Faults []Judged
	why    map[string]*Skipped
}

// Item is decisions of one action that change alike.
type Item struct {
	Service, Action string
	Old, New        Stand
	Difference      gate.Difference
	// Appeared are the rules that fire under the new policy alone, Gone those of
	// the recorded one alone; with the words of the last of these decisions.
	Appeared, Gone []gate.Said
	Count          int
	// First and Last are ids of decisions, with their times.
	First, Last         string
	FirstTime, LastTime time.Time

	entry uint64
}

// Stand is what counts of a decision when two are compared.
type Stand struct {
	Verdict gate.Verdict
	Hold    bool
	// Lasting is the verdict once what passes has passed, with its Needs.
	Lasting gate.Verdict
	Needs   []gate.Need
	// Fault is the code of the ruling's fault; "" without.
	Fault string
}

// Skipped are decisions that cannot be replayed, for one reason.
type Skipped struct {
	Why         string
	Count       int
	First, Last string
}

// Add counts one decision.
func (r *Report) Add(j Judged) {
	r.Decisions++
	switch j.Status {
	case NotReplayable:
		r.NotReplayable++
		r.skip(j)
	case NotReproduced:
		r.NotReproduced++
		if len(r.Faults) < mostFaults {
			r.Faults = append(r.Faults, j)
		}
	default:
		r.Reproduced++
		r.compare(j)
	}
}

func (r *Report) skip(j Judged) {
	if r.why == nil {
		r.why = map[string]*Skipped{}
	}
	s := r.why[j.Why]
	if s == nil {
		s = &Skipped{Why: j.Why, First: j.ID}
		r.why[j.Why] = s
	}
	s.Count, s.Last = s.Count+1, j.ID
}

func (r *Report) compare(j Judged) {
	d := j.Difference
	switch {
	case d.Binding():
		r.Changed++
	case d.Hidden:
		r.Hidden++
	case d.Reasons:
		r.OtherReasons++
	default:
		return
	}
	if d.Loosened {
		r.Loosened++
	}
	if d.Tightened {
		r.Tightened++
	}
	r.put(j)
}

func (r *Report) put(j Judged) {
	was, is := j.Old.Now.Ruling.Said(), j.New.Now.Ruling.Said()
	next := Item{
		Service: j.Service, Action: j.Action, Old: standOf(j.Old), New: standOf(j.New), Difference: j.Difference,
		Appeared: without(is, was), Gone: without(was, is),
		First: j.ID, FirstTime: j.Time, entry: j.Entry,
	}
	if r.items == nil {
		r.items = map[string]*Item{}
	}
	key := next.key()
	if known := r.items[key]; known != nil {
		next.Count, next.First, next.FirstTime, next.entry = known.Count, known.First, known.FirstTime, known.entry
	}
	next.Count++
	next.Last, next.LastTime = j.ID, j.Time
	r.items[key] = &next
}

func standOf(o gate.Outlook) Stand {
	s := Stand{Verdict: o.Asked.Verdict, Hold: o.Asked.Hold, Lasting: o.Lasting.Verdict, Needs: o.Lasting.Needs}
	s.Fault, _, _ = strings.Cut(o.Now.Ruling.Fault, ":")
	return s
}

// without are the rules of a that b does not have in the same set.
func without(a, b []gate.Said) []gate.Said {
	return slices.DeleteFunc(slices.Clone(a), func(x gate.Said) bool {
		return slices.ContainsFunc(b, func(y gate.Said) bool { return ruleKey(x) == ruleKey(y) })
	})
}

func ruleKey(s gate.Said) string { return s.Set.String() + " " + s.Rule.Reason }

// key is what decisions of one Item have in common.
func (i Item) key() string {
	parts := []string{i.Service, i.Action}
	for _, s := range []Stand{i.Old, i.New} {
		parts = append(parts, lines[any](s.Verdict, s.Hold, s.Lasting, s.Fault)...)
		parts = append(parts, needLines(s.Needs)...)
		parts = append(parts, "")
	}
	for _, said := range [][]gate.Said{i.Appeared, i.Gone} {
		for _, s := range said {
			parts = append(parts, ruleKey(s))
		}
		parts = append(parts, "")
	}
	return strings.Join(parts, "\x00")
}

// needLines are needs without their reasons, each once: whose rule asks is in the
// rules.
func needLines(needs []gate.Need) []string {
	var out []string
	for _, n := range needs {
		n.Reason = ""
		out = append(out, lines(n)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Items are the changes by service and action, and within them in the order of
// their first decisions: with all also those that bind nobody.
func (r *Report) Items(all bool) []Item {
	out := []Item{}
	for _, i := range r.items {
		if all || i.Difference.Binding() {
			out = append(out, *i)
		}
	}
	slices.SortFunc(out, func(a, b Item) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Action, b.Action),
			cmp.Compare(a.entry, b.entry), strings.Compare(a.key(), b.key()))
	})
	return out
}

// Skips are the reasons for which decisions cannot be replayed, most frequent
// first.
func (r *Report) Skips() []Skipped {
	out := []Skipped{}
	for _, s := range r.why {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Why, b.Why))
	})
	return out
}
