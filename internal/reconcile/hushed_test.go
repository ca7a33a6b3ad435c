package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// hungSilencer is an Alertmanager that takes a connection and never answers.
type hungSilencer struct{}

func (hungSilencer) Silences(context.Context, string) ([]gate.Hold, error) {
	return nil, errors.New("does not answer")
}

func (hungSilencer) SilencesFor(ctx context.Context, _ escalate.Page) ([]gate.Hold, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// hasty is a receiver that keeps to the time it is given, as an HTTP client does.
type hasty struct{ *pager }

func (h hasty) Send(ctx context.Context, p escalate.Page, ref string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return h.pager.Send(ctx, p, ref)
}

// TestHungAlertmanagerHushesNobody: who cannot be asked silences no page, and
// does not use up the time of the receiver that has to wake somebody.
func TestHungAlertmanagerHushesNobody(t *testing.T) {
	w := missed(t, func(w *world) escalate.Receiver { return hasty{w.pager} })
	if len(w.pager.open()) != 1 {
		t.Errorf("pages: %q", w.pager.reasons())
	}
}

// slowPager uses up whatever time it is given.
type slowPager struct{ *pager }

func (slowPager) Send(ctx context.Context, _ escalate.Page, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// TestHungReceiverIsRecorded: that a receiver failed by taking too long is in
// the ledger, where its successor's turn is decided.
func TestHungReceiverIsRecorded(t *testing.T) {
	missed(t, func(w *world) escalate.Receiver { return slowPager{w.pager} })
}

// missed is a world whose service is missed for so long that somebody must be
// told, with two Alertmanagers that hang; one delivery or more is recorded.
func missed(t *testing.T, to func(*world) escalate.Receiver) *world {
	t.Helper()
	w := prepare(t)
	w.options = func(o *reconcile.Options) {
		o.Silencers = []reconcile.Silencer{hungSilencer{}, hungSilencer{}}
		o.Receivers = []escalate.Receiver{to(w)}
	}
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		w.start()
		w.healthy()
		w.breakNow(0.5)
		w.run(24 * time.Minute)
		if n := w.kinds()[ledger.KindDelivery]; n == 0 {
			t.Error("no delivery is recorded")
		}
	})
	return w
}
