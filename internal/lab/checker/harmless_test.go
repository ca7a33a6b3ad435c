package checker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// TestNothingIsNamedThatMayBe: a checker that cries wolf is switched off.
func TestNothingIsNamedThatMayBe(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(h *history)
		want   checker.Report // figures that differ from the good history's
	}{
		"stopped at the last look": {"a freeze between start and send stops it", func(h *history) {
			h.put("after.s3", ledger.KindFreeze, "", frozenAt(71.1))
			h.put("sent.s3", ledger.KindThaw, "", ledger.Thaw{ID: "f0", By: "os:alice"})
		}, checker.Report{Requests: 6, Effects: 5}},
		"thawed before it was recorded": {"a file that is copied late freezes nothing", func(h *history) {
			h.put("before.k1", ledger.KindThaw, "", ledger.Thaw{ID: "f0", By: "os:alice"})
			h.put("after.k1", ledger.KindFreeze, "", frozenAt(1.1))
		}, checker.Report{Requests: 6, Effects: 5}},
		"another's freeze": {"a freeze of one service is not another's", func(h *history) {
			h.put("after.k1", ledger.KindFreeze, "search", ledger.Freeze{ID: "f0", Service: "search", By: "os:a", Until: minute(60)})
		}, checker.Report{Requests: 6, Effects: 5}},
		"delivered twice": {"a network may repeat what was sent once", func(h *history) {
			h.o.DuplicateDelivery = true
			h.journal = append(h.journal, *h.record(k1.key()))
			unapplied(execute.Applied)(&h.journal[len(h.journal)-1])
		}, checker.Report{Requests: 7, Effects: 5}},
		"a stranger": {"what is not signed is not ours", func(h *history) {
			h.request(action{service: "checkout", window: 200}, unapplied(execute.None), func(r *executetest.Record) { r.Signed = false })
		}, checker.Report{Requests: 6, Effects: 5}},
		"a probe": {"a dry run does nothing", func(h *history) {
			h.request(action{service: "checkout", window: 200}, unapplied(execute.None), func(r *executetest.Record) { r.DryRun = true })
		}, checker.Report{Requests: 6, Effects: 5}},
		"another controller": {"what others change has no key", func(h *history) {
			h.journal = append(h.journal, executetest.Record{Foreign: true, Of: 1, Changed: map[string]any{"replicas": 3}})
		}, checker.Report{Requests: 6, Effects: 5}},
		"a lie": {"what is only said to be done is what was received", func(h *history) {
			unapplied(execute.Applied)(h.record(k1.key()))
		}, checker.Report{Requests: 6, Effects: 4}},
		"a person errs": {"a person's landed is a person's word", func(h *history) { h.unsend(k2.key()) }, checker.Report{Requests: 5, Effects: 4}},
		"after the horizon": {"no ledger can know what an actuator does against its word", func(h *history) {
			h.journal = append(h.journal, *h.record(s4.key()))
			rec := &h.journal[len(h.journal)-1]
			rec.Of, rec.Result, rec.Applied, rec.Late, rec.Time = 9, execute.Applied, true, true, minute(85)
		}, checker.Report{Requests: 6, Effects: 6, AfterHorizon: 1}},
		"under way": {"a request takes a moment", func(h *history) {
			h.record(k1.key()).Time = minute(1.5).Add(900 * time.Millisecond)
		}, checker.Report{Requests: 6, Effects: 5}},
		"no times": {"an actuator without a clock cannot be late", func(h *history) {
			for i := range h.journal {
				h.journal[i].Time = time.Time{}
			}
		}, checker.Report{Requests: 6, Effects: 5}},
		"clocks apart": {"a little skew is named in the options", func(h *history) {
			h.o.Skew = 5 * time.Second
			h.record(k1.key()).Time = minute(1.1).Add(-5 * time.Second)
		}, checker.Report{Requests: 6, Effects: 5}},
		"aged out": {"a charge leaves after a period", func(h *history) {
			h.o.Budget = checker.Budget{Period: time.Hour, Capacity: 2}
		}, checker.Report{Requests: 6, Effects: 5}},
		"met, undo": {"an undo runs when a neighbour was hurt", func(h *history) {
			h.put("before.k3", ledger.KindState, "checkout", ledger.StateChange{To: compare.Met})
			h.put("after.k3", ledger.KindState, "checkout", ledger.StateChange{To: compare.Breached})
		}, checker.Report{Requests: 6, Effects: 5}},
		"a deny too late": {"what was started cannot be denied", func(h *history) {
			h.put("sending.k2", ledger.KindAnswer, "checkout", deny(h))
		}, checker.Report{Requests: 6, Effects: 5}},
		"a stranger's deny": {"somebody who was not asked stops nothing", func(h *history) {
			a := deny(h)
			a.Satisfies = nil
			h.put("after.k2", ledger.KindAnswer, "checkout", a)
		}, checker.Report{Requests: 6, Effects: 5}},
		"lowered": {"a mark that ran ahead is set back", func(h *history) {
			ahead := action{name: "ahead", service: "checkout", at: 140, window: 900, verdict: gate.Auto}
			h.whole(ahead)
			h.add("back", 150, ledger.KindLowered, "checkout",
				ledger.Lowered{To: gate.WindowAt(minute(150), 10*time.Minute).String(), By: "os:a", Reason: "r"})
			h.whole(action{name: "now", service: "checkout", at: 151, window: 150, verdict: gate.Auto})
		}, checker.Report{Requests: 6, Effects: 5}},
		"reset": {"a person's reset makes room", func(h *history) {
			edit(h, "outcome.k1", func(o *ledger.Outcome) { o.Judgement.Outcome, o.Cost = compare.OutcomeWorsened, 2 })
			h.put("before.k4", ledger.KindReset, "checkout", ledger.Reset{Action: "scale", By: "os:alice", Reason: "r"})
		}, checker.Report{Requests: 6, Effects: 5}},
		"unknown and recovering": {"a recovery that was under way is free", func(h *history) {
			edit(h, "outcome.k1", func(o *ledger.Outcome) { o.Judgement.Recovering, o.Cost = true, 0 })
		}, checker.Report{Requests: 6, Effects: 5}},
		"changed mind": {"whoever approved may still deny, and then nothing is claimed", func(h *history) {
			h.put("alice.k2", ledger.KindAnswer, "checkout", approve.Answer{Ticket: "t999", By: "os:alice", At: minute(12), Satisfies: []int{0}})
			for _, name := range []string{"claim.k2", "start.k2", "receipt.k2", "unknown.k2", "found.k2", "outcome.k2"} {
				h.drop(name)
			}
			h.unsend(k2.key())
			h.undoes("")
		}, checker.Report{Requests: 5, Effects: 4}},
	}
	for name, tc := range cases {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			h := good(t)
			tc.change(h)
			h.o.Acknowledged = nil
			r := h.check()
			if !r.Clean() {
				t.Errorf("%s, and yet: %v", tc.reason, r.Violations)
			}
			got := checker.Report{Requests: r.Requests, Effects: r.Effects, DoubleEffects: r.DoubleEffects, AfterHorizon: r.AfterHorizon}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoJournal: without one, only the ledger is checked.
func TestNoJournal(t *testing.T) {
	h := good(t)
	h.journal = nil
	r := h.check()
	if !r.Clean() || r.Requests != 0 {
		t.Errorf("%d requests, %v", r.Requests, r.Violations)
	}
	h.journal = []executetest.Record{}
	if got := h.check().Named(); !cmp.Equal(got, []checker.Invariant{checker.JournalAgrees}) {
		t.Errorf("an actuator to which nothing came: %v", got)
	}
}

// TestTamperedChain: what was changed without its hashes shows.
func TestTamperedChain(t *testing.T) {
	relink := func(x *ledger.Exported, i int, prev ledger.Position, d ledger.Draft) {
		e, err := ledger.Link(prev, x.Entries[i].Time, d)
		if err != nil {
			t.Fatal(err)
		}
		x.Entries = append(x.Entries[:i:i], e)
	}
	gap := ledger.Draft{Kind: ledger.KindGap, Body: ledger.Gap{Why: "x"}}
	cases := map[string]struct {
		change func(x *ledger.Exported)
		want   string // part of the text
	}{
		"body":    {func(x *ledger.Exported) { x.Entries[2].Body = []byte(`{"set":"other","services":{}}`) }, "entry was changed"},
		"time":    {func(x *ledger.Exported) { x.Entries[2].Time = x.Entries[2].Time.Add(time.Second) }, "entry was changed"},
		"unique":  {func(x *ledger.Exported) { x.Entries[2].Unique = "x" }, "entry was changed"},
		"service": {func(x *ledger.Exported) { x.Entries[2].Service = "other" }, "entry was changed"},
		"dropped": {func(x *ledger.Exported) { x.Entries = append(x.Entries[:3:3], x.Entries[4:]...) }, "stands where 4 should"},
		"swapped": {func(x *ledger.Exported) { x.Entries[3], x.Entries[4] = x.Entries[4], x.Entries[3] }, "stands where 4 should"},
		"kind":    {func(x *ledger.Exported) { x.Entries[5].Kind = "storm" }, "cannot be read"},
		"forked":  {func(x *ledger.Exported) { relink(x, 5, ledger.Position{Seq: 5, Hash: "other"}, gap) }, "does not follow entry 5"},
		"no init": {func(x *ledger.Exported) { begin(&x.Entries[0]) }, "a chain begins with init"},
	}
	for name, tc := range cases {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			h := good(t)
			x := h.export()
			tc.change(&x)
			r := checker.Check(x, h.journal, checker.Options{})
			if !slices.ContainsFunc(r.Violations, func(v checker.Violation) bool {
				return v.Invariant == checker.ChainWhole && strings.Contains(v.Text, tc.want)
			}) {
				t.Errorf("no %q in %v", tc.want, r.Violations)
			}
		})
	}
	if named := checker.Corrupt(ledger.ErrCorrupt).Named(); !cmp.Equal(named, []checker.Invariant{checker.ChainWhole}) {
		t.Errorf("a broken export was named %v", named)
	}
}

