package checker

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// start checks when and how often things are started.
func (r *run) start(l *life) {
	r.stillAllowed(l)
	l.frozenBy = r.frozen(l.service)
	r.spaced(l)
	r.capped(l, "", r.o.EffectsPerHour)
	r.capped(l, l.service, r.o.EffectsPerServicePerHour)
	r.starts = append(r.starts, l)
	r.undoStarts(l)
}

// spaced checks the time since the last start on the service. An undo need not
// wait, but what comes after one must.
func (r *run) spaced(l *life) {
	for i := len(r.starts) - 1; i >= 0 && r.o.MinSpacing > 0; i-- {
		last := r.starts[i]
		if last.service != l.service {
			continue
		}
		if l.claim.Undo {
			return
		}
		r.hold(MinSpacing)
		if gap := l.startedAt.Sub(last.startedAt); gap < r.o.MinSpacing-r.o.Skew {
			r.broke(MinSpacing, l.claim.Key, l.startSeq, "%s after %s, minSpacing is %s", gap, last.claim.Key, r.o.MinSpacing)
		}
		return
	}
}

// capped counts the starts of the rolling hour, this one included, on a
// service ("" for all). An undo is counted and not stopped.
func (r *run) capped(l *life, service string, limit int) {
	if limit <= 0 || l.claim.Undo {
		return
	}
	r.hold(Caps)
	n, since := 1, l.startedAt.Add(r.o.Skew-time.Hour)
	for i := len(r.starts) - 1; i >= 0 && r.starts[i].startedAt.After(since); i-- {
		if service == "" || r.starts[i].service == service {
			n++
		}
	}
	if n > limit {
		where := "the fleet"
		if service != "" {
			where = service
		}
		r.broke(Caps, l.claim.Key, l.startSeq, "start number %d on %s within an hour, the cap is %d", n, where, limit)
	}
}

func (r *run) freeze(b ledger.Freeze) {
	// The thaw may have come before the file was copied into the ledger.
	if r.thawed[b.ID] {
		return
	}
	r.hold(NotFrozen)
	r.freezes = append(r.freezes, b)
}

// frozen names a freeze that binds a service now; "" without.
func (r *run) frozen(service string) string {
	for _, f := range r.freezes {
		inTime := f.Until.IsZero() || r.now.Time.Before(f.Until)
		if !r.thawed[f.ID] && inTime && (f.Service == "" || f.Service == service) {
			return f.ID
		}
	}
	return ""
}

// frozenStarts names the starts during a freeze. One of which the agent says
// that nothing was sent, and of which the actuator knows nothing, was stopped
// at the last look before the first byte, as it must be.
func (r *run) frozenStarts() {
	for _, l := range r.starts {
		unsent := l.receipt != nil && l.receipt.Effect == execute.Failed && len(l.requests) == 0
		if l.frozenBy != "" && !unsent {
			r.broke(NotFrozen, l.claim.Key, l.startSeq, "freeze %s was in force at the start", l.frozenBy)
		}
	}
}
