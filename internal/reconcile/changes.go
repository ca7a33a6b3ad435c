package reconcile

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// Feed knows changes that nobody posted to this agent, e.g. those of a file of
// this host. It answers at once, and with nothing where it cannot: what is lost
// of it costs context only.
type Feed interface {
	Changes(service string) []measure.Change
}

// changes are what was changed lately, as one pass sees it.
type changes struct {
	// own are those of the service; all has those of its dependencies too.
	own, all []measure.Change
}

// readChanges puts together what was posted, what the file has, and what the
// targets say that they rolled out. It is read in a pass that may propose
// something, and again when a model has answered, but not between the gates: both
// of a pass must see the same. All other passes need nothing of it.
func (p *pass) readChanges() {
	own, others := slices.Clone(p.revisions), []measure.Change(nil)
	p.r.book.view(func(s *ledger.State) {
		known, _ := s.Service(p.svc.Name)
		own = append(own, known.Changes...)
		for _, name := range p.svc.Remediation.DependsOn {
			known, _ := s.Service(name)
			others = append(others, known.Changes...)
		}
	})
	if feed := p.r.o.Feed; feed != nil {
		own = append(own, feed.Changes(p.svc.Name)...)
		for _, name := range p.svc.Remediation.DependsOn {
			others = append(others, feed.Changes(name)...)
		}
	}
	p.changes = &changes{own: measure.RecentChanges(p.now, own, nil), all: measure.RecentChanges(p.now, own, others)}
}

// revised takes the revisions that a target listed as changes of the service.
// They are kept for whoever is told of the service until it is looked at again.
func (p *pass) revised(revisions []measure.Change) {
	for _, c := range revisions {
		c.Service = p.svc.Name
		p.revisions = append(p.revisions, c)
	}
	p.result.Revised = p.revisions
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.revised[p.svc.Name] = p.revisions
}

// changedLately are the changes of a service that people are told of, newest
// first: what was posted, what the file has, and what targets listed when they
// were last looked at. Nobody is told of a service that is met, so a sweep over
// met services reads no file.
func (r *Reconciler) changedLately(service string, now time.Time) []measure.Change {
	r.mu.Lock()
	all := slices.Clone(r.revised[service])
	r.mu.Unlock()
	r.book.view(func(s *ledger.State) {
		known, _ := s.Service(service)
		all = append(all, known.Changes...)
	})
	if feed := r.o.Feed; feed != nil {
		all = append(all, feed.Changes(service)...)
	}
	return measure.RecentChanges(now, all, nil)
}
