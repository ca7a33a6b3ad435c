package reconcile_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
	"github.com/setpoint-dev/setpoint/policies"
)

// feed is a change feed made of a function.
type feed func(service string) []measure.Change

func (f feed) Changes(service string) []measure.Change { return f(service) }

// rolling is an executor whose targets list their revisions.
type rolling struct {
	execute.Executor
	revisions func() []measure.Change
}

func (r rolling) Observe(ctx context.Context, a spec.Action, key gate.Key) execute.Observation {
	o := r.Executor.Observe(ctx, a, key)
	o.Revisions = r.revisions()
	return o
}

// deployed is a change of a service that long ago.
func (w *world) deployed(service, version string, ago time.Duration) measure.Change {
	return measure.Change{At: w.clock().Add(-ago), Service: service, What: "deploy", Version: version}
}

// A deploy five minutes before the breach makes a person decide, whoever reports
// it, under the policy that Setpoint brings.
func TestRecentChangeNeedsAPerson(t *testing.T) {
	shipped, err := rego.Load(policies.FS, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	at := func(w *world, ago time.Duration) []measure.Change {
		return []measure.Change{w.deployed("checkout", "v42", ago)}
	}
	cases := map[string]struct {
		reason string
		// file and listed are what the file has and what the target lists.
		file, listed func(w *world) []measure.Change
		posted       func(w *world) []measure.Change
		want         gate.Verdict
	}{
		"Nothing":  {"the service was left alone", nil, nil, nil, gate.Auto},
		"Posted":   {"a pipeline posted it", nil, nil, func(w *world) []measure.Change { return at(w, 5*time.Minute) }, gate.Approval},
		"File":     {"a file has it", func(w *world) []measure.Change { return at(w, 5*time.Minute) }, nil, nil, gate.Approval},
		"Listed":   {"the target says so itself", nil, func(w *world) []measure.Change { return at(w, 5*time.Minute) }, nil, gate.Approval},
		"LongAgo":  {"yesterday's is not the cause", nil, nil, func(w *world) []measure.Change { return at(w, 24*time.Hour) }, gate.Auto},
		"Neighbor": {"another service's is not a reason here", nil, nil, func(w *world) []measure.Change { return []measure.Change{w.deployed("other", "v1", time.Minute)} }, gate.Auto},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			var file, listed []measure.Change
			w.options = func(o *reconcile.Options) {
				o.Policy = shipped
				o.Feed = feed(func(service string) []measure.Change { return file })
				o.Executors["webhook"] = rolling{o.Executors["webhook"], func() []measure.Change { return listed }}
			}
			w.start()
			w.healthy()
			before := w.entries()
			if tc.file != nil {
				file = tc.file(w)
			}
			if tc.listed != nil {
				listed = tc.listed(w)
			}
			if tc.posted != nil {
				if n, err := w.r.Change(t.Context(), tc.posted(w), "token:ci"); n != 1 || err != nil {
					t.Fatalf("posted: %d %v", n, err)
				}
				if n, err := w.r.Change(t.Context(), tc.posted(w), "token:ci"); n != 0 || err != nil {
					t.Fatalf("posted twice: %d %v", n, err)
				}
				if n := len(w.entries()) - len(before); n != 1 {
					t.Fatalf("%d entries of one change", n)
				}
			}
			w.breakNow(0.3)
			res := w.until("decision", 15*time.Minute, func(r reconcile.Result) bool { return r.Decision != nil })
			if res.Decision.Verdict != tc.want || hasReason(res.Decision.Reasons, "policy:recent-change") != (tc.want == gate.Approval) {
				t.Errorf("%s: %s %v, want %s", tc.reason, res.Decision.Verdict, res.Decision.Reasons, tc.want)
			}
			if want := map[gate.Verdict]step.Kind{gate.Auto: step.Execute, gate.Approval: step.Ask}[tc.want]; res.Step.Kind != want {
				t.Errorf("%s: step %s, want %s", tc.reason, res.Step.Kind, want)
			}
		})
	}
}

// Both gates of a pass see the same changes, although the feed has news between
// them: the second one would otherwise refuse what nothing but the reading of a
// file has changed.
func TestChangesAreReadOncePerPass(t *testing.T) {
	w := prepare(t)
	var reads atomic.Int64
	var seen [][]any
	allow := w.rule
	w.rule = func(input []byte) gate.Ruling {
		var in struct{ Changes []any }
		if err := json.Unmarshal(input, &in); err != nil {
			t.Error(err)
		}
		seen = append(seen, in.Changes)
		return allow(input)
	}
	w.options = func(o *reconcile.Options) {
		o.Feed = feed(func(service string) []measure.Change {
			if reads.Add(1) == 1 {
				return []measure.Change{w.deployed(service, "v1", time.Hour)}
			}
			return []measure.Change{w.deployed(service, "v2", 0)}
		})
	}
	w.start()
	w.healthy()
	if reads.Load() != 0 {
		t.Errorf("the feed was read %d times for a service that is met", reads.Load())
	}
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)
	if len(seen) != 2 || len(seen[0]) != 1 || reads.Load() != 1 {
		t.Fatalf("gates saw %v, the feed was read %d times", seen, reads.Load())
	}
	if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
		t.Errorf("the second gate saw other changes (-first +second):\n%s", diff)
	}
}

