package incident

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/compare"
)

// played is one of the shipped incidents with what came of it.
func played(t *testing.T, name string) (Incident, Score) {
	t.Helper()
	all, err := Load(suite)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(in Incident) bool { return in.Name == name })
	if i < 0 {
		t.Fatalf("no incident %s", name)
	}
	s, err := Run(t.Context(), all[i], all[i].Sweeps[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	return all[i], s
}

// Those that show one brake each. setpoint-lab eval run plays all.
func TestRightAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("plays hours of simulated time")
	}
	for _, name := range []string{
		"I07-upstream-provider-outage", "I08-telemetry-outage-reads-as-zero", "I11-restart-thundering-herd",
		"I13-quota-lowered-by-bad-usage-data", "I15-certificate-expiry", "I16-memory-leak-restart-buys-time",
		"late-observation", "lost-answer", "superseded-plan", "empty-set", "healing-spreads-the-fault", "short-partition",
		"approver-away", "drastic-remedy", "failing-executor",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, s := played(t, name); len(s.Wrong) > 0 {
				t.Errorf("not right:\n  %s", strings.Join(s.Wrong, "\n  "))
			}
		})
	}
}

// A suite that takes any answer would find nothing: whatever of the right answer
// is changed, and whatever of the score, is seen.
func TestAChangedAnswerIsNotRight(t *testing.T) {
	in, s := played(t, "superseded-plan")
	if len(s.Wrong) > 0 {
		t.Fatalf("not right: %v", s.Wrong)
	}
	clone := func(r Right) Right {
		r.Effects, r.Outcomes, r.Approvals = maps.Clone(r.Effects), maps.Clone(r.Outcomes), maps.Clone(r.Approvals)
		r.Pages, r.State, r.Said = maps.Clone(r.Pages), maps.Clone(r.State), maps.Clone(r.Said)
		return r
	}
	for what, change := range map[string]func(r *Right, s *Score){
		"effect gone":    func(r *Right, _ *Score) { delete(r.Effects, "dns-b") },
		"effect more":    func(r *Right, _ *Score) { r.Effects["dns-a"] = []string{"apply"} },
		"effect by undo": func(r *Right, _ *Score) { r.Effects["dns-b"] = []string{"undo apply"} },
		"outcome":        func(r *Right, _ *Score) { r.Outcomes["dns-b"] = []compare.Outcome{compare.OutcomeImproved} },
		"approval's end": func(r *Right, _ *Score) { r.Approvals["dns-a"] = []string{"apply expired"} },
		"approval gone":  func(r *Right, _ *Score) { delete(r.Approvals, "dns-a") },
		"page's reason":  func(r *Right, _ *Score) { r.Pages["dns-a"] = []string{"approval-needed", "blind"} },
		"page's order":   func(r *Right, _ *Score) { r.Pages["dns-a"] = []string{"approval-void", "approval-needed"} },
		"page gone":      func(r *Right, _ *Score) { delete(r.Pages, "dns-a") },
		"page more":      func(r *Right, _ *Score) { r.Pages["storm"] = []string{"storm"} },
		"state":          func(r *Right, _ *Score) { r.State["dns-b"] = compare.Breached },
		"never":          func(r *Right, _ *Score) { r.Never = []string{"apply"} },
		"said":           func(r *Right, _ *Score) { r.Said["dns-a"] = []string{"storm"} },
		"verdict":        func(r *Right, _ *Score) { r.Last = map[string]Verdict{"dns-a": {Verdict: "auto"}} },
		"verdict's reason": func(r *Right, _ *Score) {
			r.Last = map[string]Verdict{"dns-a": {Verdict: "deny", Reasons: []string{"storm"}}}
		},
		"sent":                func(r *Right, _ *Score) { r.Sent = map[string]int{"dns-b": 2} },
		"one sent for nobody": func(_ *Right, s *Score) { s.service("dns-a").Sent++ },
		"double":              func(_ *Right, s *Score) { s.DoubleEffects = 1 },
		"act on unknown":      func(_ *Right, s *Score) { s.ActsOnUnknown = 1 },
		"too many an hour":    func(_ *Right, s *Score) { s.MaxPerHour = 3 },
		"too many at all":     func(_ *Right, s *Score) { s.MaxPerHourAll = 7 },
		"fewer an hour": func(r *Right, s *Score) {
			r.MaxPerHour, s.MaxPerHour = 1, 2
		},
		"fleet's page": func(_ *Right, s *Score) {
			s.Fleet = map[string][]Paged{"policy": {{Reason: "policy-fault", To: oncall}}}
		},
		"receiver": func(_ *Right, s *Score) { s.service("dns-a").Pages[0].To = "backup" },
	} {
		t.Run(what, func(t *testing.T) {
			r, other := clone(in.Right), s
			other.Services = slices.Clone(s.Services)
			for i := range other.Services {
				other.Services[i].Pages = slices.Clone(s.Services[i].Pages)
			}
			change(&r, &other)
			// What never is done is looked for in each of the two services.
			if wrong := r.compare(other, in.Limits); len(wrong) != 1+len(r.Never) {
				t.Errorf("it finds %q, want one thing that is not right", wrong)
			}
		})
	}
}

