package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/httputil"
	"github.com/prometheus/prometheus/util/stats"
)

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

// errTruncated warns of an answer that a limit cut short.
var errTruncated = errors.New("results truncated due to limit")

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

// Handler answers the parts of /api/v1 that a client of a server needs: query,
// query_range, labels, label values, series, and status/flags, runtimeinfo and
// buildinfo; and /-/ready. Answers are compressed for those who ask for it.
func (e *Engine) Handler() http.Handler {
	api := http.NewServeMux()
	for name, h := range map[string]http.HandlerFunc{
		"query": e.serve(e.instant), "query_range": e.serve(e.ranged),
		"labels": e.look(e.labelNames), "series": e.look(e.series),
	} {
		h = e.counts.asked(name, h)
		api.HandleFunc("GET /api/v1/"+name, h)
		api.HandleFunc("POST /api/v1/"+name, h)
	}
	for name, h := range map[string]http.HandlerFunc{
		"label/{name}/values": e.look(e.labelValues), "status/flags": e.look(e.flags),
		"status/runtimeinfo": e.look(e.runtimeInfo), "status/buildinfo": e.look(e.buildInfo),
	} {
		api.HandleFunc("GET /api/v1/"+name, e.counts.asked(name, h))
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", httputil.CompressionHandler{Handler: api})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Prometheus Server is Ready.")
	})
	return mux
}

// asker makes a query of a request.
type asker func(ctx context.Context, r *http.Request, opts promql.QueryOpts) (promql.Query, *fault)

// serve asks, runs, counts and encodes. The result is encoded before the query
// is closed, since closing takes its memory back.
func (e *Engine) serve(ask asker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			refuse(w, badForm(err), nil, "")
			return
		}
		text := r.FormValue("query")
		o, f := readOptions(r)
		if f != nil {
			refuse(w, f, nil, text)
			return
		}
		ctx, cancel := o.bound(r.Context())
		defer cancel()
		q, f := ask(ctx, r, o.query())
		if f != nil {
			refuse(w, f, nil, text)
			return
		}
		defer q.Close()
		res := q.Exec(ctx)
		e.counts.ran(q.Stats(), res)
		if res.Err != nil {
			refuse(w, ran(res.Err), res.Warnings, text)
			return
		}
		body, err := e.encode(q, res, o)
		if err != nil {
			refuse(w, &fault{internal, err}, res.Warnings, text)
			return
		}
		send(w, http.StatusOK, body)
	}
}

func (e *Engine) encode(q promql.Query, res *promql.Result, o options) ([]byte, error) {
	warnings := res.Warnings
	v, cut := truncate(res.Value, o.limit)
	if cut {
		warnings.Add(errTruncated)
	}
	var s stats.QueryStats
	if o.stats != "" {
		s = stats.NewQueryStats(q.Stats())
	}
	w, infos := warnings.AsStrings(q.String(), 10, 10)
	return success(v, s, w, infos)
}

// lookup answers what is no query.
type lookup func(r *http.Request) (any, annotations.Annotations, *fault)

func (e *Engine) look(find lookup) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			refuse(w, badForm(err), nil, "")
			return
		}
		found, notes, f := find(r)
		if f != nil {
			refuse(w, f, notes, "")
			return
		}
		warnings, infos := notes.AsStrings("", 10, 10)
		write(w, http.StatusOK, response{Status: "success", Data: found, Warnings: warnings, Infos: infos})
	}
}

func badForm(err error) *fault {
	return &fault{badData, fmt.Errorf("error parsing form values: %w", err)}
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
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
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