// What is changed while a model thinks binds what it proposes, at both gates: the
// question was put before, and whoever answers knows nothing of it.
func TestChangeWhileAModelThinks(t *testing.T) {
	shipped, err := rego.Load(policies.FS, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var file []measure.Change
	var w *world
	w, _ = farWorld(t, false, func() (propose.Proposal, []propose.Exchange) {
		file = []measure.Change{w.deployed("checkout", "v42", 0)}
		return propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}},
			[]propose.Exchange{{Endpoint: "main", Model: "some-model", Result: "ok"}}
	})
	model := w.options
	w.options = func(o *reconcile.Options) {
		model(o)
		o.Policy, o.Feed = shipped, feed(func(string) []measure.Change { return file })
	}
	w.start()
	w.healthy()
	w.breakNow(0.3)
	res := w.until("decision", 15*time.Minute, func(r reconcile.Result) bool { return r.Decision != nil })
	if res.Decision.Verdict != gate.Approval || !hasReason(res.Decision.Reasons, "policy:recent-change") {
		t.Errorf("%s %v, want approval by policy:recent-change", res.Decision.Verdict, res.Decision.Reasons)
	}
}

// A proposer is shown the changes of the dependencies too, each once and newest
// first; a policy those of the service.
func TestProposerSeesChangesOfDependencies(t *testing.T) {
	w := prepare(t)
	db := w.set.Services[0]
	db.Name, db.Remediation = "db", spec.DefaultRemediation("db")
	w.set.Services[0].Remediation.DependsOn = []string{"db"}
	w.set.Services = append(w.set.Services, db)
	w.truth = func(service string, at time.Time) float64 {
		if service == "db" {
			return 0
		}
		return w.errorRatio(at)
	}
	var asked propose.Request
	allow := w.propose
	w.propose = func(r propose.Request) propose.Proposal { asked = r; return allow(r) }
	var input []byte
	judge := w.rule
	w.rule = func(in []byte) gate.Ruling { input = in; return judge(in) }
	var fromFile []measure.Change
	w.options = func(o *reconcile.Options) {
		o.Feed = feed(func(service string) []measure.Change {
			if service == "db" {
				return fromFile
			}
			return nil
		})
	}
	w.start()
	sweep := func(d time.Duration) {
		for end := w.clock().Add(d); w.clock().Before(end); w.pass(step30) {
			w.r.Sweep(t.Context())
		}
	}
	sweep(12 * time.Minute)
	old, schema := w.deployed("checkout", "v41", 2*time.Hour), w.deployed("db", "schema-7", time.Hour)
	if _, err := w.r.Change(t.Context(), []measure.Change{old, schema, w.deployed("search", "s1", 0)}, "token:ci"); err != nil {
		t.Fatal(err)
	}
	fromFile = []measure.Change{schema} // Reported twice.
	w.breakNow(0.3)
	sweep(6 * time.Minute)
	if diff := cmp.Diff([]measure.Change{schema, old}, asked.Changes); diff != "" {
		t.Errorf("shown to the proposer (-want +got):\n%s", diff)
	}
	got, err := w.r.Question(t.Context(), "checkout")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]measure.Change{schema, old}, got.Changes); diff != "" {
		t.Errorf("in a question (-want +got):\n%s", diff)
	}
	var in struct{ Changes []struct{ Version string } }
	if err := json.Unmarshal(input, &in); err != nil {
		t.Fatal(err)
	}
	if len(in.Changes) != 1 || in.Changes[0].Version != "v41" {
		t.Errorf("shown to the policy: %+v", in.Changes)
	}
}

// A change is context: it wakes no pass, whatever is posted.
func TestChangeWakesNothing(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	passes := len(w.entries())
	if _, err := w.r.Change(t.Context(), []measure.Change{w.deployed("checkout", "v1", 0)}, "token:ci"); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Minute)
	if got := w.entries()[passes:]; len(got) != 1 || got[0].Kind != ledger.KindChange {
		t.Errorf("a change led to %d entries:\n%s", len(got), w.dump())
	}
	if w.asked.Load() != 0 {
		t.Error("somebody was asked")
	}
}
