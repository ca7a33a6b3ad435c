package fakeslack

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

// Fault is how a request is treated instead of being answered well. Its Error is
// Slack's word, with ok false; "ratelimited" comes as 429.
type Fault = fault.Fault

// Duration is written as Go and Prometheus write it: "5s".
type Duration = fault.Duration

// AnyMethod stands for every method of the Web API; SocketMethod for opening a
// socket, which is no method.
const (
	AnyMethod    = fault.Any
	SocketMethod = "socket"
)

// Fail treats the next requests of the method so, as many as next; 0 or less is
// until ClearFaults. Faults of one method come in the order in which they were set.
func (s *Slack) Fail(method string, next int, f Fault) { s.faults.Fail(method, next, f) }

// Down treats every request of the method so, from the one time of the clock
// until the other.
func (s *Slack) Down(method string, from, until time.Time, f Fault) {
	s.faults.Down(method, from, until, f)
}

// ClearFaults ends the faults of a method, or with "" all.
func (s *Slack) ClearFaults(method string) { s.faults.Clear(method) }

// fault is the one that this request meets, if any.
func (s *Slack) fault(method string) Fault {
	names := []string{method, AnyMethod}
	if method == SocketMethod {
		names = names[:1]
	}
	f := s.faults.Take(s.o.Now(), names...)
	if f.Error == "ratelimited" && f.Status == 0 {
		f.Status = http.StatusTooManyRequests
	}
	return f
}

// before is "" for a request that goes on to be done, else what became of it.
func (s *Slack) before(f Fault, w http.ResponseWriter, req *http.Request) string {
	said := f.Before(w, req, s.ended, func(status int) {
		switch {
		case status == http.StatusTooManyRequests:
			reply(w, status, map[string]any{"ok": false, "error": "ratelimited"})
		case status != 0 && status != http.StatusOK:
			// Slack's own servers answer with a page, not with JSON.
			http.Error(w, "<html>"+http.StatusText(status)+"</html>", status)
		default:
			reply(w, http.StatusOK, map[string]any{"ok": false, "error": f.Error})
		}
	})
	if said == "429" {
		said = "ratelimited"
	}
	return said
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// A client that went away is not told.
	_ = json.NewEncoder(w).Encode(v)
}
