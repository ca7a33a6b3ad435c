package pager

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

// The endpoints, as faults and the journal name them.
const (
	Webhook      = "webhook"
	Alertmanager = "alertmanager"
	// Events and Changes are PagerDuty's.
	Events  = "pagerduty"
	Changes = "change"
	// Every is all of them.
	Every = fault.Any
)

// Endpoints are all names that a fault can have, Every too.
func Endpoints() []string { return []string{Webhook, Alertmanager, Events, Changes, Every} }

// Event is one request that brought something, whatever became of it.
type Event struct {
	At       time.Time `json:"at"`
	Endpoint string    `json:"endpoint"`
	// Action is PagerDuty's event_action; firing or resolved for an alert.
	Action string `json:"action,omitempty"`
	// Key is PagerDuty's dedup_key, or the page's id.
	Key     string `json:"key,omitempty"`
	Summary string `json:"summary,omitempty"`
	// Taken: it had its effect, Heard: the sender was answered.
	Taken bool `json:"taken"`
	Heard bool `json:"heard"`
	// Status is the answer's, 0 without one. Fault is what it met, "" for nothing.
	Status int    `json:"status,omitempty"`
	Fault  string `json:"fault,omitempty"`
	// Body is what was sent, if that is JSON, without the routing key.
	Body json.RawMessage `json:"body,omitempty"`
}

// Journal are all events, oldest first; a request with several alerts is as many.
func (p *Pager) Journal() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

// Fail treats the next requests of an endpoint so, as many as next; 0 or less is
// until ClearFaults.
func (p *Pager) Fail(endpoint string, next int, f fault.Fault) { p.faults.Fail(endpoint, next, f) }

// Down treats every request of an endpoint so, from the one time until the other.
// See Gate for a port that refuses.
func (p *Pager) Down(endpoint string, from, until time.Time, f fault.Fault) {
	p.faults.Down(endpoint, from, until, f)
}

// ClearFaults ends the faults of an endpoint, or with "" all.
func (p *Pager) ClearFaults(endpoint string) { p.faults.Clear(endpoint) }

// endpoint puts faults and the journal in front of what answers.
func (p *Pager) endpoint(name string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// All of it first: only then is it noticed that the sender hung up.
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		if err != nil {
			return // Nobody is left to answer.
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		treated := p.faults.Take(p.now(), name, fault.Any)
		said := treated.Before(w, req, nil, func(status int) {
			answer(w, or(status, http.StatusInternalServerError), map[string]string{"status": "error", "message": or(treated.Error, http.StatusText(status))})
		})
		if said != "" {
			e := Event{Fault: said, Status: or(treated.Status, http.StatusInternalServerError), Heard: true}
			if said == fault.Dropped || said == fault.HungUp {
				e.Status, e.Heard = 0, false
			}
			p.write(name, body, req, e)
			return
		}
		if !treated.DropReply {
			seen := &watched{ResponseWriter: w, status: http.StatusOK}
			h(seen, req)
			p.write(name, body, req, Event{Taken: seen.status < 300, Status: seen.status, Heard: true})
			return
		}
		lost := &watched{ResponseWriter: nowhere{}, status: http.StatusOK}
		h(lost, req)
		p.write(name, body, req, Event{Taken: lost.status < 300, Fault: "reply dropped"})
		_ = treated.Wait(req, nil)
		fault.Abort(w)
	})
}

func or[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// watched remembers the status of an answer.
type watched struct {
	http.ResponseWriter
	status int
}

// WriteHeader keeps the status and passes it on.
func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// nowhere is where a lost answer goes.
type nowhere struct{}

// Header is thrown away.
func (nowhere) Header() http.Header { return http.Header{} }

// Write takes all.
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader does nothing.
func (nowhere) WriteHeader(int) {}

// write puts a request into the journal. Reading is no event.
func (p *Pager) write(endpoint string, body []byte, req *http.Request, e Event) {
	if req.Method != http.MethodPost {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.At, e.Endpoint = p.now(), endpoint
	if json.Valid(body) {
		e.Body = hidden(body)
	}
	for _, about := range brought(endpoint, body) {
		e.Action, e.Key, e.Summary = about.Action, about.Key, about.Summary
		p.events = append(p.events, e)
	}
}

// hidden is the body without the routing key, which is a secret.
func hidden(body []byte) []byte {
	var e struct {
		RoutingKey json.RawMessage `json:"routing_key"`
	}
	if json.Unmarshal(body, &e) != nil || len(e.RoutingKey) == 0 {
		return body
	}
	return bytes.ReplaceAll(body, e.RoutingKey, []byte(`"<secret>"`))
}

// brought is what a request is about, as far as it can be read; one empty Event
// when it cannot.
func brought(endpoint string, body []byte) []Event {
	var found []Event
	switch endpoint {
	case Webhook:
		var m message
		_ = json.Unmarshal(body, &m) // Garbage is journaled as such.
		for _, a := range m.Alerts {
			d := delivery{labels: a.Labels}
			found = append(found, Event{Action: a.Status, Key: d.id(), Summary: a.Annotations["summary"]})
		}
	case Alertmanager:
		var alerts []struct{ Labels, Annotations map[string]string }
		_ = json.Unmarshal(body, &alerts)
		for _, a := range alerts {
			d := delivery{labels: maps.Clone(a.Labels)}
			found = append(found, Event{Key: d.id(), Summary: a.Annotations["summary"]})
		}
	default:
		var e pdEvent
		_ = json.Unmarshal(body, &e)
		about := Event{Action: e.Action, Key: e.DedupKey}
		if e.Payload != nil {
			about.Summary = e.Payload.Summary
		}
		return []Event{about}
	}
	if len(found) == 0 {
		found = []Event{{}}
	}
	return found
}
