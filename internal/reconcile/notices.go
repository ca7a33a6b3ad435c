package reconcile

import (
	"context"
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
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// notices brings what receivers hold in line with the pages that should exist,
// whatever passes ended in, and with a ledger that cannot be written too. With
// wait it returns when every delivery ended; without, a receiver that hangs
// holds up its own pages alone.
func (r *Reconciler) notices(ctx context.Context, f *fleet, now time.Time, wait bool) {
	r.lookDown(now)
	r.showCards(ctx, f, now)
	pages := r.recordPages(ctx, f, r.wanted(f, now), now)
	for _, p := range pages {
		for _, name := range r.due(p, r.held(p), now) {
			rec := r.receiver(name)
			if rec == nil || !r.outbox.begin(p.ID, name) {
				continue
			}
			r.deliveries.Go(func() {
				defer r.outbox.end(p.ID, name)
				r.guard("delivering to "+name, func() { r.deliver(ctx, rec, p) })
			})
		}
	}
	if wait {
		r.deliveries.Wait()
	}
	r.tel.receivers.pages(pages)
	r.showHeartbeats()
}

// wanted are the pages that should be open now, rendered.
func (r *Reconciler) wanted(f *fleet, now time.Time) map[string]escalate.Page {
	out := map[string]escalate.Page{}
	services := slices.Clone(f.set.Services)
	for _, name := range r.orphaned(f.set) {
		services = append(services, spec.Service{Name: name})
	}
	blind := map[string][]string{}
	var stormy []escalate.Affected
	w, rages, asking := r.waits(f, now), r.rages(f.set, now), r.asking(now)
	for _, svc := range w.order(services) {
		facts := r.noticeFacts(f, svc, now)
		w.fill(&facts, out, r.audience(svc, step.OnCall))
		facts.Grouped, facts.Asked = rages.speaksFor(facts), newestAsking(facts, asking)
		for _, n := range step.Notices(facts) {
			out[n.ID] = r.render(facts, n, now)
		}
		if source := step.BlindSource(facts); source != "" {
			blind[source] = append(blind[source], svc.Name)
		}
		if red(facts) {
			stormy = append(stormy, escalate.Affected{Service: svc.Name, Assessment: facts.Assessment, Since: facts.State.Since})
		}
	}
	r.stormPage(out, f, stormy, now)
	if _, storm := out["storm"]; !storm || rages.since.IsZero() {
		r.sourcePages(out, blind, now)
	}
	r.exceptionPages(out, f.set, now)
	r.conflictPages(out, now)
	r.downPages(out, now)
	r.heartbeats(out, now)
	if trouble := r.rules().trouble(now); trouble != "" {
		p := r.fleetPage("policy", escalate.PolicyFault, trouble, now)
		p.Gist = trouble // another fault is news, and its times are those of its begin
		out[p.ID] = p
	}
	if err := r.book.broken(); err != nil {
		out["ledger"] = r.fleetPage("ledger", escalate.LedgerFault, "the ledger cannot be used, nothing is done: "+err.Error(), now)
	}
	return out
}

// sourceFault is what is wrong with a source that leaves people blind.
func (r *Reconciler) sourceFault(source string) string {
	if src, ok := r.o.Config.Source(source); ok {
		source = src.Name
	}
	if d := r.clocks.skew(source); d > 0 {
		return fmt.Sprintf("has a clock that is %s apart from this host's", d.Round(time.Second))
	}
	return "does not answer"
}

// conflictPages are those of keys whose window is not over.
func (r *Reconciler) conflictPages(out map[string]escalate.Page, now time.Time) {
	r.mu.Lock()
	keys := maps.Clone(r.conflicts)
	r.mu.Unlock()
	for service, key := range keys {
		if now.Before(windowOf(key).End()) {
			id := "key-conflict/" + service
			out[id] = r.fleetPage(id, escalate.KeyConflict,
				fmt.Sprintf("%s is claimed with other bytes than this process decided on; do all replicas have the same documents?", key), now)
		}
	}
}

func (r *Reconciler) fleetPage(id, reason, text string, now time.Time) escalate.Page {
	return r.toReceivers(r.fleetFacts(id, reason, text, now), r.allReceivers())
}

func (r *Reconciler) fleetFacts(id, reason, text string, now time.Time) escalate.PageFacts {
	facts := escalate.PageFacts{ID: id, Reason: reason, Why: text, Now: now}
	r.book.view(func(s *ledger.State) {
		if known := s.Pages[id]; known != nil && known.EndedAt.IsZero() {
			facts.Opened = known
		}
	})
	return facts
}

// toReceivers is the page with those who get it, and with who of them is next.
func (r *Reconciler) toReceivers(facts escalate.PageFacts, names []string) escalate.Page {
	p := escalate.Page{ID: facts.ID, Receivers: names, Since: facts.Now}
	if o := facts.Opened; o != nil {
		p.Since, p.AckedBy = o.Since, o.AckedBy
	}
	facts.Next = escalate.NextTurn(p, r.held(p), r.receiverRules(), facts.Now)
	p = escalate.Render(facts)
	p.Receivers = names
	return p
}

// noticeFacts copies what step.Notices looks at.
func (r *Reconciler) noticeFacts(f *fleet, svc spec.Service, now time.Time) step.NoticeFacts {
	n := step.NoticeFacts{
		Service: svc, MaxMode: r.o.Config.Limits.MaxMode, Assessment: f.assessments[svc.Name],
		State: ledger.Service{Name: svc.Name}, Suspended: map[string]string{},
		Dependencies: map[string]compare.State{}, Now: now,
	}
	for _, dep := range svc.Remediation.DependsOn {
		if a, ok := f.assessments[dep]; ok && a.State != compare.Met {
			n.Dependencies[dep] = a.State
		}
	}
	for _, m := range f.set.Maintenances {
		if m.MutePages && m.Active(svc.Name, now) {
			n.Planned = m.Name
		}
	}
	r.book.view(func(s *ledger.State) { recorded(&n, s) })
	if r.book.broken() != nil {
		r.remembered(&n)
		unjudged(&n)
	}
	r.present(&n)
	n.Holding = r.holding(svc.Name)
	return n
}

// holding are the reasons for which this process's last pass of the service held.
func (r *Reconciler) holding(service string) []gate.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.last[service].Step; last.Kind == step.Hold {
		return last.Reasons
	}
	return nil
}

