package reconcile

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// waits says which services wait for which root, as one look at the fleet finds
// it. Chains are followed to their end: people are told of what is at the bottom.
type waits struct {
	// roots of each service that has a dependency which is not met.
	roots map[string]map[string]compare.State
	// waiting are the breached services that wait for a root, sorted.
	waiting map[string][]string
	// overdue are the roots for which one has waited for its escalateWithin.
	overdue map[string]bool
}

func (r *Reconciler) waits(f *fleet, now time.Time) waits {
	w := waits{roots: map[string]map[string]compare.State{}, waiting: map[string][]string{}, overdue: map[string]bool{}}
	for _, svc := range f.set.Services {
		found := map[string]compare.State{}
		f.rootsOf(svc, found, map[string]bool{})
		if len(found) == 0 {
			continue
		}
		w.roots[svc.Name] = found
		if f.assessments[svc.Name].State != compare.Breached {
			continue
		}
		var since time.Time
		r.book.view(func(s *ledger.State) {
			if known, _ := s.Service(svc.Name); known.Episode != "" {
				since = known.EpisodeSince
			}
		})
		late := !since.IsZero() && now.Sub(since) >= svc.Remediation.EscalateWithin
		for name := range found {
			w.waiting[name] = append(w.waiting[name], svc.Name)
			w.overdue[name] = w.overdue[name] || late
		}
	}
	for _, names := range w.waiting {
		slices.Sort(names)
	}
	return w
}

// rootsOf collects the dependencies that are not met and wait for none
// themselves, and reports whether the service waits for any. What was seen on
// another way is no root for it.
func (f *fleet) rootsOf(svc spec.Service, found map[string]compare.State, seen map[string]bool) (waits bool) {
	for _, name := range svc.Remediation.DependsOn {
		a, ok := f.assessments[name]
		if !ok || a.State == compare.Met {
			continue
		}
		waits = true
		if seen[name] {
			continue
		}
		seen[name] = true
		if dep, declared := f.set.Service(name); !declared || !f.rootsOf(dep, found, seen) {
			found[name] = a.State
		}
	}
	return waits
}

// order puts the services that wait for others behind those that do not: a
// root's page is known when it is asked whether another one is needed.
func (w waits) order(services []spec.Service) []spec.Service {
	out := slices.Clone(services)
	slices.SortStableFunc(out, func(a, b spec.Service) int { return min(1, len(w.roots[a.Name])) - min(1, len(w.roots[b.Name])) })
	return out
}

// fill adds what the fleet says to the facts of one service.
func (w waits) fill(n *step.NoticeFacts, wanted map[string]escalate.Page, receivers []string) {
	n.Roots, n.Waiting, n.Overdue = w.roots[n.Service.Name], w.waiting[n.Service.Name], w.overdue[n.Service.Name]
	n.RootsPaged = len(n.Roots) > 0
	for root := range n.Roots {
		n.RootsPaged = n.RootsPaged && told(wanted, root, receivers)
	}
}

// told reports whether all of the receivers get a page of a service.
func told(wanted map[string]escalate.Page, service string, receivers []string) bool {
	for _, p := range wanted {
		if p.Service != service || p.Episode == "" {
			continue
		}
		missing := slices.ContainsFunc(receivers, func(name string) bool { return !slices.Contains(p.Receivers, name) })
		if !missing {
			return true
		}
	}
	return false
}
