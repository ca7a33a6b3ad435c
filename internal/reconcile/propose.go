package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// askDeadline bounds one proposer call, whatever its endpoints' own limits
// are. An ask without a recorded proposal counts as malformed after it.
const askDeadline = 2 * time.Minute

// propose gives the one proposal of this service and window: the recorded one,
// or the answer to the one question that is asked. The question is an entry
// before the call, and the answer one before it is judged, so that a crash, a
// hint or another replica never asks twice.
func (p *pass) propose(ctx context.Context) error {
	ctx, end := p.span(ctx, "propose")
	defer end()
	p.observe(ctx)
	p.readChanges()
	if p.step.Recorded != nil {
		p.proposal = *p.step.Recorded
		p.result.Proposal = &p.proposal
		return p.recordUndo(ctx)
	}
	got, took, err := p.askOnce(ctx)
	if err != nil || p.step.Kind == step.Hold {
		return err
	}
	p.r.tel.asked(got)
	p.proposal = got.Proposal
	p.result.Proposal = &p.proposal
	if err := p.recordProposal(ctx, got); err != nil {
		return err
	}
	p.age(took)
	if len(got.Exchanges) > 0 {
		// A model thinks for a while, and what was changed meanwhile binds too.
		p.readChanges()
	}
	return nil
}

// askOnce puts the question that is recorded before it, and says how long the
// answer took. It holds the step where somebody else asks, or the process ends.
func (p *pass) askOnce(ctx context.Context) (got Proposed, took time.Duration, err error) {
	proposer := p.proposer()
	err = p.recordAsk(ctx, proposer.Identity())
	fallback := ""
	if errors.Is(err, ledger.ErrLimit) {
		fallback = propose.FaultLimit + ": " + err.Error()
		proposer = p.standIn(proposer, fallback)
		err = p.recordAsk(ctx, proposer.Identity())
	}
	if raced(err) {
		p.step = step.Step{Kind: step.Hold, Key: p.step.Key, Reasons: p.step.Reasons}
		p.result.Step = p.step
		return Proposed{}, 0, nil
	}
	if err != nil {
		return Proposed{}, 0, fmt.Errorf("record that a proposer is asked: %w", err)
	}
	callCtx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	request, began := p.request(), p.r.o.Now()
	if proposer.Identity().Endpoint != "" { // Rules do not look at evidence.
		request.Breakdowns = p.breakdowns(callCtx)
	}
	p.r.unslotted(func() { got = untilQuit(callCtx, p.r.quit, proposer, request) })
	p.result.Guess = p.dry && !p.askModel && p.asksModel()
	if p.r.stopping() {
		// Whatever it said, the next process judges; unanswered it counts as
		// malformed after the deadline of the ask.
		p.hold(stopping, stoppingText)
		return Proposed{}, 0, nil
	}
	got.Proposal = sane(got.Proposal, proposer.Identity())
	if p.r.o.Fallback != nil { // Without rules nobody spoke in its place.
		got.Proposal.Fallback = fallback
	}
	return p.orStandIn(callCtx, got, request), p.r.o.Now().Sub(began), nil
}

// orStandIn lets the rules speak where no model answered at all.
func (p *pass) orStandIn(ctx context.Context, got Proposed, request propose.Request) Proposed {
	fault := got.Proposal.Fault
	if p.r.o.Fallback == nil || got.Proposal.Fallback != "" || !propose.NoModel(fault) {
		return got
	}
	stood := p.r.o.Fallback.Propose(ctx, request)
	stood.Proposal = sane(stood.Proposal, p.r.o.Fallback.Identity())
	stood.Proposal.Fallback, stood.Exchanges = fault, got.Exchanges
	return stood
}

// standIn is who speaks in the place of a model that may not be asked.
func (p *pass) standIn(model Proposer, fault string) Proposer {
	if p.r.o.Fallback != nil {
		return p.r.o.Fallback
	}
	return mute{who: propose.Proposer{Kind: model.Identity().Kind}, fault: fault}
}

// mute gives no proposal, and says why.
type mute struct {
	who   propose.Proposer
	fault string
}

// Identity names no endpoint: none was asked.
func (m mute) Identity() propose.Proposer { return m.who }

// Propose says why there is none.
func (m mute) Propose(context.Context, propose.Request) Proposed {
	p := propose.Malformed(m.who, propose.FaultLimit, "")
	p.Fault = m.fault
	return Proposed{Proposal: p}
}

// age holds a proposal that took longer than a sweep to come: what it was made
// from is old, so the next pass judges it on fresh measurements.
func (p *pass) age(took time.Duration) {
	if p.dry || took <= p.r.o.Config.Sweep.Interval {
		p.now = p.r.o.Now()
		return
	}
	p.hold(proposalLate, "the proposal took "+took.Round(time.Second).String()+"; it is judged on the next measurement")
}

// proposalLate holds until the next pass.
const proposalLate = "proposal-late"

// untilQuit asks, and stops asking when the process is being stopped.
func untilQuit(ctx context.Context, quit <-chan struct{}, who Proposer, request propose.Request) Proposed {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		select {
		case <-quit:
			cancel()
		case <-answered:
		}
	}()
	return who.Propose(ctx, request)
}

// sane holds a proposer to its word: one of the kinds, no undo, which is the
// loop's own, and the name that was recorded before the call.
func sane(p propose.Proposal, who propose.Proposer) propose.Proposal {
	switch p.Kind {
	case propose.KindAction, propose.KindNone, propose.KindEscalate, propose.KindMalformed:
	default:
		p = propose.Proposal{Kind: propose.KindMalformed, Fault: fmt.Sprintf("malformed: a proposal of kind %q", p.Kind), Proposer: p.Proposer}
	}
	if p.Proposer.Kind != who.Kind {
		p.Proposer = who
	}
	p.Undo, p.Undoes = false, ""
	return p
}

