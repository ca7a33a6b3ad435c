package executetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Bench is one executor with one real target.
type Bench struct {
	Executor execute.Executor
	// Action is on the target, with Parameters that satisfy it.
	Action     spec.Action
	Parameters propose.Parameters
	// Fault sets how the target behaves; false skips what it cannot do.
	Fault func(Mode) bool
	// Connecting sets what happens while the executor reaches for the target:
	// hook runs after that began and before it is done, with the context that
	// bounds it. It is nil where nothing is reached for before the send, as for
	// a program.
	Connecting func(hook func(context.Context))
	// Journal is the target's own record.
	Journal func() []Record
}

// Factory makes a fresh bench. Everything it stamps comes from now.
type Factory func(t *testing.T, now func() time.Time) Bench

// Run is the contract of an executor.
func Run(t *testing.T, factory Factory) {
	t.Run("Refuses", func(t *testing.T) { refuses(t, factory) })
	t.Run("LastMoment", func(t *testing.T) { lastMoment(t, factory) })
	t.Run("Receipts", func(t *testing.T) { receipts(t, factory) })
	t.Run("OnePermitOneSend", func(t *testing.T) { oneSend(t, factory) })
	t.Run("Observe", func(t *testing.T) { observes(t, factory) })
}

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// clock stands still until it is set, so that receipts are exact.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func refuses(t *testing.T, factory Factory) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	cases := map[string]struct {
		reason string
		ctx    context.Context
		permit func(*testing.T, Bench) gate.Permit
		now    time.Time
		want   error
	}{
		"Zero": {
			reason: "nobody minted the zero permit", ctx: context.Background(), now: start, want: execute.ErrNoPermit,
			permit: func(*testing.T, Bench) gate.Permit { return gate.Permit{} },
		},
		"AtExpiry": {
			reason: "the instant of the expiry is too late", ctx: context.Background(), now: start.Add(TTL), want: execute.ErrNoPermit,
			permit: func(t *testing.T, b Bench) gate.Permit { return Permit(t, b.Action, b.Parameters, start) },
		},
		"Foreign": {
			reason: "a permit for another executor is none here", ctx: context.Background(), now: start, want: execute.ErrNoPermit,
			permit: func(t *testing.T, b Bench) gate.Permit {
				b.Action.Uses = "other.verb"
				return Permit(t, b.Action, b.Parameters, start)
			},
		},
		"Cancelled": {
			reason: "a context that ended before the send sends nothing", ctx: cancelled, now: start, want: context.Canceled,
			permit: func(t *testing.T, b Bench) gate.Permit { return Permit(t, b.Action, b.Parameters, start) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clock{now: tc.now}
			b := factory(t, c.read)
			r, err := b.Executor.Execute(tc.ctx, tc.permit(t, b), nil)
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.want)
			}
			if r.Effect != execute.Failed || !r.At.Equal(tc.now) || r.Detail == "" {
				t.Errorf("%s: receipt %+v, want failed, now, with words", tc.reason, r)
			}
			if n := len(b.Journal()); n != 0 {
				t.Errorf("%s: the target saw %d requests", tc.reason, n)
			}
		})
	}
}