// Without its brake, or with other people, an incident ends in another way: none
// of these answers is right because nothing can happen.
func TestWithoutTheBrakeTheAnswerIsMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("plays hours of simulated time")
	}
	all, err := Load(suite)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(in *Incident){
		"I07-upstream-provider-outage":       func(in *Incident) { in.Limits.StormMin = 100 },
		"healing-spreads-the-fault":          func(in *Incident) { in.Limits.StormFraction = 0.99 },
		"source-lost":                        func(in *Incident) { in.Unreachable = nil },
		"I08-telemetry-outage-reads-as-zero": func(in *Incident) { in.SLIs[0].Success = Course{{Value: 0.996}, {Value: 0.2}} },
		"one-sli-blank":                      func(in *Incident) { in.SLIs[1].Success = Course{{Value: 0.996}} },
		"short-partition":                    func(in *Incident) { in.Answers[0].After = 0 },
		"approver-away":                      func(in *Incident) { in.Proposes = in.Proposes[1:] },
		"drastic-remedy":                     func(in *Incident) { in.Answers = []Answer{{Who: "os:alice", Approve: true}} },
		"superseded-plan":                    func(in *Incident) { in.Effects[0].Set = nil },
		"empty-set":                          func(in *Incident) { in.Effects = nil },
		"late-observation":                   func(in *Incident) { in.Targets[0].Delay = 20 * time.Minute },
		"faster-evaluation":                  func(in *Incident) { in.Limits.EffectsPerServicePerHour = 6 },
		"failing-executor":                   func(in *Incident) { in.Targets = nil },
		"I15-certificate-expiry":             func(in *Incident) { in.SLIs[0].Requests = Course{{Value: 1500}} },
		"I16-memory-leak-restart-buys-time":  func(in *Incident) { in.SLIs[0].Errors = Course{{Value: 0.0001}} },
		"paused-and-recovered":               func(in *Incident) { in.Freezes = nil },
		"two-controllers":                    func(in *Incident) { in.Targets[0].Mode, in.Targets[0].Delay = "ok", 0 },
		"foreign-change":                     func(in *Incident) { in.Targets[0].Foreign = nil },
		"silenced":                           func(in *Incident) { in.Silences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(all, func(in Incident) bool { return in.Name == name })
			in := all[i]
			in.SLIs, in.Effects, in.Targets = slices.Clone(in.SLIs), slices.Clone(in.Effects), slices.Clone(in.Targets)
			in.Answers = slices.Clone(in.Answers)
			change(&in)
			s, err := Run(t.Context(), in, in.Sweeps[0], Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Wrong) == 0 {
				t.Error("the answer is still right: it holds for another reason than the incident says")
			}
		})
	}
}

// Two runs are equal, or nothing could be said of a third.
func TestRunRepeats(t *testing.T) {
	_, a := played(t, "lost-answer")
	_, b := played(t, "lost-answer")
	if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(Service{}, Effected{})); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

func TestDifferFindsWhatHangsOnSpeed(t *testing.T) {
	one := Score{SweepSeconds: 30, MaxPerHour: 2, Services: []Service{{Service: "a", Effects: make([]Effected, 2)}}}
	same := one
	same.SweepSeconds = 1
	if got := differ(one, same); len(got) > 0 {
		t.Errorf("equal runs differ: %q", got)
	}
	same.Services, same.MaxPerHour = []Service{{Service: "a", Effects: make([]Effected, 3)}}, 3
	if got := differ(one, same); len(got) != 2 {
		t.Errorf("it finds %q, want the number and the rate", got)
	}
}
