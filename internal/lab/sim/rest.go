package sim

import (
	"maps"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// restSweeps is for how many sweeps a world without faults is watched: longer
// than tickets, horizons, unknownFor and escalateWithin.
const restSweeps = 20

// rest ends all faults and lets one replica after the other make whole passes.
// Then nothing may be left hanging: what is not settled is with a person.
func (w *world) rest() {
	w.calm, w.fate = true, fateOK
	for i := range w.reps {
		r := &w.reps[i]
		r.skew, r.pausedUntil = 0, time.Time{}
		if !r.up {
			w.start(r)
		}
	}
	for n := 0; n < restSweeps && len(w.mon.broken) == 0; n++ {
		w.steps++
		w.mon.step = w.steps
		w.sweepOnce(&w.reps[n%len(w.reps)])
		w.at = w.at.Add(2 * sweep)
	}
	for i := 0; i < w.services && len(w.mon.broken) == 0; i++ {
		w.settledOrTold(i)
	}
}

// sweepOnce ends the pass that was under way and makes one of each service.
func (w *world) sweepOnce(r *replica) {
	for left := w.services; left >= 0; left-- {
		for moves := 0; moves < 40 && len(w.mon.broken) == 0; moves++ {
			w.at = w.at.Add(200 * time.Millisecond)
			w.deliver()
			if left == 0 && r.stage == looking {
				return
			}
			w.move(r)
			if r.stage == looking {
				break
			}
		}
	}
}

// settledOrTold is the end of a seed: liveness, and failing toward people.
func (w *world) settledOrTold(i int) {
	w.mon.checked++
	s, name := w.chain.head, serviceName(i)
	svc := w.specs(&w.reps[0])[i]
	n := w.noticeFacts(svc)
	told := len(step.Notices(n)) > 0
	for _, e := range s.Effects {
		if e.Service == name && w.at.Sub(e.ClaimedAt) > svc.Remediation.ApprovalFor+unknownFor+time.Minute {
			w.ended(e, told)
		}
	}
	if t, open := s.OpenTicket(name); open && w.at.Sub(t.Expires) > time.Minute+w.limits.MinSpacing+2*sweep {
		w.mon.breaks("everything-settles", "%s is still %s", t.ID, t.State)
	}
	if n.InFlight == nil && !told && w.missedLong(n) {
		w.mon.breaks("fails-toward-people", "%s is %s since %s, and nobody is told", name, n.State.State, clock(n.State.EpisodeSince))
	}
	if told {
		w.hit("with a person at the end")
	}
}

// ended: an old effect was settled and judged, or somebody is told.
func (w *world) ended(e *ledger.Effect, told bool) {
	switch {
	case e.Effect == execute.Claimed || e.InDoubt():
		w.mon.breaks("everything-settles", "%s is still %s", e.Claim.Key, e.Effect)
	case e.Effect.Judged() && e.Judgement == nil:
		w.mon.breaks("everything-settles", "%s was never judged", e.Claim.Key)
	case e.Effect == execute.Unknown && !told:
		w.mon.breaks("fails-toward-people", "nobody is told that the fate of %s is unknown", e.Claim.Key)
	}
}

// missedLong: the on-call should know by now.
func (w *world) missedLong(n step.NoticeFacts) bool {
	sv := n.State
	missed := sv.State == compare.Breached || sv.State == compare.Unknown && sv.Reason != compare.LowTraffic
	return missed && w.at.Sub(sv.Since) > unknownFor+time.Minute &&
		w.at.Sub(sv.EpisodeSince) > n.Service.Remediation.EscalateWithin+time.Minute
}

// noticeFacts are filled as internal/reconcile fills them.
func (w *world) noticeFacts(svc spec.Service) step.NoticeFacts {
	s := w.chain.head
	sv, _ := s.Service(svc.Name)
	n := step.NoticeFacts{
		Service: svc, MaxMode: spec.Auto, State: sv, Now: w.at, Suspended: map[string]string{},
		Dependencies: map[string]compare.State{},
	}
	n.InFlight, _ = s.InFlight(svc.Name, "")
	if d := s.Decisions[sv.Decision]; d != nil && d.Episode == sv.Episode {
		n.Decision, n.Proposal = &d.Decision, &d.Proposal
	}
	for _, id := range sv.Tickets {
		if t := s.Tickets[id]; t.Episode == sv.Episode {
			n.Tickets = append(n.Tickets, *t)
		}
	}
	for _, e := range s.Effects {
		if e.Service == svc.Name && e.Effect == execute.Unknown {
			n.Doubtful = append(n.Doubtful, *e)
		}
	}
	for _, a := range svc.Remediation.Actions {
		if why := s.Suspended(svc.Name, a.Name, w.at); why != "" {
			n.Suspended[a.Name] = why
			w.hit("suspended")
		}
	}
	return n
}

// copied is a map that goes on apart.
func copied[K comparable, V any](m map[K]V) map[K]V { return maps.Clone(m) }
