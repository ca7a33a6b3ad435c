package sim

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// stage is where a pass stands: the name of what it does next.
type stage int8

const (
	looking stage = iota
	folding
	settling
	resolving
	ending
	choosing
	observing
	asking
	proposing
	deciding
	ticketing
	refusing
	claiming
	gating
	voiding
	starting
	sending
	awaiting
	recording
)

var stageNames = [...]string{
	"looking", "folding", "settling", "resolving", "ending a ticket", "choosing", "observing", "asking", "proposing",
	"deciding", "opening a ticket", "refusing", "claiming", "the second gate", "voiding", "starting", "sending",
	"the answer", "the receipt",
}

// pass is one look at one service, as in internal/reconcile.
type pass struct {
	i   int
	svc spec.Service
	// now is the process's wall clock, mono the true time at which it was read:
	// within a process the difference is the monotonic clock.
	now, mono time.Time
	// apart is what it found about clocks, skewed what was true.
	apart  string
	skewed bool
	// ahead is how far the store's clock is ahead, as the sweep found.
	ahead time.Duration
	// saw is what was measured, real how the service really was.
	saw     compare.Assessment
	real    truth
	others  map[string]compare.State
	past    past
	step    step.Step
	foreign bool

	proposal   propose.Proposal
	decision   gate.Decision
	decisionID string
	decidedAt  ledger.Position
	permit     gate.Permit
	minted     time.Time
	why        string
	settled    ledger.Settled
	receipt    execute.Receipt
	msg        int
	sentAt     time.Time
	again      bool
}

// past is a copy of what the ledger says of the service.
type past struct {
	service  ledger.Service
	window   gate.WindowID
	record   *ledger.Window
	inFlight *ledger.Effect
	ticket   *approve.Ticket
}

// move does the next visible action of a replica's pass, and what needs no
// more than its own memory before it.
func (w *world) move(r *replica) {
	for !w.act1(r) {
	}
}

// act1 does one stage and reports whether anybody else could notice.
//
//nolint:gocyclo // one line for each stage, in the order of the pass
func (w *world) act1(r *replica) bool {
	w.say(r, "%s: %s", serviceName(r.pass.i), stageNames[r.stage])
	switch r.stage {
	case folding:
		return w.fold(r)
	case settling:
		return w.settle(r)
	case resolving:
		return w.resolve(r)
	case ending:
		return w.endTicket(r)
	case choosing:
		return w.choose(r)
	case observing:
		return w.observe(r)
	case asking:
		return w.askProposer(r)
	case proposing:
		return w.propose(r)
	case deciding:
		return w.decideFirst(r)
	case ticketing:
		return w.openTicket(r)
	case refusing:
		return w.refuse(r)
	default:
		return w.execute(r)
	}
}

// end ends the pass.
func (r *replica) end() bool {
	r.stage = looking
	return true
}

// then goes on to a stage; what was done before it was visible.
func (r *replica) then(s stage) bool {
	r.stage = s
	return true
}

// on goes on without anybody noticing.
func (r *replica) on(s stage) bool {
	r.stage = s
	return false
}

// lookAround measures, reads the ledger, and does what a host's writer does
// about freeze files.
func (w *world) lookAround(r *replica) bool {
	i := r.next % w.services
	r.next = (i + 1) % w.services
	r.pass = pass{i: i, svc: w.specs(r)[i], ahead: -r.skew}
	if !w.fault(w.faults.stale) {
		r.known = w.chain.head
	}
	w.syncFreezes(r)
	w.measure(r)
	r.note(r.pass.saw)
	return r.then(folding)
}

func (r *replica) note(a compare.Assessment) { r.reads[r.pass.i].note(a) }

// measure reads service, clocks and neighbours.
func (w *world) measure(r *replica) {
	p := &r.pass
	w.tick(r)
	p.saw, p.real = w.measured(r, p.i), w.truth[p.i]
	p.others = map[string]compare.State{}
	for i := range w.services {
		p.others[serviceName(i)] = w.truth[i].state
	}
}

// tick reads the clock, and compares it with the store's.
func (w *world) tick(r *replica) {
	r.pass.now, r.pass.mono = w.wall(r), w.at
	r.pass.apart, r.pass.skewed = w.apart(r), r.skew.Abs() > apartBy
}

// glance copies what the process knows of its service.
func (r *replica) glance() {
	p := &r.pass
	p.past = past{}
	p.past.service, _ = r.known.Service(p.svc.Name)
	p.past.window = p.past.service.Window(p.now.Add(p.ahead), p.svc.Remediation.ActionWindow)
	p.past.record = p.past.service.Windows[p.past.window.String()]
	p.past.inFlight, _ = r.known.InFlight(p.svc.Name, "")
	if t, ok := r.known.OpenTicket(p.svc.Name); ok {
		p.past.ticket = &t
	}
}

// fold records a changed state, or the end of an episode.
func (w *world) fold(r *replica) bool {
	before := r.known.Head.Seq
	err := w.write(r, func(s *ledger.State) ([]ledger.Draft, error) { return stateDrafts(s, r.pass) })
	if err != nil && !raced(err) {
		return r.end()
	}
	r.glance()
	r.stage = settling
	return r.known.Head.Seq != before
}

func stateDrafts(s *ledger.State, p pass) ([]ledger.Draft, error) {
	known, _ := s.Service(p.svc.Name)
	if known.State != p.saw.State || known.Reason != p.saw.Reason && p.saw.State == compare.Unknown || !known.EverMet && p.saw.State == compare.Met {
		d, err := ledger.StateDraft(s, p.svc.Name, ledger.StateChange{
			To: p.saw.State, Reason: p.saw.Reason, SampleAt: p.saw.SampleAt, ErrorRatio: 0.1,
		})
		if errors.Is(err, ledger.ErrExists) {
			return nil, nil
		}
		return []ledger.Draft{d}, err
	}
	held := !known.HeldSince.IsZero() && p.now.Sub(known.HeldSince) >= p.svc.Remediation.HoldFor
	if known.State != compare.Met || known.Episode == "" || !held {
		return nil, nil
	}
	d, err := ledger.RecoveredDraft(s, p.svc.Name)
	return []ledger.Draft{d}, err
}

