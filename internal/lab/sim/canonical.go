package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// canonical is everything that can make a difference later: the ledger without
// hashes and numbers, the journal, and what each replica is about to do and
// still remembers. Two worlds with one canonical form go on alike, so the order
// of entries counts only where the fold shows it, and which of two equal
// replicas is called the first does not count.
func (n node) canonical(scope Scope) string {
	var b strings.Builder
	fmt.Fprintln(&b, n.ticks, n.faulted, n.approved, n.denied, n.froze)
	b.WriteString(unordered(n.chain.entries))
	n.past(&b)
	for _, key := range n.mon.order {
		c := n.mon.claims[key]
		fmt.Fprintln(&b, key, c.sends, c.effects)
	}
	var reps []string
	for i := range n.reps {
		reps = append(reps, n.memory(i, scope))
	}
	slices.Sort(reps)
	b.WriteString(strings.Join(reps, ""))
	return b.String()
}

// unordered names entries whatever their order.
func unordered(entries []ledger.Entry) string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = string(e.Kind) + " " + e.Unique + " " + e.Time.Format("150405") + "\n"
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

// past is what the fold shows of effects, tickets and the last decision.
func (n node) past(b *strings.Builder) {
	s := n.chain.head
	for _, key := range n.mon.order {
		e := s.Effects[key]
		fmt.Fprintln(b, key, e.Effect, e.Outcome, e.Claim.Ticket != "", e.Claim.Expires.Unix(), e.StartedAt.Unix())
	}
	sv, _ := s.Service(serviceName(0))
	for _, id := range sv.Tickets {
		t := s.Tickets[id]
		fmt.Fprintln(b, t.Key, t.State, len(t.Answers), t.Expires.Unix())
	}
	if d := s.Decisions[sv.Decision]; d != nil {
		fmt.Fprintln(b, d.Key, d.Step, codes(d.Decision.Reasons))
	}
}

// memory is what a replica is about to do and still remembers. Between two
// passes it remembers nothing of the ledger: the next one reads it first.
func (n node) memory(i int, scope Scope) string {
	r := &n.reps[i]
	var b strings.Builder
	fmt.Fprintln(&b, "replica", r.stage, n.passes[i], r.reads[0].n, len(r.files))
	if r.stage == looking {
		if n.passes[i] >= scope.Passes && n.ticks == len(scope.Ticks) {
			return "replica at its end\n"
		}
		return b.String()
	}
	p := &r.pass
	b.WriteString(unordered(n.chain.entries[r.known.Head.Seq:]))
	fmt.Fprintln(&b, p.now.Unix(), p.step.Kind, p.step.Key, p.step.Ticket != "")
	switch r.stage {
	case folding, settling, ending, choosing:
	case resolving:
		fmt.Fprintln(&b, p.settled.Effect, p.settled.Key)
	case recording:
		fmt.Fprintln(&b, p.permit.Key(), p.receipt.Effect)
	case awaiting:
		m := n.mail[p.msg]
		fmt.Fprintln(&b, m.key, m.life == r.life, m.arrives.IsZero(), m.reply.IsZero(), m.result, p.sentAt.Unix(), p.again)
	default:
		fmt.Fprintln(&b, p.foreign, p.step.Recorded != nil, p.proposal.Kind, p.decision.Verdict, codes(p.decision.Reasons),
			p.decidedAt.Seq >= n.chain.head.ClaimsMoved, p.permit.Digest(), p.permit.Expires().Unix(), p.minted.Unix(), p.why)
	}
	if p.past.ticket != nil {
		fmt.Fprintln(&b, p.past.ticket.Key, p.past.ticket.State)
	}
	if p.past.inFlight != nil {
		fmt.Fprintln(&b, p.past.inFlight.Claim.Key, p.past.inFlight.Effect)
	}
	return b.String()
}
