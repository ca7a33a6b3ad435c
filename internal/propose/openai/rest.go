package openai

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// How long an endpoint is left alone after it failed, at first and at most, and
// from how many failures in a row on a single question goes first when that is
// over. What an endpoint asks for itself is longer, up to maxRetryAfter.
const (
	firstRest  = 2 * time.Second
	maxRest    = 5 * time.Minute
	restJitter = 0.25
	openAfter  = 3
)

// rest is how an endpoint has answered lately, and until when it is left alone:
// a backoff after each failure that time heals, and a circuit breaker after
// openAfter failures of any kind in a row. It lives in memory, and nothing but
// delay depends on it: the limits are the ledger's.
type rest struct {
	random func() float64

	mu       sync.Mutex
	failures int                         // in a row
	curve    *backoff.ExponentialBackOff // nil while nothing is wrong
	since    time.Time
	length   time.Duration
	why      string
	trying   bool // the one question of a half-open breaker is on its way
}

// ticket is a question that may be put.
type ticket struct{ trial bool }

// enter says whether a question may be put now; otherwise, from when, and why.
func (r *rest) enter(now time.Time) (t ticket, from time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.resting(now):
		return ticket{}, r.since.Add(r.length), false
	case r.failures < openAfter:
		return ticket{}, time.Time{}, true
	case r.trying:
		return ticket{}, now, false
	}
	r.trying = true
	return ticket{trial: true}, time.Time{}, true
}

// left reports whether the endpoint is left alone: another question may have
// been answered meanwhile with the demand to wait.
func (r *rest) left(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resting(now)
}

// resting: a clock that was set back does not prolong it.
func (r *rest) resting(now time.Time) bool {
	passed := now.Sub(r.since)
	return r.length > 0 && passed >= 0 && passed < r.length
}

// leave takes note of the last answer to a question.
func (r *rest) leave(t ticket, s said, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.trial {
		r.trying = false
	}
	code := ResultOK
	if s.fault != nil {
		code = s.fault.code
	}
	switch rules[code].health {
	case well:
		// A rest that has begun meanwhile goes on: the endpoint may have asked for it.
		r.failures, r.curve = 0, nil
	case ill:
		r.failed(s.fault, s.retryAfter, now)
	}
}

func (r *rest) failed(f *fault, asked time.Duration, now time.Time) {
	r.failures++
	r.why = f.code
	length := min(asked, maxRetryAfter)
	if r.resting(now) {
		// It was sent before the rest began, and says nothing new unless it asks
		// for more.
		if left := r.since.Add(r.length).Sub(now); length > left {
			r.since, r.length = now, length
		}
		return
	}
	if r.curve == nil {
		r.curve = &backoff.ExponentialBackOff{InitialInterval: firstRest, MaxInterval: maxRest, Multiplier: 2}
		r.curve.Reset()
	}
	// The library's own jitter takes a randomness that no test can hold.
	next := time.Duration(float64(r.curve.NextBackOff()) * (1 - restJitter + 2*restJitter*r.random()))
	if length == 0 && (f.passing() || r.failures >= openAfter) {
		length = next
	}
	r.since, r.length = now, length
}

// words say why the endpoint is left alone.
func (r *rest) words() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}
