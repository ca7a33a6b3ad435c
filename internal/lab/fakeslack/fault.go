package fakeslack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Fault is how a request is treated instead of being answered well.
type Fault struct {
	// Error is Slack's word, with ok false; "ratelimited" comes as 429.
	Error string `json:"error,omitempty"`
	// Status is of HTTP.
	Status int `json:"status,omitempty"`
	// RetryAfter is in seconds, for 429; 30 when 0.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Hang is how long it waits first. Whoever hangs up by then was not heard.
	Hang Duration `json:"hang,omitempty"`
	// DropReply: it is done, and the reply is lost. With Hang it is done first.
	DropReply bool `json:"dropReply,omitempty"`
	// DropRequest: the connection ends and nothing was done.
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

// AnyMethod stands for every method of the Web API; SocketMethod for opening a
// socket, which is no method.
const (
	AnyMethod    = "*"
	SocketMethod = "socket"
)

// pending is a fault with how often it still comes; negative is for ever.
type pending struct {
	Fault
	left int
}

// Fail treats the next requests of the method that way, so many; 0 or less is
// until ClearFaults. Faults of one method come in the order in which they were set.
func (s *Slack) Fail(method string, next int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next <= 0 {
		next = -1
	}
	s.faults[method] = append(s.faults[method], &pending{Fault: f, left: next})
}

// ClearFaults ends the faults of a method, or with "" all.
func (s *Slack) ClearFaults(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == "" {
		clear(s.faults)
		return
	}
	delete(s.faults, method)
}

// fault is the one that this request meets, if any.
func (s *Slack) fault(method string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{method, AnyMethod}
	if method == SocketMethod {
		names = names[:1]
	}
	for _, name := range names {
		queue := s.faults[name]
		if len(queue) == 0 {
			continue
		}
		first := queue[0]
		if first.left > 0 {
			first.left--
		}
		if first.left == 0 {
			s.faults[name] = queue[1:]
		}
		return first.Fault
	}
	return Fault{}
}

// before waits and refuses. It reports whether the request goes on to be done.
func (f Fault) before(w http.ResponseWriter, req *http.Request, ended <-chan struct{}) (on bool, said string) {
	if !f.DropReply && !f.wait(req, ended) {
		return false, "hung up"
	}
	status := f.Status
	if f.Error == "ratelimited" && status == 0 {
		status = http.StatusTooManyRequests
	}
	switch {
	case f.DropRequest:
		abort(w)
		return false, "dropped"
	case status == http.StatusTooManyRequests:
		after := f.RetryAfter
		if after == 0 {
			after = 30
		}
		w.Header().Set("Retry-After", strconv.Itoa(after))
		reply(w, status, map[string]any{"ok": false, "error": "ratelimited"})
		return false, "ratelimited"
	case status != 0 && status != http.StatusOK:
		http.Error(w, "<html>"+http.StatusText(status)+"</html>", status)
		return false, strconv.Itoa(status)
	case f.Error != "":
		reply(w, http.StatusOK, map[string]any{"ok": false, "error": f.Error})
		return false, f.Error
	}
	return true, ""
}

// wait reports whether the caller is still there.
func (f Fault) wait(req *http.Request, ended <-chan struct{}) bool {
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

// abort ends the connection without an answer.
func abort(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// Only HTTP/2 cannot be hijacked, and no server here speaks it.
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = conn.Close()
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// A client that went away is not told.
	_ = json.NewEncoder(w).Encode(v)
}
