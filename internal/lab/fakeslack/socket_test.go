package fakeslack_test

import (
	"context"
	"io"
	"log"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// listener is the real Socket Mode client; it keeps what it was told.
type listener struct {
	client *socketmode.Client

	mu      sync.Mutex
	clicks  []string
	retries []int
	events  []socketmode.EventType
}

// listen connects, and acknowledges when ack says so.
func (w *world) listen(t *testing.T, ack func(nth int) bool, options ...socketmode.Option) *listener {
	t.Helper()
	quiet := socketmode.OptionLog(log.New(io.Discard, "", 0))
	l := &listener{client: socketmode.New(w.api, append([]socketmode.Option{quiet}, options...)...)}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	all.Go(func() { _ = l.client.RunContext(ctx) })
	all.Go(func() {
		for {
			select {
			case e := <-l.client.Events:
				l.take(e, ack)
			case <-ctx.Done():
				return
			}
		}
	})
	return l
}

func (l *listener) take(e socketmode.Event, ack func(int) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e.Type)
	if e.Type != socketmode.EventTypeInteractive {
		return
	}
	click := e.Data.(slack.InteractionCallback)
	l.clicks = append(l.clicks, e.Request.EnvelopeID+" "+click.ActionCallback.BlockActions[0].Value)
	l.retries = append(l.retries, e.Request.RetryAttempt)
	if ack(len(l.clicks)) {
		_ = l.client.Ack(*e.Request)
	}
}

func (l *listener) seen() (clicks []string, retries []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.clicks), slices.Clone(l.retries)
}

func (l *listener) count(of socketmode.EventType) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.events {
		if e == of {
			n++
		}
	}
	return n
}

func always(int) bool { return true }
func never(int) bool  { return false }

func (w *world) connected(t *testing.T, n int) {
	t.Helper()
	eventually(t, "so many connections", func() bool { return w.slack.Connections() == n })
}

// impatient does not wait long for an acknowledgement.
func impatient(o *fakeslack.Options) { o.Patience = 100 * time.Millisecond }

// TestSocketClick: a click reaches the real client, whose acknowledgement is
// what the person sees.
func TestSocketClick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen(t, always)
	w.connected(t, 1)
	eventually(t, "hello", func() bool { return l.count(socketmode.EventTypeHello) == 1 })
	ts := w.post(t, card("T1", "words"))
	o, err := w.slack.Click(soon(t), "U1", ops, ts, "approve")
	if err != nil || o.Shown != fakeslack.ShownOK || o.Via != fakeslack.ViaSocket {
		t.Fatalf("%+v, %v", o, err)
	}
	clicks, _ := l.seen()
	if diff := cmp.Diff([]string{o.Envelope + " T1 digest"}, clicks); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	all := w.slack.Envelopes()
	if len(all) != 1 || all[0].Sent != 1 || all[0].Acks != 1 {
		t.Errorf("envelopes %+v", all)
	}
}

// TestSocketTwice: the same envelope comes twice, and both are acknowledged.
func TestSocketTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen(t, always)
	w.connected(t, 1)
	ts := w.post(t, card("T1", "words"))
	o, err := w.slack.Press(soon(t), fakeslack.Press{User: "U1", Channel: ops, TS: ts, Action: "deny", Times: 2})
	if err != nil || o.Shown != fakeslack.ShownOK {
		t.Fatalf("%+v, %v", o, err)
	}
	eventually(t, "both acknowledged", func() bool { return w.slack.Envelopes()[0].Acks == 2 })
	clicks, _ := l.seen()
	if diff := cmp.Diff([]string{o.Envelope + " T1 digest", o.Envelope + " T1 digest"}, clicks); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if err := w.slack.Redeliver(o.Envelope); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a third one, though it was acknowledged", func() bool { c, _ := l.seen(); return len(c) == 3 })
}

// TestSocketUnacked: what is not acknowledged shows a warning, and comes again
// until it is.
func TestSocketUnacked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient, func(o *fakeslack.Options) {
		o.Redeliver = []time.Duration{0, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}
	})
	l := w.listen(t, func(nth int) bool { return nth == 3 })
	w.connected(t, 1)
	ts := w.post(t, card("T1", "words"))
	o, err := w.slack.Click(soon(t), "U1", ops, ts, "approve")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "acknowledged", func() bool { return w.slack.Envelopes()[0].Acks == 1 })
	clicks, retries := l.seen()
	want := o.Envelope + " T1 digest"
	if diff := cmp.Diff([]string{want, want, want}, clicks); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, retries); diff != "" {
		t.Errorf("retries: -want, +got:\n%s", diff)
	}
}

// TestSocketWarning: nobody acknowledges, so the person sees the warning sign.
func TestSocketWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	ts := w.post(t, card("T1", "words"))
	o, err := w.slack.Press(soon(t), fakeslack.Press{User: "U1", Channel: ops, TS: ts, Action: "approve"})
	if err != nil || o.Shown != fakeslack.ShownWarning || o.Error != "no socket is open" {
		t.Errorf("without a socket: %+v, %v", o, err)
	}
	l := w.listen(t, never)
	w.connected(t, 1)
	o, err = w.slack.Click(soon(t), "U1", ops, ts, "approve")
	if err != nil || o.Shown != fakeslack.ShownWarning {
		t.Errorf("unacknowledged: %+v, %v", o, err)
	}
	if clicks, _ := l.seen(); len(clicks) != 1 {
		t.Errorf("it came %d times, and nothing sends it again", len(clicks))
	}
}

