package reconcile

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// The pages that belong to no single episode.

// stormPage tells of all that is red in one page, at once, and names the sources
// at fault: their own pages are held back meanwhile. It is not wanted where
// nobody wants to hear of any of the services.
func (r *Reconciler) stormPage(out map[string]escalate.Page, f *fleet, red []escalate.Affected, now time.Time) {
	var at ledger.StormAt
	known := ""
	open := false
	r.book.view(func(s *ledger.State) {
		if p := s.Pages["storm"]; p != nil && p.EndedAt.IsZero() {
			known, open = p.Gist, true
		}
		at = s.Storm
	})
	if !at.Holds() || len(red) == 0 && !open {
		return
	}
	w := f.weather(now)
	text := fmt.Sprintf("storm: %d of %d services are breached", w.Breached, w.Loaded)
	if w.Unknown > 0 {
		text += fmt.Sprintf(", %d unknown", w.Unknown)
	}
	for _, source := range w.Sources {
		text += fmt.Sprintf("; source %s %s", source, r.sourceFault(source))
	}
	text += "; nothing is proposed, approved or sent until it has passed"
	if at.Phase == ledger.StormEasing {
		text += fmt.Sprintf(" (easing, over at %s)", at.At.Add(r.o.Config.Limits.StormCooldown).UTC().Format("15:04:05Z"))
	}
	if len(red) > 0 {
		text += ": " + some(red)
	}
	p := r.fleetPage("storm", escalate.Storm, text, now).Affecting(red)
	p.Gist = escalate.StormGist(known, len(red), w.Sources, at.Since, now)
	out["storm"] = p
}

// raging is a storm that has not passed.
type raging struct {
	// since is its begin; zero when none rages.
	since time.Time
}

// rages looks at what is recorded, which a process that has just started knows
// before it has measured anything.
func (r *Reconciler) rages(set spec.Set, now time.Time) (storm raging) {
	r.book.view(func(s *ledger.State) {
		if !s.Storm.Holds() {
			return
		}
		seen := make(map[string]compare.Assessment, len(set.Services))
		for _, svc := range set.Services {
			known, _ := s.Service(svc.Name)
			seen[svc.Name] = compare.Assessment{State: known.State, SourceFault: known.SourceFault}
		}
		if count(set, seen, now).Storm(r.stormLimits()) {
			storm.since = s.Storm.Since
		}
	})
	return storm
}

// speaksFor reports whether the storm's page speaks for a service: for those that
// are red in the storm, as long as it rages and if they were missed when it came.
// A brake that is still on after it, because a few are never met, must not keep
// from people what breaks later.
func (storm raging) speaksFor(n step.NoticeFacts) bool {
	return !storm.since.IsZero() && red(n) && !n.State.EpisodeSince.After(storm.since.Add(n.Service.Remediation.EscalateWithin))
}

// some are the first of many names; the page's text has all.
func some(all []escalate.Affected) string {
	const most = 6
	var names []string
	for _, a := range all[:min(most, len(all))] {
		names = append(names, a.Service)
	}
	if more := len(all) - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}

// sourcePages are those of sources that leave services unknown.
func (r *Reconciler) sourcePages(out map[string]escalate.Page, blind map[string][]string, now time.Time) {
	for source, names := range blind {
		p := r.fleetPage("source/"+source, escalate.SourceDown,
			fmt.Sprintf("source %s %s; unknown: %s", source, r.sourceFault(source), strings.Join(names, ", ")), now)
		// As in a storm: news is a doubling, and not each service that goes blind.
		p.Gist = fmt.Sprintf("source %s %d", source, bits.Len(uint(len(names))))
		out[p.ID] = p
	}
}

// red reports whether a service counts for the storm and its people want to hear
// of it. What is recorded counts, on which replicas agree.
func red(n step.NoticeFacts) bool {
	r := n.Service.Remediation
	if min(r.Mode, n.MaxMode) == spec.Observe && !r.Escalation.Observe {
		return false
	}
	return n.State.State == compare.Breached || n.State.State == compare.Unknown && n.State.SourceFault != ""
}

// exceptionPages report what has expired to its owner, until it is removed: an
// exception that nobody takes out is forgotten, and so is why it was there.
func (r *Reconciler) exceptionPages(out map[string]escalate.Page, set spec.Set, now time.Time) {
	for _, e := range set.Expired(now) {
		svc, ok := set.Service(e.Service)
		if !ok {
			continue
		}
		id := "exception/" + e.Name
		out[id] = r.toReceivers(r.fleetFacts(id, escalate.ExceptionExpired, fmt.Sprintf(
			"exception %s of %s (%s) expired at %s and is still in the documents: %s; remove it or renew it",
			e.Name, e.Service, e.Owner, e.Until.UTC().Format(time.RFC3339), e.Reason), now), r.audience(svc, step.Owners))
	}
}

// audience are the receivers of a page of a service.
func (r *Reconciler) audience(svc spec.Service, to step.Audience) []string {
	e := svc.Remediation.Escalation
	onCall := e.Receivers
	if len(onCall) == 0 {
		onCall = r.allReceivers()
	}
	switch {
	case to == step.OnCall || len(e.OwnerReceivers) == 0:
		return onCall
	case to == step.Owners:
		return e.OwnerReceivers
	}
	out := slices.Clone(onCall)
	for _, name := range e.OwnerReceivers {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// hushed reports whether people silenced a page in an Alertmanager. Alertmanager
// itself mutes what it is sent, and shows it as muted, so it always gets it. One
// that cannot be asked silences nothing: people would rather be woken twice.
func (r *Reconciler) hushed(ctx context.Context, receiver string, p escalate.Page) bool {
	if !p.EndedAt.IsZero() || p.Reason == escalate.Heartbeat || r.isAlertmanager(receiver) {
		return false
	}
	for _, s := range r.o.Silencers {
		found, err := silencedBy(ctx, s, p)
		if err != nil {
			r.log.Warn("silences cannot be read, which holds no page", "page", p.ID, "error", err)
			continue
		}
		if len(found) > 0 {
			r.log.Info("page held back: it is silenced", "page", p.ID, "receiver", receiver, "silence", found[0].ID, "by", found[0].By, "until", found[0].Until)
			return true
		}
	}
	return false
}

// silencesTimeout is how long a page waits for one Alertmanager to say who
// silenced it.
const silencesTimeout = 3 * time.Second

func silencedBy(ctx context.Context, s Silencer, p escalate.Page) ([]gate.Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, silencesTimeout)
	defer cancel()
	return s.SilencesFor(ctx, p)
}

func (r *Reconciler) isAlertmanager(receiver string) bool {
	for _, c := range r.o.Config.Receivers {
		if c.Name == receiver {
			return c.Alertmanager != nil
		}
	}
	return false
}
