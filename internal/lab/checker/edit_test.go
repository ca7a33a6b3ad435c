package checker_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// isSpare: the entry says nothing.
func isSpare(h *history, i int) bool { return h.steps[i].draft.Kind == ledger.KindGap }

// dropping are the entries whose loss breaks no invariant, with the reason. The
// loss of any other must be noticed.
var dropping = map[string]string{
	"documents":    "no invariant here is about documents",
	"asked.k1":     "rules are asked without an entry",
	"proposed.k1":  "the decision carries the proposal",
	"undo.k3":      "the decision carries the proposal",
	"ticket.s1":    "nothing was claimed by it",
	"denied.s1":    "nothing was claimed by it",
	"receipt.k2":   "a crash before the receipt leaves the same doubt",
	"unknown.k2":   "a person may settle without waiting for unknown",
	"freeze":       "nothing was started in it",
	"freeze.until": "nothing was started in it",
	"checkpoint":   "it decides nothing",
	"ceiling":      "no invariant here is about ceilings",
	"outcome.k5":   "nothing is claimed after it, so an outcome may still be awaited",
	"reset":        "nothing is claimed after it",
	"lowered":      "no earlier window is claimed after it",
	"adopted":      "only a later window is claimed after it",
	"page":         "no invariant here is about pages",
	"void.last":    "nothing is claimed after it, so it may still be claimed",
	"checkout.met": "nothing is claimed after it",
	"recovered":    "no invariant here is about episodes",
}

func TestLossOfAnEntryIsNoticed(t *testing.T) {
	got := map[string]string{}
	for i := range good(t).steps {
		h := good(t)
		h.o.Acknowledged = nil
		if isSpare(h, i) {
			continue
		}
		name := h.steps[i].name
		h.drop(name)
		if h.check().Clean() {
			got[name] = dropping[name]
		}
	}
	if diff := cmp.Diff(dropping, got); diff != "" {
		t.Errorf("losses that are not noticed (-want +got):\n%s", diff)
	}
}

// swapping are the entries that may change places with the next one.
var swapping = map[string]string{
	"documents":         "no invariant here is about documents",
	"checkout.breached": "the question does not need it, the claim does",
	"asked.k1":          "rules are asked without an entry",
	"receipt.k1":        "what follows is of another service",
	"ticket.s1":         "an answer to what was not asked yet counts nothing, and nothing was claimed",
	"denied.s1":         "what follows is of another service",
	"alice.k2":          "a quorum has no order",
	"outcome.k2":        "a proposal does not wait",
	"outcome.k3":        "a freeze of what is over",
	"freeze":            "a thaw may come before its freeze is recorded",
	"thaw":              "nothing was started between",
	"void.s2":           "what follows is of another service",
	"settled.s4":        "what follows says nothing of it",
	"checkpoint":        "it decides nothing",
	"outcome.k5":        "the charge is nothing",
	"reset":             "what follows is about windows",
	"lowered":           "no window is claimed between",
	"adopted":           "what follows is a page",
	"void.last":         "what follows is of another service",
	"checkout.met":      "no invariant here is about episodes",
}

// next is the next entry that says something; 0 without.
func next(h *history, i int) int {
	for j := i + 1; j < len(h.steps); j++ {
		if !isSpare(h, j) {
			return j
		}
	}
	return 0
}

func swap(h *history, i, j int) {
	h.steps[i].draft, h.steps[j].draft = h.steps[j].draft, h.steps[i].draft
}

func TestExchangeOfEntriesIsNoticed(t *testing.T) {
	got := map[string]string{}
	for i := range good(t).steps {
		h := good(t)
		h.o.Acknowledged = nil
		j := next(h, i)
		if isSpare(h, i) || j == 0 {
			continue
		}
		swap(h, i, j)
		if h.check().Clean() {
			got[h.steps[i].name] = swapping[h.steps[i].name]
		}
	}
	if diff := cmp.Diff(swapping, got); diff != "" {
		t.Errorf("exchanges that are not noticed (-want +got):\n%s", diff)
	}
}