// TestSocketOther: an envelope whose connection ends comes on another one.
func TestSocketOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient, func(o *fakeslack.Options) { o.Redeliver = []time.Duration{time.Hour} })
	deaf := w.listen(t, never)
	w.connected(t, 1)
	ts := w.post(t, card("T1", "words"))
	outcome := make(chan fakeslack.Outcome, 1)
	go func() {
		o, _ := w.slack.Click(soon(t), "U1", ops, ts, "approve")
		outcome <- o
	}()
	eventually(t, "the first delivery", func() bool { c, _ := deaf.seen(); return len(c) == 1 })
	w.listen(t, always)
	w.connected(t, 2)
	w.slack.DropConnections()
	eventually(t, "the second delivery", func() bool {
		e := w.slack.Envelopes()[0]
		return e.Sent == 2
	})
	e := w.slack.Envelopes()[0]
	if e.Connections[0] == e.Connections[1] {
		t.Errorf("it came on the same connection: %v", e.Connections)
	}
	if o := <-outcome; o.Envelope != e.ID {
		t.Errorf("envelope %s, want %s", e.ID, o.Envelope)
	}
}

// TestSocketSpread: of two connections each has its turn, and no envelope comes
// on both.
func TestSocketSpread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.listen(t, always), w.listen(t, always)
	w.connected(t, 2)
	ts := w.post(t, card("T1", "words"))
	for range 4 {
		if o, err := w.slack.Click(soon(t), "U1", ops, ts, "approve"); err != nil || o.Shown != fakeslack.ShownOK {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	at, _ := a.seen()
	bt, _ := b.seen()
	if len(at) != 2 || len(bt) != 2 {
		t.Errorf("%d and %d clicks, want 2 and 2", len(at), len(bt))
	}
}

// TestSocketElsewhere: what is sent again comes on another connection than the
// last time, whosever turn it is.
func TestSocketElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen(t, always)
	w.listen(t, always)
	w.connected(t, 2)
	ts := w.post(t, card("T1", "words"))
	for range 2 {
		if o, err := w.slack.Click(soon(t), "U1", ops, ts, "approve"); err != nil || o.Shown != fakeslack.ShownOK {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	for range 3 {
		if err := w.slack.Redeliver(w.slack.Envelopes()[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	on := w.slack.Envelopes()[0].Connections
	a, b := on[0], 3-on[0]
	if diff := cmp.Diff([]int{a, b, a, b}, on); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestSocketReconnects: a client that is told to go comes back, and hears the
// next click there.
func TestSocketReconnects(t *testing.T) {
	t.Parallel()
	drop := func(w *world) { w.slack.DropConnections() }
	cases := map[string]func(*world){
		"RefreshRequested": func(w *world) { w.slack.Disconnect(fakeslack.RefreshRequested) },
		"Warning":          func(w *world) { w.slack.Disconnect(fakeslack.Warning) },
		"LinkDisabled":     func(w *world) { w.slack.Disconnect(fakeslack.LinkDisabled) },
		"Dropped":          drop,
		"Refused": func(w *world) {
			w.slack.Fail(fakeslack.SocketMethod, 1, fakeslack.Fault{Status: 503})
			w.slack.DropConnections()
		},
		"Silent": func(w *world) {
			w.slack.Fail(fakeslack.SocketMethod, 1, fakeslack.Fault{DropReply: true})
			w.slack.DropConnections()
		},
		"NotOpened": func(w *world) {
			w.slack.Fail("apps.connections.open", 1, fakeslack.Fault{Error: "internal_error"})
			w.slack.DropConnections()
		},
	}
	for name, disturb := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := w.listen(t, always)
			w.connected(t, 1)
			disturb(w)
			eventually(t, "a second connection", func() bool { return w.slack.Opened() >= 2 && w.slack.Connections() == 1 })
			ts := w.post(t, card("T1", "words"))
			if o, err := w.slack.Click(soon(t), "U1", ops, ts, "approve"); err != nil || o.Shown != fakeslack.ShownOK {
				t.Errorf("%+v, %v", o, err)
			}
			if clicks, _ := l.seen(); len(clicks) != 1 {
				t.Errorf("%d clicks", len(clicks))
			}
		})
	}
}

// TestSocketPings: a client that is not pinged goes and comes back; one that is
// stays.
func TestSocketPings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		every time.Duration
		stays bool
	}{"Pinged": {10 * time.Millisecond, true}, "Silent": {-1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *fakeslack.Options) { o.PingEvery = tc.every })
			patience := 100 * time.Millisecond
			if tc.stays {
				patience = time.Second
			}
			w.listen(t, always, socketmode.OptionPingInterval(patience))
			w.connected(t, 1)
			if !tc.stays {
				eventually(t, "a second connection", func() bool { return w.slack.Opened() >= 2 })
				return
			}
			<-time.After(1500 * time.Millisecond)
			if n := w.slack.Opened(); n != 1 {
				t.Errorf("%d connections were opened", n)
			}
		})
	}
}

// TestSocketRevoked: the real client gives up for good.
func TestSocketRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Revoke(fakeslack.AppToken, true)
	c := socketmode.New(w.api, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	if err := c.RunContext(soon(t)); err == nil || err.Error() != "token_revoked" {
		t.Errorf("got %v", err)
	}
}
