package reconcile_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// shadow is a policy beside the one that binds.
type shadow struct {
	name  string
	rule  func(ctx context.Context, input []byte) gate.Ruling
	asked atomic.Int64
}

func (s *shadow) Evaluate(ctx context.Context, input []byte) gate.Ruling {
	s.asked.Add(1)
	return s.rule(ctx, input)
}
func (s *shadow) Revision() string   { return ledger.BlobDigest([]byte(s.name)) }
func (s *shadow) DataDigest() string { return ledger.BlobDigest(nil) }
func (s *shadow) Pack() []byte       { return []byte(s.name) }

// allowing grants everything, always.
func allowing() *shadow {
	s := &shadow{name: "allow everything"}
	s.rule = func(context.Context, []byte) gate.Ruling {
		return gate.Ruling{Revision: s.Revision(), Auto: []gate.Rule{{Reason: "everything", Package: "setpoint.gate"}}}
	}
	return s
}

// shadowed is a world with a shadow policy. It ends before anything is decided
// where s is nil, so that both ledgers number their entries alike.
func shadowed(t *testing.T, s *shadow, rule gate.Ruling) (*world, *prometheus.Registry) {
	t.Helper()
	w, reg := prepare(t), prometheus.NewRegistry()
	w.rule = func([]byte) gate.Ruling { return rule }
	w.options = func(o *reconcile.Options) { o.Shadow, o.Registerer = s, reg }
	if s == nil {
		w.options = func(o *reconcile.Options) { o.Shadow, o.Registerer = allowing(), reg }
	}
	w.start()
	if s == nil {
		if err := w.r.SetShadow(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.healthy()
	w.breakNow(0.3)
	return w, reg
}

// decided are all recorded decisions, in order.
func (w *world) decided() []ledger.Decided {
	w.t.Helper()
	var out []ledger.Decided
	for _, e := range w.entries() {
		if e.Kind != ledger.KindDecision {
			continue
		}
		var d ledger.Decided
		if err := json.Unmarshal(e.Body, &d); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// samples are the values of a metric, by its labels' values.
func samples(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			out[strings.Join(labels, " ")] = m.GetCounter().GetValue()
		}
	}
	return out
}

func rules(reasons ...string) []gate.Rule {
	var out []gate.Rule
	for _, r := range reasons {
		out = append(out, gate.Rule{Reason: r, Package: "setpoint.gate"})
	}
	return out
}

var rulings = map[string]gate.Ruling{
	"Auto":     {Revision: "test", Auto: rules("allowed")},
	"Approval": {Revision: "test", Approval: rules("ask")},
	"Escalate": {Revision: "test", Escalate: rules("hand-over")},
	"Deny":     {Revision: "test", Auto: rules("allowed"), Deny: rules("never")},
	"Nothing":  {Revision: "test"},
	"Fault":    {Revision: "test", Fault: "timeout: too slow"},
}

// A shadow that grants everything leads to nothing: what is claimed, asked and
// sent is what the binding policy alone leads to.
func TestShadowBindsNobody(t *testing.T) {
	for name, ruling := range rulings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone, _ := shadowed(t, nil, ruling)
			alone.run(30 * time.Minute)
			s := allowing()
			w, reg := shadowed(t, s, ruling)
			w.run(30 * time.Minute)

			if diff := cmp.Diff(alone.kinds(), w.kinds()); diff != "" {
				t.Errorf("entries (-alone, +with a shadow):\n%s", diff)
			}
			if a, b := len(alone.actuator.Effects()), len(w.actuator.Effects()); a != b || (b > 0) != (name == "Auto") {
				t.Errorf("%d effects alone, %d with a shadow", a, b)
			}
			sameDecisions(t, alone.decided(), w.decided())
			differing := 0.0
			for _, d := range w.decided() {
				switch {
				case d.Shadow == nil:
					t.Fatal("a decision without its shadow")
				case d.Shadow.Revision != s.Revision() || d.Shadow.Fault != "":
					t.Errorf("shadow = %+v", d.Shadow)
				case d.Shadow.Differs:
					differing++
				}
			}
			if (differing > 0) != (name != "Auto") {
				t.Errorf("%v decisions differ", differing)
			}
			sum := 0.0
			for _, v := range samples(t, reg, "setpoint_policy_shadow_diffs_total") {
				sum += v
			}
			all := samples(t, reg, "setpoint_policy_shadow_decisions_total")
			if sum != differing || all["differs"] != differing || all["same"]+differing != float64(len(w.decided())) {
				t.Errorf("counted %v differences and %v, of %d decisions %v differ", sum, all, len(w.decided()), differing)
			}
		})
	}
}

