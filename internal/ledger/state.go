package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// State is the fold of a chain. NewState is that of an empty one.
//
// Whatever a State's maps and pointers lead to is never changed once it is
// there: Apply puts a changed copy in its place. So one lock is enough for a
// State that several passes share: hold it while reading the maps themselves
// (or while calling a method), and keep what was read, or a Clone, for as long
// as needed afterwards. Readers change nothing.
type State struct {
	Head Position
	// Time is that of the last entry.
	Time     time.Time
	Services map[string]*Service
	// Effects hold the claims by key, and EffectOrder their keys, oldest claim
	// first: all that are under way, and the newest of the others. What older
	// ones leave behind is in Service.Spent, Service.Actions and Charged.
	Effects     map[gate.Key]*Effect
	EffectOrder []gate.Key
	// Unsettled are the keys of the effects that lock their service and
	// target, oldest claim first.
	Unsettled []gate.Key
	// Charged are the charges of effects that were forgotten.
	Charged []budget.Charge
	// Starts are the sendings in the order of their entries, hence of time, of
	// at least the last day.
	Starts []Start
	// Calls are the askings of models of the last day, in the order of their
	// entries.
	Calls []propose.Call
	// Decisions by id, and their ids in order: the newest, and those that
	// something else here names. Forgotten counts the others.
	Decisions     map[string]*Decision
	DecisionOrder []string
	Forgotten     int
	Tickets       map[string]*approve.Ticket
	// Freezes by id, and those that were lifted: a freeze file that is found
	// again after its thaw is removed, not believed.
	Freezes map[string]Freeze
	Thawed  map[string]Thaw
	// FrozenAt is the number of the newest freeze entry of a service ("" for
	// all): a claim from before it is not started.
	FrozenAt map[string]uint64
	Pages    map[string]*escalate.Page
	// Cards are what a channel holds of tickets, by ticket.
	Cards map[string]*approve.Posted
	// Deliveries by page and receiver.
	Deliveries map[string]map[string]escalate.Delivery
	Resets     []budget.Reset
	// Storm is the storm brake.
	Storm StormAt
	// Set is the digest of the documents last loaded.
	Set string
	// Policy and ShadowPolicy are the revisions last recorded.
	Policy, ShadowPolicy string
	// ClaimsMoved is the position of the last claim, outcome, freeze, thaw, ceiling
	// or storm entry: a claim whose decision was folded before it is lost.
	ClaimsMoved uint64
	// SpentUntil is the time (unix) until which every window counts as spent,
	// because a chain was adopted then.
	SpentUntil int64
	// Ceilings by service and action ("" for all of it).
	Ceilings map[string]map[string]CeilingAt
	// Checkpoints are the digests of the newest checkpoints, oldest first, and
	// CheckpointAt is the position of the last.
	Checkpoints  []string
	CheckpointAt uint64
	// Skipped are the entries that contradicted earlier ones and changed
	// nothing: of two answers, outcomes or settlements the first is final. The
	// drafts of this package never make one.
	Skipped []Skip

	// whole: nothing is forgotten (NewHistory).
	whole bool
}

// Skip is an entry that changed nothing, and why.
type Skip struct {
	Seq  uint64
	Kind Kind
	Why  string
}

// Start is one sending.
type Start struct {
	Service string
	Key     gate.Key
	At      time.Time
}

