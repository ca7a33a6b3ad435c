package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// pass is one look at one service. It lives for one run.
type pass struct {
	r     *Reconciler
	fleet *fleet
	svc   spec.Service
	now   time.Time
	// dry: nothing is written, asked of a model or sent.
	dry bool
	// askModel: in a dry pass, the configured proposer may be asked.
	askModel bool

	assessment compare.Assessment
	// assessed: the assessment is of this pass's own second look.
	assessed bool

	// What the ledger says, copied after fold.
	past past

	// disputed says that another replica has just recorded another reading.
	disputed string

	// began is the start of an episode that this pass ends, and cost what models
	// were asked in it.
	began time.Time
	cost  ledger.Asking

	step      step.Step
	catalogue propose.Catalogue
	// revisions are what the targets say was rolled out; changes is nil until
	// they are read.
	revisions []measure.Change
	changes   *changes
	// foreign: an actuator knows the key that is about to be claimed.
	foreign  bool
	proposal propose.Proposal
	decision gate.Decision
	// decisionID is the entry of the decision; decidedAt the position of the
	// ledger that its facts were folded from.
	decisionID string
	decidedAt  ledger.Position

	result Result
}

// past is a copy of the ledger's view of one service, taken at one position.
type past struct {
	service  ledger.Service
	window   gate.WindowID
	record   *ledger.Window
	inFlight *ledger.Effect
	ticket   *approve.Ticket
	// undo is the effect that should be taken back, under undoKey.
	undo    *ledger.Effect
	undoKey gate.Key
}

// fleet is what one sweep knows beside the single service.
type fleet struct {
	set         spec.Set
	assessments map[string]compare.Assessment
	clocksApart string
	// early: the look was asked for between sweeps.
	early bool

	counting sync.Once
	counted  step.Weather
}

func (r *Reconciler) newPass(f *fleet, svc spec.Service, now time.Time) *pass {
	return &pass{
		r: r, fleet: f, svc: svc, now: now,
		result: Result{Service: svc.Name, Effect: execute.None, Outcome: compare.OutcomeNone},
	}
}

// measure takes the service's part of what was measured, at one instant, of all
// that are looked at together: in a sweep, or early (look.go). One that was left
// out is unknown.
func (p *pass) measure(ctx context.Context) {
	_, end := p.span(ctx, "measure")
	defer end()
	var known bool
	if p.assessment, known = p.fleet.assessments[p.svc.Name]; !known {
		p.assessment = compare.Assessment{Service: p.svc.Name, At: p.now, State: compare.Unknown, Reason: measure.NotMeasured}
	}
}

// lookAgain measures and assesses the service alone and afresh, just before an
// effect; a source that hangs holds up no other.
func (p *pass) lookAgain(ctx context.Context) {
	own := []spec.Service{p.svc}
	p.r.unslotted(func() {
		p.r.measure(ctx, own, p.now, (*watch).renew)
		p.assessment, p.assessed = p.r.judged(ctx, own, p.now)[p.svc.Name], true
	})
}

// take asks some queries afresh.
func (p *pass) take(ctx context.Context, qs []measure.Query) measure.Set {
	var ms []measure.Measurement
	p.r.unslotted(func() { ms = p.r.o.Measurer.Measure(ctx, qs) })
	return measure.NewSet(p.r.trusted(ms))
}

// fold reads the ledger, and appends the change of state that this pass saw.
// A pass that changes nothing appends nothing.
func (p *pass) fold(ctx context.Context) error {
	if err := p.knowPast(ctx); err != nil {
		return err
	}
	if !p.dry {
		entries, err := p.share(ctx, p.stateDrafts)
		if err != nil && !raced(err) {
			return fmt.Errorf("record the state of %s: %w", p.svc.Name, err)
		}
		p.changed(entries)
	}
	p.look()
	return nil
}

// knowPast reads what was appended since. Whoever began this pass has just read it
// for all; what others append meanwhile is found by the conditions of each append.
func (p *pass) knowPast(ctx context.Context) error {
	if !p.dry {
		return p.r.book.broken()
	}
	return p.r.book.catchUp(ctx)
}

