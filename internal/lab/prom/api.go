package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"
)

// maxPoints is the number of steps that a server refuses to exceed.
const maxPoints = 11000

// The kinds of errors, as clients know them.
const (
	badData   = "bad_data"
	execution = "execution"
	canceled  = "canceled"
	timedOut  = "timeout"
	internal  = "internal"
)

// statusClosed is what a server writes to a client that has gone.
const statusClosed = 499

// fault is an error with the kind that a client branches on.
type fault struct {
	kind string
	err  error
}

func (f *fault) status() int {
	switch f.kind {
	case badData:
		return http.StatusBadRequest
	case execution:
		return http.StatusUnprocessableEntity
	case canceled:
		return statusClosed
	case timedOut:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func invalid(parameter string, err error) *fault {
	return &fault{badData, fmt.Errorf("invalid parameter %q: %w", parameter, err)}
}

// response is the envelope of every answer.
type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

// asker makes a query of a request.
type asker func(ctx context.Context, r *http.Request) (promql.Query, *fault)

// serve asks, runs and encodes. The result is encoded before the query is
// closed, since closing takes its memory back.
func (e *Engine) serve(ask asker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			refuse(w, &fault{badData, fmt.Errorf("error parsing form values: %w", err)}, nil, "")
			return
		}
		text := r.FormValue("query")
		ctx, cancel, f := limit(r)
		if f != nil {
			refuse(w, f, nil, text)
			return
		}
		defer cancel()
		q, f := ask(ctx, r)
		if f != nil {
			refuse(w, f, nil, text)
			return
		}
		defer q.Close()
		res := q.Exec(ctx)
		if res.Err != nil {
			refuse(w, ran(res.Err), res.Warnings, text)
			return
		}
		warnings, infos := res.Warnings.AsStrings(text, 10, 10)
		write(w, http.StatusOK, response{
			Status: "success", Warnings: warnings, Infos: infos,
			Data: data{ResultType: res.Value.Type(), Result: encode(res.Value)},
		})
	}
}

func refuse(w http.ResponseWriter, f *fault, notes annotations.Annotations, text string) {
	warnings, infos := notes.AsStrings(text, 10, 10)
	write(w, f.status(), response{
		Status: "error", ErrorType: f.kind, Error: f.err.Error(), Warnings: warnings, Infos: infos,
	})
}

func write(w http.ResponseWriter, status int, r response) {
	body, err := json.Marshal(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// limit bounds a request by its timeout, if it names one.
func limit(r *http.Request) (context.Context, context.CancelFunc, *fault) {
	text := r.FormValue("timeout")
	if text == "" {
		ctx, cancel := context.WithCancel(r.Context())
		return ctx, cancel, nil
	}
	d, err := parseDuration(text)
	if err != nil {
		return nil, nil, invalid("timeout", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), d)
	return ctx, cancel, nil
}

// ran names the fault of a query that could not be run to its end.
func ran(err error) *fault {
	var (
		gone    promql.ErrQueryCanceled
		late    promql.ErrQueryTimeout
		storage promql.ErrStorage
	)
	switch {
	case errors.As(err, &late):
		return &fault{timedOut, err}
	case errors.As(err, &gone), errors.Is(err, context.Canceled):
		return &fault{canceled, err}
	case errors.As(err, &storage):
		return &fault{internal, err}
	}
	return &fault{execution, err}
}

// built names the fault of a query that could not be made.
func built(err error) *fault {
	if f := ran(err); f.kind == timedOut || f.kind == canceled {
		return f
	}
	return invalid("query", err)
}

func (e *Engine) instant(ctx context.Context, r *http.Request) (promql.Query, *fault) {
	at := e.now()
	if text := r.FormValue("time"); text != "" {
		var err error
		if at, err = parseTime(text); err != nil {
			return nil, invalid("time", fmt.Errorf("invalid time value for 'time': %w", err))
		}
	}
	q, err := e.engine.NewInstantQuery(ctx, e.db, nil, r.FormValue("query"), at)
	if err != nil {
		return nil, built(err)
	}
	return q, nil
}

func (e *Engine) ranged(ctx context.Context, r *http.Request) (promql.Query, *fault) {
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
	q, err := e.engine.NewRangeQuery(ctx, e.db, nil, r.FormValue("query"), start, end, step)
	if err != nil {
		return nil, built(err)
	}
	return q, nil
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
