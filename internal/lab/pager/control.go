package pager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

// Control lets another process see and disturb this pager.
//
//	PUT    /control/fault?endpoint=pagerduty&next=2   the body is a fault; no next: until it is ended
//	PUT    /control/fault?endpoint=pagerduty&for=10m  until so long from now; &after=1m: begins later
//	DELETE /control/fault?endpoint=pagerduty          no endpoint: all
//	GET    /control/incidents, /control/journal
//	POST   /control/ack, /control/resolve             {"key", "id", "name"}: a person does it
func (p *Pager) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /control/fault", p.putFault)
	mux.HandleFunc("DELETE /control/fault", func(w http.ResponseWriter, req *http.Request) {
		p.ClearFaults(req.URL.Query().Get("endpoint"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /control/incidents", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"items": p.Incidents()})
	})
	mux.HandleFunc("GET /control/journal", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"items": append([]Event{}, p.Journal()...)})
	})
	mux.HandleFunc("POST /control/ack", func(w http.ResponseWriter, req *http.Request) { p.postAct(w, req, Acknowledged) })
	mux.HandleFunc("POST /control/resolve", func(w http.ResponseWriter, req *http.Request) { p.postAct(w, req, Resolved) })
	return mux
}

// strict reads one JSON object without unknown fields: a misspelled fault that
// does nothing would be a test that tests nothing.
func strict(req *http.Request, into any) error {
	dec := json.NewDecoder(io.LimitReader(req.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return nil
}

func (p *Pager) putFault(w http.ResponseWriter, req *http.Request) {
	if err := p.setFault(req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (p *Pager) setFault(req *http.Request) error {
	var f fault.Fault
	if err := strict(req, &f); err != nil {
		return err
	}
	q := req.URL.Query()
	name := q.Get("endpoint")
	switch {
	case !slices.Contains(Endpoints(), name):
		return fmt.Errorf("endpoint is one of %s, not %q", strings.Join(Endpoints(), ", "), name)
	case f == fault.Fault{}:
		return errors.New(`the body is no fault: write e.g. {"status": 503}`)
	case q.Has("for"):
		return p.downFor(name, q.Get("after"), q.Get("for"), f)
	}
	next := 0
	if q.Has("next") {
		var err error
		if next, err = strconv.Atoi(q.Get("next")); err != nil || next < 1 {
			return errors.New("next is how many requests, at least 1")
		}
	}
	p.Fail(name, next, f)
	return nil
}

func (p *Pager) downFor(name, after, length string, f fault.Fault) error {
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return fmt.Errorf("for is a duration such as 10m, not %q", length)
	}
	wait, err := time.ParseDuration(or(after, "0s"))
	if err != nil || wait < 0 {
		return fmt.Errorf("after is a duration such as 1m, not %q", after)
	}
	from := p.now().Add(wait)
	p.Down(name, from, from.Add(d), f)
	return nil
}

func (p *Pager) postAct(w http.ResponseWriter, req *http.Request, status string) {
	var who struct{ Key, ID, Name string }
	err := strict(req, &who)
	if err == nil && who.Key == "" {
		err = errors.New("key is required: the dedup_key of an incident, see /control/incidents")
	}
	var d Delivery
	if err == nil {
		d, err = p.act(req.Context(), who.Key, Person{ID: or(who.ID, "PLAB001"), Name: or(who.Name, "Lab Person")}, status)
	}
	switch {
	case errors.Is(err, ErrNoIncident):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		answer(w, http.StatusOK, d)
	}
}
