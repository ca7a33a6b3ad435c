package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

const (
	// firstWait and longestWait bound the pause before the next connection: while
	// there is none, nobody can click.
	firstWait   = time.Second
	longestWait = 30 * time.Second
	// longestRest is how long Slack may ask for at most: a day would be a day on
	// which nobody can answer.
	longestRest = time.Minute
	// steady is how long a connection lives that was a good one.
	steady = 10 * time.Second
	// grace is for the last acknowledgement to leave.
	grace = 200 * time.Millisecond
)

// Socket takes clicks over Socket Mode until ctx ends, and connects again for
// ever. connected hears whether clicks come in.
func (c *Clicks) Socket(ctx context.Context, client *slack.Client, connected func(bool)) {
	s := &socket{
		clicks: c, connected: connected,
		client: socketmode.New(client,
			socketmode.OptionReadLimit(maxBody),
			socketmode.OptionLog(log.New(io.Discard, "", 0)),
			socketmode.OptionDialer(&websocket.Dialer{
				Proxy: http.ProxyFromEnvironment, HandshakeTimeout: Timeout, WriteBufferSize: 32 << 10,
			})),
	}
	s.run(ctx)
}

type socket struct {
	clicks    *Clicks
	client    *socketmode.Client
	connected func(bool)
	underway  sync.WaitGroup

	mu sync.Mutex
	// drop ends the present connection, or the attempt to make one.
	drop context.CancelFunc
	// fault is why it was dropped.
	fault error
	// up is when it said hello; zero before.
	up time.Time
	// failures are those since the last good connection.
	failures int
	// said is what the log knows of it.
	said string
}

// run serves until ctx ends. The connection outlives it by as long as the clicks
// under way need to be recorded and acknowledged.
func (s *socket) run(ctx context.Context) {
	s.connected(false)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.stayConnected(serving)
	}()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-s.client.Events:
			s.take(serving, e)
		}
	}
	s.underway.Wait()
	pause(serving, grace)
	stop()
	<-ended
	s.connected(false)
}

// stayConnected connects again for ever, at its own pace: the library gives up on
// some answers, and waits for minutes after others.
func (s *socket) stayConnected(serving context.Context) {
	for serving.Err() == nil {
		ctx, drop := context.WithCancel(serving)
		s.mu.Lock()
		s.drop, s.fault = drop, nil
		s.mu.Unlock()
		err := s.client.RunContext(ctx)
		drop()
		if serving.Err() != nil {
			return
		}
		pause(serving, s.lost(err))
	}
}

// lost says, once per change, why there is no connection, and gives the pause
// before the next attempt.
func (s *socket) lost(err error) time.Duration {
	s.connected(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		err = s.fault
	}
	if !s.up.IsZero() && time.Since(s.up) >= steady {
		s.failures = 0
	}
	s.up = time.Time{}
	s.failures++
	if text := reason(err); text != s.said {
		s.said = text
		s.clicks.o.Log.Warn("slack is not connected: nobody can answer there, and it is tried again", "err", text)
	}
	wait := min(firstWait<<min(s.failures-1, 10), longestWait)
	wait -= time.Duration(rand.Int64N(int64(wait) / 4))
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		wait = max(wait, min(limited.RetryAfter, longestRest))
	}
	return wait
}

// reason is an error without the address of a connection, which is a secret, and
// without the ports of this host, which are others each time.
func reason(err error) string {
	var bad *url.Error
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return "the connection ended"
	case errors.As(err, &bad) && bad.Op == "parse":
		return "the address of the connection is malformed"
	case errors.As(err, &dns):
		return "no address for " + dns.Name
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// give drops the connection for a reason.
func (s *socket) give(up error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = up
	s.drop()
}

// take handles one event. A click runs beside the others, so that one that waits
// for the ledger holds up none.
func (s *socket) take(ctx context.Context, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeHello:
		s.hello()
	case socketmode.EventTypeConnecting:
		s.again()
	case socketmode.EventTypeConnectionError:
		// One that was dropped here says so late, when the next is under way.
		if failed, ok := e.Data.(*slack.ConnectionErrorEvent); ok && !errors.Is(failed.ErrorObj, context.Canceled) {
			s.give(failed.ErrorObj)
		}
	case socketmode.EventTypeErrorBadMessage:
		// The library reads more of a message than is needed here.
		if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok {
			var r socketmode.Request
			if json.Unmarshal(bad.Message, &r) == nil {
				s.envelope(ctx, &r)
			}
		}
	default:
		s.envelope(ctx, e.Request)
	}
}

func (s *socket) hello() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = time.Now()
	if s.said != "connected" {
		s.said = "connected"
		s.clicks.o.Log.Info("slack is connected; its buttons are answered")
	}
	s.connected(true)
}

// again: the library connects anew. Where the last connection was a short one it
// would do so without a pause.
func (s *socket) again() {
	s.connected(false)
	s.mu.Lock()
	short := !s.up.IsZero() && time.Since(s.up) < steady
	if !short && !s.up.IsZero() {
		s.up, s.failures = time.Time{}, 0
	}
	s.mu.Unlock()
	if short {
		s.give(errors.New("the connection ended soon after it was made"))
	}
}

// envelope handles what Slack wants acknowledged. Only a click that could not be
// recorded is not.
func (s *socket) envelope(ctx context.Context, r *socketmode.Request) {
	if r == nil || r.EnvelopeID == "" {
		return
	}
	s.underway.Go(func() {
		if r.Type == socketmode.RequestTypeInteractive && s.clicks.Handle(ctx, r.Payload) == Failed {
			return
		}
		s.ack(ctx, r.EnvelopeID)
	})
}

func (s *socket) ack(ctx context.Context, envelope string) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := s.client.AckCtx(ctx, envelope, nil); err != nil {
		s.clicks.o.Log.Warn("slack was not told that a click is recorded; it may show a warning", "err", err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
