package month

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
)

// The on-call of each team, of whom the first answers alone where one is enough.
var oncall = map[string][]string{
	"@payments-oncall":  {"os:alice", "os:bob"},
	"@search-oncall":    {"os:carol", "os:dave"},
	"@logistics-oncall": {"os:erin", "os:frank"},
}

// people answer tickets, freeze and reset budgets. What they do hangs on the hour
// and on chance.
type people struct {
	loop    *reconcile.Reconciler
	shop    *shop
	freezes *freezefile.Dir
	random  *rand.Rand
	// minds are what was made up about a ticket when it was first seen.
	minds map[string]mind
	// frozen is the id of the freeze in force; weeks counts resets.
	frozen string
	weeks  int
}

// mind is how a ticket will be answered.
type mind struct {
	at      time.Time
	answer  bool
	approve bool
	reason  string
}

// act is what they do at one moment.
func (p *people) act(ctx context.Context, now time.Time) error {
	return errors.Join(p.answer(ctx, now), p.freeze(ctx, now), p.reset(ctx, now))
}

// answer gives the answers that are due.
func (p *people) answer(ctx context.Context, now time.Time) error {
	var due []approve.Ticket
	p.loop.View(func(s *ledger.State) {
		for _, name := range s.ServiceNames() {
			t, ok := s.OpenTicket(name)
			if !ok || t.State != approve.Open {
				continue
			}
			m, ok := p.minds[t.ID]
			if !ok {
				m = p.decide(t)
				p.minds[t.ID] = m
			}
			if m.answer && !now.Before(m.at) {
				due = append(due, t)
			}
		}
	})
	for _, t := range due {
		if err := p.tell(ctx, t, p.minds[t.ID]); err != nil {
			return err
		}
	}
	return nil
}

// decide makes up a mind: by day tickets are answered, most of them with yes; by
// night half of them wake nobody. Who says no mends it by hand, and so does, when
// the page wakes them, who slept.
func (p *people) decide(t approve.Ticket) mind {
	minutes := time.Duration(1+p.random.IntN(8)) * time.Minute
	m := mind{at: t.Asked.Add(minutes), answer: true, approve: p.random.IntN(10) < 7, reason: "looked at it, go on"}
	if h := t.Asked.Hour(); h < 7 || h >= 22 {
		m.answer = p.random.IntN(2) == 0
	}
	switch {
	case !m.answer:
		p.shop.mend(t.Service, t.Expires.Add(25*time.Minute))
	case !m.approve:
		m.reason = "not while we are looking"
		p.shop.mend(t.Service, m.at.Add(15*time.Minute))
	}
	return m
}

// tell answers for as many people as each need asks for.
func (p *people) tell(ctx context.Context, t approve.Ticket, m mind) error {
	told := map[string]bool{}
	for _, n := range t.Needs {
		for i, who := range oncall[first(n.Approvers)] {
			if i >= n.Quorum || told[who] {
				continue
			}
			told[who] = true
			_, err := p.loop.Answer(ctx, approve.Answer{Ticket: t.ID, By: who, Via: "cli", Approve: m.approve, Reason: m.reason})
			var refused *approve.Refusal
			if err != nil && !errors.As(err, &refused) {
				return fmt.Errorf("answer %s: %w", t.ID, err)
			}
		}
	}
	return nil
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// freeze stops everything from noon to six on every tenth day.
func (p *people) freeze(ctx context.Context, now time.Time) error {
	n := int(now.Sub(Start()) / day)
	should := n%10 == 9 && now.Hour() >= 12 && now.Hour() < 18
	switch {
	case should && p.frozen == "":
		p.frozen = fmt.Sprintf("f-%d", n)
		return p.freezes.Write(ledger.Freeze{ID: p.frozen, By: "os:alice", Reason: "the data centre is being moved", At: now})
	case !should && p.frozen != "":
		id := p.frozen
		p.frozen = ""
		return p.loop.Thaw(ctx, id, "os:alice", "moved")
	}
	return nil
}

// reset gives back the budgets on Monday mornings, after the weekly look at what
// did not help.
func (p *people) reset(ctx context.Context, now time.Time) error {
	if now.Weekday() != time.Monday || now.Hour() < 9 || int(now.Sub(Start())/(7*day)) < p.weeks {
		return nil
	}
	p.weeks++
	for _, svc := range p.loop.Set().Services {
		for _, a := range svc.Remediation.Actions {
			err := p.loop.ResetBudget(ctx, svc.Name, ledger.Reset{Action: a.Name, By: "os:alice", Reason: "weekly review", Until: now.Add(7 * day)})
			if err != nil {
				return fmt.Errorf("reset the budget of %s: %w", svc.Name, err)
			}
		}
	}
	return nil
}
