package replay_test

import (
	"compress/gzip"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/policies"
)

// month is the recorded example.
func month(t testing.TB) replay.Export {
	t.Helper()
	f, err := os.Open("../../../evals/month.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	x, err := ledger.ReadExport(z)
	if err != nil {
		t.Fatal(err)
	}
	return replay.Export{Exported: x}
}

// shipped is the policy in policies/ with more files.
func shipped(t testing.TB, more fstest.MapFS) *rego.Policy {
	t.Helper()
	b, err := rego.Read(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range b.Files() {
		more[f.Path] = &fstest.MapFile{Data: f.Data}
	}
	p, err := rego.Load(more, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nights is a policy that its author has just made stricter.
func nights(t testing.TB) *rego.Policy {
	return shipped(t, fstest.MapFS{"nights.rego": {Data: []byte(`package setpoint.gate

# METADATA
# title: At night a person is asked
# custom: {remedy: approve it}
approval contains "at-night" if {
	runnable
	[hour, _, _] := time.clock(time.parse_rfc3339_ns(input.now))
	hour < 7
}
`)}})
}

// BenchmarkMonth replays the recorded month. An edited policy costs two
// evaluations a decision, an unedited one.
func BenchmarkMonth(b *testing.B) {
	x := month(b)
	for name, by := range map[string]*rego.Policy{"edited": nights(b), "unedited": shipped(b, fstest.MapFS{})} {
		b.Run(name, func(b *testing.B) {
			decisions := 0
			for b.Loop() {
				for range judged(b, x, replay.Options{With: by}) {
					decisions++
				}
			}
			b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// The example reproduces to the byte, and a stricter policy tightens it alone.
func TestMonth(t *testing.T) {
	x := month(t)
	var r replay.Report
	for _, j := range judged(t, x, replay.Options{With: nights(t)}) {
		r.Add(j)
	}
	if r.NotReproduced > 0 || r.Reproduced < 100 {
		t.Fatalf("%+v; first %+v", r.Summary, r.Faults[:min(1, len(r.Faults))])
	}
	if r.Tightened == 0 || r.Changed > r.Reproduced/2 {
		t.Errorf("asking at night: %+v", r.Summary)
	}
}
