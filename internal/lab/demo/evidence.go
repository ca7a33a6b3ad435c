package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// evidence is everything that the claims are judged from. The actuator's
// journal, the pager and the engine are independent of the agent; the chain is
// what the agent recorded before and after it acted.
type evidence struct {
	chain    *ledger.State
	episodes map[string]episode
	journal  []executetest.Record
	pages    []pager.Page
	// probes are the engine's own answers about the recorded numbers.
	probes []probe
	// you is the principal that answers in this demo.
	you string
}

// episode is one episode as its entries have it.
type episode struct {
	id     string
	state  compare.State
	reason compare.Reason
	// breached is zero for an episode that was never a breach.
	began, breached, recovered time.Time
}

// probe is one number of a judgement, asked once more in other words.
type probe struct {
	what             string
	key              gate.Key
	recorded, answer float64
	// ok is false when the engine has no answer.
	ok bool
}

// tolerance is how far two ways of asking may differ: a sample more or less in
// a window of ten.
const tolerance = 0.02

func (p probe) agrees() bool {
	return p.ok && p.recorded-p.answer <= tolerance && p.answer-p.recorded <= tolerance
}

// readChain reads the ledger beside its writer.
func readChain(ctx context.Context, path string) (state *ledger.State, entries []ledger.Entry, err error) {
	r, err := sqlite.OpenReader(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	state = ledger.NewState()
	for {
		const batch = 1000
		es, err := r.Read(ctx, state.Head.Seq, batch)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range es {
			if err := state.Apply(e); err != nil {
				return nil, nil, fmt.Errorf("ledger entry %d: %w", e.Seq, err)
			}
		}
		entries = append(entries, es...)
		if len(es) < batch {
			return state, entries, nil
		}
	}
}

// episodesSince gives each service's first episode that began at or after its
// fault.
func episodesSince(entries []ledger.Entry, faults map[string]time.Time) (map[string]episode, error) {
	out := map[string]episode{}
	for _, e := range entries {
		fault, broken := faults[e.Service]
		if !broken || e.Time.Before(fault) {
			continue
		}
		body, err := ledger.Decode(e)
		if err != nil {
			return nil, err
		}
		ep, open := out[e.Service]
		switch b := body.(type) {
		case ledger.StateChange:
			ep.change(e, b, open)
		case ledger.Recovered:
			ep.recover(e, b)
		default:
			continue
		}
		if ep.id != "" {
			out[e.Service] = ep
		}
	}
	return out, nil
}

func (ep *episode) change(e ledger.Entry, b ledger.StateChange, open bool) {
	if !open {
		if b.To == compare.Met {
			return
		}
		*ep = episode{id: ledger.EpisodeID(e.Seq), state: b.To, reason: b.Reason, began: e.Time}
	}
	if b.To == compare.Breached && ep.breached.IsZero() && ep.recovered.IsZero() {
		ep.breached = e.Time
	}
}

func (ep *episode) recover(e ledger.Entry, b ledger.Recovered) {
	if b.Episode == ep.id && ep.recovered.IsZero() {
		ep.recovered = e.Time
	}
}

// effects are the claims of a service's episode, oldest first.
func (e evidence) effects(service string) []*ledger.Effect {
	ep, ok := e.episodes[service]
	if !ok {
		return nil
	}
	var out []*ledger.Effect
	for _, key := range e.chain.EffectOrder {
		if ef := e.chain.Effects[key]; ef.Service == service && ef.Claim.Episode == ep.id {
			out = append(out, ef)
		}
	}
	return out
}

func (e evidence) actions(service string) []Action {
	out := []Action{}
	for _, ef := range e.effects(service) {
		a := Action{
			Action: ef.Claim.Action.Name, Verdict: ef.Claim.Verdict.String(), ApprovedBy: e.approver(ef),
			Key: string(ef.Claim.Key), Effects: len(e.applied(ef.Claim.Key)), Outcome: string(ef.Outcome),
		}
		if j := ef.Judgement; j != nil {
			a.Before, a.After = &Measured{j.Before}, &Measured{j.After}
		}
		out = append(out, a)
	}
	return out
}

// approver is who approved the ticket of a claim; "" without one.
func (e evidence) approver(ef *ledger.Effect) string {
	t, ok := e.chain.Tickets[ef.Claim.Ticket]
	if !ok {
		return ""
	}
	for _, a := range t.Answers {
		if a.Approve {
			return a.By
		}
	}
	return ""
}

// applied are the changes that the actuator made under a key.
func (e evidence) applied(key gate.Key) []executetest.Record {
	var out []executetest.Record
	for _, r := range e.journal {
		if r.Applied && r.Key == string(key) {
			out = append(out, r)
		}
	}
	return out
}

// doubles are the changes beyond the first under each key, from the journal.
func (e evidence) doubles() []executetest.Record {
	seen := map[string]bool{}
	var out []executetest.Record
	for _, r := range e.journal {
		if !r.Applied {
			continue
		}
		if seen[r.Key] {
			out = append(out, r)
		}
		seen[r.Key] = true
	}
	return out
}

// actsOnUnknown are the claims whose recorded assessment was Unknown, whoever
// recorded it: the claim itself, or the decision that it rests on.
func (e evidence) actsOnUnknown() []gate.Key {
	var out []gate.Key
	for _, key := range e.chain.EffectOrder {
		c := e.chain.Effects[key].Claim
		unknown := c.State == compare.Unknown
		if d := e.chain.Decisions[c.Decision]; d != nil && d.State == compare.Unknown {
			unknown = true
		}
		if unknown {
			out = append(out, key)
		}
	}
	return out
}

// page is the first page that the pager holds of a service's episode, of that
// reason ("" for any).
func (e evidence) page(service, reason string) (pager.Page, bool) {
	ep, ok := e.episodes[service]
	if !ok {
		return pager.Page{}, false
	}
	for _, p := range e.pages {
		l := p.Labels
		if l["service"] == service && l["episode"] == ep.id && (reason == "" || l["reason"] == reason) {
			return p, true
		}
	}
	return pager.Page{}, false
}

func hasReason(rs []gate.Reason, code string) bool {
	return slices.ContainsFunc(rs, func(r gate.Reason) bool { return r.Code == code })
}

// sent are the requests of a service that the actuator saw, acting or not.
func (e evidence) sent(service string) []executetest.Record {
	return slices.DeleteFunc(slices.Clone(e.journal), func(r executetest.Record) bool { return r.Service != service })
}