// begin makes the first entry a gap whose hash is right, as the definition in
// the ledger's documentation has it.
func begin(e *ledger.Entry) {
	e.Kind, e.Body = ledger.KindGap, []byte(`{"why":"x"}`)
	text := ""
	for _, f := range []string{"setpoint.dev/ledger/v1", "1", "", e.Time.Format(time.RFC3339Nano), "gap", "", "", string(e.Body)} {
		text += fmt.Sprintf("%d:%s\n", len(f), f)
	}
	sum := sha256.Sum256([]byte(text))
	e.Hash = hex.EncodeToString(sum[:])
}

// TestReportsAddUp: many histories are told of as one.
func TestReportsAddUp(t *testing.T) {
	h := good(t)
	clean := h.check()
	h.journal = append(h.journal, *h.effectOf(k4.key()))
	sum := checker.Report{}.Add(clean).Add(h.check()).Add(checker.Report{})
	if sum.Keys != 2*clean.Keys || sum.Effects != 2*clean.Effects+1 || sum.DoubleEffects != 1 || len(sum.Violations) != 1 ||
		!cmp.Equal(sum.Named(), []checker.Invariant{checker.OneEffect}) || sum.Checked[0].Instances != 2*clean.Checked[0].Instances {
		t.Errorf("%+v", sum)
	}
}
