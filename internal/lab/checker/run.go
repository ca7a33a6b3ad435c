package checker

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// run is one check under way: the books that it keeps of the entries before
// the one it looks at.
type run struct {
	o         Options
	blobs     map[string][]byte
	instances map[Invariant]int
	report    Report

	// now is the entry that is looked at.
	now ledger.Entry

	lives map[gate.Key]*life
	// order is that of the claims.
	order     []*life
	decisions map[string]decision
	tickets   map[string]*ticket
	states    map[string]compare.State
	windows   map[string]*windows
	// spentUntil is the start (unix) up to which every window is spent, because
	// a chain was adopted.
	spentUntil int64
	asked      map[string]int
	freezes    []ledger.Freeze
	thawed     map[string]bool
	resets     []reset
	starts     []*life
	// storm: the brake is on.
	storm bool
	// undone are the starts of undos, by the key that they take back.
	undone map[gate.Key]int
}

// life is what became of one key.
type life struct {
	service   string
	claim     ledger.Claim
	claimSeq  uint64
	claimedAt time.Time
	effect    execute.Effect
	startSeq  uint64
	startedAt time.Time
	// receipt and settled are the last of their kind; nil without.
	receipt *execute.Receipt
	settled *ledger.Settled
	// endSeq and settledAt are of the last receipt or settlement.
	endSeq    uint64
	settledAt time.Time
	outcome   *ledger.Outcome
	// frozenBy is a freeze in force at the start; "" without.
	frozenBy string
	// requests and effects are the journal's records of the key.
	requests, effects []executetest.Record
}

// open reports whether the key still locks its service and target.
func (l *life) open() bool {
	switch l.effect {
	case execute.Void, execute.Failed, execute.NoOp, execute.NotNow, execute.NotLanded:
		return false
	}
	return l.outcome == nil
}

// horizon is until when a lost effect may land, by the actuator's promise.
func (l *life) horizon() time.Time {
	return l.startedAt.Add(l.claim.Action.Timeout + l.claim.Action.MaxLateness)
}

type decision struct {
	service string
	body    ledger.Decided
}

func newRun(x ledger.Exported, o Options) *run {
	return &run{
		o: o, blobs: x.Blobs, instances: map[Invariant]int{},
		report: Report{Violations: []Violation{}, Entries: len(x.Entries)},
		lives:  map[gate.Key]*life{}, decisions: map[string]decision{}, tickets: map[string]*ticket{},
		states: map[string]compare.State{}, windows: map[string]*windows{}, spentUntil: -1 << 62,
		asked: map[string]int{}, thawed: map[string]bool{}, undone: map[gate.Key]int{},
	}
}

// see takes the body of the present entry into the books, and checks what it
// may not be.
func (r *run) see(body any) {
	switch b := body.(type) {
	case ledger.StateChange:
		r.states[r.now.Service] = b.To
	case ledger.Decided:
		r.decisions[fmt.Sprintf("d%d", r.now.Seq)] = decision{r.now.Service, b}
	case ledger.Asked, ledger.Proposed:
		r.oncePerWindow(b)
	case approve.Ticket, approve.Answer, ledger.TicketEnd:
		r.people(b)
	case ledger.Claim:
		r.claim(b)
	case ledger.Started, ledger.Void, ledger.Receipt, ledger.Settled, ledger.Outcome:
		r.lived(b)
	default:
		r.command(b)
	}
}

// command takes what people order of the whole.
func (r *run) command(body any) {
	switch b := body.(type) {
	case ledger.Freeze:
		r.freeze(b)
	case ledger.Thaw:
		r.thawed[b.ID] = true
	case ledger.Reset:
		r.resets = append(r.resets, reset{service: r.now.Service, action: b.Action, at: r.now.Time, until: b.Until})
	case ledger.Lowered:
		r.lowered(b)
	case ledger.Storm:
		r.storm = b.Phase != ledger.StormOff
	case ledger.Adopted:
		r.spentUntil = r.now.Time.Unix()
	}
}

// oncePerWindow counts questions and proposals. An undo is a proposal beside
// another, which it takes the place of.
func (r *run) oncePerWindow(body any) {
	what, window := "question", ""
	switch b := body.(type) {
	case ledger.Asked:
		window = b.Window
	case ledger.Proposed:
		what, window = "proposal", b.Window
		if b.Proposal.Undo {
			what = "undo"
		}
	}
	name := what + " in " + r.now.Service + ":" + window
	r.asked[name]++
	r.hold(OncePerWindow)
	if n := r.asked[name]; n > 1 {
		r.broke(OncePerWindow, gate.Key(r.now.Service+":"+window), r.now.Seq, "%s number %d", name, n)
	}
}