// Service is what the chain says of one service.
type Service struct {
	Name string
	// State is "" until the first reading was recorded.
	State  compare.State
	Reason compare.Reason
	// SourceFault names the source when Unknown by its fault.
	SourceFault string
	// ErrorRatio is that of the last state entry, for people.
	ErrorRatio float64
	// Since is the time of the last change of state.
	Since time.Time
	// Episode is "e" and the number of its first entry; "" while Met and held.
	Episode      string
	EpisodeSince time.Time
	// HeldSince is from when Met counts towards holdFor: the change to Met or
	// a later gap. Zero unless Met.
	HeldSince time.Time
	// EverMet since its documents were loaded.
	EverMet bool
	// LastMet is the time of the entry that last entered or left Met.
	LastMet time.Time
	// Documents is the digest last loaded, "" while no document names the
	// service, and DocumentsAt when it changed.
	Documents   string
	DocumentsAt time.Time
	// QuietSince is from when the service has had no episode; zero during one
	// and before the first reading.
	QuietSince time.Time
	// QuietFor is the longest time without an episode that has ended since the
	// documents changed.
	QuietFor time.Duration
	// Windows hold what was asked, proposed and decided, by window id; only
	// the newest are kept.
	Windows map[string]*Window
	// Mark is the highest window ever recorded: current window ids never
	// decrease, but by a person's word (Lowered).
	Mark gate.WindowID
	// Spent is the highest window ever claimed: it and all earlier ones are
	// spent.
	Spent gate.WindowID
	// Actions are the records by name.
	Actions map[string]Record
	// Changes are the newest that were posted, newest first.
	Changes []measure.Change
	// Asked is what the models of the present or last episode cost.
	Asked Asking
	// Reader is the process that recorded the state, and StateAt when.
	Reader  string
	StateAt time.Time
	// Effects are the keys of this service's effects that are kept, oldest claim
	// first; Tickets the ids of its tickets, likewise.
	Effects []gate.Key
	Tickets []string
	// Decision is the id of the last decision, "" without.
	Decision string
}

// Asking is what was asked of models in an episode.
type Asking struct {
	Episode  string
	Requests int
	// InputTokens and OutputTokens are the endpoints' own counts.
	InputTokens, OutputTokens int
}

// Window is what happened in one action window of one service.
type Window struct {
	ID       string
	Asked    *Asked
	AskedAt  time.Time
	Proposed *Proposed
	// ProposalAt is when it was recorded.
	ProposalAt time.Time
	// Decision is the id of the last decision in it.
	Decision string
	// Final: denied, expired, none or malformed; nothing is judged again.
	Final string
}

// Decision is one judged proposal with what became of it.
type Decision struct {
	// ID is "d" and the number of its entry.
	ID      string
	Time    time.Time
	Service string
	Decided
	// Effect, Outcome and Charge follow its claim; none without.
	Effect  execute.Effect
	Outcome compare.Outcome
	Charge  float64
}

// The values of Window.Final.
const (
	FinalDenied    = "denied"
	FinalExpired   = "expired"
	FinalNone      = "none"
	FinalMalformed = "malformed"
)

// keptWindows bounds Service.Windows. A ticket's window must outlive the wait
// for its answer, which is a few action windows.
const keptWindows = 8

// DecisionID names the decision of an entry.
func DecisionID(seq uint64) string { return fmt.Sprintf("d%d", seq) }

// TicketID names the ticket of an entry.
func TicketID(seq uint64) string { return fmt.Sprintf("t%d", seq) }

// EpisodeID names the episode that an entry begins.
func EpisodeID(seq uint64) string { return fmt.Sprintf("e%d", seq) }

// NewState returns the state of an empty chain.
func NewState() *State {
	return &State{
		Services: map[string]*Service{}, Effects: map[gate.Key]*Effect{},
		Decisions: map[string]*Decision{}, Tickets: map[string]*approve.Ticket{},
		Freezes: map[string]Freeze{}, Thawed: map[string]Thaw{}, FrozenAt: map[string]uint64{},
		Cards: map[string]*approve.Posted{}, Pages: map[string]*escalate.Page{}, Deliveries: map[string]map[string]escalate.Delivery{},
		Ceilings: map[string]map[string]CeilingAt{},
	}
}

// NewHistory returns the state of an empty chain that forgets nothing: for
// looking at a long past, whose size it then has.
func NewHistory() *State {
	s := NewState()
	s.whole = true
	return s
}

// Clone returns a state that later entries of either do not change in the
// other. It copies the maps and shares what they lead to.
func (s *State) Clone() *State {
	c := *s
	c.Services, c.Effects = maps.Clone(s.Services), maps.Clone(s.Effects)
	c.Decisions, c.Tickets = maps.Clone(s.Decisions), maps.Clone(s.Tickets)
	c.Freezes, c.Thawed, c.FrozenAt = maps.Clone(s.Freezes), maps.Clone(s.Thawed), maps.Clone(s.FrozenAt)
	c.Cards = maps.Clone(s.Cards)
	c.Pages, c.Deliveries = maps.Clone(s.Pages), maps.Clone(s.Deliveries)
	// Clipped, an append to the copy moves it instead of writing into spare
	// room that the original uses too.
	c.EffectOrder, c.Starts, c.Calls = slices.Clip(s.EffectOrder), slices.Clip(s.Starts), slices.Clip(s.Calls)
	c.DecisionOrder, c.Resets = slices.Clip(s.DecisionOrder), slices.Clip(s.Resets)
	c.Unsettled, c.Skipped = slices.Clip(s.Unsettled), slices.Clip(s.Skipped)
	c.Charged, c.Checkpoints = slices.Clip(s.Charged), slices.Clip(s.Checkpoints)
	c.Ceilings = maps.Clone(s.Ceilings)
	return &c
}

