package pager

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// PagerDuty is how that side is set up. The zero PagerDuty takes every routing
// key and tells nobody of an acknowledgement.
type PagerDuty struct { //nolint:revive // It is a name: the shorter one would be nobody's.
	// RoutingKey is the only one that is taken.
	RoutingKey string
	// WebhookURL gets what people do, signed with each of WebhookSecrets.
	WebhookURL     string
	WebhookSecrets []string
}

// PagerDuty sets that side up.
func (p *Pager) PagerDuty(d PagerDuty) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pd = d
}

// What an incident is.
const (
	Triggered    = "triggered"
	Acknowledged = "acknowledged"
	Resolved     = "resolved"
)

// Incident is one that people see. A key whose incident was resolved opens
// another one.
type Incident struct {
	Number int    `json:"number"`
	Key    string `json:"key"`
	Status string `json:"status"`
	// Summary, Severity and Source are of the last trigger.
	Summary  string `json:"summary"`
	Severity string `json:"severity"`
	Source   string `json:"source"`
	// Triggers counts those that it took.
	Triggers       int       `json:"triggers"`
	TriggeredAt    time.Time `json:"triggeredAt"`
	AcknowledgedAt time.Time `json:"acknowledgedAt,omitzero"`
	ResolvedAt     time.Time `json:"resolvedAt,omitzero"`
	// AcknowledgedBy is a person's name, or "" when an event did it.
	AcknowledgedBy string `json:"acknowledgedBy,omitempty"`
}

// Incidents are all that there were, in order of their opening.
func (p *Pager) Incidents() []Incident {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []Incident{}
	for _, i := range p.incidents {
		all = append(all, *i)
	}
	return all
}

// The limits of PagerDuty's Events API v2.
const (
	maxEvent    = 512 << 10
	maxDedupKey = 255
	maxSummary  = 1024
)

// pdEvent is the part of an event that has a meaning here.
type pdEvent struct {
	RoutingKey string     `json:"routing_key"`
	Action     string     `json:"event_action"`
	DedupKey   string     `json:"dedup_key"`
	Payload    *pdPayload `json:"payload"`
}

type pdPayload struct {
	Summary  string `json:"summary"`
	Source   string `json:"source"`
	Severity string `json:"severity"`
}

// faults says what of the event PagerDuty refuses.
func (e pdEvent) faults(routingKey string) []string {
	var found []string
	add := func(bad bool, text string) {
		if bad {
			found = append(found, text)
		}
	}
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	add(blank(e.RoutingKey), "'routing_key' is missing or blank")
	add(routingKey != "" && !blank(e.RoutingKey) && e.RoutingKey != routingKey, "'routing_key' is invalid")
	add(!slices.Contains([]string{"trigger", "acknowledge", "resolve"}, e.Action), "'event_action' must be one of trigger, acknowledge, resolve")
	add(utf8.RuneCountInString(e.DedupKey) > maxDedupKey, fmt.Sprintf("'dedup_key' is longer than %d characters", maxDedupKey))
	if e.Action != "trigger" {
		add(blank(e.DedupKey), "'dedup_key' is missing or blank")
		return found
	}
	if e.Payload == nil {
		return append(found, "'payload' is missing or blank")
	}
	add(blank(e.Payload.Summary), "'payload.summary' is missing or blank")
	add(utf8.RuneCountInString(e.Payload.Summary) > maxSummary, fmt.Sprintf("'payload.summary' is longer than %d characters", maxSummary))
	add(blank(e.Payload.Source), "'payload.source' is missing or blank")
	add(!slices.Contains([]string{"critical", "error", "warning", "info"}, e.Payload.Severity), "'payload.severity' must be one of critical, error, warning, info")
	return found
}

func invalid(w http.ResponseWriter, faults ...string) {
	answer(w, http.StatusBadRequest, map[string]any{"status": "invalid event", "message": "Event object is invalid", "errors": faults})
}

// readEvent gives an event, or has answered.
func readEvent(w http.ResponseWriter, req *http.Request) (pdEvent, bool) {
	var e pdEvent
	var size *http.MaxBytesError
	req.Body = http.MaxBytesReader(w, req.Body, maxEvent)
	switch err := read(w, req, &e); {
	case errors.As(err, &size):
		invalid(w, fmt.Sprintf("the event is larger than %d bytes", maxEvent))
	case err != nil:
		invalid(w, "the event is no JSON: "+err.Error())
	default:
		return e, true
	}
	return pdEvent{}, false
}

// enqueue takes an event. That of a key without an open incident changes
// nothing, and is taken all the same.
func (p *Pager) enqueue(w http.ResponseWriter, req *http.Request) {
	e, ok := readEvent(w, req)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := e.faults(p.pd.RoutingKey); len(found) > 0 {
		invalid(w, found...)
		return
	}
	if e.DedupKey == "" {
		p.ids++
		e.DedupKey = fmt.Sprintf("lab%029d", p.ids)
	}
	now, open := p.now(), p.open(e.DedupKey)
	switch {
	case e.Action == "trigger":
		p.trigger(open, e, now)
	case open == nil:
	case e.Action == "acknowledge":
		open.acknowledge("", now)
	default:
		open.Status, open.ResolvedAt = Resolved, now
	}
	answer(w, http.StatusAccepted, map[string]string{"status": "success", "message": "Event processed", "dedup_key": e.DedupKey})
}

// open is the incident of that key that is not resolved, or nil. The caller
// holds the lock.
func (p *Pager) open(key string) *Incident {
	for _, i := range slices.Backward(p.incidents) {
		if i.Key == key && i.Status != Resolved {
			return i
		}
	}
	return nil
}

// trigger opens an incident or adds to the open one, which stays acknowledged.
func (p *Pager) trigger(open *Incident, e pdEvent, now time.Time) {
	if open == nil {
		open = &Incident{Number: len(p.incidents) + 1, Key: e.DedupKey, Status: Triggered, TriggeredAt: now}
		p.incidents = append(p.incidents, open)
	}
	open.Triggers++
	open.Summary, open.Severity, open.Source = e.Payload.Summary, e.Payload.Severity, e.Payload.Source
}

func (i *Incident) acknowledge(by string, now time.Time) {
	if i.Status == Triggered {
		i.Status, i.AcknowledgedAt, i.AcknowledgedBy = Acknowledged, now, by
	}
}

// change takes a change event, which opens nothing.
func (p *Pager) change(w http.ResponseWriter, req *http.Request) {
	e, ok := readEvent(w, req)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.RoutingKey == "", p.pd.RoutingKey != "" && e.RoutingKey != p.pd.RoutingKey:
		invalid(w, "'routing_key' is invalid")
	case e.Payload == nil || strings.TrimSpace(e.Payload.Summary) == "":
		invalid(w, "'payload.summary' is missing or blank")
	default:
		answer(w, http.StatusAccepted, map[string]string{"status": "success", "message": "Change event processed"})
	}
}
