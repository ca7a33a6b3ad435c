package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// shadowWait bounds how long a pass waits for the shadow policy, whatever
// deadline that keeps by itself.
const shadowWait = 500 * time.Millisecond

// maxStrays is how many evaluations that were left behind may run on.
const maxStrays = 8

// shadowed is what the shadow policy of the decision's moment would have led
// to: the same floors, joined with its ruling on the same bytes. It is nil
// without one, and where there was nothing to rule on. It binds nobody: whatever
// goes wrong in it is its Fault.
func (r *Reconciler) shadowed(ctx context.Context, j judged) *ledger.Shadow {
	if j.shadow == nil || j.Input == nil {
		return nil
	}
	ruling := r.shadowRuling(ctx, j.shadow, bytes.Clone(j.Input))
	d := j.Floors.Join(ruling)
	out := &ledger.Shadow{Revision: ruling.Revision, Verdict: d.Verdict, Hold: d.Hold, Reasons: []string{}, Fault: ruling.Fault}
	for _, reason := range d.Reasons {
		out.Reasons = append(out.Reasons, reason.Code)
	}
	out.Differs = d.Verdict != j.decision.Verdict || d.Hold != j.decision.Hold ||
		!slices.Equal(approvals(d.Needs), approvals(j.decision.Needs))
	return out
}

// shadowRuling waits for a ruling no longer than shadowWait. An evaluation that
// takes longer is left behind; while too many of them run on, none is begun.
func (r *Reconciler) shadowRuling(ctx context.Context, shadow Policy, input []byte) gate.Ruling {
	if r.strays.Load() >= maxStrays {
		return gate.Ruling{Fault: fmt.Sprintf("%s: %d earlier evaluations of the shadow policy have not ended yet", gate.FaultTimeout, maxStrays)}
	}
	ctx, cancel := context.WithTimeout(ctx, shadowWait)
	defer cancel()
	// The revision comes first, so that one that hangs is known by its name.
	revision, ruled := make(chan string, 1), make(chan gate.Ruling, 1)
	go func() { ruled <- evaluated(ctx, shadow, input, revision) }()
	select {
	case ruling := <-ruled:
		return ruling
	case <-ctx.Done():
	}
	r.strays.Add(1)
	go func() {
		<-ruled
		r.strays.Add(-1)
	}()
	late := gate.Ruling{Fault: fmt.Sprintf("%s: the shadow policy took longer than %s", gate.FaultTimeout, shadowWait)}
	select {
	case late.Revision = <-revision:
	default:
	}
	return late
}

// evaluated survives a policy that panics.
func evaluated(ctx context.Context, policy Policy, input []byte, named chan<- string) (out gate.Ruling) {
	defer func() {
		if caught := recover(); caught != nil {
			out.Fault = fmt.Sprintf("%s: %v", gate.FaultPanic, caught)
		}
	}()
	revision := policy.Revision()
	out.Revision = revision
	named <- revision
	out = policy.Evaluate(ctx, input)
	out.Revision = revision
	return out
}

// approvals are who must agree, whatever rule or floor asks for them.
func approvals(needs []gate.Need) []string {
	out := make([]string, 0, len(needs))
	for _, n := range needs {
		who := slices.Compact(slices.Sorted(slices.Values(n.Approvers)))
		out = append(out, fmt.Sprintf("%d of %s within %s", n.Quorum, strings.Join(who, " "), n.Expires))
	}
	slices.SortFunc(out, cmp.Compare)
	return slices.Compact(out)
}