// unsending are the journal's lines whose loss breaks no invariant.
var unsending = map[gate.Key]string{
	k2.key(): "a person's word is what the ledger has",
	s4.key(): "nothing was done, as the ledger says",
}

// change makes one random change, and says whether it may go unnoticed.
func change(rt *rapid.T, h *history) (why string) {
	entryAt := func(of ...ledger.Kind) *entry {
		return &h.steps[rapid.SampledFrom(slices.DeleteFunc(indices(h), func(i int) bool {
			return len(of) > 0 && !slices.Contains(of, h.steps[i].draft.Kind)
		})).Draw(rt, "entry")]
	}
	other := rapid.StringMatching(`[a-f0-9]{1,8}`).Draw(rt, "other")
	switch rapid.SampledFrom([]string{"drop", "swap", "again", "unsend", "digest", "request", "hash"}).Draw(rt, "change") {
	case "drop":
		e := entryAt()
		h.drop(e.name)
		return dropping[e.name]
	case "swap":
		i := rapid.SampledFrom(indices(h)).Draw(rt, "entry")
		j := next(h, i)
		if j == 0 {
			return "there is no next one"
		}
		swap(h, i, j)
		return swapping[h.steps[i].name]
	case "again":
		line := rapid.SampledFrom(h.journal).Draw(rt, "line")
		h.journal = append(h.journal, line)
	case "unsend":
		key := gate.Key(rapid.SampledFrom(h.journal).Draw(rt, "line").Key)
		h.unsend(key)
		return unsending[key]
	case "digest":
		e := entryAt(ledger.KindClaim, ledger.KindDecision, ledger.KindTicket)
		redigest(e, other)
		if e.name == "ticket.s1" || e.name == "decided.s1" || e.name == "asked.k2" {
			return "what was asked is what is approved; nothing was claimed by this entry"
		}
	case "request":
		r := &h.journal[rapid.IntRange(0, len(h.journal)-1).Draw(rt, "line")]
		r.Digest = other
		if r.Of > 0 {
			return "it is no request"
		}
	case "hash":
		i := rapid.IntRange(0, len(h.o.Acknowledged)-1).Draw(rt, "ack")
		h.o.Acknowledged[i].Hash = other
		return ""
	}
	return ""
}

func indices(h *history) []int {
	var is []int
	for i := range h.steps {
		if !isSpare(h, i) {
			is = append(is, i)
		}
	}
	return is
}

func redigest(e *entry, digest string) {
	switch b := e.draft.Body.(type) {
	case ledger.Claim:
		b.Digest = digest
		e.draft.Body = b
	case ledger.Decided:
		b.Decision.Digest = digest
		e.draft.Body = b
	case approve.Ticket:
		b.Digest = digest
		e.draft.Body = b
	}
}

// TestAnyChangeIsNoticed, or is known to break nothing.
func TestAnyChangeIsNoticed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := good(t)
		acks := slices.Clone(h.o.Acknowledged)
		why := change(rt, h)
		if slices.Equal(acks, h.o.Acknowledged) {
			h.o.Acknowledged = nil // they would notice every change of an entry
		}
		if r := h.check(); r.Clean() != (why != "") {
			rt.Fatalf("clean: %t; harmless because %q; %v", r.Clean(), why, r.Violations)
		}
	})
}

// TestOrderOfJournalsIsNone: what is found does not depend on which actuator's
// journal was read first, nor on anything but the history.
func TestOrderOfJournalsIsNone(t *testing.T) {
	h := good(t)
	h.record(k1.key()).Digest = "other"
	h.request(s3)
	h.request(last, unapplied(execute.Failed))
	want := h.check()
	rapid.Check(t, func(rt *rapid.T) {
		h.journal = rapid.Permutation(h.journal).Draw(rt, "journal")
		if diff := cmp.Diff(want, h.check()); diff != "" {
			rt.Fatalf("in another order (-want +got):\n%s", diff)
		}
	})
}