// sameDecisions compares all but the digests, which hold the address of the
// world's own actuator, and the shadow.
func sameDecisions(t *testing.T, want, got []ledger.Decided) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Decided{}, "Shadow", "Floors"),
		cmpopts.IgnoreFields(gate.Decision{}, "Digest", "InputDigest"), cmpopts.IgnoreUnexported(gate.Decision{})); diff != "" {
		t.Errorf("decisions (-alone, +with a shadow):\n%s", diff)
	}
}

// Whatever a shadow does, the decision is what it is without one.
func TestBadShadows(t *testing.T) {
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	tests := map[string]struct {
		reason string
		rule   func(ctx context.Context, input []byte) gate.Ruling
		fault  string
	}{
		"Hangs": {"one that hears no deadline is left behind",
			func(context.Context, []byte) gate.Ruling { <-released; return rulings["Auto"] }, gate.FaultTimeout},
		"Slow": {"one that hears it is too late all the same",
			func(ctx context.Context, _ []byte) gate.Ruling {
				<-ctx.Done()
				return gate.Ruling{Fault: "timeout: slow"}
			}, gate.FaultTimeout},
		"Panics": {"a panic is its own", func(context.Context, []byte) gate.Ruling { panic("no") }, gate.FaultPanic},
		"Faults": {"a fault is recorded", func(context.Context, []byte) gate.Ruling {
			return gate.Ruling{Fault: "error: div by zero", Auto: rules("everything")}
		}, gate.FaultError},
		"Writes": {"it has its own copy of the input", func(_ context.Context, input []byte) gate.Ruling {
			clear(input)
			return gate.Ruling{Auto: rules("everything")}
		}, ""},
		"Foreign": {"a ruling on other bytes grants nothing", func(context.Context, []byte) gate.Ruling {
			return gate.Ruling{Auto: rules("everything"), InputDigest: strings.Repeat("0", 64)}
		}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ruling := gate.Ruling{Revision: "test", Deny: rules("never")}
			alone, _ := shadowed(t, nil, ruling)
			alone.run(5 * time.Minute)
			w, reg := shadowed(t, &shadow{name: name, rule: tt.rule}, ruling)
			w.run(5 * time.Minute)
			got := w.decided()
			sameDecisions(t, alone.decided(), got)
			if len(got) == 0 {
				t.Fatal("nothing was decided")
			}
			s := got[0].Shadow
			if s == nil || s.Revision != ledger.BlobDigest([]byte(name)) || !strings.HasPrefix(s.Fault, tt.fault) || (tt.fault == "") != (s.Fault == "") {
				t.Errorf("%s: shadow = %+v, want fault %s", tt.reason, s, tt.fault)
			}
			if name != "Writes" && (s.Verdict != gate.Deny || !s.Hold || !slices.Contains(s.Reasons, gate.ReasonPolicyFault)) {
				t.Errorf("%s: shadow = %+v, want a hold for a policy fault", tt.reason, s)
			}
			if n := samples(t, reg, "setpoint_policy_shadow_decisions_total"); tt.fault != "" && n["fault"] != float64(len(got)) {
				t.Errorf("%s: counted %v of %d decisions", tt.reason, n, len(got))
			}
			if n := samples(t, reg, "setpoint_policy_shadow_diffs_total"); tt.fault != "" && len(n) > 0 {
				t.Errorf("%s: a fault was counted as a difference: %v", tt.reason, n)
			}
			in, err := w.store.Blob(t.Context(), got[0].Decision.InputDigest)
			if err != nil || gate.ValidateInput(in) != nil {
				t.Errorf("%s: the recorded input is no input any more: %v", tt.reason, err)
			}
		})
	}
}

