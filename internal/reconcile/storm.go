package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

func (r *Reconciler) stormLimits() step.StormLimits {
	l := r.o.Config.Limits
	return step.StormLimits{Min: l.StormMin, Fraction: l.StormFraction, Cooldown: l.StormCooldown}
}

// weather counts the fleet as it was last assessed.
func (f *fleet) weather(now time.Time) step.Weather {
	f.counting.Do(func() { f.counted = count(f.set, f.assessments, now) })
	return f.counted
}

// count leaves out the services in maintenance: what people work on is no
// weather.
func count(set spec.Set, seen map[string]compare.Assessment, now time.Time) step.Weather {
	var w step.Weather
	sources, worked := map[string]bool{}, map[string]bool{}
	for _, m := range set.Maintenances {
		// Once for each: a window of a week is looked back minute by minute.
		if on, _ := m.Schedule.Active(now); on {
			for _, name := range m.Services {
				worked[name] = true
			}
		}
	}
	for _, svc := range set.Services {
		if worked[svc.Name] {
			continue
		}
		a := seen[svc.Name]
		w.Add(a.State, a.SourceFault)
		if a.State == compare.Unknown && a.SourceFault != "" {
			sources[a.SourceFault] = true
		}
	}
	w.Sources = sortedKeys(sources)
	return w
}

// weather is the fleet's, with this service as this pass sees it.
func (p *pass) weather() step.Weather {
	if !p.assessed {
		return p.fleet.weather(p.now)
	}
	seen := make(map[string]compare.Assessment, len(p.fleet.assessments)+1)
	for name, a := range p.fleet.assessments {
		seen[name] = a
	}
	seen[p.svc.Name] = p.assessment
	return count(p.fleet.set, seen, p.now)
}

// brake records a change of the storm brake. Every pass looks, before anything
// is proposed, so the first one that sees a storm holds all.
func (p *pass) brake(ctx context.Context) error {
	w, limits := p.weather(), p.r.stormLimits()
	due := false
	p.r.book.view(func(s *ledger.State) { _, due = p.braked(s.Storm, w, limits) })
	if !due || p.dry || p.disputed != "" {
		return nil
	}
	var now ledger.Storm
	err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) {
		next, ok := p.braked(s.Storm, w, limits)
		if !ok {
			return ledger.Draft{}, ledger.ErrExists
		}
		now = next
		return ledger.StormDraft(s, next)
	})
	switch {
	case raced(err):
		return nil
	case err != nil:
		return fmt.Errorf("record the storm brake: %w", err)
	}
	p.r.log.Warn("storm brake", "phase", now.Phase, "breached", now.Breached, "unknown", now.Unknown, "loaded", now.Loaded)
	return nil
}

// braked is the change of the brake that is due. What is younger than two sweeps
// is not eased: replicas that see different weather, and weather that swings with
// every sweep, would write in each.
func (p *pass) braked(at ledger.StormAt, w step.Weather, limits step.StormLimits) (ledger.Storm, bool) {
	now := p.r.storeTime(p.now)
	next, due := step.Brake(at, w, limits, now)
	if young := now.Sub(at.At) < 2*p.r.o.Config.Sweep.Interval; next.Phase == ledger.StormEasing && young {
		return next, false
	}
	return next, due
}

// storm says in words why the brake is on; "" when it is not. What is not
// recorded yet holds too.
func (p *pass) storm(s *ledger.State) string {
	at := s.Storm
	if !at.Holds() {
		if next, due := step.Brake(at, p.weather(), p.r.stormLimits(), p.now); due && next.Phase == ledger.StormOn {
			return next.String() + ", so the cause is shared and no service is acted on"
		}
		return ""
	}
	text := fmt.Sprintf("since %s, when %s", at.Since.UTC().Format("15:04:05Z"), at.Storm)
	if at.Phase == ledger.StormEasing {
		text = fmt.Sprintf("easing, over at %s unless it comes back", at.At.Add(p.r.o.Config.Limits.StormCooldown).UTC().Format("15:04:05Z"))
	}
	return text + "; the cause is shared, so no service is acted on"
}
