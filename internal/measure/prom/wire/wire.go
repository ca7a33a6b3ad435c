// Package wire takes one HTTP answer of a Prometheus-compatible server apart. It
// takes status, header and body, and gives the samples and what the server
// remarks on them, or the fault: whose it is, and whether time heals it.
//
// Neither the HTTP status nor the errorType is trusted alone. Whatever is not
// known to be the query's own fault is the source's.
package wire

import (
	"fmt"
	"net/http"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// Kind is a class of faults: what follows from one is decided by it alone.
type Kind int

// The kinds of faults.
const (
	// None: the answer can be used.
	None Kind = iota
	// Query: the query itself cannot be answered (bad_data, execution).
	Query
	// Size: the query or its answer is larger than a limit.
	Size
	// Slow: no answer in time, although the source was reached.
	Slow
	// Failed: the source failed: 5xx, a broken body, a reset connection.
	Failed
	// Down: the source could not be reached.
	Down
	// Busy: the source asks to be left alone for a while: 429, Retry-After.
	Busy
	// Refused: time does not heal it: 401, 404, an unknown host, no such API.
	Refused
	// Unusable: the source works, and this answer proves nothing: partial, from
	// a cache, of another type.
	Unusable
	// Ended: the asker went away; it says nothing about the source.
	Ended
)

// Fault says why there is no answer.
type Fault struct {
	Kind Kind
	// Reason is what a measurement is told.
	Reason measure.Reason
	// Detail is for people. It may hold words of the source, and so anything.
	Detail string
	// Told: the API itself says so, nothing on the way.
	Told bool
	// RetryAfter is the header of that name.
	RetryAfter string
}

// Is reports whether there is a fault at all.
func (f Fault) Is() bool { return f.Kind != None }

// Answer is what one answer says.
type Answer struct {
	// Series are the samples; none is an answer too.
	Series []measure.Sample
	// Notes are remarks that stop nothing: infos and annotations.
	Notes []string
	Fault Fault
}

func broken(kind Kind, reason measure.Reason, format string, args ...any) Answer {
	return Answer{Fault: Fault{Kind: kind, Reason: reason, Detail: fmt.Sprintf(format, args...)}}
}

// Read takes an answer apart.
func Read(status int, header http.Header, body []byte) Answer {
	if status/100 == 2 {
		return readSuccess(status, header, body)
	}
	return Answer{Fault: readFailure(status, header, body)}
}

// maxDrift is how far the instant of an answer may lie from the one that was
// asked. A cache that replays yesterday's answer is found by it.
const maxDrift = 5 * time.Second

// At refuses an answer for another instant than was asked.
func (a Answer) At(asked time.Time) Answer {
	for _, s := range a.Series {
		if s.At.Sub(asked).Abs() > maxDrift {
			return broken(Unusable, measure.SourceError, "answered for %s, asked for %s: a cache on the way?",
				s.At.UTC().Format(time.RFC3339), asked.UTC().Format(time.RFC3339))
		}
	}
	return a
}
