package tokens_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

const root = "../../../"

// most is B11: the tokens of an episode's question, with its answer and the
// one repair turn.
const most = 3000

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func documents(t testing.TB, folder string) spec.Set {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents in %s: %v", folder, err)
	}
	var files []spec.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Name: name, Data: data})
	}
	set, err := spec.Load(files, []spec.Reader{openslo.Reader{}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// breached is a question about a service in whose breach there is so much to
// tell: rows of each breakdown, changes and earlier attempts.
func breached(svc spec.Service, rows, changes, tried int) propose.Request {
	r := propose.Request{
		Service: svc, Since: now.Add(-4 * time.Minute), Now: now,
		Assessment:   compare.Assessment{Service: svc.Name, At: now, State: compare.Breached, Reason: compare.Burning},
		Remaining:    map[string]float64{"": 8.5},
		Dependencies: map[string]compare.State{},
	}
	for i, o := range svc.Objectives {
		r.Assessment.Objectives = append(r.Assessment.Objectives, burning(o, i))
	}
	for _, name := range svc.Remediation.DependsOn {
		r.Dependencies[name] = compare.Met
	}
	for _, a := range svc.Remediation.Actions {
		r.Remaining[a.Name] = 1.5
		r.Catalogue = append(r.Catalogue, propose.Item{Action: a, LiveKnown: true, Live: propose.Live{
			"version": "v42", "previousVersion": "v41", "replicas": int64(4),
		}})
	}
	for _, e := range svc.Remediation.Evidence {
		b := measure.Breakdown{Name: e.Name, Labels: e.Labels}
		for i := range rows {
			row := measure.BreakdownRow{Number: 118.73129 / float64(i+1)}
			for _, label := range e.Labels {
				row.Values = append(row.Values, valueOf(label, i))
			}
			b.Rows = append(b.Rows, row)
		}
		r.Breakdowns = append(r.Breakdowns, b)
	}
	for i := range changes {
		r.Changes = append(r.Changes, measure.Change{
			At: now.Add(-time.Duration(5+37*i) * time.Minute), Service: svc.Name, What: "deploy", Version: fmt.Sprintf("v%d", 42-i),
		})
	}
	for i := range tried {
		a := r.Catalogue[i%len(r.Catalogue)].Action
		r.Tried = append(r.Tried, propose.Tried{
			Action: a.Name, Parameters: propose.Parameters{}, At: now.Add(time.Duration(i-tried)*13*time.Minute - 17*time.Second),
			Effect: "applied", Outcome: compare.OutcomeNoChange, Before: 0.312847, After: 0.298811, ThisEpisode: i >= tried/2,
		})
	}
	return r
}

// valueOf is the value of a label in a row, as the shop has them.
func valueOf(label string, i int) string {
	switch label {
	case "version":
		return []string{"v42", "v42", "v41", "v41"}[i%4]
	case "code":
		return []string{"500", "200", "200", "503"}[i%4]
	}
	return fmt.Sprintf("%s value %d", label, i)
}

func burning(o spec.Objective, i int) compare.Objective {
	out := compare.Objective{
		ID: o.ID, State: compare.Breached, Reason: compare.Burning, Target: o.Target, SampleAge: 7 * time.Second,
		Judge:  measure.Measurement{Total: 1203.4471 + float64(i), Good: 842.1, HasEvents: true, ErrorRatio: 0.30027931},
		Period: measure.Measurement{Total: 8123994.31, Good: 8101993, HasEvents: true, ErrorRatio: 0.00270817},
	}
	if len(o.GroupBy) > 0 {
		out.Groups, out.GroupsBreached = 12, 3
		out.Group = measure.GroupName(o.GroupBy, func(label string) string { return label + " 7" })
	}
	for _, b := range o.BurnRates {
		out.Burns = append(out.Burns, compare.Burn{BurnRate: b, ShortRate: 30.0279, LongRate: 17.3391, Known: true, Burning: b.Page})
	}
	return out
}

// services are those of the shipped scenarios, by scenario, and all of slo/.
func services(t testing.TB) map[string]spec.Service {
	t.Helper()
	all, err := scenario.Load(root + "evals")
	if err != nil || len(all) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	out := map[string]spec.Service{}
	for _, s := range all {
		svc, ok := documents(t, s.Documents).Service(s.Right.Service)
		if !ok {
			t.Fatalf("%s: no service %s", s.Name, s.Right.Service)
		}
		out[s.Name] = svc
	}
	for _, svc := range documents(t, root+"slo").Services {
		out["slo/ "+svc.Name] = svc
	}
	return out
}

// answered is a reply with a rationale of the length that people write.
func answered(r propose.Request) string {
	return fmt.Sprintf(`{"action": %q, "parameters": {"version": "v41"}, "rationale": %q}`, r.Catalogue[0].Action.Name,
		"The judge error ratio rose to 0.3 within four minutes of the deploy of version-1, all errors are of version-1 and none of the version before it, and nothing was tried yet. Going back to it takes the cause away.")
}

// TestScenarios is B11.
func TestScenarios(t *testing.T) {
	t.Parallel()
	limit := config.Default().Proposer.PromptTokens
	repair, err := shipped(t).Repair(`action rollback: parameter "version": "v42" is none of the permitted values: v41`)
	if err != nil {
		t.Fatal(err)
	}
	for name, svc := range services(t) {
		for _, filled := range []struct {
			name                 string
			rows, changes, tried int
		}{{"first", 4, 1, 0}, {"second", 6, 2, 1}, {"full", 40, 20, 10}} {
			r := breached(svc, filled.rows, filled.changes, filled.tried)
			p, schema := question(t, r, limit)
			asked := count(t, p.System, p.User, schema)
			answer := count(t, answered(r))
			again := count(t, p.System, p.User, schema, answered(r), repair)
			t.Logf("%-22s %-6s question %d (estimate %d), answer %d, with a repair turn %d", name, filled.name, asked, p.Tokens, answer, asked+again+2*answer)
			if asked > limit {
				t.Errorf("%s, %s: %d tokens are asked, and promptTokens is %d", name, filled.name, asked, limit)
			}
			if asked+answer > most {
				t.Errorf("%s, %s: %d tokens, want at most %d", name, filled.name, asked+answer, most)
			}
			if filled.name == "first" && asked+again+2*answer > most {
				t.Errorf("%s: %d tokens with a repair turn, want at most %d", name, asked+again+2*answer, most)
			}
		}
	}
}

// TestEstimate: our count is never below a tokenizer's, and not far above it.
func TestEstimate(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for name, svc := range services(t) {
		r := breached(svc, 10, 5, 10)
		p, schema := question(t, r, 0)
		texts[name+" user"], texts[name+" schema"], texts["system"] = p.User, schema, p.System
	}
	files, err := filepath.Glob(root + "*/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no texts: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = string(data)
	}
	for name, text := range texts {
		is, ours := count(t, text)-perMessage, propose.EstimateText(text)
		ratio := float64(ours) / float64(is)
		t.Logf("%-30s %6d tokens, %.2f characters each; our estimate is %.2f of it, four characters a token %.2f",
			name, is, float64(len(text))/float64(is), ratio, float64(len(text))/4/float64(is))
		if ratio < 1 || ratio > 1.5 {
			t.Errorf("%s: %d tokens are estimated, and %d counted", name, ours, is)
		}
		if strings.HasSuffix(name, " schema") && propose.EstimateTokens(len(text)) < is {
			t.Errorf("%s: of its length alone %d tokens are estimated, and %d counted", name, propose.EstimateTokens(len(text)), is)
		}
	}
}

// TestCut: what is cut to a limit by our estimate is within it by the
// tokenizer too, whatever the limit.
func TestCut(t *testing.T) {
	t.Parallel()
	svc, _ := documents(t, root+"slo").Service("checkout")
	for i := range 8 {
		svc.Remediation.Evidence = append(svc.Remediation.Evidence, spec.Evidence{
			Name: fmt.Sprintf("requests per second by host, path and method, part %d", i), Labels: []string{"host", "path", "method"},
		})
	}
	r := breached(svc, 50, 30, 10)
	for limit := 1600; limit <= 4000; limit += 300 {
		p, schema := question(t, r, limit)
		is := count(t, p.System, p.User, schema)
		t.Logf("limit %d: estimate %d, counted %d; left out: %d rows, %d changes, %d attempts", limit, p.Tokens, is, p.RowsOmitted, p.ChangesOmitted, p.TriedOmitted)
		if is > limit || p.Tokens > limit || p.RowsOmitted == 0 {
			t.Errorf("limit %d: estimate %d, counted %d", limit, p.Tokens, is)
		}
	}
}
