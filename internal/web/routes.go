package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
)

// handler answers one request with a value that becomes JSON, or an error
// that becomes one.
type handler func(r *http.Request) (any, error)

func (s *Server) routes() {
	list := func(path string, build func(View, Filter) any) {
		s.handle("/api/v1/"+path, http.MethodGet, s.list(build))
	}
	list("services", func(v View, f Filter) any { return Services(v, f) })
	list("objectives", func(v View, f Filter) any { return Objectives(v, f) })
	list("actions", func(v View, f Filter) any { return Actions(v, f) })
	list("approvals", func(v View, f Filter) any { return Approvals(v, f) })
	list("budgets", func(v View, f Filter) any { return Budgets(v, f) })
	list("drift", func(v View, f Filter) any { return DriftList{List: Drifts(v, f)} })
	list("decisions", func(v View, f Filter) any { return Decisions(v, f) })
	list("changes", func(v View, f Filter) any { return Changes(v, f) })
	list("pages", func(v View, f Filter) any { return Pages(v, f) })
	s.methods("/api/v1/freezes", map[string]http.HandlerFunc{
		http.MethodGet:  s.read(s.list(func(v View, f Filter) any { return Freezes(v, f) })),
		http.MethodPost: s.write(s.freeze),
	})
	s.handle("/api/v1/decisions/{id}", http.MethodGet, s.decision)
	s.handle("/api/v1/approvals/{id}", http.MethodPost, s.answer)
	s.handle("/api/v1/freezes/{id}", http.MethodDelete, s.thaw)
	s.handle("/api/v1/decisions/{id}/settle", http.MethodPost, s.settle)
	s.handle("/api/v1/pages/{id}/ack", http.MethodPost, s.ack)
	s.handle("/api/v1/budgets/reset", http.MethodPost, s.reset)
	s.handle("/api/v1/ceilings", http.MethodPost, s.ceiling)
	s.handle("/api/v1/ledger/lower-mark", http.MethodPost, s.lowerMark)
	s.handle("/-/reload", http.MethodPost, s.reload)
	s.handle("/hooks/alertmanager", http.MethodPost, s.alertmanager)
	s.handle("/hooks/changes", http.MethodPost, s.change)
	s.methods("/hooks/pagerduty", map[string]http.HandlerFunc{http.MethodPost: s.pagerduty})
	metrics := promhttp.HandlerFor(s.o.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
	s.methods("/metrics", map[string]http.HandlerFunc{http.MethodGet: metrics.ServeHTTP})
	s.methods("/-/healthy", map[string]http.HandlerFunc{http.MethodGet: healthy})
	s.methods("/-/ready", map[string]http.HandlerFunc{http.MethodGet: s.ready})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &Error{Status: http.StatusNotFound, Code: "not-found", Message: "no such path " + r.URL.Path + s.routeHint(r.URL.Path)})
	})
}

func (s *Server) handle(path, method string, h handler) {
	wrapped := s.read(h)
	if method != http.MethodGet {
		wrapped = s.write(h)
	}
	s.methods(path, map[string]http.HandlerFunc{method: wrapped})
}

// methods routes one path by method; HEAD is GET without the body.
func (s *Server) methods(path string, by map[string]http.HandlerFunc) {
	var allow []string
	for m := range by {
		allow = append(allow, m)
		s.known = append(s.known, m+" "+path)
	}
	slices.Sort(allow)
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if h := by[method]; h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		s.fail(w, r, &Error{
			Status: http.StatusMethodNotAllowed, Code: "method-not-allowed",
			Message: fmt.Sprintf("%s takes %s", r.URL.Path, strings.Join(allow, " or ")) + s.routeHint(r.URL.Path),
		})
	})
}

func (s *Server) read(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.answerJSON(w, r, h) }
}

// maxBody bounds every body that is read.
const maxBody = 1 << 20

// write admits authenticated requests that no foreign page in a browser made.
func (s *Server) write(h handler) http.HandlerFunc {
	origin := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := origin.Check(r); err != nil {
			s.fail(w, r, &Error{Status: http.StatusForbidden, Code: "cross-origin", Message: "writes from another origin are refused"})
			return
		}
		if _, ok := actorOf(r); !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="setpoint"`)
			s.fail(w, r, &Error{
				Status: http.StatusUnauthorized, Code: "unauthorized",
				Message: "writes need a bearer token of web.tokensFile, or the unix socket web.socket",
			})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		s.answerJSON(w, r, h)
	}
}

func (s *Server) answerJSON(w http.ResponseWriter, r *http.Request, h handler) {
	v, err := h(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.send(w, http.StatusOK, v)
}

func (s *Server) send(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		s.o.Logger.Error("answer cannot be encoded", "err", err)
		status, body = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // The client is gone; nothing is lost.
}

// Error is the JSON of everything that went wrong.
type Error struct {
	Meta
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	e.Meta = Meta{APIVersion: apiVersion, Kind: "Error"}
	if e.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	if e.Status >= http.StatusInternalServerError {
		s.o.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	s.send(w, e.Status, e)
}

func bad(format string, args ...any) error {
	return &Error{Status: http.StatusBadRequest, Code: "bad-request", Message: fmt.Sprintf(format, args...)}
}

// decode reads a strict JSON body: an unknown field, such as one that names
// the actor, is refused.
func decode(r *http.Request, into any) error {
	if ct := r.Header.Get("Content-Type"); ct != "" && !strings.HasPrefix(ct, "application/json") {
		return &Error{Status: http.StatusUnsupportedMediaType, Code: "media-type", Message: "send Content-Type: application/json"}
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return bodyError(err, into)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad("more than one JSON value in the body")
	}
	return nil
}

// filter reads the query of a list.
func (s *Server) filter(r *http.Request) (Filter, error) {
	f := Filter{Service: r.URL.Query().Get("service")}
	since := r.URL.Query().Get("since")
	if since == "" {
		return f, nil
	}
	t, err := ParseSince(since, s.o.Now())
	if err != nil {
		return Filter{}, bad("since: %s", err)
	}
	f.Since = t
	return f, nil
}

// ParseSince reads a duration back from now, or a time.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if d, err := model.ParseDuration(text); err == nil {
		return now.Add(-time.Duration(d)), nil
	}
	return parseTime(text)
}

// ParseUntil reads a duration from now, or a time that is still to come.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	if d, err := model.ParseDuration(text); err == nil && d > 0 {
		return now.Add(time.Duration(d)).UTC(), nil
	}
	t, err := parseTime(text)
	if err == nil && !t.After(now) {
		err = fmt.Errorf("%q has passed already", text)
	}
	return t, err
}

func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a duration such as 2h nor a time such as 2026-01-31T18:00:00Z", text)
	}
	return t.UTC(), nil
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "Setpoint is healthy.\n") // The client is gone; nothing is lost.
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "Setpoint is ready.\n"
	if why := s.o.Ready(); why != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = "Setpoint is not ready: " + why + "\n"
	}
	_, _ = io.WriteString(w, text) // The client is gone; nothing is lost.
}
