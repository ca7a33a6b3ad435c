package patience

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// How long a source is left alone after it failed, at first and at most: what
// time heals, what only people heal, and what the source asks for itself.
const (
	firstRest   = 5 * time.Second
	maxRest     = 30 * time.Second
	firstLong   = 15 * time.Second
	maxLong     = 5 * time.Minute
	maxAsked    = 5 * time.Minute
	restJitter  = 0.25
	giveUpAfter = 3
)

// Health is how a source has answered lately, and until when it is left alone.
// giveUpAfter faults in a row end the asking: a source that is down must not
// hold a pass for as many timeouts as there are queries, nor be given more load
// while it is overloaded.
type Health struct {
	random func() float64

	mu sync.Mutex
	condition
}

// NewHealth is that of a source of which nothing is known; random gives 0 to 1.
func NewHealth(random func() float64) *Health { return &Health{random: random} }

type condition struct {
	known bool // it has answered at least once
	// row counts faults since the last answer of any kind, failures since the
	// last success.
	row, failures int
	last          wire.Fault
	curve         *backoff.ExponentialBackOff // nil while nothing is wrong
	slowly        bool
	since         time.Time
	rest          time.Duration
	tried         bool // it answered the trivial query after its rest
}

// Gate says whether a query may be sent.
type Gate int

// The positions of a gate.
const (
	// Open: queries may be sent.
	Open Gate = iota
	// Shut: the source is left alone.
	Shut
	// Ajar: its rest is over, and one trivial query goes first.
	Ajar
)

// Gate says whether a query may be sent now.
func (h *Health) Gate(now time.Time) Gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.curve == nil:
		return Open
	case h.resting(now):
		return Shut
	case h.tried:
		return Open
	}
	return Ajar
}

// resting: a clock that was set back does not prolong it.
func (h *Health) resting(now time.Time) bool {
	passed := now.Sub(h.since)
	return h.curve != nil && passed >= 0 && passed < h.rest
}

// Refuse answers what is not sent while the source is left alone.
func (h *Health) Refuse(now time.Time) (wire.Answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.resting(now) {
		return wire.Answer{}, false
	}
	times := "1 failure"
	if h.failures != 1 {
		times = strconv.Itoa(h.failures) + " failures"
	}
	return wire.Answer{Fault: wire.Fault{
		Kind: wire.Ended, Reason: h.last.Reason,
		Detail: fmt.Sprintf("not asked until %s after %s: %s",
			h.since.Add(h.rest).UTC().Format("15:04:05Z"), times, h.last.Detail),
	}}, true
}

// Saw takes note of an answer. It reports whether a fault may be the query's
// and not the source's: it is the first one after an answer.
func (h *Health) Saw(f wire.Fault, now time.Time) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch f.Kind {
	case wire.Ended:
		return false
	case wire.None, wire.Query, wire.Size, wire.Unusable:
		h.condition = condition{known: true}
		return f.Kind == wire.Size
	}
	return h.failed(f, now)
}

// Answered takes note of an answer to the trivial query: the source works,
// though nothing says yet that it can answer more.
func (h *Health) Answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.row, h.tried = true, 0, true
}

func (h *Health) failed(f wire.Fault, now time.Time) (first bool) {
	h.row++
	h.failures++
	h.last = f
	if h.resting(now) {
		return false // sent before its rest began
	}
	atOnce := f.Kind == wire.Down || f.Kind == wire.Busy || f.Kind == wire.Refused && !h.known
	if atOnce || h.row >= giveUpAfter || h.curve != nil && !h.tried {
		h.restFrom(now, f)
		return false
	}
	return h.row == 1
}

func (h *Health) restFrom(now time.Time, f wire.Fault) {
	slowly := f.Kind == wire.Refused
	if h.curve == nil || h.slowly != slowly {
		h.slowly, h.curve = slowly, &backoff.ExponentialBackOff{
			InitialInterval: firstRest, MaxInterval: maxRest, Multiplier: 2,
		}
		if slowly {
			h.curve.InitialInterval, h.curve.MaxInterval = firstLong, maxLong
		}
		h.curve.Reset()
	}
	// The library's own jitter takes a randomness that no test can hold.
	rest := float64(h.curve.NextBackOff()) * (1 - restJitter + 2*restJitter*h.random())
	h.since, h.tried = now, false
	h.rest = max(min(time.Duration(rest), h.curve.MaxInterval), min(retryAfter(f.RetryAfter, now), maxAsked))
}

// retryAfter reads seconds or a date; zero when it says nothing.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxAsked/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
