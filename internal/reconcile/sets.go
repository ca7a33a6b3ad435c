package reconcile

import (
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// sending is the set of keys that this process has started and not answered
// for yet: to it they are under way, to any other process in doubt.
type sending struct {
	mu   sync.Mutex
	keys map[gate.Key]bool
}

func (s *sending) add(k gate.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[gate.Key]bool{}
	}
	s.keys[k] = true
}

func (s *sending) remove(k gate.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, k)
}

func (s *sending) holds(k gate.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[k]
}

// reads counts, for each service, known reads with different sample times
// that this process made. It is deliberately no part of the ledger: a restart
// starts it again.
type reads struct {
	mu   sync.Mutex
	last map[string]time.Time
	n    map[string]int
}

// freshReads is how many are needed before anything is done.
const freshReads = 2

func (r *reads) note(a compare.Assessment) {
	if a.State == compare.Unknown || a.SampleAt.IsZero() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n, r.last = map[string]int{}, map[string]time.Time{}
	}
	if !a.SampleAt.Equal(r.last[a.Service]) {
		r.last[a.Service] = a.SampleAt
		r.n[a.Service] = min(r.n[a.Service]+1, freshReads)
	}
}

func (r *reads) count(service string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[service]
}

// assume lets a dry pass judge as if two reads had been made: it runs once,
// and what it shows is what the agent would do.
func (r *reads) assume(service string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n, r.last = map[string]int{}, map[string]time.Time{}
	}
	r.n[service] = freshReads
}
