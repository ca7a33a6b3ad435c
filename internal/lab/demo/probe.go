package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// asker is the part of the engine that a probe needs.
type asker interface {
	Value(ctx context.Context, expr string, at time.Time) (v float64, ok bool, err error)
}

// ask puts the questions behind every recorded judgement once more, in other
// words and without the agent.
func ask(ctx context.Context, engine asker, set spec.Set, effects []*ledger.Effect) ([]probe, error) {
	var out []probe
	for _, ef := range effects {
		svc, ok := set.Service(ef.Service)
		if !ok || ef.Judgement == nil || len(svc.Objectives) == 0 {
			continue
		}
		window := svc.Objectives[0].JudgeWindow
		after := ef.AppliedAt.Add(ef.Claim.Action.Settle + window)
		for _, p := range []struct {
			probe
			at time.Time
		}{
			{probe{what: "before", key: ef.Claim.Key, recorded: ef.Judgement.Before}, measure.Instant(ef.ClaimedAt)},
			{probe{what: "after", key: ef.Claim.Key, recorded: ef.Judgement.After}, after},
		} {
			expr := fmt.Sprintf(sceneOf(ef.Service).tells, spec.FormatDuration(window))
			var err error
			if p.answer, p.ok, err = engine.Value(ctx, expr, p.at); err != nil {
				return nil, fmt.Errorf("ask the engine about %s of %s: %w", p.what, p.key, err)
			}
			out = append(out, p.probe)
		}
	}
	return out, nil
}

func sceneOf(service string) scene {
	for _, s := range plot {
		if s.service == service {
			return s
		}
	}
	return scene{}
}
