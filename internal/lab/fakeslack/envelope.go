package fakeslack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// DefaultRedeliver is about how Slack sends again what was not acknowledged.
func DefaultRedeliver() []time.Duration {
	return []time.Duration{3 * time.Second, time.Minute, 5 * time.Minute}
}

// Envelope is a click on its way over sockets.
type Envelope struct {
	ID string `json:"id"`
	// Sent and Acks are how often it was sent and acknowledged, Connections on
	// which sockets it was sent, in order.
	Sent        int   `json:"sent"`
	Acks        int   `json:"acks"`
	Connections []int `json:"connections"`
	// Payload is the click.
	Payload json.RawMessage `json:"payload"`
	// Answer is what came with the first acknowledgement.
	Answer json.RawMessage `json:"answer,omitempty"`
}

type envelope struct {
	Envelope
	// first is closed by the first acknowledgement.
	first chan struct{}
	// broken is closed when the socket on which it was sent last has ended.
	broken chan struct{}
	last   int
	// waiting: it is to be sent on the next socket that opens.
	waiting bool
}

func (e *envelope) acked() bool { return e.Acks > 0 }

func (e *envelope) ack(answer json.RawMessage) {
	e.Acks++
	if e.Acks == 1 {
		e.Answer = answer
		e.waiting = false
		close(e.first)
	}
}

func (e *envelope) lost() {
	select {
	case <-e.broken:
	default:
		close(e.broken)
	}
}

// Envelopes are all that there were, oldest first.
func (s *Slack) Envelopes() []Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Envelope
	for _, id := range s.hub.order {
		e := s.hub.envelopes[id].Envelope
		e.Connections = slices.Clone(e.Connections)
		all = append(all, e)
	}
	return all
}

// overSocket sends a click, so many times in a row, and waits for the first
// acknowledgement.
func (s *Slack) overSocket(ctx context.Context, payload []byte, times int) Outcome {
	s.mu.Lock()
	e := &envelope{Envelope: Envelope{ID: s.id("envelope"), Payload: payload}, first: make(chan struct{}), broken: make(chan struct{})}
	s.hub.envelopes[e.ID] = e
	s.hub.order = append(s.hub.order, e.ID)
	s.mu.Unlock()
	o := Outcome{Shown: ShownWarning, Via: ViaSocket, Envelope: e.ID}
	began := time.Now()
	err := s.send(e, 0, "")
	for range times - 1 {
		err = errors.Join(err, s.send(e, 0, ""))
	}
	if len(s.o.Redeliver) > 0 {
		go s.insist(e)
	}
	if err != nil {
		o.Error = err.Error()
		return o
	}
	select {
	case <-e.first:
		o.Shown = ShownOK
	case <-time.After(s.o.Patience):
		o.Error = "it was not acknowledged in time"
	case <-ctx.Done():
		o.Error = ctx.Err().Error()
	case <-s.ended:
		o.Error = "this Slack has ended"
	}
	o.Took = Duration(time.Since(began))
	return o
}

// send puts an envelope on one socket: the next in turn, and another one than
// the last if there is one.
func (s *Slack) send(e *envelope, attempt int, why string) error {
	l := s.pick(e, attempt > 0)
	if l == nil {
		return errors.New("no socket is open")
	}
	return s.sendOn(l, e, attempt, why)
}

func (s *Slack) pick(e *envelope, other bool) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	links := s.hub.links
	if other && len(links) > 1 {
		links = slices.DeleteFunc(slices.Clone(links), func(l *link) bool { return l.id == e.last })
	}
	if len(links) == 0 {
		return nil
	}
	s.hub.turn++
	return links[s.hub.turn%len(links)]
}

func (s *Slack) sendOn(l *link, e *envelope, attempt int, why string) error {
	s.mu.Lock()
	e.Sent++
	e.Connections = append(e.Connections, l.id)
	e.last, e.waiting = l.id, false
	e.broken = make(chan struct{})
	s.mu.Unlock()
	frame := map[string]any{
		"type": "interactive", "envelope_id": e.ID, "payload": e.Payload, "accepts_response_payload": false,
	}
	if attempt > 0 {
		frame["retry_attempt"], frame["retry_reason"] = attempt, why
	}
	if err := l.write(frame); err != nil {
		return fmt.Errorf("the socket failed: %w", err)
	}
	return nil
}

// Redeliver sends an envelope again, on another socket if there is one, whether
// it was acknowledged or not.
func (s *Slack) Redeliver(id string) error {
	s.mu.Lock()
	e := s.hub.envelopes[id]
	s.mu.Unlock()
	if e == nil {
		return fmt.Errorf("there is no envelope %q", id)
	}
	return s.send(e, 1, "timeout")
}

// insist sends an envelope again until it is acknowledged. One whose socket
// ended does not wait for its time.
func (s *Slack) insist(e *envelope) {
	for i, wait := range s.o.Redeliver {
		s.mu.Lock()
		broken := e.broken
		s.mu.Unlock()
		select {
		case <-e.first:
			return
		case <-s.ended:
			return
		case <-broken:
		case <-time.After(wait):
		}
		if s.send(e, i+1, "timeout") != nil {
			s.mu.Lock()
			e.waiting = !e.acked()
			s.mu.Unlock()
			return
		}
	}
}

// deliverWaiting sends on a new socket what found none.
func (s *Slack) deliverWaiting(l *link) {
	s.mu.Lock()
	var waiting []*envelope
	for _, id := range s.hub.order {
		if e := s.hub.envelopes[id]; e.waiting {
			waiting = append(waiting, e)
		}
	}
	s.mu.Unlock()
	for _, e := range waiting {
		_ = s.sendOn(l, e, 1, "timeout") // The socket's reader sees that it ended.
	}
}
