package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// billboard is a channel in memory: what people see in it, whatever the agent
// believes.
type billboard struct {
	clock func() time.Time
	mu    sync.Mutex
	bills []*bill
	calls []string
	// fault is what a request of an operation fails with: before it is done, or
	// after, which is a reply that was lost. Nil: nothing fails.
	fault func(op, ticket string) (before, after error)
	// hang holds up every request until it is closed; nil: none.
	hang chan struct{}
}

// bill is one message that was posted, with what stands below it.
type bill struct {
	m     approve.Message
	card  approve.Card
	at    time.Time
	notes []string
	gone  bool
}

// live reports whether somebody can approve by it.
func (b *bill) live() bool { return !b.gone && b.card.Open() && b.card.NoClick == "" }

func (c *billboard) request(ctx context.Context, op, ticket string, do func() error) error {
	if hang := c.hanging(); hang != nil {
		select {
		case <-ctx.Done():
		case <-hang:
		}
		return errors.New("no answer in time")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, op+" "+ticket)
	var before, after error
	if c.fault != nil {
		before, after = c.fault(op, ticket)
	}
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

func (c *billboard) hanging() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hang
}

func (c *billboard) Post(ctx context.Context, card approve.Card) (m approve.Message, err error) {
	err = c.request(ctx, "post", card.Ticket, func() error {
		m = approve.Message{Channel: "C1", ID: fmt.Sprintf("%d.%d", c.clock().Unix(), len(c.bills)), Link: "https://chat.example/" + card.Ticket}
		c.bills = append(c.bills, &bill{m: m, card: card, at: c.clock()})
		return nil
	})
	return m, err
}

func (c *billboard) Update(ctx context.Context, m approve.Message, card approve.Card) error {
	return c.request(ctx, "update", card.Ticket, func() error {
		return c.standing(m, func(b *bill) { b.card = card })
	})
}

func (c *billboard) Say(ctx context.Context, m approve.Message, n approve.Note) error {
	return c.request(ctx, "say", n.ID, func() error {
		return c.standing(m, func(b *bill) { b.notes = append(b.notes, n.ID) })
	})
}

func (c *billboard) Look(ctx context.Context, m approve.Message) (string, error) {
	err := c.request(ctx, "look", m.ID, func() error { return c.standing(m, func(*bill) {}) })
	return m.Link, err
}

func (c *billboard) Find(ctx context.Context, ticket, digest string, since time.Time) (ms []approve.Message, err error) {
	err = c.request(ctx, "find", ticket, func() error {
		for _, b := range c.bills {
			if !b.gone && b.card.Ticket == ticket && b.card.Digest == digest && !b.at.Before(since) {
				ms = append(ms, b.m)
			}
		}
		return nil
	})
	return ms, err
}

func (c *billboard) standing(m approve.Message, do func(*bill)) error {
	for _, b := range c.bills {
		if b.m.ID == m.ID && !b.gone {
			do(b)
			return nil
		}
	}
	return approve.ErrGone
}

// of are the messages of a ticket, deleted ones too.
func (c *billboard) of(ticket string) []*bill {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*bill
	for _, b := range c.bills {
		if b.card.Ticket == ticket {
			out = append(out, b)
		}
	}
	return out
}

// called counts the requests that begin with that.
func (c *billboard) called(prefix string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

// remove deletes what stands there of a ticket, as a person does.
func (c *billboard) remove(ticket string) {
	for _, b := range c.of(ticket) {
		c.mu.Lock()
		b.gone = true
		c.mu.Unlock()
	}
}

// failing makes every request of an operation fail.
func (c *billboard) failing(op string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = func(o, _ string) (error, error) {
		if o == op || op == "" {
			return err, nil
		}
		return nil, nil
	}
}

func (c *billboard) well() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.hang = nil, nil
}

// boarded is a world whose action needs a person, who is asked in a channel.
func boarded(t *testing.T) (*world, *billboard) {
	t.Helper()
	w := prepare(t)
	return w, w.board()
}

// board gives the world a channel, through restarts.
func (w *world) board() *billboard {
	ch := &billboard{clock: w.clock}
	w.cfg.Slack = &config.Slack{OpenCards: 5}
	for i := range w.set.Services {
		w.set.Services[i].Remediation.Actions[0].Class = spec.ClassApproval
	}
	w.options = func(o *reconcile.Options) { o.Board = ch }
	return ch
}

// asks lets the service fail until its ticket is asked, in the very sweep that
// also posts the card.
func (w *world) asks() approve.Ticket {
	w.t.Helper()
	w.start()
	w.healthy()
	w.breakNow(0.3)
	w.until("question", 15*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	return w.openTicket("checkout")
}

func (w *world) openTicket(service string) approve.Ticket {
	w.t.Helper()
	var ticket approve.Ticket
	var ok bool
	w.r.View(func(s *ledger.State) { ticket, ok = s.OpenTicket(service) })
	if !ok {
		w.t.Fatalf("%s has no open ticket; the ledger says:\n%s", service, w.dump())
	}
	return ticket
}

func (w *world) ticket(id string) (t approve.Ticket) {
	w.r.View(func(s *ledger.State) { t = *s.Tickets[id] })
	return t
}

func (w *world) card(ticket string) (p approve.Posted) {
	w.r.View(func(s *ledger.State) {
		if known := s.Cards[ticket]; known != nil {
			p = *known
		}
	})
	return p
}

// said is a person's, in the channel.
func (w *world) said(ticket approve.Ticket, yes bool) {
	w.t.Helper()
	_, err := w.r.Answer(w.t.Context(), approve.Answer{
		Ticket: ticket.ID, Digest: ticket.Digest, By: "os:alice", Via: "slack", Approve: yes, Reason: "seen",
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// heal ends the fault.
func (w *world) heal() { w.breakNow(0) }

// page is why the service's open page says what it does now; "" without one.
func (w *world) page() string {
	for _, p := range w.pager.open() {
		if p.Service == "checkout" {
			return p.Now
		}
	}
	return ""
}

// stands checks what people see of a ticket: so many messages that were posted,
// and that each that is left shows the state.
func (c *billboard) stands(t *testing.T, ticket string, posted int, state approve.State) {
	t.Helper()
	bills := c.of(ticket)
	if len(bills) != posted {
		t.Errorf("%d messages of %s were posted, want %d: %v", len(bills), ticket, posted, c.calls)
	}
	for _, b := range bills {
		if !b.gone && b.card.State != state {
			t.Errorf("message %s of %s shows %s, want %s: %v", b.m.ID, ticket, b.card.State, state, c.calls)
		}
	}
}

func sorted(ss []string) []string { slices.Sort(ss); return ss }
