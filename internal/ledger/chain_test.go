package ledger_test

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// start is minute 0 of every test chain; it begins a ten-minute window.
var start = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// step is a draft, appended at a minute.
type step struct {
	minute int
	draft  ledger.Draft
}

func at(minute int, d ledger.Draft) step { return step{minute, d} }

// chain links entries and folds them as they come.
type chain struct {
	t       testing.TB
	state   *ledger.State
	entries []ledger.Entry
}

// newChain begins with the first entry, number 1, so that steps begin at 2.
func newChain(t testing.TB, steps ...step) *chain {
	t.Helper()
	c := &chain{t: t, state: ledger.NewState()}
	c.add(at(0, ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}}))
	c.add(steps...)
	return c
}

func (c *chain) add(steps ...step) {
	c.t.Helper()
	for _, st := range steps {
		e, err := ledger.Link(c.state.Head, minute(st.minute), st.draft)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := c.state.Apply(e); err != nil {
			c.t.Fatal(err)
		}
		c.entries = append(c.entries, e)
	}
}

// noSkips fails when an entry changed nothing although it should have.
func (c *chain) noSkips() {
	c.t.Helper()
	for _, s := range c.state.Skipped {
		c.t.Errorf("entry %d (%s) was skipped: %s", s.Seq, s.Kind, s.Why)
	}
}

func state(service string, from, to compare.State) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindState, Service: service, Body: ledger.StateChange{From: from, To: to}}
}

func gap() ledger.Draft { return ledger.Draft{Kind: ledger.KindGap, Body: ledger.Gap{Why: "start"}} }

func recovered(service, episode string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindRecovered, Service: service, Body: ledger.Recovered{Episode: episode}}
}

func documents(digests map[string]string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindDocuments, Body: ledger.Documents{Set: "set", Services: digests}}
}

func asked(service, window string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindAsked, Service: service, Body: ledger.Asked{Window: window, Deadline: minute(1)}}
}

func proposed(service, window string, p propose.Proposal) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindProposal, Service: service, Body: ledger.Proposed{Window: window, Proposal: p}}
}

func decided(service, window string, d gate.Decision) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindDecision, Service: service, Body: ledger.Decided{
		Window: window, Key: gate.Key(service + ":" + window), Decision: d, State: compare.Breached,
	}}
}

// windowAt is the ten-minute window that begins at a minute.
func windowAt(m int) string { return gate.WindowAt(minute(m), 10*time.Minute).String() }

func keyAt(service string, m int) gate.Key { return gate.Key(service + ":" + windowAt(m)) }

var scale = spec.Action{
	Name: "scale", Uses: "webhook.post", Target: spec.Target{URL: "http://scaler.internal/checkout"},
	Class: spec.ClassAuto, Reversal: spec.Restore, Timeout: time.Minute, MaxLateness: time.Minute,
}

// claimOf is an automatic claim of key with the dearest charge 2.
func claimOf(key gate.Key, change ...func(*ledger.Claim)) ledger.Claim {
	c := ledger.Claim{
		Key: key, Digest: "digest", Target: scale.Canonical(), Action: scale,
		Parameters: propose.Parameters{"replicas": int64(6), "share": 1.0}, Live: propose.Live{"replicas": int64(3)},
		Verdict: gate.Auto, Charge: 2, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1},
		Expires: minute(600), State: compare.Breached,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func claim(service string, c ledger.Claim) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindClaim, Service: service, Body: c}
}

func started(service string, key gate.Key) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindStarted, Service: service, Body: ledger.Started{Key: key}}
}

func void(service string, key gate.Key) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindVoid, Service: service, Body: ledger.Void{Key: key, Reason: "permit-expired"}}
}

func receipt(service string, key gate.Key, e execute.Effect, m int) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindReceipt, Service: service, Body: ledger.Receipt{
		Key: key, Receipt: execute.Receipt{Effect: e, At: minute(m)},
	}}
}

func settled(service string, key gate.Key, e execute.Effect, by string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindSettled, Service: service, Body: ledger.Settled{Key: key, Effect: e, By: by}}
}

func outcome(service string, key gate.Key, o compare.Outcome, cost float64) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindOutcome, Service: service, Body: ledger.Outcome{
		Key: key, Judgement: compare.Judgement{Outcome: o, Decided: true}, Cost: cost,
	}}
}

func ticket(service string, key gate.Key) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindTicket, Service: service, Body: approve.Ticket{
		Key: key, Digest: "digest", Episode: "e2", Expires: minute(600),
		Needs: []gate.Need{{Reason: "class-approval", Approvers: []string{"os:alice", "os:bob"}, Quorum: 1}},
	}}
}

func answer(id, by string, yes bool, m int) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindAnswer, Body: approve.Answer{
		Ticket: id, By: by, Via: "cli", Approve: yes, At: minute(m), Satisfies: []int{0},
	}}
}

func ticketEnd(id string, s approve.State) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindTicketEnd, Body: ledger.TicketEnd{Ticket: id, State: s, Reason: "why"}}
}

func reset(service, action string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindReset, Service: service, Body: ledger.Reset{Action: action, By: "os:alice", Reason: "fixed"}}
}
