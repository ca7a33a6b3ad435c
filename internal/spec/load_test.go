package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
	"github.com/setpoint-dev/setpoint/internal/spec/pyrra"
	"github.com/setpoint-dev/setpoint/internal/spec/sloth"
)

func load(t testing.TB, files ...spec.File) spec.Set {
	t.Helper()
	set, err := spec.Load(files, readers)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func service(t testing.TB, set spec.Set, name string) spec.Service {
	t.Helper()
	svc, ok := set.Service(name)
	if !ok {
		t.Fatalf("no service %q in %v", name, set.Services)
	}
	return svc
}

func ptr[T any](v T) *T { return &v }

func TestLoadWhole(t *testing.T) {
	set := load(t, read(t, "base.yaml"), read(t, "valid.yaml"))
	shop := service(t, set, "shop")
	r := shop.Remediation
	want := spec.Remediation{
		Name: "shop", Service: "shop", Owner: "team-payments", Mode: spec.Auto,
		ActionWindow: 5 * time.Minute, BreachFor: time.Minute, HoldFor: 4 * time.Minute, UnknownFor: 8 * time.Minute,
		EscalateWithin: 10 * time.Minute, ApprovalFor: 7 * time.Minute,
		Approvers: []string{"@oncall"}, DependsOn: []string{"stock"},
		Evidence: []spec.Evidence{{Name: "by version", Query: spec.Query{Expr: `sum by (version) (rate(requests_total[5m]))`}, Labels: []string{"version"}}},
		Actions: []spec.Action{
			{
				Name: "rollback", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
				Target: spec.Target{URL: "http://flags.example/shop", StatusURL: "http://flags.example/shop?full=1", Secret: "flags", Dedup: true},
				Settle: time.Minute, Cooldown: time.Hour, Timeout: 5 * time.Second, MaxLateness: time.Minute,
				Parameters: []spec.Parameter{
					{Name: "colour", Type: spec.String, Enum: []string{"blue", "green"}},
					{Name: "force", Type: spec.Boolean},
					{Name: "replicas", Type: spec.Integer, Minimum: ptr(3.0), Maximum: ptr(20.0), MaximumFactor: 2},
					{Name: "share", Type: spec.Number, Minimum: ptr(-0.5), Maximum: ptr(0.5)},
					{Name: "tag", Type: spec.String, Pattern: "v[0-9]+"},
					{Name: "version", Type: spec.String, FromState: "previousVersion"},
				},
			},
			{
				Name: "page-owner", Uses: "webhook.post", Class: spec.ClassEscalate, Reversal: spec.Irreversible,
				Target: spec.Target{URL: "https://flags.example"},
				Settle: 2 * time.Minute, Cooldown: 30 * time.Minute, Timeout: 10 * time.Second, MaxLateness: 30 * time.Second,
			},
		},
		Budget:     spec.Budget{Period: 14 * 24 * time.Hour, Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 3, Unknown: 1}},
		Outcomes:   spec.Outcomes{Improved: 0.6, Worsened: 0.2},
		Escalation: spec.Escalation{Receivers: []string{"oncall", "backup"}, OwnerReceivers: []string{"backup"}, Observe: true},
	}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreTypes(spec.Position{})); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
	o := shop.Objectives[0]
	if o.JudgeWindow != 3*time.Minute || o.MinEvents != 50 || o.Indicator.AbsentBadZero ||
		o.Indicator.Good.Source != "probe" || o.Indicator.Total.Source != "probe" {
		t.Errorf("the override did not reach the objective: %+v", o)
	}
	if diff := cmp.Diff(spec.Outcomes{Improved: 0.7, Worsened: 0.1}, o.Outcomes); diff != "" {
		t.Errorf("outcomes (-want, +got)\n%s", diff)
	}
	if stock := service(t, set, "stock").Objectives[0]; stock.Outcomes != (spec.Outcomes{}) {
		t.Errorf("an objective without outcomes has %+v, want none of its own", stock.Outcomes)
	}
	if diff := cmp.Diff([]spec.BurnRate{{Short: 5 * time.Minute, Long: time.Hour, Factor: 14.4}}, o.BurnRates); diff != "" {
		t.Errorf("burn rates (-want, +got)\n%s", diff)
	}
	limits := []any{set.Maintenances, set.Exceptions}
	wantLimits := []any{
		[]spec.Maintenance{{
			Name: "move", Services: []string{"shop"}, Effect: spec.Approval, Owner: "team-payments", Reason: "the database moves",
			Schedule: spec.Schedule{Start: at(t, "2026-12-01T13:00:00Z"), Duration: 30 * time.Minute, TimeZone: "Europe/Berlin"},
		}, {
			Name: "nightly", Services: []string{"shop", "stock"}, Effect: spec.Observe, Owner: "team-payments", Reason: "batch", MutePages: true,
			Schedule: spec.Schedule{Cron: "0 2 * * *", Duration: time.Hour, TimeZone: "UTC"},
		}},
		[]spec.Exception{{
			Name: "sale", Service: "shop", Effect: spec.Approval, Until: at(t, "2026-12-01T00:00:00Z"), Owner: "team-payments", Reason: "many people",
		}},
	}
	if diff := cmp.Diff(wantLimits, limits, cmpopts.IgnoreTypes(spec.Position{})); diff != "" {
		t.Errorf("limits (-want, +got)\n%s", diff)
	}
}

