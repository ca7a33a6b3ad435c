package incident

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const suite = "../../../evals/incidents"

// small is an incident that has a fault when one of its lines is changed.
const small = `incident: small
source: nowhere
what: a thing broke
why: it must be so
for: 20m
documents:
  - |
    apiVersion: openslo/v1
    kind: SLO
    metadata: {name: shop-http}
    spec:
      service: shop
      indicator:
        metadata: {name: shop-good}
        spec:
          ratioMetric:
            counter: true
            good: {metricSource: {type: Prometheus, spec: {query: 'requests_total{service="shop",code="200"}'}}}
            total: {metricSource: {type: Prometheus, spec: {query: 'requests_total{service="shop"}'}}}
      timeWindow: [{duration: 30d, isRolling: true}]
      budgetingMethod: Occurrences
      objectives: [{target: 0.999}]
    ---
    apiVersion: setpoint.dev/v1alpha1
    kind: Remediation
    metadata: {name: shop}
    spec:
      service: shop
      mode: auto
      approvers: ["@oncall"]
      actions:
        - name: restart
          uses: webhook.post
          target: {url: "http://actuator.internal/shop", statusURL: "http://actuator.internal/shop"}
          class: auto
          reversal: transient
          settle: 1m
      escalation: {receivers: [oncall]}
slis:
  - {service: shop, sli: http, errors: [0, 0.5 for 2m, gone], requests: [10]}
effects:
  - {service: shop, action: restart, then: [{service: shop, sli: http, errors: [0], requests: [10]}]}
targets:
  - {path: /shop, mode: drop-reply}
proposes:
  - {service: shop, until: 5m, propose: {action: restart}}
answers:
  - {who: "os:alice", approve: true, after: 1m}
right:
  effects: {}
  pages: {}
  state: {shop: met}
`

func TestSmallIsAnIncident(t *testing.T) {
	in, err := Parse(spec.File{Name: "small.yaml", Data: []byte(small)})
	if err != nil {
		t.Fatal(err)
	}
	if in.Limits.EffectsPerServicePerHour != 2 || in.Limits.MaxMode != spec.Auto || in.Sweeps[0] != 30*time.Second {
		t.Errorf("limits %+v, sweeps %v, want the defaults with maxMode auto", in.Limits, in.Sweeps)
	}
}

