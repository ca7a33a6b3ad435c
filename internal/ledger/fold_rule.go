package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// The folds of what people decide.

func foldFreeze(s *State, e Entry, b Freeze) string {
	if _, ok := s.Thawed[b.ID]; ok {
		return "the freeze was lifted already"
	}
	if _, ok := s.Freezes[b.ID]; ok {
		return "the freeze is recorded already"
	}
	s.Freezes[b.ID], s.FrozenAt[b.Service], s.ClaimsMoved = b, e.Seq, e.Seq
	return ""
}

func foldThaw(s *State, e Entry, b Thaw) string {
	if _, ok := s.Thawed[b.ID]; ok {
		return "the freeze was lifted already"
	}
	delete(s.Freezes, b.ID)
	s.Thawed[b.ID], s.ClaimsMoved = b, e.Seq
	return ""
}

func foldReset(s *State, e Entry, b Reset) string {
	r := budget.Reset{Service: e.Service, Action: b.Action, At: e.Time, Until: b.Until, By: b.By, Reason: b.Reason}
	// One that ends no later than the new one is never looked at again.
	s.Resets = slices.DeleteFunc(slices.Clone(s.Resets), func(old budget.Reset) bool {
		return old.Service == r.Service && old.Action == r.Action &&
			(r.Until.IsZero() || !old.Until.IsZero() && !old.Until.After(r.Until))
	})
	s.Resets = append(s.Resets, r)
	sv, _ := s.Service(e.Service)
	for action := range sv.Actions {
		// A reset of a service without an action is of all its actions.
		if b.Action == "" || b.Action == action {
			s.record(e.Service, action, func(r *Record) {
				r.Worsened.pardon(b.Until)
				r.Nothing.pardon(b.Until)
			})
		}
	}
	s.forgive(e.Service, b.Action)
	return ""
}

// CeilingAt is a ceiling that a person or a demotion set.
type CeilingAt struct {
	Ceiling
	At time.Time
	// Before holds again when Until has passed, if it holds longer, and beside a
	// demotion; nil without.
	Before *CeilingAt `json:",omitempty"`
}

func (c *CeilingAt) holds(now time.Time) bool { return c.Until.IsZero() || now.Before(c.Until) }

// binding is the newest word of a person that holds at now, or the demotion since
// that left least of it: a demotion lowers what was there and raises nothing, not
// even what a raise with an end had lifted. It is nil where nothing was said.
func (c *CeilingAt) binding(now time.Time) (lowest *CeilingAt) {
	for ; c != nil; c = c.Before {
		if !c.holds(now) {
			continue
		}
		if lowest == nil || c.To < lowest.To {
			lowest = c
		}
		if c.By != DemotedBy {
			break
		}
	}
	return lowest
}

func (c *CeilingAt) at(now time.Time) gate.Verdict {
	if b := c.binding(now); b != nil {
		return b.To
	}
	return gate.Auto
}

// after is the newest of the ceilings that holds longer than until; none holds
// longer than what has no end.
func (c *CeilingAt) after(until time.Time) *CeilingAt {
	if until.IsZero() {
		return nil
	}
	for c != nil && !c.Until.IsZero() && !c.Until.After(until) {
		c = c.Before
	}
	return c
}

// standing leaves out what has ended by now, so that a ceiling which is raised
// and demoted for years stays short.
func (c *CeilingAt) standing(now time.Time) *CeilingAt {
	if c == nil {
		return nil
	}
	rest := c.Before.standing(now)
	if !c.holds(now) {
		return rest
	}
	kept := *c
	kept.Before = rest
	return &kept
}

// ceiling is what was set of an action; nil without.
func (s *State) ceiling(service, action string) *CeilingAt {
	c, ok := s.Ceilings[service][action]
	if !ok {
		return nil
	}
	return &c
}

func foldCeiling(s *State, e Entry, b Ceiling) string {
	of := maps.Clone(s.Ceilings[e.Service])
	if of == nil {
		of = map[string]CeilingAt{}
	}
	before := s.ceiling(e.Service, b.Action).standing(e.Time)
	if b.By != DemotedBy {
		before = before.after(b.Until)
	}
	of[b.Action] = CeilingAt{Ceiling: b, At: e.Time, Before: before}
	s.Ceilings[e.Service] = of
	s.forgive(e.Service, b.Action)
	s.ClaimsMoved = e.Seq
	return ""
}

// Ceiling is the highest verdict that the ledger lets an action of a service
// get at now: its own, or the service's if that is lower.
func (s *State) Ceiling(service, action string, now time.Time) gate.Verdict {
	lowest := gate.Auto
	for _, name := range []string{"", action} {
		lowest = min(lowest, s.ceiling(service, name).at(now))
	}
	return lowest
}

// Lowering is the ceiling that lowers what an action may get at now, with who set
// it and why; ok is false where none does.
func (s *State) Lowering(service, action string, now time.Time) (c Ceiling, ok bool) {
	for _, name := range []string{"", action} {
		if b := s.ceiling(service, name).binding(now); b != nil && b.To < gate.Auto && (!ok || b.To < c.To) {
			c, ok = b.Ceiling, true
		}
	}
	return c, ok
}

