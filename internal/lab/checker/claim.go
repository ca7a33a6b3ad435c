package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// claim checks everything that must hold when a key is reserved.
func (r *run) claim(c ledger.Claim) {
	if !r.rising(c) {
		return
	}
	r.decided(c)
	r.granted(c)
	r.known(c)
	r.alone(c)
	r.afforded(c)
	r.braked(c)
	l := &life{service: r.now.Service, claim: c, claimSeq: r.now.Seq, claimedAt: r.now.Time, effect: execute.Claimed}
	r.lives[c.Key] = l
	r.order = append(r.order, l)
	r.consumed(l)
}

// windows are the claimed windows of one service.
type windows struct {
	claimed map[int64]gate.Key
	// above is the start that the next claim must exceed.
	above int64
}

// rising checks the claim's window, and says whether the key is a new one.
func (r *run) rising(c ledger.Claim) bool {
	w, err := gate.ParseWindowID(strings.TrimPrefix(string(c.Key), r.now.Service+":"))
	if err != nil {
		r.broke(WindowsRise, c.Key, r.now.Seq, "the key holds no window: %v", err)
		return false
	}
	ws := r.windows[r.now.Service]
	if ws == nil {
		ws = &windows{claimed: map[int64]gate.Key{}, above: w.Start - 1}
		r.windows[r.now.Service] = ws
	} else {
		r.hold(WindowsRise)
	}
	other, twice := ws.claimed[w.Start]
	switch {
	case twice:
		r.broke(WindowsRise, c.Key, r.now.Seq, "the window was claimed before, by %s", other)
	case w.Start <= ws.above:
		r.broke(WindowsRise, c.Key, r.now.Seq, "a later window of the service was claimed before")
	case w.Start <= r.spentUntil:
		r.broke(WindowsRise, c.Key, r.now.Seq, "the window began before the chain was adopted, so it may be spent in what was lost")
	}
	if !twice {
		ws.claimed[w.Start] = c.Key
	}
	ws.above = max(ws.above, w.Start)
	_, again := r.lives[c.Key]
	return !again
}

// lowered lets the windows of a service begin again at one; what was claimed
// stays claimed.
func (r *run) lowered(b ledger.Lowered) {
	w, err := gate.ParseWindowID(b.To)
	if ws := r.windows[r.now.Service]; err == nil && ws != nil {
		ws.above = min(ws.above, w.Start-1)
	}
}

// decided checks that an earlier decision allows exactly this.
func (r *run) decided(c ledger.Claim) {
	r.hold(DecidedFirst)
	d, ok := r.decisions[c.Decision]
	why := ""
	switch {
	case !ok:
		why = "there is no earlier decision " + c.Decision
	case d.service != r.now.Service:
		why = "decision " + c.Decision + " is of service " + d.service
	case d.body.Decision.Key != c.Key || d.body.Key != c.Key:
		why = "decision " + c.Decision + " is about key " + string(d.body.Decision.Key)
	case d.body.Decision.Digest != c.Digest:
		why = "decision " + c.Decision + " is about other bytes"
	case d.body.Decision.Hold:
		why = "decision " + c.Decision + " holds"
	case d.body.Decision.Verdict != c.Verdict:
		why = "decision " + c.Decision + " is " + d.body.Decision.Verdict.String() + ", the claim says " + c.Verdict.String()
	default:
		why = r.allowed(c, d.body.Decision)
	}
	if why != "" {
		r.broke(DecidedFirst, c.Key, r.now.Seq, "%s", why)
	}
}

// allowed says what the verdict of a claim lacks; "" when nothing.
func (r *run) allowed(c ledger.Claim, d gate.Decision) string {
	switch t := r.tickets[c.Ticket]; {
	case c.Verdict != gate.Auto && c.Verdict != gate.Approval:
		return "the verdict is " + c.Verdict.String()
	case c.Verdict == gate.Approval && t == nil:
		return "it needs an approval and names no ticket that was asked before"
	case c.Verdict == gate.Approval && t.standing != approvedTicket && !t.passed():
		return "ticket " + c.Ticket + " is " + string(t.standing)
	}
	blob, kept := r.blobs[d.InputDigest]
	sum := sha256.Sum256(blob)
	switch {
	case !kept:
		return "the input of decision " + c.Decision + " is not in the export"
	case hex.EncodeToString(sum[:]) != d.InputDigest:
		return "the input of decision " + c.Decision + " was changed"
	}
	return ""
}

// granted checks that policy said yes: silence is none.
func (r *run) granted(c ledger.Claim) {
	d, ok := r.decisions[c.Decision]
	if !ok {
		return
	}
	r.hold(Granted)
	ruling := d.body.Decision.Ruling
	switch {
	case ruling.Fault != "":
		r.broke(Granted, c.Key, r.now.Seq, "policy had a fault: %s", ruling.Fault)
	case len(ruling.Deny)+len(ruling.Escalate) > 0:
		r.broke(Granted, c.Key, r.now.Seq, "policy refused it, or handed it over")
	case c.Verdict == gate.Auto && len(ruling.Approval) > 0:
		r.broke(Granted, c.Key, r.now.Seq, "policy wants a person")
	case len(ruling.Auto)+len(ruling.Approval) == 0:
		r.broke(Granted, c.Key, r.now.Seq, "policy was silent")
	}
}

// known checks that the service was known to miss its SLO. An undo may also
// run while it is met: a neighbour may be what was hurt.
func (r *run) known(c ledger.Claim) {
	r.hold(KnownBreach)
	acting := func(s compare.State) bool { return s == compare.Breached || s == compare.Met && c.Undo }
	d, decided := r.decisions[c.Decision]
	switch state := r.states[r.now.Service]; {
	case !acting(c.State):
		r.broke(KnownBreach, c.Key, r.now.Seq, "the claim's own state is %q", c.State)
	case decided && !acting(d.body.State):
		r.broke(KnownBreach, c.Key, r.now.Seq, "the decision's state is %q", d.body.State)
	case !acting(state):
		r.broke(KnownBreach, c.Key, r.now.Seq, "the last state entry of the service says %q", state)
	}
}

// alone checks that nothing else is unsettled on the service or the target.
func (r *run) alone(c ledger.Claim) {
	rivals := false
	for _, l := range r.order {
		onService, onTarget := l.service == r.now.Service, l.claim.Target == c.Target
		if !onService && !onTarget {
			continue
		}
		rivals = true
		if l.open() {
			what := "service"
			if !onService {
				what = "target"
			}
			r.broke(OneInFlight, c.Key, r.now.Seq, "%s on the same %s is %s", l.claim.Key, what, l.effect)
		}
	}
	if rivals {
		r.hold(OneInFlight)
	}
}
