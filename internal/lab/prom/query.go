package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// maxPoints is the number of steps that a server refuses to exceed.
const maxPoints = 11000

// options are what a request may say beside its query.
type options struct {
	// timeout is zero where the request names none.
	timeout time.Duration
	bounded bool
	limit   int
	// stats is "" for an answer without them, "all" for those of each step too.
	stats    string
	lookback time.Duration
}

func readOptions(r *http.Request) (options, *fault) {
	o := options{stats: r.FormValue("stats")}
	var err error
	if o.limit, err = parseLimit(r.FormValue("limit")); err != nil {
		return o, invalid("limit", err)
	}
	if text := r.FormValue("timeout"); text != "" {
		if o.timeout, err = parseDuration(text); err != nil {
			return o, invalid("timeout", err)
		}
		o.bounded = true
	}
	if text := r.FormValue("lookback_delta"); text != "" {
		if o.lookback, err = parseDuration(text); err != nil {
			return o, &fault{badData, fmt.Errorf("error parsing lookback delta duration: %w", err)}
		}
	}
	return o, nil
}

// bound ends a request with its timeout, if it names one.
func (o options) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if !o.bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, o.timeout)
}

func (o options) query() promql.QueryOpts {
	return promql.NewPrometheusQueryOpts(o.stats == "all", o.lookback, nil)
}

func (e *Engine) instant(ctx context.Context, r *http.Request, opts promql.QueryOpts) (promql.Query, *fault) {
	at := e.opts.Now()
	if text := r.FormValue("time"); text != "" {
		var err error
		if at, err = parseTime(text); err != nil {
			return nil, invalid("time", fmt.Errorf("invalid time value for 'time': %w", err))
		}
	}
	q, err := e.engine.NewInstantQuery(ctx, e.db, opts, r.FormValue("query"), at)
	if err != nil {
		return nil, built(err)
	}
	return q, nil
}

func (e *Engine) ranged(ctx context.Context, r *http.Request, opts promql.QueryOpts) (promql.Query, *fault) {
	start, err := parseTime(r.FormValue("start"))
	if err != nil {
		return nil, invalid("start", err)
	}
	end, err := parseTime(r.FormValue("end"))
	if err != nil {
		return nil, invalid("end", err)
	}
	if end.Before(start) {
		return nil, invalid("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseDuration(r.FormValue("step"))
	if err != nil {
		return nil, invalid("step", err)
	}
	if step <= 0 {
		return nil, invalid("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if end.Sub(start)/step > maxPoints {
		return nil, &fault{badData, errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")}
	}
	q, err := e.engine.NewRangeQuery(ctx, e.db, opts, r.FormValue("query"), start, end, step)
	if err != nil {
		return nil, built(err)
	}
	return q, nil
}

// truncate cuts a list of series to a limit, where there is one.
func truncate(v parser.Value, limit int) (parser.Value, bool) {
	if limit == 0 {
		return v, false
	}
	switch v := v.(type) {
	case promql.Vector:
		return v[:min(limit, len(v))], len(v) > limit
	case promql.Matrix:
		return v[:min(limit, len(v))], len(v) > limit
	}
	return v, false
}

// parseLimit reads how many results are wanted at most; zero is all of them.
func parseLimit(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, errors.New("limit must be non-negative")
	}
	return n, nil
}

// parseTime reads seconds or RFC 3339, to the millisecond where it is a float.
func parseTime(s string) (time.Time, error) {
	if t, err := strconv.ParseFloat(s, 64); err == nil {
		whole, part := math.Modf(t)
		part = math.Round(part*1000) / 1000
		return time.Unix(int64(whole), int64(part*float64(time.Second))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
}

// parseDuration reads seconds or a duration of PromQL.
func parseDuration(s string) (time.Duration, error) {
	if d, err := strconv.ParseFloat(s, 64); err == nil {
		ts := d * float64(time.Second)
		if math.IsNaN(ts) || ts >= math.MaxInt64 || ts < math.MinInt64 {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", s)
		}
		return time.Duration(ts), nil
	}
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot parse %q to a valid duration", s)
}
