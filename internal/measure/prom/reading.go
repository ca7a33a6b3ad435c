package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// annotations are the markers with which the PromQL engine prefixes its own
// remarks on a query (naming, histogram shapes). They say nothing about missing
// data; every other warning does, or may (thanos #7354 for the mix-up).
var annotations = [...]string{"PromQL info: ", "PromQL warning: "}

// maxInstantDrift is how far the instant of an answer may lie from the one that
// was asked. A cache that replays yesterday's answer is found by it.
const maxInstantDrift = 5 * time.Second

// reading is one value of one expression, or the reason why there is none.
type reading struct {
	value  float64
	at     time.Time
	reason measure.Reason
	detail string
	notes  []string
}

// interpret takes a parsed answer apart: exactly one finite float counts.
func interpret(v model.Value, warnings v1.Warnings, infos v1.Infos) reading {
	r := one(v)
	for _, w := range warnings {
		if !annotation(w) {
			return reading{reason: measure.Partial, detail: "warning: " + w}
		}
		r.notes = append(r.notes, w)
	}
	r.notes = append(r.notes, infos...)
	return r
}

func annotation(warning string) bool {
	for _, a := range annotations {
		if strings.HasPrefix(warning, a) {
			return true
		}
	}
	return false
}

func one(v model.Value) reading {
	switch v := v.(type) {
	case model.Vector:
		switch {
		case len(v) == 0:
			return reading{reason: measure.NoData, detail: "returned nothing"}
		case len(v) > 1:
			return reading{
				reason: measure.SeveralSeries,
				detail: fmt.Sprintf("returned %d series, want 1: aggregate with sum()", len(v)),
			}
		case v[0] == nil || v[0].Histogram != nil:
			return reading{reason: measure.NotAVector, detail: "returned a native histogram, want one number"}
		}
		return finite(float64(v[0].Value), v[0].Timestamp)
	case *model.Scalar:
		return finite(float64(v.Value), v.Timestamp)
	case nil:
		return reading{reason: measure.SourceError, detail: "the answer holds no data"}
	default:
		return reading{reason: measure.NotAVector, detail: fmt.Sprintf("returned a %s, want a vector of one", v.Type())}
	}
}

// finite refuses what no count and no ratio can be. Subnormal numbers are no
// counts either: dividing by one overflows.
func finite(v float64, ts model.Time) reading {
	const smallestNormal = 0x1p-1022
	if math.IsNaN(v) || math.IsInf(v, 0) || (v != 0 && math.Abs(v) < smallestNormal) {
		return reading{reason: measure.NotFinite, detail: fmt.Sprintf("returned %g", v)}
	}
	return reading{value: v, at: ts.Time().UTC()}
}

func checkInstant(r reading, asked time.Time) reading {
	if r.reason != "" || r.at.Sub(asked).Abs() <= maxInstantDrift {
		return r
	}
	return reading{
		reason: measure.SourceError,
		detail: fmt.Sprintf("answered for %s, asked for %s: a cache on the way?",
			r.at.Format(time.RFC3339), asked.UTC().Format(time.RFC3339)),
	}
}

// fault turns a failed call into a reason. Neither the HTTP status nor the
// errorType is trusted alone: whatever is not known to be the query's own fault
// is the source's. limit is how long the call was given.
func (s *Source) fault(ctx context.Context, err error, limit time.Duration) reading {
	if errors.Is(err, errPartial) {
		return reading{reason: measure.Partial, detail: errPartial.Error()}
	}
	if errors.Is(err, context.Canceled) {
		return reading{reason: measure.SourceError, detail: "the pass ended before the answer came"}
	}
	if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return reading{reason: measure.SourceError, detail: fmt.Sprintf("no whole answer within %s", limit)}
	}
	if e, ok := errors.AsType[*v1.Error](err); ok {
		reason := measure.SourceError
		switch {
		case e.Type == v1.ErrBadData || e.Type == v1.ErrExec:
			reason = measure.QueryError
		case e.Type == v1.ErrBadResponse && strings.HasPrefix(e.Msg, "unexpected value type"):
			// The client does not decode strings.
			reason = measure.NotAVector
		}
		// Detail is the raw body: a proxy's page, or worse.
		return reading{reason: reason, detail: string(e.Type) + ": " + e.Msg}
	}
	// The text of a url.Error holds the URL with its parameters.
	for e, ok := errors.AsType[*url.Error](err); ok; e, ok = errors.AsType[*url.Error](err) {
		err = e.Err
	}
	return reading{reason: measure.SourceError, detail: err.Error()}
}
