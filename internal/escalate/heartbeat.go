package escalate

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// HeartbeatID is the id of the heartbeat of a receiver.
func HeartbeatID(receiver string) string { return "heartbeat/" + receiver }

// NewHeartbeat is a sign of life for one receiver: a page in everything but that
// nobody has to read it. It takes the way that pages take, so that a way that is
// broken shows before it is needed.
func NewHeartbeat(receiver string, every time.Duration, now time.Time) Page {
	return Page{
		ID: HeartbeatID(receiver), Reason: Heartbeat, Now: Heartbeat, Severity: Severity(Heartbeat),
		Summary: "setpoint: heartbeat, nothing to do",
		Text: fmt.Sprintf("Setpoint can reach %s. This is sent every %s; when it stays away, pages may stay away too.\nSent at %s",
			receiver, spec.FormatDuration(every), approve.Instant(now)),
		// One beat is like the other: only the first of them is an entry.
		Gist: Heartbeat, Receivers: []string{receiver}, Since: now,
	}
}

// downFor is how old the last failure of a receiver may be that is called down:
// a receiver that is down is tried at least every five minutes.
const downFor = 15 * time.Minute

// Down reports whether a receiver takes nothing: something failed FailuresToSkip
// times in a row, lately, and nothing was taken since. held is what is known of
// it, of all pages; the delivery returned is the one that failed last.
func Down(held []Delivery, now time.Time) (last Delivery, down bool) {
	var taken time.Time
	for _, d := range held {
		if d.Sent.After(taken) {
			taken = d.Sent
		}
		if d.Failures >= FailuresToSkip && !d.Tried.Before(last.Tried) {
			last = d
		}
	}
	return last, last.Failures > 0 && last.Tried.After(taken) && now.Sub(last.Tried) < downFor
}
