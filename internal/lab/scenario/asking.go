package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Asking is what was asked of a model in one run, and what came of it.
type Asking struct {
	// Requests is how many were sent, repair turns included.
	Requests int `json:"requests"`
	// Answered is how many of them were answered with a completion, of whatever
	// worth. Without one, a score says nothing about any model.
	Answered int `json:"answered"`
	// Faults counts, by the code of the fault, the requests that gave no proposal,
	// and the questions of which no request was sent.
	Faults map[string]int `json:"faults"`
	// Error is the last fault in words, where nothing was answered.
	Error string `json:"error,omitempty"`
}

// unanswered are the codes of a request to which no completion came.
var unanswered = []string{
	propose.FaultRateLimited, propose.FaultProvider, propose.FaultUnreachable, propose.FaultTimeout, propose.FaultCanceled,
}

// Unanswered says that a model was to be asked and never answered; "" where one
// did, or where there was nothing to ask.
func (s Score) Unanswered() string {
	if s.Asked == nil {
		return ""
	}
	return s.Asked.unanswered()
}

func (a Asking) unanswered() string {
	if a.Answered > 0 || len(a.Faults) == 0 {
		return ""
	}
	return fmt.Sprintf("none of %d requests was answered, so the score says nothing of a model (%s); the last: %s", a.Requests, a.FaultsText(), a.Error)
}

// FaultsText is the faults in one line, e.g. "timeout 1, unreachable 6"; "" is
// none.
func (a Asking) FaultsText() string {
	var out []string
	for _, code := range slices.Sorted(maps.Keys(a.Faults)) {
		out = append(out, fmt.Sprintf("%s %d", code, a.Faults[code]))
	}
	return strings.Join(out, ", ")
}

// tally counts what an asker does. Passes of several services may ask at once.
type tally struct {
	mu    sync.Mutex
	asked Asking
	last  string
}

func (t *tally) add(p propose.Proposal, exchanges []propose.Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.Faults == nil {
		t.asked.Faults = map[string]int{}
	}
	for _, x := range exchanges {
		t.asked.Requests++
		if !slices.Contains(unanswered, x.Result) {
			t.asked.Answered++
		}
		if x.Result != "ok" {
			t.asked.Faults[x.Result]++
		}
	}
	if p.Fault == "" {
		return
	}
	t.last = p.Fault
	if code, _, _ := strings.Cut(p.Fault, ":"); len(exchanges) == 0 {
		t.asked.Faults[code]++
	}
}

// sum is what was counted so far.
func (t *tally) sum() Asking {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.asked
	if out.Faults = maps.Clone(out.Faults); out.Faults == nil {
		out.Faults = map[string]int{}
	}
	if out.Answered == 0 {
		out.Error = t.last
	}
	return out
}
