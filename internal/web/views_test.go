package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, v any) {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), buf.String()); diff != "" {
		t.Errorf("%s (-want, +got); -update writes it after a change on purpose:\n%s", file, diff)
	}
}

func TestGolden(t *testing.T) {
	v, all := world(t), web.Filter{}
	golden(t, "services", web.Services(v, all))
	golden(t, "objectives", web.Objectives(v, all))
	golden(t, "actions", web.Actions(v, all))
	golden(t, "approvals", web.Approvals(v, all))
	golden(t, "budgets", web.Budgets(v, all))
	golden(t, "drift", web.DriftList{List: web.Drifts(v, all)})
	golden(t, "decisions", web.Decisions(v, all))
	golden(t, "pages", web.Pages(v, all))
	golden(t, "freezes", web.Freezes(v, all))
	golden(t, "plan", web.Plan(v.Set, v.MaxMode, []reconcile.Result{result()}))
	golden(t, "explanation", web.Explain(v, web.PlanOf(v.Set, v.MaxMode, result())))
	golden(t, "ceilings", web.Ceilings(v.Set, spec.Approval))
	d, ok := web.DecisionByID(v, "d4")
	if !ok {
		t.Fatal("d4 is in the history")
	}
	golden(t, "decision", d)
	ask, ok := web.DecisionByID(v, "d9")
	if !ok || ask.Ticket == nil || ask.Receipt != nil {
		t.Errorf("d9 asked and sent nothing: ticket %v, receipt %v", ask.Ticket, ask.Receipt)
	}
}

// TestContractFields holds the names that scripts rely on.
func TestContractFields(t *testing.T) {
	v, all := world(t), web.Filter{}
	cases := map[string]struct {
		list   any
		kind   string
		fields []string
	}{
		"services": {web.Services(v, all), "ServiceList", []string{
			"service", "owner", "mode", "ceiling", "state", "reason", "sinceSeconds", "episode", "lastObserved", "lastMet", "nextTry", "balanceRemaining"}},
		"decisions": {web.Decisions(v, all), "DecisionList", []string{
			"id", "time", "service", "episode", "window", "key", "step", "state", "verdict", "reasons", "action", "parameters", "digest",
			"policyRevision", "effect", "outcome", "charge", "proposer"}},
		"approvals": {web.Approvals(v, all), "ApprovalList", []string{
			"id", "service", "episode", "key", "action", "parameters", "digest", "asked", "expires", "state", "answers", "reason", "card"}},
		"budgets": {web.Budgets(v, all), "BudgetList", []string{
			"service", "action", "period", "capacity", "remaining", "charges", "spent", "perWeek", "nextRoom", "empty", "resets", "arithmetic"}},
		"drift": {web.DriftList{List: web.Drifts(v, all)}, "DriftList", []string{
			"service", "owner", "mode", "state", "reason", "episode", "since", "ageSeconds", "tried", "pending", "page", "planned"}},
		"plan": {web.Plan(v.Set, v.MaxMode, []reconcile.Result{result()}), "PlanList", []string{
			"service", "mode", "state", "reason", "objectives", "balance", "step", "reasons", "proposal", "decision", "key"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				APIVersion string                       `json:"apiVersion"`
				Kind       string                       `json:"kind"`
				Items      []map[string]json.RawMessage `json:"items"`
			}
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if got.APIVersion != "setpoint.dev/v1alpha1" || got.Kind != tc.kind || len(got.Items) == 0 {
				t.Fatalf("head %q %q with %d items", got.APIVersion, got.Kind, len(got.Items))
			}
			for _, f := range tc.fields {
				if _, ok := got.Items[0][f]; !ok {
					t.Errorf("%s: no field %q", tc.kind, f)
				}
			}
		})
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	v := web.View{State: ledger.NewState(), Now: start}
	for name, list := range map[string]any{
		"services": web.Services(v, web.Filter{}), "decisions": web.Decisions(v, web.Filter{}), "pages": web.Pages(v, web.Filter{}),
	} {
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, []byte(`"items":[]`)) {
			t.Errorf("%s: a script that loops over items must not meet null: %s", name, data)
		}
	}
}