// endTicket ends a ticket that ends by itself.
func (w *world) endTicket(r *replica) bool {
	t := r.pass.past.ticket
	if t == nil {
		return r.on(choosing)
	}
	state, reason := ticketEnd(r.pass, *t)
	if state == "" {
		return r.on(choosing)
	}
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		return ledger.TicketEndDraft(s, ledger.TicketEnd{Ticket: t.ID, State: state, Reason: reason})
	}))
	if err != nil && !raced(err) {
		return r.end()
	}
	if err == nil {
		w.hit("ticket " + string(state))
	}
	r.glance()
	return r.then(choosing)
}

func ticketEnd(p pass, t approve.Ticket) (approve.State, string) {
	if p.saw.State == compare.Met {
		return approve.Recovered(t), "recovered"
	}
	if end := approve.EndAt(t, limits().MinSpacing, sweep); !p.now.Before(end) {
		if t.State == approve.Open {
			return approve.Expired, "nobody answered"
		}
		return approve.Void, "too-late"
	}
	a, ok := p.svc.Action(t.Proposal.Action)
	if !ok {
		return approve.Void, gate.ReasonUnknownAction
	}
	if digest, err := gate.Digest(p.svc.Name, t.Key, a, t.Proposal.Parameters); err != nil || digest != t.Digest {
		return approve.Void, gate.ReasonDigest
	}
	return "", ""
}

// choose asks step.Next.
func (w *world) choose(r *replica) bool {
	p := &r.pass
	f := w.facts(r, propose.Item{}, gate.KeyOf(p.svc.Name, p.past.window), "")
	p.step = step.Next(step.Situation{
		Service: p.svc, Facts: f, Limits: w.limits, Window: p.past.window, Record: p.past.record,
		InFlight: p.past.inFlight, Ticket: p.past.ticket,
	})
	w.say(r, "%s: %s (%s)", p.svc.Name, p.step.Kind, codes(p.step.Reasons))
	if p.step.Kind != step.Propose && p.step.Kind != step.Execute {
		w.held(p.step.Reasons)
		return r.end()
	}
	return r.on(observing)
}

func (w *world) held(rs []gate.Reason) {
	for _, x := range rs {
		w.hit("reason " + x.Code)
	}
}

// observe reads the live state, and whether the target knows the key.
func (w *world) observe(r *replica) bool {
	p := &r.pass
	p.foreign = false
	for _, a := range p.svc.Remediation.Actions {
		if o := w.ask(a, p.step.Key); o.KeyKnown {
			p.foreign = true
		}
	}
	if p.step.Recorded != nil {
		p.proposal = *p.step.Recorded
		if w.bad == looseApproval && p.step.Ticket != "" {
			p.proposal = w.proposal(p.svc)
		}
		return r.then(deciding)
	}
	return r.then(asking)
}

func (w *world) askProposer(r *replica) bool {
	p := &r.pass
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		return ledger.AskDraft(s, p.svc.Name, ledger.Asked{
			Window: p.past.window.String(), Episode: p.past.service.Episode, Proposer: proposer(), Deadline: p.now.Add(askDeadline),
		}, propose.Limits{}, p.now)
	}))
	if err != nil {
		if raced(err) {
			w.hit("asked by another replica")
		}
		return r.end()
	}
	return r.then(proposing)
}

func proposer() propose.Proposer {
	return propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}
}

// propose records what the proposer answered. It may have taken its time; then
// the next pass judges it.
func (w *world) propose(r *replica) bool {
	p := &r.pass
	p.proposal = w.proposal(p.svc)
	err := w.write(r, one(func(s *ledger.State) (ledger.Draft, error) {
		return ledger.ProposalDraft(s, p.svc.Name, ledger.Proposed{
			Window: p.past.window.String(), Episode: p.past.service.Episode, Proposal: p.proposal,
		})
	}))
	if err != nil {
		return r.end()
	}
	if w.at.Sub(p.mono) > 2*sweep {
		w.hit("proposal late")
		return r.end()
	}
	w.tick(r)
	return r.then(deciding)
}

// proposal is what a hostile proposer says, within what a reply can be once it
// was parsed. It never is an undo, which the loop strips.
func (w *world) proposal(svc spec.Service) propose.Proposal {
	out := propose.Proposal{Kind: propose.KindAction, Action: "restart", Parameters: propose.Parameters{}, Proposer: proposer()}
	if w.rng == nil {
		return out
	}
	switch n := w.pick(20); {
	case n < 16:
		as := svc.Remediation.Actions
		out.Action = as[w.pick(len(as))].Name
		if n < 8 {
			out.Action = as[w.pick(2)].Name
		}
		if out.Action == "scale" {
			out.Parameters["replicas"] = int64(w.pick(14) - 1)
		}
		if w.roll(50) {
			out.Parameters["x"] = strconv.Itoa(w.pick(9))
		}
	case n == 16:
		out.Action = "rm-rf"
	case n == 17:
		out = propose.Malformed(proposer(), propose.FaultMalformed, "not one JSON object")
	case n == 18:
		out.Kind, out.Action = propose.KindNone, ""
	default:
		out.Kind, out.Action = propose.KindEscalate, ""
	}
	return out
}

func codes(rs []gate.Reason) string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.Code
	}
	return strings.Join(out, ",")
}