func TestWholePattern(t *testing.T) {
	if got := (spec.Parameter{Pattern: "a|b"}).Whole(); got != `\A(?:a|b)\z` {
		t.Errorf("the pattern is not anchored as a whole: %s", got)
	}
	if got := (spec.Parameter{}).Whole(); got != "" {
		t.Errorf("no pattern became %s", got)
	}
}

// TestObjectiveBeatsSLO: an override by "slo/objective" wins over the SLO's.
func TestObjectiveBeatsSLO(t *testing.T) {
	text := strings.Replace(string(read(t, "base.yaml").Data), "objectives: [{target: 0.99}]",
		"objectives: [{displayName: good, target: 0.99}, {displayName: better, target: 0.999}]", 1)
	const remediation = `
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  objectives:
    shop-availability: {minEvents: 10, judgeWindow: 3m, outcomes: {improved: 0.3, worsened: 0.4}}
    shop-availability/better: {minEvents: 20, outcomes: {worsened: 0.6}}
`
	set := load(t, spec.File{Name: "a", Data: []byte(text)}, spec.File{Name: "b", Data: []byte(remediation)})
	got, shares := map[string]float64{}, map[string]spec.Outcomes{}
	for _, o := range service(t, set, "shop").Objectives {
		got[o.ID], shares[o.ID] = o.MinEvents, o.Outcomes
		if o.JudgeWindow != 3*time.Minute {
			t.Errorf("%s has judge window %s", o.ID, o.JudgeWindow)
		}
	}
	if diff := cmp.Diff(map[string]float64{"shop-availability/better": 20, "shop-availability/good": 10}, got); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
	want := map[string]spec.Outcomes{"shop-availability/good": {Improved: 0.3, Worsened: 0.4}, "shop-availability/better": {Improved: 0.3, Worsened: 0.6}}
	if diff := cmp.Diff(want, shares); diff != "" {
		t.Errorf("outcomes (-want, +got)\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	base, valid := read(t, "base.yaml"), read(t, "valid.yaml")
	before := load(t, base, valid)
	edit := func(old, new string) spec.Set {
		t.Helper()
		text := strings.Replace(string(valid.Data), old, new, 1)
		if text == string(valid.Data) {
			t.Fatalf("%q is not in valid.yaml", old)
		}
		return load(t, base, spec.File{Name: "other-name.yaml", Data: []byte(text)})
	}
	cases := map[string]struct {
		reason             string
		after              spec.Set
		shop, stock, whole bool
	}{
		"Comment":     {"Comments say nothing.", edit("mode: auto", "mode: auto # now"), false, false, false},
		"Layout":      {"Layout says nothing.", edit("approvers: [\"@oncall\"]", "approvers:\n    - '@oncall'"), false, false, false},
		"Order":       {"The order of keys says nothing.", edit("{short: 5m, long: 1h,", "{long: 1h, short: 5m,"), false, false, false},
		"Target":      {"A changed action is a change of its service.", edit("http://flags.example/shop\"", "http://flags.example/shop2\""), true, false, true},
		"Maintenance": {"A Maintenance ends by itself and is no promise of a service.", edit("duration: 1h", "duration: 2h"), false, false, true},
		"Exception":   {"Nor is an Exception.", edit("effect: approval", "effect: observe"), false, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{
				"shop":  service(t, before, "shop").Digest != service(t, tc.after, "shop").Digest,
				"stock": service(t, before, "stock").Digest != service(t, tc.after, "stock").Digest,
				"whole": before.Digest != tc.after.Digest,
			}
			if diff := cmp.Diff(map[string]bool{"shop": tc.shop, "stock": tc.stock, "whole": tc.whole}, got); diff != "" {
				t.Errorf("%s changed: (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLoadIgnoresOrder: the order of files and documents changes nothing but
// positions.
func TestLoadIgnoresOrder(t *testing.T) {
	var parts []string
	for _, name := range []string{"base.yaml", "valid.yaml"} {
		parts = append(parts, strings.Split(string(read(t, name).Data), "\n---\n")...)
	}
	want := load(t, spec.File{Name: "a", Data: []byte(strings.Join(parts, "\n---\n"))})
	rapid.Check(t, func(rt *rapid.T) {
		var files []spec.File
		for _, p := range rapid.Permutation(parts).Draw(rt, "documents") {
			files = append(files, spec.File{Name: "a", Data: []byte(p)})
		}
		got, err := spec.Load(files, readers)
		if err != nil {
			rt.Fatal(err)
		}
		ignore := cmpopts.IgnoreTypes(spec.Position{})
		byText := cmpopts.SortSlices(func(a, b spec.Note) bool { return a.Text < b.Text })
		if diff := cmp.Diff(want, got, ignore, byText); diff != "" {
			rt.Fatalf("(-want, +got)\n%s", diff)
		}
	})
}

func TestLoadNothing(t *testing.T) {
	set, err := spec.Load(nil, nil)
	if err != nil || len(set.Services) > 0 {
		t.Errorf("no files are no services, got %v, %v", set, err)
	}
}

func TestWithoutReader(t *testing.T) {
	_, err := spec.Load([]spec.File{read(t, "base.yaml")}, nil)
	if err == nil || !strings.Contains(err.Error(), `unknown format "openslo/v1"`) {
		t.Errorf("a format without a reader must be refused by name, got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	formats := []spec.Reader{openslo.Reader{}, sloth.File{}, sloth.Resource{}, pyrra.Reader{}}
	for _, glob := range []string{"testdata/*.yaml", "*/testdata/*.yaml", "openslo/testdata/cases/*.yaml", "../../slo/*.yaml"} {
		names, err := filepath.Glob(glob)
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds in %s: %v", glob, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := spec.File{Name: "fuzz.yaml", Data: data}
		set, err := spec.Load([]spec.File{file}, formats)
		if err != nil {
			var faults spec.Faults
			if !errors.As(err, &faults) || len(faults) == 0 || len(set.Services) > 0 {
				t.Fatalf("error %T with %d services: %v", err, len(set.Services), err)
			}
			return
		}
		again, err := spec.Load([]spec.File{file}, formats)
		if err != nil || again.Digest != set.Digest {
			t.Fatalf("the second load differs: %v", err)
		}
		for _, svc := range set.Services {
			checkLoaded(t, svc)
		}
	})
}

// checkLoaded holds what the rest of the program relies on.
func checkLoaded(t *testing.T, svc spec.Service) {
	t.Helper()
	if !spec.ValidName(svc.Name) {
		t.Errorf("service %q has no valid name", svc.Name)
	}
	for _, o := range svc.Objectives {
		if !(o.Target > 0 && o.Target < 1) || o.Window <= 0 || o.JudgeWindow <= 0 {
			t.Errorf("objective %+v", o)
		}
		checkMeasurable(t, o)
	}
	r := svc.Remediation
	if r.ActionWindow < time.Second || r.EscalateWithin <= 0 || r.Budget.Period <= 0 {
		t.Errorf("remediation %+v", r)
	}
	for _, a := range r.Actions {
		if a.Executor() != "webhook" || spec.CheckURL(a.Target.URL) != nil || a.Horizon() <= 0 {
			t.Errorf("action %+v", a)
		}
	}
}

// checkMeasurable holds what the measuring relies on.
func checkMeasurable(t *testing.T, o spec.Objective) {
	t.Helper()
	sources := map[string]bool{}
	for _, v := range o.Vantages() {
		qs := v.Queries()
		if len(qs) == 0 || (v.Total == nil) != (v.Raw != nil) || (v.Good != nil && v.Bad != nil) {
			t.Errorf("objective %q is measured by %+v", o.ID, v)
			continue
		}
		if len(o.Others) > 0 && sources[qs[0].Source] {
			t.Errorf("objective %q has two vantage points at source %q", o.ID, qs[0].Source)
		}
		sources[qs[0].Source] = true
		for _, q := range qs {
			if s, err := q.Selectors(); err != nil || len(s) == 0 || q.Check() != nil || q.Source != qs[0].Source {
				t.Errorf("query %+v: %v %v %v", q, s, err, q.Check())
			}
			if by := q.Grouping(); by != nil && !slices.Equal(by, o.GroupBy) {
				t.Errorf("query %q is grouped by %v, the objective by %v", q.Expr, by, o.GroupBy)
			}
			if v.Total != nil && q.PerSecond() && v.Total.Counter {
				t.Errorf("query %q is a rate, and its total is an increase", q.Expr)
			}
		}
	}
	for _, w := range o.Windows() {
		if w < o.Slice {
			t.Errorf("objective %q has the window %s and slices of %s", o.ID, w, o.Slice)
		}
	}
	if !slices.IsSorted(o.GroupBy) || len(o.Others) > 3 {
		t.Errorf("objective %+v", o)
	}
}
