// Package fault is how the lab's stand-ins misbehave: what a request meets
// instead of a good answer, how often, and between which times.
package fault

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Fault is how a request is treated instead of being answered well.
type Fault struct {
	// Error is the stand-in's own word for what it refuses.
	Error string `json:"error,omitempty"`
	// Status is of HTTP.
	Status int `json:"status,omitempty"`
	// RetryAfter is in seconds; 30 when 0 and Status is 429.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Hang is how long it waits first. Whoever hangs up by then was not heard.
	Hang Duration `json:"hang,omitempty"`
	// DropReply: it is done, and the reply is lost. With Hang it is done first.
	DropReply bool `json:"dropReply,omitempty"`
	// DropRequest: the connection is reset and nothing was done.
	DropRequest bool `json:"dropRequest,omitempty"`
}

// Duration is written as Go and Prometheus write it: "5s".
type Duration time.Duration

// UnmarshalText reads "5s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("a duration is written like 5s: %w", err)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes "5s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Any is the name that stands for every one.
const Any = "*"

// Book holds the faults that are still to come, by a name that the stand-in
// gives to what can fail. The zero Book is empty. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	queues  map[string][]*pending
	windows []window
}

// pending is a fault with how often it still comes; negative is for ever.
type pending struct {
	Fault
	left int
}

type window struct {
	Fault
	name        string
	from, until time.Time
}

// Fail treats the next requests of that name so, as many as next; 0 or less is
// until Clear. Faults of one name come in the order in which they were set.
func (b *Book) Fail(name string, next int, f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if next <= 0 {
		next = -1
	}
	if b.queues == nil {
		b.queues = map[string][]*pending{}
	}
	b.queues[name] = append(b.queues[name], &pending{Fault: f, left: next})
}

// Down treats every request of that name so, from the one time until the other
// one, which stands outside.
func (b *Book) Down(name string, from, until time.Time, f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.windows = append(b.windows, window{Fault: f, name: name, from: from, until: until})
}

// Clear ends the faults and windows of a name, or with "" all.
func (b *Book) Clear(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name == "" {
		b.queues, b.windows = nil, nil
		return
	}
	delete(b.queues, name)
	kept := b.windows[:0]
	for _, w := range b.windows {
		if w.name != name {
			kept = append(kept, w)
		}
	}
	b.windows = kept
}

// Take is the fault that a request meets which is known by these names; the
// zero Fault for none. A window comes first, and uses no queue up.
func (b *Book) Take(now time.Time, names ...string) Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		for _, w := range b.windows {
			if w.name == name && !now.Before(w.from) && now.Before(w.until) {
				return w.Fault
			}
		}
	}
	for _, name := range names {
		queue := b.queues[name]
		if len(queue) == 0 {
			continue
		}
		first := queue[0]
		if first.left > 0 {
			first.left--
		}
		if first.left == 0 {
			b.queues[name] = queue[1:]
		}
		return first.Fault
	}
	return Fault{}
}

// What Before says of a request that was not answered.
const (
	Dropped = "dropped"
	HungUp  = "hung up"
)

// Before waits, drops and refuses, the last one by the stand-in's own words. It
// is "" for a request that goes on to be done, else what became of it.
func (f Fault) Before(w http.ResponseWriter, req *http.Request, ended <-chan struct{}, refuse func(status int)) string {
	if !f.DropReply && !f.Wait(req, ended) {
		return HungUp
	}
	if f.DropRequest {
		Abort(w)
		return Dropped
	}
	if f.Error == "" && f.Status == 0 {
		return ""
	}
	after := f.RetryAfter
	if after == 0 && f.Status == http.StatusTooManyRequests {
		after = 30
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	refuse(f.Status)
	if f.Error != "" {
		return f.Error
	}
	return strconv.Itoa(f.Status)
}

// Wait waits as long as it hangs. It reports whether the caller is still there.
func (f Fault) Wait(req *http.Request, ended <-chan struct{}) bool {
	if f.Hang <= 0 {
		return true
	}
	select {
	case <-time.After(time.Duration(f.Hang)):
		return true
	case <-ended:
	case <-req.Context().Done():
	}
	return false
}

// Abort resets the connection without an answer.
func Abort(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// Only HTTP/2 cannot be hijacked, and no stand-in speaks it.
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // Without it the connection ends in good order.
	}
	_ = conn.Close()
}