func TestFilters(t *testing.T) {
	v := world(t)
	late := web.Filter{Since: start.Add(8 * time.Minute)}
	cases := map[string]struct {
		reason string
		got    int
		want   int
	}{
		"DecisionsOfService":  {"both are of checkout", len(web.Decisions(v, web.Filter{Service: "checkout"}).Items), 2},
		"DecisionsOfOther":    {"search never decided", len(web.Decisions(v, web.Filter{Service: "search"}).Items), 0},
		"DecisionsSince":      {"the first was earlier", len(web.Decisions(v, late).Items), 1},
		"ServicesSince":       {"checkout changed earlier, search never did", len(web.Services(v, late).Items), 0},
		"BudgetsOfService":    {"two actions, and the global one belongs to nobody", len(web.Budgets(v, web.Filter{Service: "checkout"}).Items), 2},
		"FreezeOfAllBindsOne": {"a freeze of everything concerns search too", len(web.Freezes(v, web.Filter{Service: "search"}).Items), 1},
		"OpenPageStays":       {"an open page is shown however old", len(web.Pages(v, web.Filter{Since: v.Now}).Items), 1},
		"ActionsSince":        {"rollback was never sent", len(web.Actions(v, web.Filter{Since: start}).Items), 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, tc.got, tc.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	if got, err := web.ParseSince("2h", start); err != nil || !got.Equal(start.Add(-2*time.Hour)) {
		t.Errorf("since 2h: %v, %v", got, err)
	}
	if got, err := web.ParseUntil("2h", start); err != nil || !got.Equal(start.Add(2*time.Hour)) {
		t.Errorf("until 2h: %v, %v", got, err)
	}
	if got, err := web.ParseUntil("2026-03-01T14:00:00+01:00", start); err != nil || !got.Equal(start.Add(time.Hour)) {
		t.Errorf("until a time: %v, %v", got, err)
	}
	for _, text := range []string{"", "soon", "2026-03-01", "-2h", "2026-03-01T12:00:00Z"} {
		if got, err := web.ParseUntil(text, start); err == nil {
			t.Errorf("until %q was taken as %v", text, got)
		}
	}
}

func TestRemedyOfUnreadableSilences(t *testing.T) {
	if got := web.Remedy("silences-unreadable"); !strings.Contains(got, "Alertmanager") || !strings.Contains(got, "receivers") {
		t.Errorf("whoever is held by a dead Alertmanager reads %q", got)
	}
}

func TestFreezesShow(t *testing.T) {
	v := world(t)
	v.Files = nil
	frozen := map[string]bool{}
	for _, s := range web.Services(v, web.Filter{}).Items {
		frozen[s.Service] = s.Frozen
	}
	for _, a := range web.Actions(v, web.Filter{}).Items {
		frozen[a.Service+"/"+a.Action] = a.Frozen
	}
	want := map[string]bool{"checkout": true, "checkout/scale": true, "checkout/rollback": true, "search": false}
	if diff := cmp.Diff(want, frozen); diff != "" {
		t.Errorf("the ledger has a freeze of checkout only (-want, +got):\n%s", diff)
	}
	v.Files = []ledger.Freeze{{ID: "f9", By: "os:bob"}}
	for _, s := range web.Services(v, web.Filter{}).Items {
		if !s.Frozen {
			t.Errorf("a file freezes everything, and %s does not show it", s.Service)
		}
	}
}

func TestServicesWithoutDocuments(t *testing.T) {
	v := world(t)
	v.Set, v.Undeclared = spec.Set{}, errors.New("a fault")
	var got []string
	for _, s := range web.Services(v, web.Filter{}).Items {
		got = append(got, s.Service+" "+s.Mode+" "+s.Ceiling+" "+s.State)
	}
	if diff := cmp.Diff([]string{"checkout unknown unknown breached", "search unknown unknown unknown"}, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestObserveIsPlain also follows the words of the gate: when they change, the
// plain ones must not get lost.
func TestObserveIsPlain(t *testing.T) {
	v := world(t)
	v.MaxMode = spec.Observe
	s := web.Services(v, web.Filter{Service: "checkout"}).Items[0]
	if s.Mode != "auto" || s.EffectiveMode != "observe" {
		t.Errorf("mode %q stays the document's, effective %q is what binds", s.Mode, s.EffectiveMode)
	}
	want := web.Detail{Code: "max-mode", Text: "limits.maxMode is observe: nothing is sent"}
	if got := web.Actions(v, web.Filter{}).Items[0].Details; len(got) == 0 || got[0] != want {
		t.Errorf("actions: %+v, want %+v first", got, want)
	}
	if got := web.Ceilings(v.Set, v.MaxMode)[0].Because; len(got) != 1 || got[0] != want {
		t.Errorf("ceilings: %+v, want %+v", got, want)
	}
	needed := web.Explain(v, web.PlanOf(v.Set, v.MaxMode, result())).Needed
	if !slices.Contains(needed, web.Needed{Code: "max-mode", Text: "limits.maxMode: auto in setpoint.yaml"}) {
		t.Errorf("nothing says that maxMode binds: %+v", needed)
	}
	if slices.ContainsFunc(needed, func(n web.Needed) bool { return n.Code == "mode" }) {
		t.Errorf("the mode of the document does not bind: %+v", needed)
	}
	v.Set.Services[0].Remediation.Mode = spec.Observe
	needed = web.Explain(v, web.PlanOf(v.Set, v.MaxMode, result())).Needed
	if !slices.Contains(needed, web.Needed{Code: "mode", Text: "mode: auto in the Remediation"}) {
		t.Errorf("nothing says that the mode binds too: %+v", needed)
	}
}
