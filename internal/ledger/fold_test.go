package ledger_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// TestApplyIsAllOrNothing: an entry that cannot be read changes nothing.
func TestApplyIsAllOrNothing(t *testing.T) {
	c := everyKind(t)
	before := c.state.Clone()
	for name, change := range map[string]struct {
		kind ledger.Kind
		body string
		want error
	}{
		"unknown kind":  {"weather", `{}`, ledger.ErrUnknownKind},
		"unknown field": {ledger.KindGap, `{"why":"x","until":1}`, ledger.ErrUnknownKind},
		"no JSON":       {ledger.KindGap, `{"why":`, ledger.ErrCorrupt},
		"wrong type":    {ledger.KindGap, `{"why":1}`, ledger.ErrCorrupt},
		"two values":    {ledger.KindGap, `{} {}`, ledger.ErrCorrupt},
		"empty":         {ledger.KindGap, ``, ledger.ErrCorrupt},
		"invalid":       {ledger.KindAck, `{"page":"","by":""}`, ledger.ErrCorrupt},
		"first again":   {ledger.KindInit, `{"version":1,"by":""}`, ledger.ErrCorrupt},
	} {
		e := ledger.Entry{Seq: before.Head.Seq + 1, Prev: before.Head.Hash, Time: minute(99), Kind: change.kind, Body: json.RawMessage(change.body)}
		e.Hash = rehashed(e)
		if err := c.state.Apply(e); !errors.Is(err, change.want) {
			t.Errorf("%s: got %v, want %v", name, err, change.want)
		}
		if !reflect.DeepEqual(before, c.state) {
			t.Fatalf("%s: the state changed", name)
		}
	}
	old := ledger.Entry{Seq: before.Head.Seq + 1, Prev: before.Head.Hash, Time: minute(1), Kind: ledger.KindGap, Body: json.RawMessage(`{"why":""}`)}
	old.Hash = rehashed(old)
	if err := c.state.Apply(old); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("an entry older than the one before gave %v", err)
	}
}

// TestSharedState has passes keep what they read while the state moves on; the
// race detector says whether that was safe.
func TestSharedState(t *testing.T) {
	es := everyKind(t).entries
	s, lock := ledger.NewState(), sync.RWMutex{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				lock.RLock()
				sv, _ := s.Service("checkout")
				clone := s.Clone()
				head := s.Head
				lock.RUnlock()
				for _, key := range sv.Effects {
					if clone.Effects[key].Service != sv.Name {
						t.Error("an effect of another service")
					}
				}
				if clone.Head != head || int(head.Seq) < len(clone.DecisionOrder) {
					t.Error("the clone moved on")
				}
				_, _, _ = clone.Charges(), sv.Windows[windowAt(0)], clone.Suspended("checkout", "scale", clone.Time)
				if int(head.Seq) < len(es) {
					if err := clone.Apply(es[head.Seq]); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for _, e := range es {
		lock.Lock()
		if err := s.Apply(e); err != nil {
			t.Error(err)
		}
		lock.Unlock()
	}
	wg.Wait()
}

func FuzzApply(f *testing.F) {
	base := everyKind(f)
	for _, e := range base.entries {
		f.Add(string(e.Kind), e.Service, []byte(e.Body))
	}
	f.Add("gap", "", []byte(`{"why":1}`))
	f.Fuzz(func(t *testing.T, kind, service string, body []byte) {
		before, s := base.state, base.state.Clone()
		e := ledger.Entry{
			Seq: before.Head.Seq + 1, Prev: before.Head.Hash, Time: before.Time,
			Kind: ledger.Kind(kind), Service: service, Body: body,
		}
		e.Hash = rehashed(e)
		if err := s.Apply(e); err != nil {
			if !errors.Is(err, ledger.ErrCorrupt) && !errors.Is(err, ledger.ErrUnknownKind) {
				t.Errorf("an error of no class: %v", err)
			}
			if !reflect.DeepEqual(before, s) {
				t.Error("a refused entry changed the state")
			}
			return
		}
		b, err := ledger.Decode(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ledger.Link(before.Head, before.Time, ledger.Draft{Kind: e.Kind, Service: service, Body: b})
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		b2, err := ledger.Decode(again)
		// No parameters may be written as an empty list of them.
		diff := cmp.Diff(b, b2, cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true }))
		if err != nil || diff != "" {
			t.Errorf("what was read differs from what was written of it, %v:\n%s", err, diff)
		}
	})
}
