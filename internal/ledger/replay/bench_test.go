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

// replayable is the decisions of the month on which a policy ruled, again and
// again, so that loading the recorded policy once does not count for much.
func replayable(b *testing.B, times int) *past {
	x, own := month(b), shipped(b, fstest.MapFS{})
	p := newPast(b)
	p.Blobs = x.Blobs
	var bodies []ledger.Draft
	for _, j := range judged(b, x, replay.Options{With: own}) {
		if j.Status != replay.Reproduced {
			continue
		}
		e := x.Entries[j.Entry-1]
		body, err := ledger.Decode(e)
		if err != nil {
			b.Fatal(err)
		}
		bodies = append(bodies, ledger.Draft{Kind: e.Kind, Service: e.Service, Body: body})
	}
	for range times {
		for _, d := range bodies {
			p.append(d)
		}
	}
	return p
}

// BenchmarkReplay says how many decisions on which a policy ruled are replayed in
// a second, from reading the chain to the comparison. An edited policy costs two
// evaluations a decision, an unedited one.
func BenchmarkReplay(b *testing.B) {
	p := replayable(b, 10)
	for _, c := range []struct {
		name string
		by   *rego.Policy
	}{{"edited", nights(b)}, {"unedited", shipped(b, fstest.MapFS{})}} {
		b.Run(c.name, func(b *testing.B) {
			decisions := 0
			for b.Loop() {
				for _, j := range judged(b, p, replay.Options{With: c.by}) {
					if j.Status == replay.Reproduced {
						decisions++
					}
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