// edit returns a copy of the service to change and to put back.
func (s *State) edit(name string) *Service {
	if have, ok := s.Services[name]; ok {
		c := *have
		return &c
	}
	return &Service{Name: name}
}

func (s *State) put(sv *Service) { s.Services[sv.Name] = sv }

// Service returns what the chain says of a service; ok is false when it says
// nothing. The value stays as it is when the state moves on.
func (s *State) Service(name string) (sv Service, ok bool) {
	have, ok := s.Services[name]
	if !ok {
		return Service{Name: name}, false
	}
	return *have, true
}

// ServiceNames are those of the services that documents name, sorted.
func (s *State) ServiceNames() []string {
	var names []string
	for name, sv := range s.Services {
		if sv.Documents != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Window is the action window that holds now, or the newest ever recorded if
// that starts later: a clock that steps back frees no key.
func (sv Service) Window(now time.Time, length time.Duration) gate.WindowID {
	if w := gate.WindowAt(now, length); w.Start > sv.Mark.Start || sv.Mark == (gate.WindowID{}) {
		return w
	}
	return sv.Mark
}

// DocumentsSettled reports whether the service went one holdFor without an
// episode since its documents changed. An unwatched time does not count.
func (sv Service) DocumentsSettled(holdFor time.Duration, now time.Time) bool {
	return sv.QuietFor >= holdFor || sv.Episode == "" && sv.quiet(now) >= holdFor
}

// quiet is how long the service has been watched without an episode since its
// documents changed; negative or zero during one.
func (sv Service) quiet(now time.Time) time.Duration {
	if sv.QuietSince.IsZero() || sv.HeldSince.IsZero() {
		return 0
	}
	from := sv.QuietSince
	for _, t := range []time.Time{sv.DocumentsAt, sv.HeldSince} {
		if t.After(from) {
			from = t
		}
	}
	return now.Sub(from)
}

// Frozen returns the freezes that stop a service at now, those of everything
// included, sorted by id.
func (s *State) Frozen(service string, now time.Time) []Freeze {
	var fs []Freeze
	for _, id := range slices.Sorted(maps.Keys(s.Freezes)) {
		f := s.Freezes[id]
		if (f.Service == "" || f.Service == service) && (f.Until.IsZero() || now.Before(f.Until)) {
			fs = append(fs, f)
		}
	}
	return fs
}

// Refused are the tickets of an episode of a service that a person denied or
// that expired, oldest first: until the episode ends they hold their action,
// and equivalent ones on the same target.
func (s *State) Refused(service, episode string) []approve.Ticket {
	sv, _ := s.Service(service)
	var ts []approve.Ticket
	for _, id := range sv.Tickets {
		t := s.Tickets[id]
		if t.Episode == episode && (t.State == approve.Denied || t.State == approve.Expired) {
			ts = append(ts, *t)
		}
	}
	return ts
}

// OpenTicket returns the service's open or approved ticket that was not
// claimed yet.
func (s *State) OpenTicket(service string) (approve.Ticket, bool) {
	sv, _ := s.Service(service)
	if len(sv.Tickets) == 0 {
		return approve.Ticket{}, false
	}
	// Only the newest can be: while one is open, no other is accepted.
	t := s.Tickets[sv.Tickets[len(sv.Tickets)-1]]
	if t.State != approve.Open && (t.State != approve.Approved || !t.ClaimedAt.IsZero()) {
		return approve.Ticket{}, false
	}
	return *t, true
}

// OpenTickets counts the tickets that wait for people. It looks at tickets and
// not at services, of which a fleet has many more.
func (s *State) OpenTickets() int {
	n := 0
	for _, t := range s.Tickets {
		if t.State == approve.Open {
			n++
		}
	}
	return n
}
