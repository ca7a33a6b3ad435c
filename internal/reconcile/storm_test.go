package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// manyOf is a world of n services, s0, s1 and so on, each with its own target,
// of which broken says how bad each is.
func manyOf(t *testing.T, n int, broken map[string]float64) *world {
	t.Helper()
	w := prepare(t)
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range n {
		svc := one
		svc.Name = fmt.Sprintf("s%d", i)
		svc.Digest = "doc-" + svc.Name
		svc.Remediation.Name, svc.Remediation.Service = svc.Name, svc.Name
		a := one.Remediation.Actions[0]
		url := strings.Replace(a.Target.URL, "checkout", svc.Name, 1)
		a.Target.URL, a.Target.StatusURL = url, url
		svc.Remediation.Actions = []spec.Action{a}
		svc.Remediation.DependsOn = nil
		w.set.Services = append(w.set.Services, svc)
	}
	since := map[string]time.Time{}
	w.truth = func(service string, at time.Time) float64 {
		ratio := broken[service]
		if ratio > 0 && since[service].IsZero() {
			since[service] = w.now
		}
		if at.Before(since[service]) {
			return 0
		}
		return ratio
	}
	return w
}

// sweeps of the whole fleet, for a while; every result.
func (w *world) sweeps(d time.Duration) []reconcile.Result {
	w.t.Helper()
	var out []reconcile.Result
	for end := w.now.Add(d); w.now.Before(end); {
		out = append(out, w.r.Sweep(w.t.Context())...)
		w.pass(step30)
	}
	return out
}

func (w *world) stormPhase() (at ledger.StormAt) {
	w.r.View(func(s *ledger.State) { at = s.Storm })
	return at
}

// TestStorm: so many at once is one cause. Nothing is asked, claimed or sent,
// not even by the first pass that sees it; one page tells of all; a restart and
// another replica go on with it; and it is over once both thresholds are passed
// below for the cooldown.
func TestStorm(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 10, broken)
	w.start()
	w.sweeps(12 * time.Minute)
	for i := range 6 {
		broken[fmt.Sprintf("s%d", i)] = 0.5
	}
	w.sweeps(15 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormOn || at.Breached != 6 || at.Loaded != 10 {
		t.Fatalf("brake %+v", at)
	}
	w.restart()
	w.sweeps(30 * time.Minute)
	if n := w.asked.Load(); n != 0 {
		t.Errorf("%d proposals were asked for in a storm", n)
	}
	if n := len(w.actuator.Effects()); n != 0 {
		t.Errorf("%d effects in a storm", n)
	}
	open := w.pager.open()
	if len(open) != 1 || !strings.Contains(open["storm"].Summary, "6 of 10 services are breached") || !strings.Contains(open["storm"].Summary, "s0, s1, s2, s3, s4, s5") {
		t.Errorf("pages: %s", w.pager.reasons())
	}
	for i := 1; i < 6; i++ {
		broken[fmt.Sprintf("s%d", i)] = 0
	}
	w.sweeps(8 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormEasing {
		t.Fatalf("brake %+v, want easing", at)
	}
	if n := len(w.actuator.Effects()); n != 0 {
		t.Errorf("%d effects while it eases", n)
	}
	w.sweeps(12 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormOff {
		t.Fatalf("brake %+v, want off", at)
	}
	if _, still := w.pager.open()["storm"]; still {
		t.Error("the storm's page is still open")
	}
	if len(w.actuator.Effects()) == 0 {
		t.Error("what is still missed after the storm is acted on as ever")
	}
}

// TestStormOfASource: a source that answers for nobody is a storm too, and its
// page is the storm's.
func TestStormOfASource(t *testing.T) {
	w := manyOf(t, 8, map[string]float64{})
	w.start()
	w.sweeps(12 * time.Minute)
	w.lost = func(string) string { return "main" }
	w.sweeps(15 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormOn || at.Unknown != 8 || !slices.Equal(at.Sources, []string{"main"}) {
		t.Fatalf("brake %+v", at)
	}
	open := w.pager.open()
	if len(open) != 1 || !strings.Contains(open["storm"].Summary, "source main") {
		t.Errorf("pages: %s", w.pager.reasons())
	}
}

// TestNoStormOfMaintenance: what people work on is no weather.
func TestNoStormOfMaintenance(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 10, broken)
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprintf("s%d", i))
		broken[names[i]] = 0.5
	}
	w.set.Maintenances = []spec.Maintenance{{
		Name: "drill", Services: names[:3], Effect: spec.Observe, Owner: "team-a", Reason: "failover drill", MutePages: true,
		Schedule: spec.Schedule{Cron: "0 0 * * *", Duration: 12 * time.Hour, TimeZone: "UTC"},
	}}
	w.start()
	w.sweeps(40 * time.Minute)
	if at := w.stormPhase(); at.Holds() {
		t.Fatalf("brake %+v", at)
	}
	for _, p := range w.pager.open() {
		if slices.Contains(names[:3], p.Service) {
			t.Errorf("a planned drill woke somebody: %+v", p.Summary)
		}
	}
}

