package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// bundled is a policy of two rules that name its number, one of them from data.
func bundled(t *testing.T, n int) *rego.Policy {
	t.Helper()
	p, err := rego.Load(fstest.MapFS{
		"gate.rego": {Data: []byte(fmt.Sprintf(`package setpoint.gate

# METADATA
# title: Scaling is fine
# custom: {remedy: none}
auto contains "grant-%[1]d" if input.proposal.action == "scale"

# METADATA
# title: Not now
# custom: {remedy: wait}
deny contains "refuse-%[1]d" if data.number == %[1]d
`, n))},
		"data.yaml": {Data: []byte(fmt.Sprintf("number: %d\n", n))},
	}, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fleetOf makes the world one of many services that all do the same.
func fleetOf(t *testing.T, n int) *world {
	t.Helper()
	w := prepare(t)
	w.cfg.Limits.StormMin = 10 * n
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range n {
		svc := one
		svc.Name = fmt.Sprintf("service-%d", i)
		svc.Remediation.Name, svc.Remediation.Service = svc.Name, svc.Name
		a := svc.Remediation.Actions[0]
		a.Target.URL, a.Target.StatusURL = a.Target.URL+svc.Name, a.Target.StatusURL+svc.Name
		svc.Remediation.Actions = []spec.Action{a}
		w.set.Services = append(w.set.Services, svc)
	}
	return w
}

// Policies are swapped all the time while passes decide. Each recorded decision
// is of one of them and of it alone: its ruling and its verdict come out again,
// byte for byte, from the recorded input and floors. And the ledger knew the
// bundle before it ruled.
func TestNoDecisionOfTwoPolicies(t *testing.T) {
	policies := map[string]*rego.Policy{}
	var all []*rego.Policy
	for n := range 3 {
		p := bundled(t, n)
		policies[p.Revision()], all = p, append(all, p)
	}
	w := fleetOf(t, 6)
	w.options = func(o *reconcile.Options) { o.Policy = all[0] }
	w.start()
	sweeps := func(d time.Duration) {
		for end := w.now.Add(d); w.now.Before(end); w.pass(step30) {
			for _, res := range w.r.Sweep(t.Context()) {
				if res.Err != nil {
					t.Fatal(res.Err)
				}
			}
		}
	}
	sweeps(12 * time.Minute)
	w.breakNow(0.3)
	ctx, stop := context.WithCancel(t.Context())
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			if err := w.r.SetPolicy(context.Background(), all[n%len(all)]); err != nil {
				t.Errorf("swap %d: %v", n, err)
				return
			}
		}
	})
	sweeps(45 * time.Minute)
	stop()
	swapper.Wait()
	ruled := w.reproduce(policies)
	if len(ruled) < 2 {
		t.Errorf("%d policies ruled, so no swap met a pass: %v", len(ruled), ruled)
	}
}

// reproduce makes every recorded decision again, and counts them by revision.
func (w *world) reproduce(policies map[string]*rego.Policy) map[string]int {
	w.t.Helper()
	known, ruled := map[string]bool{}, map[string]int{}
	for _, e := range w.entries() {
		switch e.Kind {
		case ledger.KindPolicy:
			var p ledger.Policy
			if err := json.Unmarshal(e.Body, &p); err != nil {
				w.t.Fatal(err)
			}
			known[p.Revision] = true
		case ledger.KindDecision:
			var d ledger.Decided
			if err := json.Unmarshal(e.Body, &d); err != nil {
				w.t.Fatal(err)
			}
			got := d.Decision
			if !known[got.Ruling.Revision] {
				w.t.Errorf("decision d%d by policy %.12q, which no earlier entry holds", e.Seq, got.Ruling.Revision)
				continue
			}
			ruled[got.Ruling.Revision]++
			var floors gate.Floors
			if err := json.Unmarshal(w.blob(d.Floors), &floors); err != nil {
				w.t.Fatal(err)
			}
			want := floors.Join(policies[got.Ruling.Revision].Evaluate(w.t.Context(), w.blob(got.InputDigest)))
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(gate.Decision{}), cmpopts.EquateEmpty()); diff != "" {
				w.t.Errorf("decision d%d does not come out again (-again +recorded):\n%s", e.Seq, diff)
			}
		}
	}
	return ruled
}

