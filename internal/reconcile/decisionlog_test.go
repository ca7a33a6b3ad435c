package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// heard is a decision log in memory.
type heard struct {
	all    []reconcile.Recorded
	traced int
	lost   uint64
}

func (h *heard) Record(ctx context.Context, r reconcile.Recorded) {
	h.all = append(h.all, r)
	if trace.SpanContextFromContext(ctx).IsValid() {
		h.traced++
	}
}

func (h *heard) Lost() uint64 { return h.lost }

// logged is a world with a decision log.
func logged(t *testing.T, change func(w *world, o *reconcile.Options)) (*world, *heard) {
	t.Helper()
	w, h := prepare(t), &heard{}
	w.tracer = sdktrace.NewTracerProvider().Tracer("test")
	w.options = func(o *reconcile.Options) {
		o.DecisionLog = h
		if change != nil {
			change(w, o)
		}
	}
	w.start()
	w.healthy()
	w.breakNow(0.3)
	return w, h
}

// Each decision of the ledger is in the log once, as it was recorded, with the
// bytes that policy saw.
func TestDecisionsAreLogged(t *testing.T) {
	w, h := logged(t, func(_ *world, o *reconcile.Options) { o.Shadow = allowing() })
	w.run(40 * time.Minute)
	var want []ledger.Entry
	for _, e := range w.entries() {
		if e.Kind == ledger.KindDecision {
			want = append(want, e)
		}
	}
	if len(want) < 2 || len(h.all) != len(want) || h.traced != len(want) {
		t.Fatalf("%d decisions were recorded, %d logged, %d with a trace", len(want), len(h.all), h.traced)
	}
	for i, r := range h.all {
		e, d := want[i], w.decided()[i]
		if r.ID != fmt.Sprintf("d%d", e.Seq) || !r.Time.Equal(e.Time) || r.Service != "checkout" {
			t.Errorf("logged %s of %s at %s, the entry is %d at %s", r.ID, r.Service, r.Time, e.Seq, e.Time)
		}
		if r.Decided.Decision.Digest != d.Decision.Digest || r.Decided.Decision.Verdict != d.Decision.Verdict || r.Decided.Shadow == nil || r.Policy == nil || r.Took <= 0 {
			t.Errorf("logged %+v", r)
		}
		in, err := w.store.Blob(t.Context(), d.Decision.InputDigest)
		if err != nil || !bytes.Equal(in, r.Input) {
			t.Errorf("the input of %s is another one: %v", r.ID, err)
		}
	}
}

// Where there was nothing to rule on there is no input, and the policy is known
// all the same: it says what is to be masked.
func TestNothingIsLogged(t *testing.T) {
	w, h := logged(t, nil)
	w.propose = func(propose.Request) propose.Proposal { return propose.Proposal{Kind: propose.KindNone} }
	w.run(3 * time.Minute)
	if len(h.all) == 0 {
		t.Fatal("nothing was logged")
	}
	if r := h.all[0]; r.Input != nil || r.Took != 0 || r.Policy == nil || r.Decided.Decision.Reasons[0].Code != gate.ReasonProposedNone {
		t.Errorf("logged %+v", r)
	}
}

// A pass that records nothing logs nothing.
func TestPlanIsNotLogged(t *testing.T) {
	w, h := logged(t, nil)
	for range 10 {
		if _, err := w.r.Plan(t.Context(), nil, false); err != nil {
			t.Fatal(err)
		}
		w.pass(step30)
	}
	if len(h.all) > 0 {
		t.Errorf("logged %+v", h.all)
	}
}

func TestLostDecisionsAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	_, h := logged(t, func(_ *world, o *reconcile.Options) { o.Registerer = reg })
	h.lost = 3
	if got := samples(t, reg, "setpoint_decision_log_lost_total")[""]; got != 3 {
		t.Errorf("counted %v", got)
	}
}

// Two replicas that decide at once log the entry that each of them wrote, and
// what the other one wrote meanwhile is not their own.
func TestReplicasLogTheirOwn(t *testing.T) {
	w, h := logged(t, func(_ *world, o *reconcile.Options) { o.Process, o.Shared = "a", true })
	other := &heard{}
	b := w.made(func(o *reconcile.Options) { o.Process, o.Shared, o.DecisionLog = "b", true, other })
	w.breakNow(0)
	for range 30 { // Both have seen it well.
		w.r.Sweep(t.Context())
		b.Sweep(t.Context())
		w.pass(step30)
	}
	w.breakNow(0.3)
	within := false
	w.rule = func([]byte) gate.Ruling {
		if within {
			return gate.Ruling{Revision: "test", Deny: rules("b")}
		}
		within = true // b decides after a has folded the ledger and before a appends.
		b.Sweep(t.Context())
		within = false
		return gate.Ruling{Revision: "test", Deny: rules("a")}
	}
	for range 20 {
		w.r.Sweep(t.Context())
		w.pass(step30)
	}
	seen := map[string]bool{}
	for name, log := range map[string]*heard{"a": h, "b": other} {
		for _, r := range log.all {
			if seen[r.ID] || r.Decided.Decision.Ruling.Deny[0].Reason != name {
				t.Errorf("%s logged %s with %v", name, r.ID, r.Decided.Decision.Ruling.Deny)
			}
			seen[r.ID] = true
		}
	}
	if len(seen) != len(w.decided()) || len(h.all) == 0 || len(other.all) == 0 {
		t.Errorf("a logged %d and b %d of %d decisions", len(h.all), len(other.all), len(w.decided()))
	}
}
