package reconcile

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// facts are the plain values that bind a decision about one action under one
// key. without is a key that is left out: the second gate folds the ledger
// without its own claim.
func (p *pass) facts(item propose.Item, key, without gate.Key) gate.Facts {
	f := gate.Facts{
		Now: p.now, Assessment: p.assessment, FreshReads: p.r.reads.count(p.svc.Name),
		ClocksApart: p.fleet.clocksApart, PolicyFault: p.r.policyFault(),
		Item: item, Ownership: gate.Unknown, Dependencies: p.dependencies(),
		Maintenances: p.maintenances(), Exceptions: p.exceptions(),
	}
	if p.changes != nil {
		f.Changes = p.changes.own
	}
	f.Freezes = p.r.freezes(p.svc.Name, p.now)
	p.r.book.view(func(s *ledger.State) { p.pastFacts(&f, s, item, key, without) })
	return f
}

// pastFacts are those that the ledger holds.
func (p *pass) pastFacts(f *gate.Facts, s *ledger.State, item propose.Item, key, without gate.Key) {
	p.decidedAt = s.Head
	known := p.past.service
	if now, recorded := s.Service(p.svc.Name); recorded && !p.dry {
		known = now // the second gate sees what was appended since
	}
	f.Since, f.Episode = known.Since, known.Episode
	if known.Documents != "" && known.State != "" && !known.EverMet {
		f.SpecProblem = "never met since its documents were loaded"
	}
	f.Freezes = append(f.Freezes, recordedFreezes(s, p.svc.Name, p.now)...)
	// An actuator that knows the key has seen it from somebody: then it is spent,
	// whatever this ledger says.
	f.KeyClaimed = p.foreign || key != without && s.KeyClaimed(p.svc.Name, windowOf(key))
	onService, onTarget := s.InFlight(p.svc.Name, targetOf(item.Action))
	f.InFlight, f.InFlightTarget = naming(onService, without), naming(onTarget, without)
	hour := p.r.storeTime(p.now).Add(-time.Hour)
	// What others have claimed counts as sent: otherwise two services that are
	// one below the cap would both pass it.
	f.SentService = s.Sent(p.svc.Name, hour) + s.Claimed(p.svc.Name, without)
	f.SentGlobal = s.Sent("", hour) + s.Claimed("", without)

	f.LastSent = p.r.hostTime(s.LastSent(p.svc.Name, ""))
	f.ActionSent = p.r.hostTime(s.LastSent(p.svc.Name, item.Action.Name))
	f.OpenTickets = s.OpenTickets()
	f.PersonHold, f.Unanswered = personHold(s.Refused(p.svc.Name, known.Episode), p.svc, item.Action)
	f.Suspended = s.Suspended(p.svc.Name, item.Action.Name, p.now)
	f.Storm = p.storm(s)
	p.deedFacts(f, s, item.Action, without)
	if !known.DocumentsSettled(p.svc.Remediation.HoldFor, p.now) {
		f.DocumentsChangedAt = known.DocumentsAt
	}
	f.Tried = tried(s, known)
	decision := ""
	if e := s.Effects[without]; e != nil {
		decision = e.Claim.Decision
	}
	f.Balance = p.balance(s, item.Action.Name, decision)
}

// deedFacts are what earlier effects say about this one.
func (p *pass) deedFacts(f *gate.Facts, s *ledger.State, a spec.Action, without gate.Key) {
	f.Ceiling = s.Ceiling(p.svc.Name, a.Name, p.now)
	if due, ok := p.demotion(s, a); ok {
		f.Ceiling = due.To // its entry may come a moment later
	}
	if a.Name != "" {
		f.Sent = s.SentSince(p.svc.Name, targetOf(a), p.r.storeTime(p.now).Add(-gate.Day), without)
	}
	if !p.proposal.Undo {
		return
	}
	f.Ceiling = s.CeilingByPeople(p.svc.Name, a.Name, p.now)
	if e := s.Effects[gate.Key(p.proposal.Undoes)]; e != nil {
		f.Undoes = &gate.Undone{Key: e.Claim.Key, Target: e.Claim.Target, Wrote: e.Claim.Parameters}
	}
}

// targetOf is the canonical target; "" while there is no action.
func targetOf(a spec.Action) string {
	if a.Name == "" {
		return ""
	}
	return a.Canonical()
}

// windowOf is the window of a key of this agent's own making.
func windowOf(key gate.Key) gate.WindowID {
	_, id, _ := strings.Cut(string(key), ":")
	w, _ := gate.ParseWindowID(id)
	return w
}

// personHold says which no of a person holds an action until the episode ends,
// the action itself and any other on its target; unanswered which silence does.
// A silence is nobody's no, and is not shown as one.
func personHold(refused []approve.Ticket, svc spec.Service, a spec.Action) (denied, unanswered string) {
	for _, t := range refused {
		other, known := svc.Action(t.Proposal.Action)
		if t.Proposal.Action != a.Name && (!known || other.Canonical() != a.Canonical()) {
			continue
		}
		name := fmt.Sprintf("%s (%s)", t.ID, t.Proposal.Action)
		switch {
		case t.State == approve.Expired:
			unanswered = cmp.Or(unanswered, name)
		case len(t.Answers) > 0:
			denied = cmp.Or(denied, name+" was denied by "+t.Answers[len(t.Answers)-1].By)
		default:
			denied = cmp.Or(denied, name+" was "+string(t.State))
		}
	}
	return denied, unanswered
}

// naming says which effect is in the way, unless it is the one left out.
func naming(e *ledger.Effect, without gate.Key) string {
	if e == nil || e.Claim.Key == without {
		return ""
	}
	return e.Claim.Action.Name + " of " + string(e.Claim.Key) + " is " + string(e.Effect)
}

// maxTried is how many earlier actions a proposer and a policy are shown.
const maxTried = 10

// tried are the newest actions of the service with their measured effect,
// oldest first.
func tried(s *ledger.State, known ledger.Service) []propose.Tried {
	keys := known.Effects
	if len(keys) > maxTried {
		keys = keys[len(keys)-maxTried:]
	}
	var out []propose.Tried
	for _, k := range keys {
		e := s.Effects[k]
		if e == nil || e.SentAt().IsZero() {
			continue
		}
		t := propose.Tried{
			Action: e.Claim.Action.Name, Parameters: e.Claim.Parameters, At: e.SentAt(),
			Effect: string(e.Effect), Outcome: e.Outcome,
			ThisEpisode: known.Episode != "" && e.Claim.Episode == known.Episode,
		}
		if e.Judgement != nil {
			t.Before, t.After = e.Judgement.Before, e.Judgement.After
		}
		out = append(out, t)
	}
	return out
}

// dependencies are the states of the services that this one depends on; one
// that was not assessed is unknown.
func (p *pass) dependencies() map[string]compare.State {
	out := make(map[string]compare.State, len(p.svc.Remediation.DependsOn))
	for _, name := range p.svc.Remediation.DependsOn {
		out[name] = compare.Unknown
		if a, ok := p.fleet.assessments[name]; ok {
			out[name] = a.State
		}
	}
	return out
}