// present counts from what this process saw where the ledger's times lie in the
// future: after a clock that was set back nobody would be told of anything until
// that future has come. It does so, too, where the ledger heard of the same state
// much later, because it could not be written: the wait of people began when it
// was seen, and would begin anew when the ledger is back.
func (r *Reconciler) present(n *step.NoticeFacts) {
	r.mu.Lock()
	seen, ok := r.sightings[n.Service.Name]
	r.mu.Unlock()
	late := seen.since.Add(2 * r.o.Config.Sweep.Interval)
	same := seen.state == n.State.State && seen.state != compare.Met
	for _, since := range []*time.Time{&n.State.Since, &n.State.EpisodeSince} {
		if ok && (since.After(n.Now) || same && since.After(late)) {
			*since = seen.since
		}
	}
}

// unjudged: while the ledger cannot be used nobody judges what was sent, so the
// time in which it may still help ends by the clock.
func unjudged(n *step.NoticeFacts) {
	if n.InFlight == nil || n.InFlight.InDoubt() {
		return
	}
	over := n.InFlight.Claim.Expires
	if n.InFlight.Effect.Judged() {
		judge := time.Duration(0)
		for _, o := range n.Service.Objectives {
			judge = max(judge, o.JudgeWindow)
		}
		over = n.InFlight.AppliedAt.Add(n.InFlight.Claim.Action.Settle + judge)
	}
	if !n.Now.Before(over) {
		n.InFlight = nil
	}
}

