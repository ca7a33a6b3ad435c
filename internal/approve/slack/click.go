package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// Desk is where answers are recorded. Its by is an authenticated principal,
// never a field that somebody could type.
type Desk interface {
	// Answer records an answer and gives the ticket after it. A *approve.Refusal
	// changes nothing and says why.
	Answer(ctx context.Context, a approve.Answer) (approve.Ticket, error)
	// Ack records that a person has seen a page.
	Ack(ctx context.Context, page, by, via string) error
	// Sighted tells of a message with a ticket's buttons that the ledger may not
	// know, so that these buttons are replaced like those of every other.
	Sighted(ctx context.Context, ticket string, m approve.Message) error
}

// Result is what became of a request. It is the same word as metric label and in
// the log.
type Result string

// The results. Only Failed is not acknowledged: then Slack shows the person a
// warning, or delivers again.
const (
	// Recorded: it is in the ledger.
	Recorded Result = "recorded"
	// Refused: the ledger says no, with a reason that the person is told.
	Refused Result = "refused"
	// Foreign: of another workspace, of nobody, of a bot, or of a button that is
	// not ours.
	Foreign Result = "foreign"
	// Malformed: signed, and not understood.
	Malformed Result = "malformed"
	// Failed: the ledger could not record it in time.
	Failed Result = "failed"
	// Unsigned: not proven to come from Slack.
	Unsigned Result = "unsigned"
	// Stale: signed, but at a time that is too far from this host's: a replay, or
	// a clock that is wrong, and then no approval can be verified.
	Stale Result = "stale"
)

// Results are all of them.
func Results() []Result {
	return []Result{Recorded, Refused, Foreign, Malformed, Failed, Unsigned, Stale}
}

// Options are what NewClicks needs. OnResult and Reply may be nil.
type Options struct {
	Desk Desk
	// Team is the id of the workspace whose people may answer.
	Team string
	Log  *slog.Logger
	// Unknown reports that an error of Desk is about what the click names, and
	// not a fault of the ledger: to click again would not help.
	Unknown func(error) bool
	// OnResult counts.
	OnResult func(Result)
	// Reply tells one person something that nobody else in the channel sees.
	Reply func(ctx context.Context, channel, user, text string) error
}

const (
	// within is how long the ledger may take. Slack waits for three seconds, and
	// shows the person a warning after that.
	within = 2500 * time.Millisecond
	// atOnce is how many clicks wait for the ledger at a time; what comes beyond
	// them waits in line, and fails in time if the ledger hangs.
	atOnce = 64
	// aside is how many replies, and how many sightings, wait at a time.
	aside = 64
	// last is how long the end of a process waits for what is under way.
	last = 5 * time.Second
)

// Clicks is the one handler behind both transports. Nothing slow happens before
// a click is acknowledged but its record; people are told afterwards.
type Clicks struct {
	o     Options
	slots chan struct{}
	// replies and sightings are apart: while Slack hangs, the ledger does not.
	replies, sightings *queue

	mu       sync.Mutex
	closed   bool
	underway sync.WaitGroup
}

// NewClicks returns a handler, which Close ends.
func NewClicks(o Options) (*Clicks, error) {
	if o.Desk == nil || o.Log == nil || o.Unknown == nil {
		return nil, errors.New("slack clicks: Desk, Log and Unknown are required")
	}
	if o.Team == "" {
		return nil, errors.New("slack clicks: without the id of the workspace (slack.team) anybody's click would count")
	}
	if o.OnResult == nil {
		o.OnResult = func(Result) {}
	}
	return &Clicks{
		o: o, slots: make(chan struct{}, atOnce),
		replies: newQueue(aside), sightings: newQueue(aside),
	}, nil
}

// Close finishes what is under way, and takes nothing more. What hangs is left
// after a while.
func (c *Clicks) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		c.underway.Wait()
		close(ended)
	}()
	wait := time.NewTimer(last)
	defer wait.Stop()
	select {
	case <-ended:
	case <-wait.C:
	}
	c.sightings.close(last)
	c.replies.close(last)
}

// Handle takes the payload of one interaction, which the transport has proven to
// come from Slack. It returns once the answer is durable, or cannot be.
func (c *Clicks) Handle(ctx context.Context, payload []byte) Result {
	k, err := parseClick(payload, c.o.Team)
	v := verdict{result: Recorded}
	switch {
	case errors.Is(err, errForeign):
		v = verdict{result: Foreign, err: err}
	case err != nil:
		v = verdict{result: Malformed, err: err, text: textMalformed}
	default:
		v = c.inTime(ctx, k)
	}
	c.o.OnResult(v.result)
	c.log(k, v)
	c.tell(k, v)
	return v.result
}