// stateDrafts is the entry of a changed state, and the one that ends an
// episode after Met for holdFor.
func (p *pass) stateDrafts(s *ledger.State) ([]ledger.Draft, error) {
	a := p.assessment
	known, seen := s.Service(p.svc.Name)
	if seen && differs(known, a) && p.overrules(known) {
		return nil, nil
	}
	if !seen || differs(known, a) {
		worst, _ := a.Worst()
		d, err := ledger.StateDraft(s, p.svc.Name, ledger.StateChange{
			To: a.State, Reason: a.Reason, SourceFault: a.SourceFault, SampleAt: a.SampleAt, ErrorRatio: worst.Judge.ErrorRatio,
			By: p.r.o.Process,
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
	p.ends(known)
	d, err := ledger.RecoveredDraft(s, p.svc.Name)
	return []ledger.Draft{d}, err
}

// ends keeps what there is to say of an episode that this pass ends.
func (p *pass) ends(known ledger.Service) {
	p.began, p.cost = known.EpisodeSince, ledger.Asking{}
	if known.Asked.Episode == known.Episode {
		p.cost = known.Asked
	}
}

// overrules reports whether this reading would overrule one that another
// replica recorded less than two sweeps ago: the two do not see the same, and
// taking turns would look like a flapping service.
func (p *pass) overrules(known ledger.Service) bool {
	young := p.now.Sub(p.r.hostTime(known.StateAt)) < 2*p.r.o.Config.Sweep.Interval
	if p.r.o.Process == "" || known.Reader == "" || known.Reader == p.r.o.Process || !young {
		return false
	}
	p.disputed = fmt.Sprintf("this process reads %s, replica %s recorded %s just now", p.assessment.State, known.Reader, known.State)
	return true
}

// changed says in log and metrics what this pass recorded.
func (p *pass) changed(entries []ledger.Entry) {
	for _, e := range entries {
		if e.Service != p.svc.Name {
			continue
		}
		switch e.Kind {
		case ledger.KindState:
			p.r.log.Info("state changed", "service", p.svc.Name, "state", p.assessment.State, "reason", p.assessment.Reason,
				"why", p.assessment.Why())
		case ledger.KindRecovered:
			p.r.log.Info("episode over", "service", p.svc.Name, "took", p.now.Sub(p.began))
			p.r.tel.recovered(p.now.Sub(p.began))
			p.r.tel.over(p.cost)
		}
	}
}

// differs: the state differs, or an Unknown whose reason changes who is told.
func differs(known ledger.Service, a compare.Assessment) bool {
	if known.State != a.State || a.State == compare.Met && !known.EverMet {
		return true
	}
	if a.State != compare.Unknown {
		return false
	}
	return known.SourceFault != a.SourceFault || quiet(known.Reason) != quiet(a.Reason)
}

// quiet gives the reasons that page differently: low traffic is not paged.
func quiet(r compare.Reason) compare.Reason {
	if r == compare.LowTraffic || r == compare.TrafficLost {
		return r
	}
	return ""
}

// look copies what the ledger knows of the service at this moment.
func (p *pass) look() {
	p.r.book.view(func(s *ledger.State) {
		p.past = past{}
		p.past.service, _ = s.Service(p.svc.Name)
		p.past.window = p.past.service.Window(p.r.storeTime(p.now), p.svc.Remediation.ActionWindow)
		p.past.record = p.past.service.Windows[p.past.window.String()]
		p.past.inFlight, _ = s.InFlight(p.svc.Name, "")
		if t, ok := s.OpenTicket(p.svc.Name); ok {
			p.past.ticket = &t
		}
		p.past.undo = s.Undoable(p.svc.Name, p.now, p.svc.Remediation.EscalateWithin)
		if p.past.undo != nil {
			p.past.undoKey = s.FreeKey(p.svc.Name, p.past.window)
		}
	})
	if p.dry {
		p.pretend()
	}
}

// pretend lets a dry pass show the present state although nobody wrote it.
func (p *pass) pretend() {
	if known := &p.past.service; known.State != p.assessment.State {
		known.State, known.Reason, known.Since = p.assessment.State, p.assessment.Reason, p.now
	}
}

// situation is what the next step is chosen from. Silences are asked for only
// where something may be done.
func (p *pass) situation(ctx context.Context) step.Situation {
	f := p.facts(propose.Item{}, gate.KeyOf(p.svc.Name, p.past.window), "")
	if p.assessment.Actionable() || p.past.undo != nil {
		p.silences(ctx, &f)
	}
	p.result.Balance = p.tightest()
	return step.Situation{
		Service: p.svc, Facts: f, Limits: p.r.limits(), Window: p.past.window, Record: p.past.record,
		InFlight: p.past.inFlight, Ticket: p.past.ticket, Undo: p.past.undo, UndoKey: p.past.undoKey,
	}
}

// silences are asked for where something could be sent. In the modes below, an
// Alertmanager that does not answer must not hide what would have been done.
func (p *pass) silences(ctx context.Context, f *gate.Facts) {
	if p.mode() >= spec.Approval {
		p.r.unslotted(func() { f.Silences, f.SilencesUnreadable = p.r.silences(ctx, p.svc.Name) })
	}
}

// tightest is the balance of the action that has least left, which people see
// while nothing is proposed.
func (p *pass) tightest() budget.Balance {
	var out budget.Balance
	p.r.book.view(func(s *ledger.State) {
		out = p.balance(s, "", "")
		for i, a := range p.svc.Remediation.Actions {
			if b := p.balance(s, a.Name, ""); i == 0 || b.Remaining < out.Remaining {
				out = b
			}
		}
	})
	return out
}

// balance is of one action at now, without the claim to leave out.
func (p *pass) balance(s *ledger.State, action, without string) budget.Balance {
	var charges []budget.Charge
	for _, c := range s.Charges() {
		if without == "" || c.Decision != without {
			charges = append(charges, c)
		}
	}
	b := p.svc.Remediation.Budget
	own := budget.Policy{Period: b.Period, Capacity: b.Capacity}
	return budget.Of(p.svc.Name, action, own, p.r.globalBudget(), charges, s.Resets, p.now)
}

func (p *pass) fail(err error) Result {
	p.result.Err = err
	p.result.Step = step.Step{Kind: step.Hold, Reasons: []gate.Reason{{Code: "error", Text: err.Error()}}}
	return p.result
}