// Every mistake is found, and at its place.
func TestParseFaults(t *testing.T) {
	tests := map[string]struct{ reason, old, now, want string }{
		"unknown key":      {"a key that is misspelt would change nothing", "why:", "wy:", "small.yaml:4: wy: unknown key"},
		"missing":          {"an incident of nowhere proves nothing", "source: nowhere\n", "", "source: is required"},
		"no right":         {"without a right answer every run is right", "  state: {shop: met}\n", "", "right.state: is required"},
		"type":             {"no type is made of another", "for: 20m", "for: soon", "small.yaml:5: for: \"soon\" is not a duration"},
		"too long":         {"what takes hours is no eval", "for: 20m", "for: 90d", "for: 90d is not between"},
		"document":         {"the documents are checked, at their own lines", "mode: auto\n", "mode: fast\n", "small.yaml:29: spec.mode"},
		"document's key":   {"strictness holds inside of them", "          settle: 1m", "          setle: 1m", "small.yaml:37: spec.actions[0].setle"},
		"sli's service":    {"a series that nobody reads", "- {service: shop, sli: http, errors: [0, 0.5", "- {service: shoq, sli: http, errors: [0, 0.5", "small.yaml:40: slis[0].service: \"shoq\" is no service"},
		"share":            {"more than all requests fail", "0.5 for 2m", "1.5 for 2m", "a share of 1.5"},
		"length":           {"a length that is none", "0.5 for 2m", "0.5 for ever", "small.yaml:40: slis[0].errors[1]: \"ever\" is no length"},
		"value":            {"a value that is none", "gone], requests", "away], requests", "\"away\" is no number"},
		"negative":         {"less than nothing fails", "[0, 0.5", "[-1, 0.5", "\"-1\" is no number"},
		"no course":        {"neither errors nor success", "errors: [0, 0.5 for 2m, gone], ", "", "want either errors or success"},
		"effect's action":  {"an effect that nothing has", "action: restart, then", "action: reboot, then", "small.yaml:42: effects[0].action: \"reboot\" is no action of shop"},
		"effect's sli":     {"a course of nothing", "then: [{service: shop, sli: http", "then: [{service: shop, sli: htp", "shop/htp is none of slis"},
		"target's path":    {"an actuator that nobody calls", "path: /shop,", "path: /shoq,", "small.yaml:44: targets[0].path"},
		"mode":             {"a mode that is none", "mode: drop-reply", "mode: sulk", "unknown word \"sulk\""},
		"hang":             {"it would wait in real time", "mode: drop-reply", "mode: hang", "hang waits in real time"},
		"proposed action":  {"a proposal that no catalogue holds", "propose: {action: restart}", "propose: {action: reboot}", "small.yaml:46: proposes[0].propose.action"},
		"proposed word":    {"a word that is none", "propose: {action: restart}", "propose: perhaps", "want none, escalate, or an action"},
		"until":            {"after the end", "until: 5m", "until: 50m", "50m is not within the 20m"},
		"who":              {"nobody can be asked who that is", "os:alice", "alice", "answers[0].who"},
		"right's service":  {"true for ever", "state: {shop: met}", "state: {shoq: met}", "right: \"shoq\" is no service"},
		"right's state":    {"a state that is none", "state: {shop: met}", "state: {shop: fine}", "unknown state \"fine\""},
		"right's effect":   {"true for ever", "effects: {}", "effects: {shop: [reboot]}", "\"reboot\" is no action of shop"},
		"right's never":    {"true for ever", "effects: {}", "effects: {}\n  never: [reboot]", "right.never[0]"},
		"right's verdict":  {"a word that is none", "effects: {}", "effects: {}\n  last: {shop: {verdict: perhaps}}", "unknown verdict \"perhaps\""},
		"freeze's end":     {"ends before it begins", "right:", "freezes: [{who: \"os:alice\", reason: x, from: 5m, until: 4m}]\nright:", "freezes[0].until: is not after from"},
		"restarts' speed":  {"nothing would be done but starting", "right:", "restarts: {every: 10ms, until: 4m}\nright:", "restarts.every"},
		"sweep":            {"a sweep longer than it all", "for: 20m", "for: 20m\nsweeps: [1h]", "sweeps[0]"},
		"second document":  {"one file, one incident", "right:", "---\nright:", "a second document"},
		"limits":           {"strict inside as well", "for: 20m", "for: 20m\nlimits: {stormMinimum: 2}", "limits.stormMinimum: unknown key"},
		"documents' shape": {"neither text nor a mapping", "documents:\n  - |", "documents:\n  - [a]\n  - |", "want a block of text"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(small, tc.old, tc.now, 1)
			if text == small {
				t.Fatalf("%q is not in it", tc.old)
			}
			_, err := Parse(spec.File{Name: "small.yaml", Data: []byte(text)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error\n%v\nwant it to say %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestLoadTellsIncidentsFromScenarios(t *testing.T) {
	if !Holds(suite) || Holds("../../../evals") || Holds("nowhere") {
		t.Errorf("incidents %t, scenarios %t, nothing %t", Holds(suite), Holds("../../../evals"), Holds("nowhere"))
	}
	dir := t.TempDir()
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "no incident in it") {
		t.Errorf("an empty folder gives %v", err)
	}
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(small), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "b.yaml:1: incident: \"small\" is the name of") {
		t.Errorf("two of one name give %v", err)
	}
}

// What has to be rebuilt is: a file that was lost would be missed by nobody.
func TestTheSuiteIsWhole(t *testing.T) {
	all, err := Load(suite)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, in := range all {
		names = append(names, in.Name)
	}
	for _, want := range []string{
		"I01-deploy-regression", "I05-bad-config-as-desired-state", "I06-planned-outage-on-purpose", "I07-upstream-provider-outage",
		"I08-telemetry-outage-reads-as-zero", "I11-restart-thundering-herd", "I13-quota-lowered-by-bad-usage-data",
		"I15-certificate-expiry", "I16-memory-leak-restart-buys-time", "I19-poison-message", "I21-unsupported-downgrade-shared-naming",
		"late-observation", "lost-answer", "one-sli-blank", "superseded-plan", "empty-set", "healing-spreads-the-fault",
		"short-partition", "approver-away", "drastic-remedy", "faster-evaluation", "failing-executor", "made-worse-and-undone", "foreign-change",
		"two-controllers", "back-and-forth", "source-lost", "paused-and-recovered", "never-met", "exception-over", "silenced", "answer-in-a-storm",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in it", want)
		}
	}
}

func TestCourse(t *testing.T) {
	c := Course{{Value: 1}, {Value: 2, For: 5 * time.Minute}, {Gone: true}, {Value: 4}}
	for at, want := range map[time.Duration]Point{
		-time.Hour: c[0], 0: c[0], 59 * time.Second: c[0], time.Minute: c[1], 6*time.Minute - 1: c[1],
		6 * time.Minute: c[2], 7 * time.Minute: c[3], 100 * time.Hour: c[3],
	} {
		if got := c.at(at, time.Minute); got != want {
			t.Errorf("after %s %+v, want %+v", at, got, want)
		}
	}
	success := SLI{Success: Course{{Value: 0.75}}, Every: time.Minute}
	if got := success.share(0); got.Value != 0.25 {
		t.Errorf("a success of 0.75 fails %g of all", got.Value)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	for _, other := range []string{"", "incident: x", "right: {effects: {a: [b]}}", "slis: [{errors: [1 for 2m]}]", "documents: [{for: [a], text: b}]"} {
		f.Add(other)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := Parse(spec.File{Name: "fuzz.yaml", Data: []byte(text)})
		if err != nil {
			if len(err.Error()) == 0 {
				t.Error("an error that says nothing")
			}
			return
		}
		if in.For <= 0 || len(in.SLIs) == 0 || len(in.Right.State) == 0 {
			t.Errorf("taken as an incident: %+v", in)
		}
	})
}

// The chain in memory takes the start of an incident, whenever that is.
func TestChainBearsTheIncidentsTime(t *testing.T) {
	at := time.Date(2028, time.February, 29, 0, 0, 0, 0, time.UTC)
	chain, err := month.NewChain("os:lab", func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	entries, err := chain.Read(t.Context(), 0, 1)
	if err != nil || len(entries) != 1 || !entries[0].Time.Equal(at) {
		t.Errorf("%+v, %v, want one entry at %s", entries, err, at)
	}
}