// verdict is what became of a click, and what the person is told.
type verdict struct {
	result Result
	// code is that of a refusal.
	code string
	text string
	err  error
}

// inTime records a click, and stops waiting when Slack is about to. What is
// recorded later all the same is told then; the person who clicked again in the
// meantime learns that the first click counted.
func (c *Clicks) inTime(ctx context.Context, k click) verdict {
	if !c.begin() {
		return verdict{result: Failed, err: errors.New("the agent is stopping")}
	}
	// Whoever hung up was not answered, and may have meant it all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	done := make(chan verdict, 1)
	go func() {
		defer cancel()
		done <- c.inTurn(ctx, k)
	}()
	// Not the end of ctx, which also comes with the verdict: of two that are ready
	// select takes any, and a recorded answer would look like a failure.
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case v := <-done:
		c.underway.Done()
		return v
	case <-late.C:
	}
	go func() {
		defer c.underway.Done()
		if v := <-done; v.result != Failed {
			c.log(k, v)
			c.tell(k, v)
		}
	}()
	return verdict{result: Failed, err: errLate, text: textFailed}
}

// errLate: the ledger may still record it, which is then said.
var errLate = fmt.Errorf("the ledger took longer than %s", within)

func (c *Clicks) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.underway.Add(1)
	}
	return !c.closed
}

func (c *Clicks) inTurn(ctx context.Context, k click) verdict {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		return c.record(ctx, k)
	case <-ctx.Done():
		return verdict{result: Failed, err: errLate, text: textFailed}
	}
}

// record asks the desk, whose word is final.
func (c *Clicks) record(ctx context.Context, k click) verdict {
	var ticket approve.Ticket
	var err error
	if k.page != "" {
		err = c.o.Desk.Ack(ctx, k.page, k.principal(), Via)
	} else {
		ticket, err = c.o.Desk.Answer(ctx, approve.Answer{
			Ticket: k.ticket, Digest: k.digest, By: k.principal(), Via: Via, Approve: k.approve,
		})
	}
	var refused *approve.Refusal
	switch {
	case err == nil:
		return verdict{result: Recorded, text: recorded(k, ticket)}
	case errors.As(err, &refused):
		return verdict{result: Refused, code: refused.Code, text: sentence(refused.Text)}
	case c.o.Unknown(err):
		return verdict{result: Refused, code: codeUnknown, text: unknown(k)}
	}
	return verdict{result: Failed, err: err, text: textFailed}
}

// Via is how an answer came in.
const Via = "slack"

// codeUnknown: the ledger knows no such ticket or page.
const codeUnknown = "unknown"

// log is the audit line. The payload is a stranger's words and never in it.
func (c *Clicks) log(k click, v verdict) {
	at := slog.LevelInfo
	switch v.result {
	case Foreign, Malformed:
		at = slog.LevelWarn
	case Failed:
		at = slog.LevelError
	}
	attrs := []any{
		"result", string(v.result), "team", short(k.team), "user", short(k.user),
		"action", short(k.action), "ticket", k.ticket, "page", short(k.page),
	}
	if v.code != "" {
		attrs = append(attrs, "code", v.code)
	}
	if v.err != nil {
		attrs = append(attrs, "err", v.err)
	}
	c.o.Log.Log(context.Background(), at, "slack click", attrs...)
}

// tell puts aside what comes after the acknowledgement.
func (c *Clicks) tell(k click, v verdict) {
	known := v.result == Recorded || v.result == Refused && v.code != codeUnknown
	if k.ticket != "" && known {
		c.sight(k)
	}
	// A person of another workspace is told nothing.
	if v.text != "" && v.result != Foreign {
		c.reply(k, v.text)
	}
}

// sight notes the card that was clicked: it may be one whose post was not answered.
func (c *Clicks) sight(k click) {
	m, ok := k.message()
	if !ok {
		return
	}
	taken := c.sightings.do(func(ctx context.Context) {
		if err := c.o.Desk.Sighted(ctx, k.ticket, m); err != nil {
			c.o.Log.Warn("a card that was clicked could not be noted", "ticket", k.ticket, "err", err)
		}
	})
	if !taken {
		c.o.Log.Warn("too many clicks at once; a card that was clicked is not noted", "ticket", k.ticket)
	}
}

func (c *Clicks) reply(k click, text string) {
	if c.o.Reply == nil || k.user == "" || k.channel == "" {
		return
	}
	taken := c.replies.do(func(ctx context.Context) {
		if err := c.o.Reply(ctx, k.channel, k.user, text); err != nil {
			c.o.Log.Warn("slack reply failed; the click counts as it does", "user", short(k.user), "err", err)
		}
	})
	if !taken {
		c.o.Log.Warn("too many clicks at once; one reply is left out", "user", short(k.user))
	}
}