func (w *world) blob(digest string) []byte {
	w.t.Helper()
	b, err := w.store.Blob(w.t.Context(), digest)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// A policy that the ledger does not hold does not rule: nobody could ever say
// what it was.
func TestUnrecordedPolicyDoesNotRule(t *testing.T) {
	first, second := bundled(t, 1), bundled(t, 2)
	w, reg := prepare(t), prometheus.NewRegistry()
	w.options = func(o *reconcile.Options) { o.Policy, o.Registerer = first, reg }
	w.start()
	full := errors.New("no space left on device")
	w.faulty.fill(full)
	for name, set := range map[string]func(context.Context, reconcile.Policy) error{"policy": w.r.SetPolicy, "shadow": w.r.SetShadow} {
		if err := set(t.Context(), second); !errors.Is(err, full) || !strings.Contains(err.Error(), "stays") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.wantMetrics(reg, first.Revision(), 0)
	w.faulty.fill(nil)
	w.healthy()
	w.breakNow(0.3)
	w.run(15 * time.Minute)
	if ds := w.decided(); len(ds) == 0 || ds[0].Decision.Ruling.Revision != first.Revision() {
		t.Errorf("decided by another policy: %+v", ds)
	}
	if err := w.r.SetPolicy(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.wantMetrics(reg, second.Revision(), 0)
	w.run(15 * time.Minute)
	ds := w.decided()
	if d := ds[len(ds)-1]; d.Decision.Ruling.Revision != second.Revision() || d.Shadow != nil {
		t.Errorf("the last decision is not by the policy in force alone: %+v", d)
	}
}

// wantMetrics wants one revision in force, and whether the folder is at fault.
func (w *world) wantMetrics(reg *prometheus.Registry, revision string, failed float64) {
	w.t.Helper()
	got := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "setpoint_policy_info":
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			case "setpoint_policy_reload_failed":
				got["failed"] = m.GetGauge().GetValue()
			}
		}
	}
	want := map[string]float64{"failed": failed}
	if revision != "" {
		want[revision] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// A folder at fault changes nothing but what people know: at once in the
// metric, and by a page when it lasts.
func TestStalePolicyPages(t *testing.T) {
	p := bundled(t, 1)
	w, reg := prepare(t), prometheus.NewRegistry()
	w.options = func(o *reconcile.Options) { o.Policy, o.Registerer = p, reg }
	w.start()
	w.healthy()
	w.r.PolicyFaulted("gate.rego:6: first fault")
	w.wantMetrics(reg, p.Revision(), 1)
	w.run(10 * time.Minute)
	w.r.PolicyFaulted("gate.rego:7: second fault")
	w.run(5 * time.Minute)
	if open := w.pager.open(); len(open) != 0 {
		t.Fatalf("pages before it lasted: %v", open)
	}
	w.run(time.Minute)
	page, paged := w.pager.open()["policy"]
	if !paged || len(w.pager.open()) != 1 || page.Reason != "policy-fault" {
		t.Fatalf("pages = %v, want one about the policy", w.pager.open())
	}
	for _, want := range []string{"policy " + p.Revision()[:12] + ", in force since 2090-11-29T03:00:00Z, still rules", "since 2090-11-29T03:12:00Z", "gate.rego:7: second fault", "setpoint policy check"} {
		if !strings.Contains(page.Text, want) {
			t.Errorf("the page does not say %q:\n%s", want, page.Text)
		}
	}
	if ready := w.r.Ready(); ready != "" {
		t.Errorf("not ready although a policy rules: %s", ready)
	}
	w.r.PolicyFaulted("")
	w.run(time.Minute)
	w.wantMetrics(reg, p.Revision(), 0)
	w.run(5 * time.Minute)
	if open := w.pager.open(); len(open) != 0 {
		t.Errorf("pages after it was mended: %v", open)
	}
}

// What is mended rules at once, also where no policy ruled before.
func TestPolicyMendedWhileItRuns(t *testing.T) {
	w, reg := prepare(t), prometheus.NewRegistry()
	w.options = func(o *reconcile.Options) { o.Policy, o.PolicyFault, o.Registerer = nil, "gate.rego:1: broken", reg }
	w.start()
	w.run(time.Minute)
	w.wantMetrics(reg, "", 1)
	w.r.PolicyFaulted("gate.rego:2: still broken")
	w.run(time.Minute)
	if page := w.pager.open()["policy"]; !strings.Contains(page.Text, "no policy is loaded") || !strings.Contains(w.r.Ready(), "gate.rego:2: still broken") {
		t.Errorf("ready %q, page:\n%s", w.r.Ready(), page.Text)
	}
	w.r.PolicyFaulted("")
	if w.r.Ready() == "" {
		t.Error("ready without a policy")
	}
	p := bundled(t, 1)
	if err := w.r.SetPolicy(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	w.wantMetrics(reg, p.Revision(), 0)
	w.run(5 * time.Minute)
	if _, paged := w.pager.open()["policy"]; paged || w.r.Ready() != "" {
		t.Errorf("ready %q, pages %v", w.r.Ready(), w.pager.open())
	}
}

// A reload that brings a policy ends the fault of the folder; one of documents
// alone says nothing about it.
func TestReloadAndTheFolder(t *testing.T) {
	p := bundled(t, 1)
	w, reg := prepare(t), prometheus.NewRegistry()
	w.options = func(o *reconcile.Options) { o.Policy, o.Registerer = p, reg }
	w.start()
	w.r.PolicyFaulted("gate.rego:6: a fault")
	if err := w.r.Reload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w.wantMetrics(reg, p.Revision(), 1)
	if err := w.r.Reload(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.wantMetrics(reg, p.Revision(), 0)
}

// A swap between the claim and the send counts: the second gate asks the policy
// that is in force then.
func TestSwapBetweenClaimAndSend(t *testing.T) {
	w := prepare(t)
	refusing := bundled(t, 1)
	swapped := false
	w.rule = func([]byte) gate.Ruling { return gate.Ruling{Revision: "test", Auto: rules("allowed")} }
	w.options = func(o *reconcile.Options) { o.Policy = swapping{ruled{w}, &swapped, refusing, w} }
	w.start()
	w.healthy()
	w.breakNow(0.3)
	w.run(15 * time.Minute)
	if n := len(w.actuator.Journal()); !swapped || n != 0 {
		t.Errorf("swapped %v, %d sends, want none by a policy that is not in force any more", swapped, n)
	}
	if w.kinds()[ledger.KindVoid] == 0 {
		t.Errorf("no claim was made void:\n%s", w.dump())
	}
}

// swapping puts another policy into force while it rules.
type swapping struct {
	ruled
	swapped *bool
	next    reconcile.Policy
	w       *world
}

func (s swapping) Evaluate(ctx context.Context, input []byte) gate.Ruling {
	if !*s.swapped {
		*s.swapped = true
		if err := s.w.r.SetPolicy(ctx, s.next); err != nil {
			s.w.t.Error(err)
		}
	}
	return s.ruled.Evaluate(ctx, input)
}
