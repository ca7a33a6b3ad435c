package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

type ruleBook struct{ *rules.Rules }

// Propose answers from the file.
func (r *fileRules) Propose(_ context.Context, req propose.Request) reconcile.Proposed {
	book := r.rules.Load()
	if book == nil {
		return reconcile.Proposed{Proposal: propose.Malformed(r.Identity(), propose.FaultCanceled, "the rules are not loaded yet")}
	}
	p := book.Propose(req)
	reply, err := json.Marshal(p)
	if err != nil {
		reply = nil
	}
	return reconcile.Proposed{Proposal: p, Reply: reply}
}

// Identity is recorded before the call.
func (r *fileRules) Identity() propose.Proposer { return propose.Proposer{Kind: rules.Kind} }

// model is a language model behind the limits of proposer.limits.
type model struct {
	client *openai.Client
	first  config.Endpoint
	limits config.ProposerLimits

	mu    sync.Mutex
	calls []call
	// asking are the calls under way, which count too: a thousand services may ask
	// at once, long before the first answer.
	asking []call
	// until is when the provider wants to be asked again at the earliest.
	until time.Time
}

// call is one asking of the last day.
type call struct {
	at      time.Time
	service string
	tokens  int
}

// Identity is recorded before the call; which endpoint answers is known after
// it.
func (m *model) Identity() propose.Proposer {
	return propose.Proposer{Kind: openai.Kind, Endpoint: m.first.Name, Model: m.first.Model}
}

// Propose asks, unless a limit is reached.
func (m *model) Propose(ctx context.Context, req propose.Request) reconcile.Proposed {
	under := call{at: req.Now, service: req.Service.Name}
	if why := m.begin(under); why != "" {
		return reconcile.Proposed{Proposal: propose.Malformed(m.Identity(), "limit", why)}
	}
	defer m.end(under)
	p, usage := m.client.Propose(ctx, req)
	prompt, completion := usage.Tokens()
	m.note(call{at: req.Now, service: req.Service.Name, tokens: prompt + completion})
	m.wait(req.Now, usage.RetryAfter())
	out := reconcile.Proposed{Proposal: p, RetryAfter: usage.RetryAfter(), InputTokens: prompt, OutputTokens: completion}
	if n := len(usage.Attempts); n > 0 {
		out.Request, out.Reply = usage.Attempts[n-1].Request, usage.Attempts[n-1].Reply
	}
	return out
}

// begin counts a call that is about to be made, unless a limit is reached.
func (m *model) begin(c call) (why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why = m.spent(c.service, c.at); why == "" {
		m.asking = append(m.asking, c)
	}
	return why
}

// end takes back what begin counted; note has counted the call itself.
func (m *model) end(c call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.asking, c); i >= 0 {
		m.asking = slices.Delete(m.asking, i, i+1)
	}
}

// spent says which limit is reached; "" when none is. The caller holds mu.
func (m *model) spent(service string, now time.Time) string {
	hour, own, tokens := m.counts(service, now)
	l := m.limits
	switch {
	case now.Before(m.until):
		return "the provider asked to wait until " + clock(m.until)
	case reached(hour, l.CallsPerHour):
		return fmt.Sprintf("proposer.limits.callsPerHour: %d calls in the last hour", hour)
	case reached(own, l.CallsPerServicePerHour):
		return fmt.Sprintf("proposer.limits.callsPerServicePerHour: %d calls for %s in the last hour", own, service)
	case reached(tokens, l.TokensPerDay):
		return fmt.Sprintf("proposer.limits.tokensPerDay: %d tokens in the last day", tokens)
	}
	return ""
}

// reached reports whether a limit is used up; 0 is no limit.
func reached(used, limit int) bool { return limit > 0 && used >= limit }

// counts are the calls of the last hour, of all and of one service, and the
// tokens of the last day.
func (m *model) counts(service string, now time.Time) (hour, own, tokens int) {
	for _, c := range slices.Concat(m.calls, m.asking) {
		age := now.Sub(c.at)
		if age < 24*time.Hour {
			tokens += c.tokens
		}
		if age < time.Hour {
			hour++
			if c.service == service {
				own++
			}
		}
	}
	return hour, own, tokens
}

func (m *model) wait(now time.Time, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d > 0 {
		m.until = now.Add(d)
	}
}

func (m *model) note(c call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.calls[:0]
	for _, old := range m.calls {
		if c.at.Sub(old.at) < 24*time.Hour {
			kept = append(kept, old)
		}
	}
	m.calls = append(kept, c)
}
