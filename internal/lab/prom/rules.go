package prom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// evaluation is how often a group without an interval is evaluated.
const evaluation = time.Minute

// Record evaluates the recording rules of a rule file at each of their
// intervals from one time to another, and stores what they give, as a server
// that had them all the while. It needs a storage whose block spans that time
// twice.
func (e *Engine) Record(ctx context.Context, file []byte, from, to time.Time) error {
	groups, errs := rulefmt.Parse(file, false, model.UTF8Validation, e.parser, promslog.NewNopLogger())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	for _, g := range groups.Groups {
		interval := time.Duration(g.Interval)
		if interval <= 0 {
			interval = evaluation
		}
		for _, r := range g.Rules {
			if r.Record == "" {
				return fmt.Errorf("rules: group %s: %s is no recording rule", g.Name, r.Alert)
			}
			if err := e.record(ctx, r, from, to, interval); err != nil {
				return fmt.Errorf("rules: group %s: %s: %w", g.Name, r.Record, err)
			}
		}
	}
	return nil
}

func (e *Engine) record(ctx context.Context, r rulefmt.Rule, from, to time.Time, interval time.Duration) error {
	q, err := e.engine.NewRangeQuery(ctx, e.db, nil, r.Expr, from, to, interval)
	if err != nil {
		return err
	}
	defer q.Close()
	m, err := q.Exec(ctx).Matrix()
	if err != nil {
		return err
	}
	app := e.db.AppenderV2(ctx)
	for _, s := range m {
		if err := store(app, s, r); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
	return app.Commit()
}

func store(app storage.AppenderV2, s promql.Series, r rulefmt.Rule) error {
	b := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.Record)
	for name, v := range r.Labels {
		b.Set(name, v)
	}
	ls := b.Labels()
	for _, p := range s.Floats {
		if err := add(app, ls, p.T, p.F); err != nil {
			return err
		}
	}
	return nil
}
