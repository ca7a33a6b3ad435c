package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// hungStore is a real store whose server has stopped answering.
type hungStore struct {
	ledger.Store
	hung  atomic.Bool
	tried atomic.Int64
}

func (s *hungStore) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	if !s.hung.Load() {
		return s.Store.Append(ctx, after, plan)
	}
	s.tried.Add(1)
	<-time.After(100 * time.Millisecond)
	return nil, errors.New("the server does not answer")
}

// TestHungLedgerIsTriedOnce: passes that waited behind a failed append do not
// hang in turn, and people are told all the same.
func TestHungLedgerIsTriedOnce(t *testing.T) {
	w := prepare(t)
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range 8 {
		svc := one
		svc.Name = fmt.Sprintf("service-%d", i)
		svc.Remediation.Service = svc.Name
		svc.Objectives = append([]spec.Objective(nil), one.Objectives...)
		w.set.Services = append(w.set.Services, svc)
	}
	var store *hungStore
	w.options = func(o *reconcile.Options) {
		store = &hungStore{Store: o.Store}
		o.Store = store
	}
	w.cfg.Limits.StormMin = 100 // the storm brake would ask no policy
	w.start()
	w.r.Sweep(t.Context())
	w.pass(step30)
	w.r.Sweep(t.Context())
	// The server stops answering when all of them are about to write.
	var arrived sync.WaitGroup
	arrived.Add(len(w.set.Services))
	w.rule = func([]byte) gate.Ruling {
		arrived.Done()
		arrived.Wait()
		store.hung.Store(true)
		return gate.Ruling{Revision: "test"}
	}
	w.breakNow(0.5)
	w.pass(10 * time.Minute)
	w.r.Sweep(t.Context())
	if n := store.tried.Load(); n > 3 {
		t.Errorf("a ledger that does not answer was tried %d times in one sweep", n)
	}
	if _, ok := w.pager.open()["ledger"]; !ok {
		t.Errorf("nobody is told: %+v", w.pager.open())
	}
}
