package ledger

import (
	"errors"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

const (
	// keptCalls is how long an asking of a model counts: limits are by the day.
	keptCalls = 24 * time.Hour
	// keptChanges is how many posted changes of a service are kept.
	keptChanges = 20
	// maxChangeWord bounds what a change says, in bytes.
	maxChangeWord = 200
)

// asks counts a question to a model from the moment that it is put, so that no
// restart and no replica asks beyond a limit. Rules have no endpoint.
func (s *State) asks(e Entry, b Asked) {
	if b.Proposer.Endpoint == "" {
		return
	}
	if n := len(s.Calls); n > 64 && s.Time.Sub(s.Calls[n/2].At) > keptCalls {
		s.Calls = slices.Clone(s.Calls[n/2:])
	}
	s.Calls = append(s.Calls, propose.Call{At: e.Time, Service: e.Service, Window: b.Window, Requests: 1})
}

// answered puts what a question cost in the place of what it was counted as:
// nothing where every endpoint was left alone.
func (s *State) answered(service string, b Proposed) {
	for i, c := range slices.Backward(s.Calls) {
		if c.Service != service || c.Window != b.Window {
			continue
		}
		c.Requests, c.Tokens = len(b.Exchanges), tokensOf(b.Exchanges)
		s.Calls = slices.Clone(s.Calls)
		s.Calls[i] = c
		return
	}
}

func tokensOf(all []Exchange) int {
	n := 0
	for _, x := range all {
		n += max(0, x.InputTokens) + max(0, x.OutputTokens)
	}
	return n
}

// asked adds an answer to what the episode has cost.
func (sv *Service) asked(b Proposed) {
	if len(b.Exchanges) == 0 {
		return
	}
	if sv.Asked.Episode != b.Episode {
		sv.Asked = Asking{Episode: b.Episode}
	}
	sv.Asked.Requests += len(b.Exchanges)
	for _, x := range b.Exchanges {
		sv.Asked.InputTokens += max(0, x.InputTokens)
		sv.Asked.OutputTokens += max(0, x.OutputTokens)
	}
}

func checkChanged(service string, b Changed) error {
	if b.At.IsZero() || len(b.What) > maxChangeWord || len(b.Version) > maxChangeWord {
		return errors.New("a change needs a time, and words of at most 200 bytes")
	}
	return errors.Join(named("service", service), named("what", b.What))
}

func foldChanged(s *State, e Entry, b Changed) string {
	c := measure.Change{At: b.At, Service: e.Service, What: b.What, Version: b.Version}
	sv := s.edit(e.Service)
	at, known := slices.BinarySearchFunc(sv.Changes, c, measure.Change.Newest)
	if known {
		return "the change is recorded already"
	}
	sv.Changes = slices.Insert(slices.Clone(sv.Changes), at, c)
	sv.Changes = sv.Changes[:min(len(sv.Changes), keptChanges)]
	s.put(sv)
	return ""
}