// TestStormAnswers: a ticket that is open when the storm comes cannot be
// approved, and can be denied.
func TestStormAnswers(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 8, broken)
	for i := range w.set.Services {
		w.set.Services[i].Remediation.Actions[0].Class = spec.ClassApproval
	}
	w.start()
	w.sweeps(12 * time.Minute)
	broken["s7"] = 0.5
	asked := slices.ContainsFunc(w.sweeps(10*time.Minute), func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	if !asked {
		t.Fatal("nobody was asked")
	}
	for i := range 6 {
		broken[fmt.Sprintf("s%d", i)] = 0.5
	}
	w.sweeps(2 * time.Minute)
	var id string
	w.r.View(func(s *ledger.State) { o, _ := s.OpenTicket("s7"); id = o.ID })
	var refused *approve.Refusal
	_, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true})
	if !errors.As(err, &refused) || refused.Code != approve.RefusedStorm {
		t.Errorf("approve: %v, want a refusal of code storm", err)
	}
	if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Reason: "no"}); err != nil {
		t.Errorf("deny: %v", err)
	}
}

// TestStormIsNobodysSilence: a ticket that ran out while nobody could approve it
// is no person's no; it is asked again when the storm has passed.
func TestStormIsNobodysSilence(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 8, broken)
	for i := range w.set.Services {
		w.set.Services[i].Remediation.Actions[0].Class = spec.ClassApproval
	}
	w.start()
	w.sweeps(12 * time.Minute)
	asks := func(d time.Duration) bool {
		return slices.ContainsFunc(w.sweeps(d), func(r reconcile.Result) bool { return r.Service == "s7" && r.Step.Kind == step.Ask })
	}
	broken["s7"] = 0.5
	if !asks(10 * time.Minute) {
		t.Fatal("nobody was asked")
	}
	for i := range 6 {
		broken[fmt.Sprintf("s%d", i)] = 0.5
	}
	w.sweeps(20 * time.Minute)
	for i := range 6 {
		broken[fmt.Sprintf("s%d", i)] = 0
	}
	if !asks(40 * time.Minute) {
		t.Errorf("nobody is asked after the storm; pages: %s\n%s", w.pager.reasons(), w.dump())
	}
}

// TestRootIsPaged: services that wait for another are not acted on; whoever has
// the root is told who waits, and nobody gets a second page for one cause.
func TestRootIsPaged(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 8, broken)
	w.set.Services[0].Remediation.DependsOn = []string{"s1"}
	w.set.Services[1].Remediation.DependsOn = []string{"s2"}
	w.set.Services[2].Remediation.EscalateWithin = 5 * time.Hour
	w.rule = func([]byte) gate.Ruling { return gate.Ruling{Revision: "test"} }
	w.start()
	w.sweeps(12 * time.Minute)
	broken["s0"], broken["s1"], broken["s2"] = 0.5, 0.5, 0.5
	w.sweeps(35 * time.Minute)
	if n := w.asked.Load(); n == 0 {
		t.Error("the root itself is nobody's dependant, and is proposed for")
	}
	open := w.pager.open()
	var services []string
	for _, p := range open {
		services = append(services, p.Service)
		if p.Service == "s2" && !strings.Contains(p.Summary, "waiting for it: s0, s1") {
			t.Errorf("the root's page says %q", p.Summary)
		}
	}
	if !slices.Equal(services, []string{"s2"}) {
		t.Errorf("pages: %s", w.pager.reasons())
	}
}

// TestRootNobodyHearsOf: where the root pages nobody, whoever waits is told, and
// of the root.
func TestRootNobodyHearsOf(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 8, broken)
	w.set.Services[0].Remediation.DependsOn = []string{"s1"}
	w.set.Services[1].Remediation.Mode = spec.Observe
	w.start()
	w.sweeps(12 * time.Minute)
	broken["s0"], broken["s1"] = 0.5, 0.5
	w.sweeps(35 * time.Minute)
	open := w.pager.open()
	if len(open) != 1 {
		t.Fatalf("pages: %s", w.pager.reasons())
	}
	for _, p := range open {
		if p.Service != "s0" || p.Now != escalate.DependencyDown || !strings.Contains(p.Summary, "waits for s1, which is breached") {
			t.Errorf("page %s of %s: %s", p.Now, p.Service, p.Summary)
		}
	}
}

// named is a pager by another name.
type named struct {
	*pager
	name string
}

func (n named) Name() string { return n.name }

// TestNeverMetIsItsOwners: a target that was never met is no incident of the
// on-call, and an exception that expired is its owner's business.
func TestNeverMetIsItsOwners(t *testing.T) {
	w := manyOf(t, 2, nil)
	w.truth = func(service string, _ time.Time) float64 { return map[string]float64{"s0": 0.5}[service] }
	second := &pager{}
	w.cfg.Receivers = append(w.cfg.Receivers, config.Receiver{Name: "owners"})
	w.options = func(o *reconcile.Options) { o.Receivers = append(o.Receivers, named{second, "owners"}) }
	for i := range w.set.Services {
		w.set.Services[i].Remediation.Escalation.OwnerReceivers = []string{"owners"}
	}
	w.set.Exceptions = []spec.Exception{{
		Name: "black-friday", Service: "s1", Effect: spec.Approval, Until: w.now.Add(-time.Hour), Owner: "team-a", Reason: "sales",
	}}
	w.start()
	w.sweeps(40 * time.Minute)
	if got := w.pager.open(); len(got) != 0 {
		t.Errorf("the on-call got %s", w.pager.reasons())
	}
	got := second.reasons()
	if !strings.Contains(got, escalate.SpecProblem) || !strings.Contains(got, "exception/black-friday exception-expired") {
		t.Errorf("the owners got %s", got)
	}
}