func receipts(t *testing.T, factory Factory) {
	cases := map[Mode]struct {
		reason string
		want   execute.Effect
		// effects is what the target's journal must hold.
		effects int
		// later: the effect counts as applied only after maxLateness.
		later bool
	}{
		ModeOK:          {reason: "done", want: execute.Applied, effects: 1},
		ModeNoOp:        {reason: "the target says that nothing changed", want: execute.NoOp},
		ModeFailed:      {reason: "the target says that it did not do it", want: execute.Failed},
		ModeNotNow:      {reason: "the target says not now", want: execute.NotNow},
		Mode202:         {reason: "accepted settles later", want: execute.Applied, effects: 1, later: true},
		ModeDropReply:   {reason: "a lost reply proves nothing", want: execute.InDoubt, effects: 1},
		ModeDropRequest: {reason: "neither when it did not happen", want: execute.InDoubt},
		ModeResetBody:   {reason: "half an answer is none", want: execute.InDoubt, effects: 1},
		ModeHang:        {reason: "the deadline after the send proves nothing", want: execute.InDoubt, effects: 1},
		ModeLie:         {reason: "only measurement can tell", want: execute.Applied},
	}
	for mode, tc := range cases {
		t.Run(string(mode), func(t *testing.T) {
			c := &clock{now: start}
			b := factory(t, c.read)
			if !b.Fault(mode) {
				t.Skipf("the target cannot do %s", mode)
			}
			if mode == ModeHang {
				// Waited for, and long enough to be connected on a busy machine.
				b.Action.Timeout = time.Second
			}
			p := Permit(t, b.Action, b.Parameters, start)
			r, err := b.Executor.Execute(t.Context(), p, nil)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := execute.Receipt{Effect: tc.want, At: start, Detail: r.Detail}
			if tc.want == execute.Applied {
				want.AppliedAt = start
			}
			if tc.later {
				want.AppliedAt = start.Add(b.Action.MaxLateness)
			}
			if diff := cmp.Diff(want, r); diff != "" || r.Detail == "" {
				t.Errorf("%s: receipt (detail %q), -want +got:\n%s", tc.reason, r.Detail, diff)
			}
			checkJournal(t, b.Journal(), p, tc.effects)
		})
	}
}

// checkJournal: one request, with the permit's key and digest, and as many
// effects as the mode makes.
func checkJournal(t *testing.T, js []Record, p gate.Permit, effects int) {
	t.Helper()
	if len(js) != 1 {
		t.Fatalf("the target saw %d requests, want 1: %+v", len(js), js)
	}
	if js[0].Key != string(p.Key()) || js[0].Digest != p.Digest() {
		t.Errorf("the target saw key %q digest %q, the permit says %q %q", js[0].Key, js[0].Digest, p.Key(), p.Digest())
	}
	got := 0
	for _, j := range js {
		if j.Applied {
			got++
		}
	}
	if got != effects {
		t.Errorf("%d effects in the target's journal, want %d", got, effects)
	}
}

// oneSend: an executor remembers no keys (the ledger's claim does), but a
// permit that was sent is still only valid until its expiry.
func oneSend(t *testing.T, factory Factory) {
	c := &clock{now: start}
	b := factory(t, c.read)
	p := Permit(t, b.Action, b.Parameters, start)
	if _, err := b.Executor.Execute(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	c.now = p.Expires()
	if _, err := b.Executor.Execute(t.Context(), p, nil); !errors.Is(err, execute.ErrNoPermit) {
		t.Errorf("a permit was sent again after its expiry: %v", err)
	}
	checkJournal(t, b.Journal(), p, 1)
}

func observes(t *testing.T, factory Factory) {
	c := &clock{now: start}
	b := factory(t, c.read)
	p := Permit(t, b.Action, b.Parameters, start)
	first := b.Executor.Observe(t.Context(), b.Action, p.Key())
	if !first.Known || first.KeyKnown || first.Result != "" {
		t.Errorf("before the send: %+v, want an answer that does not know the key", first)
	}
	if again := b.Executor.Observe(t.Context(), b.Action, p.Key()); !cmp.Equal(first, again) {
		t.Errorf("Observe changed what it observes:\n%s", cmp.Diff(first, again))
	}
	if n := len(b.Journal()); n != 0 {
		t.Errorf("Observe left %d requests in the journal", n)
	}
	if !b.Fault(ModeDropReply) {
		t.Skip("the target cannot lose a reply")
	}
	if r, err := b.Executor.Execute(t.Context(), p, nil); err != nil || r.Effect != execute.InDoubt {
		t.Fatalf("lost reply: %+v, %v", r, err)
	}
	after := b.Executor.Observe(t.Context(), b.Action, p.Key())
	if !after.Known || !after.KeyKnown || after.Result != execute.Applied {
		t.Errorf("after the lost reply: %+v, want known and applied", after)
	}
	checkJournal(t, b.Journal(), p, 1)
}
