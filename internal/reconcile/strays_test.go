package reconcile

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// stuck hangs until it is released, whatever its context says.
type stuck struct{ release chan struct{} }

func (s stuck) Evaluate(context.Context, []byte) gate.Ruling {
	<-s.release
	return gate.Ruling{Revision: "stuck"}
}
func (s stuck) Revision() string   { return "stuck" }
func (s stuck) DataDigest() string { return "" }
func (s stuck) Pack() []byte       { return nil }

// A shadow policy that never ends costs each pass a bounded time, and the
// process a bounded number of goroutines.
func TestStraysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &Reconciler{}, stuck{make(chan struct{})}
		for range maxStrays {
			began := time.Now()
			got := r.shadowRuling(t.Context(), s, nil)
			if took := time.Since(began); took != shadowWait || got.Revision != "stuck" || !strings.HasPrefix(got.Fault, gate.FaultTimeout) {
				t.Fatalf("took %s, %+v", took, got)
			}
		}
		began := time.Now()
		if got := r.shadowRuling(t.Context(), s, nil); time.Since(began) != 0 || !strings.Contains(got.Fault, "have not ended") {
			t.Errorf("one more was waited for %s: %+v", time.Since(began), got)
		}
		close(s.release)
		synctest.Wait()
		if got := r.shadowRuling(t.Context(), s, nil); got.Fault != "" || r.strays.Load() != 0 {
			t.Errorf("after all ended: %+v, %d strays", got, r.strays.Load())
		}
	})
}

// A pass that is stopped waits for no shadow.
func TestStoppedShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, s, began := &Reconciler{}, stuck{make(chan struct{})}, time.Now()
		defer close(s.release)
		if got := r.shadowRuling(ctx, s, nil); got.Fault == "" || time.Since(began) != 0 {
			t.Errorf("waited %s: %+v", time.Since(began), got)
		}
	})
}
