package executetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

var errFrozen = errors.New("frozen by the test")

// moment is what happens around the last look of one send.
type moment struct {
	clock  *clock
	frozen bool
	// events are what happened, in order: connecting, ready.
	events []string
}

func (m *moment) ready() error {
	m.events = append(m.events, "ready")
	if m.frozen {
		return errFrozen
	}
	return nil
}

// lastMoment: reaching the target takes time, and what happens in that time
// must stop the send. Where nothing is reached for, the last look remains.
func lastMoment(t *testing.T, factory Factory) {
	both := []string{"connecting", "ready"}
	cases := map[string]struct {
		reason string
		// before is how long before the expiry the send begins.
		before     time.Duration
		connecting func(context.Context, *moment)
		ready      func(*moment) error
		want       error
		events     []string
	}{
		"Ready": {
			reason: "what is ready is sent, and asked once", before: TTL,
			ready: (*moment).ready, events: both,
		},
		"Refuses": {
			reason: "what is not ready when the connection stands is not sent", before: TTL,
			ready: func(m *moment) error { m.frozen = true; return m.ready() }, want: errFrozen, events: both,
		},
		"FrozenWhileConnecting": {
			reason: "a freeze that is acknowledged while the target is slow to accept stops the send", before: TTL,
			connecting: func(_ context.Context, m *moment) { m.frozen = true },
			ready:      (*moment).ready, want: errFrozen, events: both,
		},
		"ExpiresWhileConnecting": {
			reason: "a permit that expires while the target is slow to accept is none", before: TTL,
			connecting: func(_ context.Context, m *moment) { m.clock.now = start.Add(TTL) },
			ready:      (*moment).ready, want: execute.ErrNoPermit, events: both,
		},
		"ExpiresWithoutReady": {
			reason: "nobody to ask makes no permit last longer", before: TTL,
			connecting: func(_ context.Context, m *moment) { m.clock.now = start.Add(TTL) },
			want:       execute.ErrNoPermit, events: both[:1],
		},
		"ExpiresWhileAsked": {
			reason: "the answer may take its time, so the expiry is looked at after it", before: TTL,
			ready: func(m *moment) error { m.clock.now = start.Add(TTL); return m.ready() },
			want:  execute.ErrNoPermit, events: both,
		},
		"HangsPastExpiry": {
			reason: "a target that never accepts holds the action until the expiry at most", before: 50 * time.Millisecond,
			connecting: func(ctx context.Context, _ *moment) { <-ctx.Done() },
			ready:      (*moment).ready, want: execute.ErrNoPermit, events: both[:1],
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &moment{clock: &clock{now: start.Add(TTL - tc.before)}}
			b := factory(t, m.clock.read)
			events := tc.events
			switch {
			case b.Connecting != nil:
				b.Connecting(func(ctx context.Context) {
					m.events = append(m.events, "connecting")
					if tc.connecting != nil {
						tc.connecting(ctx, m)
					}
				})
			case tc.connecting != nil:
				t.Skip("nothing is reached for before the send")
			default:
				events = events[1:]
			}
			var ready func() error
			if tc.ready != nil {
				ready = func() error { return tc.ready(m) }
			}
			p := Permit(t, b.Action, b.Parameters, start)
			r, err := b.Executor.Execute(t.Context(), p, ready)
			if diff := cmp.Diff(events, m.events); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if tc.want == nil {
				if err != nil || r.Effect != execute.Applied {
					t.Fatalf("%s: %+v, %v", tc.reason, r, err)
				}
				checkJournal(t, b.Journal(), p, 1)
				return
			}
			if !errors.Is(err, tc.want) || !errors.Is(err, execute.ErrNoPermit) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.want)
			}
			if r.Effect != execute.Failed || r.Detail == "" || !r.AppliedAt.IsZero() {
				t.Errorf("%s: receipt %+v, want failed, with words", tc.reason, r)
			}
			if n := len(b.Journal()); n != 0 {
				t.Errorf("%s: the target saw %d requests", tc.reason, n)
			}
		})
	}
}
