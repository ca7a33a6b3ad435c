package month_test

import (
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/policies"
)

// The month that ships has something of everything that a policy's author may
// want to try.
func TestTheRecordedMonthHasSomethingOfEverything(t *testing.T) {
	f, err := os.Open("../../../evals/month.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > 400_000 {
		t.Errorf("it has %d bytes, %v", info.Size(), err)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	x, err := ledger.ReadExport(z)
	if err != nil {
		t.Fatal(err)
	}
	last := x.Entries[len(x.Entries)-1].Time
	if first := x.Entries[0].Time; !first.Equal(month.Start()) || last.Sub(first) < 27*24*time.Hour {
		t.Errorf("it goes from %s to %s", first, last)
	}
	decisions, services, actions, seen := 0, map[string]bool{}, map[string]bool{}, map[string]int{}
	days := map[int]bool{}
	for _, e := range x.Entries {
		body, err := ledger.Decode(e)
		if err != nil {
			t.Fatal(err)
		}
		seen["entry "+string(e.Kind)]++
		switch b := body.(type) {
		case ledger.Decided:
			decisions++
			services[e.Service], actions[e.Service+"/"+b.Proposal.Action] = true, true
			days[int(e.Time.Sub(month.Start())/(24*time.Hour))] = true
			seen[b.Decision.Verdict.String()]++
			if b.Decision.Hold {
				seen["hold"]++
			}
			for _, r := range b.Decision.Reasons {
				seen[r.Code]++
			}
		case ledger.AnswerBody:
			seen[map[bool]string{true: "approved", false: "denied"}[b.Approve]]++
		case ledger.TicketEnd:
			seen[string(b.State)]++
		case ledger.Outcome:
			seen[string(b.Judgement.Outcome)]++
		}
	}
	if decisions < 150 || len(services) < 4 || len(actions) < 7 || len(days) < 20 || len(days) > 28 {
		t.Errorf("%d decisions on %d days, services %v, actions %v", decisions, len(days),
			slices.Sorted(maps.Keys(services)), slices.Sorted(maps.Keys(actions)))
	}
	for what, atLeast := range map[string]int{
		gate.Auto.String(): 20, gate.Approval.String(): 20, gate.Escalate.String(): 5, gate.Deny.String(): 10,
		"hold": 3, "approved": 10, "denied": 3, "expired": 3, "recovered": 10, "no-change": 5, "worsened": 2,
		gate.ReasonCooldown: 3, gate.ReasonBudgetSpent: 1, gate.ReasonException: 1,
		gate.ReasonPersonHold: 5, gate.ReasonMode: 5, gate.ReasonIrreversible: 3,
		"policy:reversible": 20, "policy:second-try": 3, "policy:large-change": 3, "policy:class": 3,
		"policy:not-reversible": 3, "policy:handed-over": 1,
		"entry policy": 1, "entry reset": 1, "entry freeze": 2,
	} {
		if seen[what] < atLeast {
			t.Errorf("%d times %s, want at least %d", seen[what], what, atLeast)
		}
	}
	if seen["entry checkpoint"] > 0 {
		t.Error("it holds checkpoints, whose blobs are whole states")
	}
	t.Logf("%d decisions on %d days: %v", decisions, len(days), seen)
}

// The same options give the same bytes.
func TestRecordRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a simulated day twice")
	}
	p, err := rego.Load(policies.FS, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	for _, to := range []*bytes.Buffer{&one, &two} {
		if err := month.Record(t.Context(), month.Options{Days: 1, Seed: 5, Policy: p}, to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("two recordings of one day differ:\n%s", cmp.Diff(one.String(), two.String()))
	}
	x, err := ledger.ReadExport(&one)
	if err != nil || len(x.Entries) < 20 {
		t.Errorf("a day of %d entries, %v", len(x.Entries), err)
	}
}