// The shadow is asked about news: not in each pass that finds the same, and not
// by the second gate. A new shadow alone is no news.
func TestShadowIsAskedAboutNews(t *testing.T) {
	s := allowing()
	w, _ := shadowed(t, s, rulings["Deny"])
	w.run(6 * time.Minute)
	n := int64(len(w.decided()))
	if n == 0 || s.asked.Load() != n {
		t.Fatalf("asked %d times about %d decisions", s.asked.Load(), n)
	}
	next := allowing()
	next.name = "another"
	if err := w.r.SetShadow(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	w.sweep()
	if got := int64(len(w.decided())); got != n || next.asked.Load() != 0 {
		t.Errorf("a new shadow wrote %d decisions and was asked %d times", got-n, next.asked.Load())
	}
	w.run(10 * time.Minute) // The next window is news.
	last := w.decided()[len(w.decided())-1]
	if int64(len(w.decided())) == n || last.Shadow == nil || last.Shadow.Revision != next.Revision() {
		t.Errorf("the new shadow is not in the next decision: %+v", last.Shadow)
	}
	if err := w.r.SetShadow(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Minute)
	if last := w.decided()[len(w.decided())-1]; last.Shadow != nil {
		t.Errorf("the shadow ended, and the next decision has one: %+v", last.Shadow)
	}
}

func TestShadowAndSecondGate(t *testing.T) {
	s := allowing()
	w, _ := shadowed(t, s, rulings["Auto"])
	w.until("applied effect", 15*time.Minute, applied)
	if n := int64(len(w.decided())); s.asked.Load() != n || n == 0 {
		t.Errorf("asked %d times about %d decisions", s.asked.Load(), n)
	}
}

// A pass that writes nothing asks no shadow.
func TestShadowAndPlan(t *testing.T) {
	s := allowing()
	w, _ := shadowed(t, s, rulings["Deny"])
	for range 20 {
		if _, err := w.r.Plan(t.Context(), nil, false); err != nil {
			t.Fatal(err)
		}
		w.pass(step30)
	}
	if s.asked.Load() != 0 {
		t.Errorf("asked %d times by passes that record nothing", s.asked.Load())
	}
}

// Two policies that ask different people differ, whatever the verdict.
func TestShadowOfApprovals(t *testing.T) {
	asks := func(reason string, quorum int, expires time.Duration, approvers ...string) gate.Ruling {
		return gate.Ruling{Revision: "test", Approval: []gate.Rule{{Reason: reason, Package: "setpoint.gate", Approvers: approvers, Quorum: quorum, Expires: expires}}}
	}
	two := asks("one", 0, 0)
	two.Approval = append(two.Approval, gate.Rule{Reason: "two", Package: "setpoint.gate"})
	tests := map[string]struct {
		reason string
		shadow gate.Ruling
		want   bool
	}{
		"Same":      {"the document's approvers", asks("ask", 0, 0), false},
		"OtherRule": {"another rule asks the same people", asks("other", 1, 15*time.Minute, "@oncall"), false},
		"TwoRules":  {"two rules ask the same people once", two, false},
		"People":    {"somebody else is asked", asks("ask", 0, 0, "os:bob"), true},
		"Quorum":    {"one more must agree", asks("ask", 2, 0), true},
		"Expires":   {"there is less time", asks("ask", 0, time.Minute), true},
		"Nobody":    {"no person is asked", rulings["Auto"], true},
		"More":      {"a second group must agree too", gate.Ruling{Approval: append(asks("ask", 0, 0).Approval, asks("second", 0, 0, "os:bob").Approval...)}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shadow{name: name, rule: func(context.Context, []byte) gate.Ruling { return tt.shadow }}
			w, reg := shadowed(t, s, rulings["Approval"])
			w.run(3 * time.Minute)
			all := w.decided()
			if len(all) != 1 || all[0].Decision.Verdict != gate.Approval {
				t.Fatalf("decided %+v", all)
			}
			if got := all[0].Shadow; got == nil || got.Differs != tt.want {
				t.Errorf("%s: shadow = %+v, want differs %v", tt.reason, got, tt.want)
			}
			want := map[string]float64{}
			if tt.want {
				want["approval "+all[0].Shadow.Verdict.String()] = 1
			}
			if diff := cmp.Diff(want, samples(t, reg, "setpoint_policy_shadow_diffs_total")); diff != "" {
				t.Errorf("%s: differences (-want, +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// Where there is nothing to rule on, no policy is asked.
func TestShadowOfNothing(t *testing.T) {
	s := allowing()
	w, _ := shadowed(t, s, rulings["Auto"])
	w.propose = func(propose.Request) propose.Proposal { return propose.Proposal{Kind: propose.KindEscalate} }
	w.run(3 * time.Minute)
	all := w.decided()
	if len(all) == 0 || all[0].Shadow != nil || s.asked.Load() != 0 {
		t.Errorf("asked %d times, decided %+v", s.asked.Load(), all)
	}
}