// CeilingByPeople is the ceiling without the demotions: an undo takes back what
// an action was demoted for.
func (s *State) CeilingByPeople(service, action string, now time.Time) gate.Verdict {
	lowest := gate.Auto
	for _, name := range []string{"", action} {
		for c := s.ceiling(service, name); c != nil; c = c.Before {
			if c.By != DemotedBy && c.holds(now) {
				lowest = min(lowest, c.To)
				break
			}
		}
	}
	return lowest
}

// CeilingDraft records a ceiling that differs from the one in force.
func CeilingDraft(s *State, service string, c Ceiling, now time.Time) (Draft, error) {
	if s.ceiling(service, c.Action).at(now) == c.To {
		return Draft{}, fmt.Errorf("the ceiling is %s: %w", c.To, ErrExists)
	}
	return Draft{Kind: KindCeiling, Service: service, Body: c}, nil
}

// DemotedBy is who sets a ceiling that no person set.
const DemotedBy = "setpoint"

// Demotion is the ceiling that the measured outcomes of an action ask for: one
// rung below the one that it has now, which is what documents and ledger allow.
// ok is false where they ask for none. It is read from what stands, so a crash
// after the outcome only delays the entry, and facts count it before.
func (s *State) Demotion(service, action string, period time.Duration, rung gate.Verdict) (c Ceiling, ok bool) {
	sv, _ := s.Service(service)
	harmed := sv.Actions[action].Harmed
	if rung <= gate.Deny || len(harmed) == 0 || !budget.Demoted(harmed, period, harmed[len(harmed)-1]) {
		return Ceiling{}, false
	}
	return Ceiling{
		Action: action, To: rung - 1, By: DemotedBy,
		Reason: fmt.Sprintf("worsened %d times within %s, last judged at %s", budget.MaxWorsened, period, harmed[len(harmed)-1].UTC().Format(time.RFC3339)),
	}, true
}

// forgive gives actions ("" for all of the service) a fresh start: what they did
// before counts for no further demotion.
func (s *State) forgive(service, action string) {
	sv, _ := s.Service(service)
	for name, r := range sv.Actions {
		if len(r.Harmed) > 0 && (action == "" || action == name) {
			s.record(service, name, func(r *Record) { r.Harmed = nil })
		}
	}
}

func foldLowered(s *State, e Entry, b Lowered) string {
	s.ClaimsMoved = e.Seq
	if e.Time.Before(s.Time) {
		s.rewind(e.Time)
	}
	if e.Service == "" {
		return ""
	}
	to := startOf(b.To)
	sv := s.edit(e.Service)
	if to.Start >= sv.Mark.Start {
		return fmt.Sprintf("the mark of the service is %s", sv.Mark)
	}
	sv.Mark = to
	if sv.Spent.Start >= to.Start {
		// The windows before are spent. Which of the later ones are, the keys know,
		// which are unique for ever.
		sv.Spent = gate.WindowID{Start: to.Start - 1, Length: 1}
	}
	sv.Windows = maps.Clone(sv.Windows)
	maps.DeleteFunc(sv.Windows, func(id string, _ *Window) bool { return startOf(id).Start > to.Start })
	s.put(sv)
	return ""
}

// clockAhead is why a claim or a ticket of a time to come is void.
const clockAhead = "clock-ahead"

// LoweredDrafts are the entries that lower the mark of each named service that
// lies in the future, and the time of the chain if that does, and end the claims
// and tickets of then. It is ErrNothing where nothing does: then no clock ran
// ahead.
func LoweredDrafts(s *State, windows map[string]gate.WindowID, by, reason string, now time.Time) ([]Draft, error) {
	var ds []Draft
	add := func(service, to string) {
		ds = append(ds, Draft{Kind: KindLowered, Service: service, Body: Lowered{To: to, By: by, Reason: reason}})
	}
	if s.Time.After(now) {
		add("", "")
	}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		if sv, known := s.Service(name); known && sv.Mark.Start > now.Unix() && windows[name].Start <= now.Unix() {
			add(name, windows[name].String())
		}
	}
	if len(ds) == 0 {
		return nil, fmt.Errorf("%w: no mark lies in the future, and neither does the newest entry, of %s", ErrNothing, s.Time.Format(time.RFC3339))
	}
	over, err := overtaken(s, now, clockAhead)
	return append(ds, over...), err
}

func foldAdopted(s *State, e Entry, _ Adopted) string {
	s.SpentUntil, s.ClaimsMoved = e.Time.Unix(), e.Seq
	return ""
}

func foldPolicy(s *State, _ Entry, b Policy) string {
	if b.Shadow {
		s.ShadowPolicy = b.Revision
	} else {
		s.Policy = b.Revision
	}
	return ""
}

// PolicyDraft records a policy that is not the one last recorded, with its
// packed bundle.
func PolicyDraft(s *State, p Policy, bundle []byte) (Draft, error) {
	if last := s.Policy; !p.Shadow && last == p.Revision || p.Shadow && s.ShadowPolicy == p.Revision {
		return Draft{}, fmt.Errorf("policy %s: %w", p.Revision, ErrExists)
	}
	if BlobDigest(bundle) != p.Revision {
		return Draft{}, fmt.Errorf("policy %s: the bundle is another one", p.Revision)
	}
	return Draft{Kind: KindPolicy, Body: p, Blobs: [][]byte{bundle}}, nil
}