// proposer: mode observe never sends anything to a model, whether the document
// says it or an exception that is in force, and neither does a dry pass that was
// not told to.
func (p *pass) proposer() Proposer {
	if p.askModel || !p.dry && p.aboveObserve() {
		return p.r.o.Proposer
	}
	switch {
	case p.r.o.Rules != nil:
		return p.r.o.Rules
	case p.r.o.Proposer.Identity().Kind == rulesKind:
		return p.r.o.Proposer
	}
	return silent{}
}

func (p *pass) aboveObserve() bool {
	limited, _ := p.fleet.set.Mode(p.svc.Name, p.now)
	return min(p.mode(), limited) > spec.Observe
}

// asksModel reports whether the agent would put this question to a model.
func (p *pass) asksModel() bool {
	return p.aboveObserve() && p.r.o.Config.Proposer.Provider != rulesKind
}

// rulesKind is the proposer that sends nothing anywhere.
const rulesKind = "rules"

// silent stands in where only rules may be asked and there are none.
type silent struct{}

// Identity is that of rules: no model spoke.
func (silent) Identity() propose.Proposer { return propose.Proposer{Kind: rulesKind} }

// Propose proposes nothing.
func (silent) Propose(context.Context, propose.Request) Proposed {
	return Proposed{Proposal: propose.Proposal{
		Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "no rules file, and no model is asked in mode observe",
	}}
}

func (p *pass) request() propose.Request {
	f := p.facts(propose.Item{}, p.step.Key, "")
	req := propose.Request{
		Service: p.svc, Episode: p.past.service.Episode, Assessment: p.assessment,
		Since: p.past.service.Since, Catalogue: p.catalogue, Tried: f.Tried,
		Remaining: map[string]float64{}, Dependencies: f.Dependencies, Now: p.now,
	}
	if p.changes != nil {
		req.Changes = p.changes.all
	}
	p.r.book.view(func(s *ledger.State) {
		for _, a := range p.svc.Remediation.Actions {
			b := p.balance(s, a.Name, "")
			req.Remaining[a.Name], req.Remaining[""] = b.Remaining, b.GlobalRemaining
		}
	})
	return req
}

// observe reads the live state of each action's target, all at once: bounds
// are relative to it, and an undo needs what was there before.
func (p *pass) observe(ctx context.Context) {
	if p.catalogue != nil {
		return
	}
	actions := p.svc.Remediation.Actions
	p.catalogue = make(propose.Catalogue, len(actions))
	known, revisions := make([]bool, len(actions)), make([][]measure.Change, len(actions))
	var wg sync.WaitGroup
	for i, a := range actions {
		p.catalogue[i] = propose.Item{Action: a}
		ex, ok := p.r.o.Executors[a.Executor()]
		if !ok {
			continue
		}
		wg.Go(func() {
			o := ex.Observe(ctx, a, p.step.Key)
			p.catalogue[i].Live, p.catalogue[i].LiveKnown = o.State, o.Known
			known[i], revisions[i] = o.KeyKnown, o.Revisions
		})
	}
	p.r.unslotted(wg.Wait)
	p.revised(slices.Concat(revisions...))
	p.foreign = slices.Contains(known, true)
	if p.foreign {
		p.r.log.Error("an actuator knows this key although the ledger never claimed it; is the ledger an older copy?",
			"service", p.svc.Name, "key", p.step.Key)
	}
}

func (p *pass) recordAsk(ctx context.Context, who propose.Proposer) error {
	if p.dry {
		return nil
	}
	window := p.past.window.String()
	return p.shareOne(ctx, func(s *ledger.State) (ledger.Draft, error) {
		return ledger.AskDraft(s, p.svc.Name, ledger.Asked{
			Window: window, Episode: p.past.service.Episode, Proposer: who, Deadline: p.now.Add(askDeadline),
		}, p.r.modelLimits(), p.r.storeTime(p.now))
	})
}

func (p *pass) recordProposal(ctx context.Context, got Proposed) error {
	if p.dry {
		return nil
	}
	body := ledger.Proposed{Window: p.windowID(), Episode: p.past.service.Episode, Proposal: got.Proposal}
	var blobs [][]byte
	keep := func(bytes []byte) string {
		if len(bytes) == 0 {
			return ""
		}
		blobs = append(blobs, bytes)
		return ledger.BlobDigest(bytes)
	}
	body.Request, body.Reply = keep(got.Request), keep(got.Reply)
	for _, x := range got.Exchanges {
		body.Exchanges = append(body.Exchanges, ledger.Exchange{
			Endpoint: x.Endpoint, Model: x.Model, Mode: x.Mode, Repair: x.Repair, Result: x.Result, Status: x.Status,
			TookSeconds: x.Took.Seconds(), InputTokens: x.InputTokens, OutputTokens: x.OutputTokens,
			Request: keep(x.Request), Reply: keep(x.Reply),
		})
	}
	if n := len(body.Exchanges); n > 0 && body.Request == "" {
		body.Request, body.Reply = body.Exchanges[n-1].Request, body.Exchanges[n-1].Reply
	}
	err := p.shareOne(ctx, func(s *ledger.State) (ledger.Draft, error) {
		return ledger.ProposalDraft(s, p.svc.Name, body, blobs...)
	})
	if err != nil {
		return fmt.Errorf("record the proposal: %w", err)
	}
	return nil
}
