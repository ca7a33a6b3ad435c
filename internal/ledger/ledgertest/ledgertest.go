// Package ledgertest is the contract of a ledger.Store. It takes a way to make
// stores and gives test failures. Every implementation runs it, so that the
// passes may rely on one behaviour whatever the store.
package ledgertest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Fresh makes a new ledger that holds only its first entry and returns a
// function that opens it. That function may be called again once the store
// that it gave was closed.
type Fresh func(t *testing.T) (open func() ledger.Store)

// Run holds a store against the contract.
func Run(t *testing.T, fresh Fresh) {
	t.Helper()
	tests := map[string]func(*testing.T, Fresh){
		"AppendGivesWhatReadGives":   appendRead,
		"PlanSeesEntriesSince":       planSees,
		"PlanErrorAppendsNothing":    planError,
		"PlanPanicAppendsNothing":    planPanic,
		"EmptyPlanGivesSince":        emptyPlan,
		"BatchIsAllOrNothing":        batch,
		"UniqueOnce":                 unique,
		"UnknownPositionIsCorrupt":   position,
		"BlobsByDigest":              blobs,
		"ReadPages":                  pages,
		"CancelledContext":           cancelled,
		"ConcurrentAppendsSerialise": concurrent,
		"ReopenKeepsEverything":      reopen,
		"ClosedStore":                closed,
		"TimesNeverDecrease":         times,
		"NewestOfAKind":              newest,
		"DroppedBlobs":               dropped,
		"ExportRoundTrip":            exported,
		"BeginsFromACheckpoint":      checkpoints,
		"ClockIsThatOfEntries":       clock,
		"LoweredKeepsOneTime":        loweredTimes,
		"Model":                      model,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, fresh) })
	}
}

// Gap is a small draft that says which of several it is.
func Gap(why string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindGap, Body: ledger.Gap{Why: why}}
}

// Drafts is the plan that appends the given drafts whatever was appended since.
func Drafts(ds ...ledger.Draft) ledger.Plan {
	return func([]ledger.Entry) ([]ledger.Draft, error) { return ds, nil }
}

// appended appends what must succeed.
func appended(t *testing.T, s ledger.Store, after ledger.Position, plan ledger.Plan) []ledger.Entry {
	t.Helper()
	es, err := s.Append(t.Context(), after, plan)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func page(t *testing.T, s ledger.Store, after uint64, limit int) []ledger.Entry {
	t.Helper()
	es, err := s.Read(t.Context(), after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

// all reads a store whole.
func all(t *testing.T, s ledger.Store) []ledger.Entry {
	t.Helper()
	es, err := readAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func readAll(s ledger.Store) ([]ledger.Entry, error) {
	var es []ledger.Entry
	for after := uint64(0); ; after = es[len(es)-1].Seq {
		page, err := s.Read(context.Background(), after, 100)
		if err != nil || len(page) == 0 {
			return es, err
		}
		es = append(es, page...)
	}
}

func head(es []ledger.Entry) ledger.Position { return es[len(es)-1].Position() }

func same(t *testing.T, what string, want, got []ledger.Entry) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, -want +got:\n%s", what, diff)
	}
}

func opened(t *testing.T, fresh Fresh) ledger.Store {
	t.Helper()
	s := fresh(t)()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func appendRead(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	first := all(t, s)
	if len(first) != 1 || first[0].Kind != ledger.KindInit {
		t.Fatalf("a new ledger holds %v, want its first entry", first)
	}
	got := appended(t, s, head(first), Drafts(Gap("a"), Gap("<b> & ü")))
	if len(got) != 2 {
		t.Fatalf("append gave %d entries, want 2", len(got))
	}
	same(t, "read", append(first, got...), all(t, s))
	if _, err := ledger.Fold(all(t, s)); err != nil {
		t.Errorf("fold: %v", err)
	}
}

func planSees(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	start := head(all(t, s))
	want := appended(t, s, start, Drafts(Gap("a"), Gap("b"), Gap("c")))
	for n := range 4 {
		after, rest := start, want
		if n > 0 {
			after, rest = want[n-1].Position(), want[n:]
		}
		var saw []ledger.Entry
		got := appended(t, s, after, func(since []ledger.Entry) ([]ledger.Draft, error) {
			saw = since
			return nil, nil
		})
		if len(saw) != len(rest) || len(got) != len(rest) {
			t.Fatalf("after %d: plan saw %d and append gave %d entries, want %d", n, len(saw), len(got), len(rest))
		}
		for i := range rest {
			same(t, "plan saw", rest[i:i+1], saw[i:i+1])
			same(t, "append gave", rest[i:i+1], got[i:i+1])
		}
	}
}

var errPlan = errors.New("planned failure")

func planError(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	before := all(t, s)
	got, err := s.Append(t.Context(), head(before), func([]ledger.Entry) ([]ledger.Draft, error) {
		return []ledger.Draft{Gap("a")}, errPlan
	})
	if !errors.Is(err, errPlan) || err.Error() != errPlan.Error() || got != nil {
		t.Errorf("append gave %v, %v, want the plan's error as it is", got, err)
	}
	same(t, "ledger", before, all(t, s))
	appended(t, s, head(before), Drafts(Gap("after")))
}

func planPanic(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	before := all(t, s)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the plan's panic was swallowed")
			}
		}()
		_, _ = s.Append(t.Context(), head(before), func([]ledger.Entry) ([]ledger.Draft, error) { panic("plan") })
	}()
	same(t, "ledger", before, all(t, s))
	appended(t, s, head(before), Drafts(Gap("after")))
}