// remembered stands in for a ledger that cannot be used: the state as this
// process saw it. A miss that cannot be recorded must reach people all the same.
func (r *Reconciler) remembered(n *step.NoticeFacts) {
	r.mu.Lock()
	seen, ok := r.sightings[n.Service.Name]
	r.mu.Unlock()
	if !ok || seen.state == n.State.State {
		return
	}
	n.State.State, n.State.Reason, n.State.Since = seen.state, n.Assessment.Reason, seen.since
	n.State.SourceFault = n.Assessment.SourceFault
	if n.State.Episode == "" && seen.state != compare.Met {
		n.State.Episode, n.State.EpisodeSince = "unrecorded/"+n.Service.Name, seen.since
	}
}

// recorded fills in what the ledger holds of the service and its episode.
func recorded(n *step.NoticeFacts, s *ledger.State) {
	name := n.Service.Name
	n.State, _ = s.Service(name)
	if n.InFlight, _ = s.InFlight(name, ""); n.InFlight != nil && n.InFlight.Effect == execute.Unknown {
		n.Doubtful = append(n.Doubtful, *n.InFlight)
	}
	if d := s.Decisions[n.State.Decision]; d != nil && (d.Episode == n.State.Episode || d.Proposal.Undo) {
		decision, proposal := d.Decision, d.Proposal
		n.Decision, n.Proposal = &decision, &proposal
	}
	n.Storm = s.Storm.Holds()
	if n.Harmful = s.Harmful(name, n.Now, n.Service.Remediation.EscalateWithin); n.Harmful != nil {
		n.Undo, n.GivenUp = s.UndoOf(n.Harmful), s.UndoGivenUp(n.Harmful)
	}
	if page := s.Pages[n.State.Episode]; page != nil {
		n.Open, n.OpenFor = page.EndedAt.IsZero(), page.Reason
	}
	for _, id := range n.State.Tickets {
		if t := s.Tickets[id]; t.Episode == n.State.Episode {
			n.Tickets, n.AskFault = append(n.Tickets, *t), ""
			if card := s.Cards[id]; card != nil {
				n.AskFault = card.LastError
			}
		}
	}
	suspensions(n, s)
}

func suspensions(n *step.NoticeFacts, s *ledger.State) {
	for _, a := range n.Service.Remediation.Actions {
		if why := s.Suspended(n.Service.Name, a.Name, n.Now); why != "" {
			n.Suspended[a.Name] = why
		}
	}
}

// render makes the page of a notice, with its receivers.
func (r *Reconciler) render(f step.NoticeFacts, n step.Notice, now time.Time) escalate.Page {
	facts := escalate.PageFacts{
		ID: n.ID, Reason: n.Reason, Episode: f.State.Episode, Why: n.Why, Service: f.Service, Assessment: f.Assessment,
		Since: f.State.EpisodeSince, Proposal: f.Proposal, Decision: n.Decision, Suspended: n.Suspended, Now: now,
	}
	facts.Reasons = step.Stopped(f)
	if k := len(f.Tickets); k > 0 {
		switch newest := &f.Tickets[k-1]; {
		case newest.State == approve.Open:
			facts.Ticket = newest
		case n.Reason == escalate.ApprovalExpired, n.Reason == escalate.ApprovalVoid:
			facts.Lapsed = newest
		}
	}
	facts.Changes = r.changedLately(f.Service.Name, now)
	r.book.view(func(s *ledger.State) {
		facts.Tried = tried(s, f.State)
		if known := s.Pages[n.ID]; known != nil && known.EndedAt.IsZero() {
			facts.Opened = known
		}
		if f.Proposal != nil && f.Proposal.Action != "" {
			b := f.Service.Remediation.Budget
			own := budget.Policy{Period: b.Period, Capacity: b.Capacity}
			balance := budget.Of(f.Service.Name, f.Proposal.Action, own, r.globalBudget(), s.Charges(), s.Resets, now)
			facts.Balance = &balance
		}
	})
	return r.toReceivers(facts, r.audience(f.Service, n.To))
}

func (r *Reconciler) allReceivers() []string {
	out := make([]string, len(r.o.Receivers))
	for i, rec := range r.o.Receivers {
		out[i] = rec.Name()
	}
	return out
}