func emptyPlan(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	start := all(t, s)
	one := appended(t, s, head(start), Drafts(Gap("a")))
	same(t, "since", one, appended(t, s, head(start), Drafts()))
	if got := appended(t, s, head(one), Drafts()); len(got) != 0 {
		t.Errorf("append gave %v after the newest entry, want nothing", got)
	}
	same(t, "ledger", append(start, one...), all(t, s))
}

func batch(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	before := all(t, s)
	named := Gap("b")
	named.Unique = "gap/once"
	bad := map[string]struct {
		reason string
		draft  ledger.Draft
		want   error
	}{
		"unique":  {"a name taken twice in one batch", named, ledger.ErrExists},
		"kind":    {"a kind that does not exist", ledger.Draft{Kind: "weather", Body: ledger.Gap{}}, ledger.ErrUnknownKind},
		"body":    {"the body of another kind", ledger.Draft{Kind: ledger.KindGap, Body: ledger.Ack{}}, nil},
		"invalid": {"a body that could not be folded", ledger.Draft{Kind: ledger.KindPage, Body: ledger.PageBody{}}, nil},
		"init":    {"a second first entry", ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version}}, nil},
	}
	for name, tt := range bad {
		t.Run(name, func(t *testing.T) {
			_, err := s.Append(t.Context(), head(before), Drafts(Gap("a"), named, tt.draft))
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%s: append gave %v, want %v", tt.reason, err, tt.want)
			}
			same(t, "ledger", before, all(t, s))
		})
	}
}

func unique(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	named := func(n string) ledger.Draft { d := Gap(n); d.Unique = n; return d }
	h := head(all(t, s))
	appended(t, s, h, Drafts(named("x"), Gap("no name"), Gap("no name")))
	before := all(t, s)
	if _, err := s.Append(t.Context(), h, Drafts(Gap("y"), named("x"))); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a taken name gave %v, want %v", err, ledger.ErrExists)
	}
	same(t, "ledger", before, all(t, s))
	appended(t, s, h, Drafts(named("X"), named("x ")))
}

func position(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	h := head(all(t, s))
	appended(t, s, h, Drafts(Gap("a")))
	before := all(t, s)
	for reason, p := range map[string]ledger.Position{
		"beyond the end":              {Seq: 99, Hash: h.Hash},
		"on another chain":            {Seq: 1, Hash: head(before).Hash},
		"the newest, another's hash":  {Seq: 2, Hash: h.Hash},
		"the beginning, with a hash ": {Seq: 0, Hash: h.Hash},
	} {
		if _, err := s.Append(t.Context(), p, Drafts(Gap("b"))); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("a position %s gave %v, want %v", reason, err, ledger.ErrCorrupt)
		}
	}
	same(t, "ledger", before, all(t, s))
	same(t, "from the beginning", before, appended(t, s, ledger.Position{}, Drafts()))
}
