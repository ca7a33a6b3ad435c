package cut_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/lab/cut"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

func shipped(t testing.TB) []spec.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "slo", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	var files []spec.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Name: filepath.Base(name), Data: data})
	}
	return files
}

func load(t testing.TB, files []spec.File) spec.Set {
	t.Helper()
	set, err := spec.Load(files, []spec.Reader{openslo.Reader{}})
	if err != nil {
		t.Fatalf("%v\n%s", err, files)
	}
	return set
}

func pair() spec.BurnRate {
	return spec.BurnRate{Short: 10 * time.Second, Long: 50 * time.Second, Factor: 14.4, Page: true}
}

func options(edits ...func(*cut.Options)) cut.Options {
	o := cut.Options{Factor: 30, BurnRate: pair()}
	for _, e := range edits {
		e(&o)
	}
	return o
}

// expect is the Set that the cut documents must give, made of the original's
// Set alone: every duration divided, nothing else changed.
func expect(set spec.Set, o cut.Options) spec.Set {
	by := func(d time.Duration) time.Duration {
		divided := (d / time.Duration(o.Factor)).Truncate(time.Millisecond)
		if divided < time.Second {
			divided = min(d, time.Second)
		}
		return divided
	}
	for i := range set.Services {
		s := &set.Services[i]
		long := o.BurnRate.Long
		if s.Remediation.Name == "" {
			long = 6 * time.Hour
		}
		for j := range s.Objectives {
			ob := &s.Objectives[j]
			ob.Window = max(by(ob.Window), long)
			if s.Remediation.Name != "" {
				ob.JudgeWindow, ob.BurnRates = by(ob.JudgeWindow), []spec.BurnRate{o.BurnRate}
			}
		}
		if s.Remediation.Name == "" {
			continue
		}
		r := &s.Remediation
		r.ActionWindow = max(by(r.ActionWindow).Truncate(time.Second), time.Second)
		for _, d := range []*time.Duration{&r.BreachFor, &r.HoldFor, &r.UnknownFor, &r.EscalateWithin, &r.Budget.Period} {
			*d = by(*d)
		}
		for j := range r.Actions {
			a := &r.Actions[j]
			for _, d := range []*time.Duration{&a.Settle, &a.Cooldown, &a.Timeout, &a.MaxLateness} {
				*d = by(*d)
			}
		}
	}
	return set
}

// places and digests are those of other bytes.
var places = cmp.Options{
	cmpopts.IgnoreTypes(spec.Position{}, spec.Positions{}), cmpopts.IgnoreFields(spec.Set{}, "Digest"),
	cmpopts.IgnoreFields(spec.Service{}, "Digest"), cmpopts.EquateEmpty(),
}

// world is documents with what slo/ does not have.
const world = `apiVersion: openslo/v1
kind: SLO
metadata: {name: api}
spec:
  service: api
  indicator: {spec: {ratioMetric: {counter: true, good: {metricSource: {type: Prometheus, spec: {query: good_total}}}, total: {metricSource: {type: Prometheus, spec: {query: all_total}}}}}}
  timeWindow: [{duration: 7d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - {displayName: most, target: 0.95}
    - {displayName: nearly all, target: 0.99}
---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: api}
spec:
  service: api
  actionWindow: 100s
  breachFor: 45s
  holdFor: 20s
  approvalFor: 2m
  escalateWithin: 1h
  mode: approval
  approvers: [os:ann]
  objectives: {api/most: {judgeWindow: 2m, burnRates: [{short: 2m, long: 20m, factor: 10, page: true}, {short: 1h, long: 3d, factor: 1}]}}
  actions:
    - {name: flush, uses: webhook.post, target: {url: "https://flush.internal:8443/v1?deep=1"}, class: approval, reversal: transient, settle: 0s, cooldown: 0s, timeout: 500ms, maxLateness: 7s}
  budget: {capacity: 5}
  escalation: {receivers: [oncall]}
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: shown}
spec:
  service: only-shown
  indicator: {spec: {ratioMetric: {raw: {metricSource: {type: Prometheus, spec: {query: 'avg(avg_over_time(fresh[{{.window}}]))'}}}, rawType: success}}}
  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.95}]
---
apiVersion: setpoint.dev/v1alpha1
kind: Maintenance
metadata: {name: nightly}
spec: {services: [api], effect: observe, schedule: {cron: "0 2 * * *", duration: 1h, timeZone: Europe/Berlin}, owner: ann, reason: batch}
---
apiVersion: setpoint.dev/v1alpha1
kind: Exception
metadata: {name: friday}
spec: {service: api, effect: approval, until: 2026-12-01T00:00:00Z, owner: ann, reason: sale}
`

func TestDivided(t *testing.T) {
	t.Parallel()
	other := []spec.File{{Name: "world.yaml", Data: []byte(world)}}
	cases := map[string]struct {
		reason string
		files  []spec.File
		opts   cut.Options
	}{
		"Demo":      {"The demo's own factor.", shipped(t), options()},
		"Nothing":   {"One divides nothing, and still writes all out.", shipped(t), options(func(o *cut.Options) { o.Factor = 1 })},
		"Fractions": {"What does not divide is cut to whole milliseconds, action windows to whole seconds.", shipped(t), options(func(o *cut.Options) { o.Factor = 7 })},
		"Others":    {"Two objectives, overrides, short timeouts, zero, other kinds.", other, options()},
		"OthersOdd": {"The same with a factor that leaves fractions.", other, options(func(o *cut.Options) { o.Factor = 13 })},
		"NoPair":    {"Where no Remediation replaces the default pairs, the SLO's window still covers them.", other, options(func(o *cut.Options) { o.Factor = 1000 })},
		"Together":  {"All at once.", append(shipped(t), other...), options()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := cut.Files(tc.files, tc.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expect(load(t, tc.files), tc.opts), load(t, out), places); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			again, err := cut.Files(tc.files, tc.opts)
			if diff := cmp.Diff(out, again); err != nil || diff != "" {
				t.Errorf("another cut differs: %v\n%s", err, diff)
			}
		})
	}
}

// TestLeast: a factor that leaves nothing but seconds still gives documents
// that load, with the page after the verdict.
func TestLeast(t *testing.T) {
	t.Parallel()
	opts := options(func(o *cut.Options) { o.Factor = 1_000_000 })
	out, err := cut.Files(shipped(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, svc := range load(t, out).Services {
		r := svc.Remediation
		for what, got := range map[string]time.Duration{
			"actionWindow": r.ActionWindow, "holdFor": r.HoldFor, "unknownFor": r.UnknownFor, "judgeWindow": svc.Objectives[0].JudgeWindow,
			"settle": r.Actions[0].Settle, "cooldown": r.Actions[0].Cooldown, "timeout": r.Actions[0].Timeout, "maxLateness": r.Actions[0].MaxLateness,
		} {
			if got != time.Second {
				t.Errorf("%s: %s is %s, want the least", svc.Name, what, got)
			}
		}
		if got := svc.Objectives[0].Window; got != opts.BurnRate.Long {
			t.Errorf("%s: the SLO's window is %s, want the long window", svc.Name, got)
		}
		if r.EscalateWithin != 2*time.Second {
			t.Errorf("%s: escalateWithin is %s, want settle and judge window", svc.Name, r.EscalateWithin)
		}
	}
}

func TestOverlays(t *testing.T) {
	t.Parallel()
	out, err := cut.Files(append(shipped(t), spec.File{Name: "world.yaml", Data: []byte(world)}), options(func(o *cut.Options) {
		o.Targets = "http://127.0.0.1:40123/ignored"
		o.Cooldown = map[string]time.Duration{"fulfilment/recycle-workers": 3 * time.Second}
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, svc := range load(t, out).Services {
		for _, a := range svc.Remediation.Actions {
			got[svc.Name+"/"+a.Name] = []string{a.Target.URL, a.Target.StatusURL, a.Cooldown.String()}
		}
	}
	at := func(path, cooldown string) []string {
		return []string{"http://127.0.0.1:40123" + path, "http://127.0.0.1:40123" + path, cooldown}
	}
	want := map[string][]string{
		"catalog/restart":            at("/catalog/restart", "1m0s"),
		"checkout/rollback":          at("/checkout/release", "1m0s"),
		"checkout/scale":             at("/checkout/scale", "30s"),
		"fulfilment/recycle-workers": at("/fulfilment/workers", "3s"),
		"api/flush":                  {"http://127.0.0.1:40123/v1?deep=1", "", "0s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestTheRestStays: comments, queries and what is for people are kept.
func TestTheRestStays(t *testing.T) {
	t.Parallel()
	in := shipped(t)
	out, err := cut.Files(in, options())
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i, f := range out {
		if f.Name != in[i].Name {
			t.Errorf("%s became %s", in[i].Name, f.Name)
		}
		if !strings.HasPrefix(string(f.Data), "# A copy whose durations are cut by 30.") {
			t.Errorf("%s does not say what it is", f.Name)
		}
		all.Write(f.Data)
	}
	for _, f := range in {
		for line := range strings.Lines(string(f.Data)) {
			if at := strings.Index(line, "# "); at >= 0 && !strings.Contains(all.String(), strings.TrimSpace(line[at:])) {
				t.Errorf("%s: the comment is lost: %s", f.Name, line[at:])
			}
			if strings.Contains(line, "query: ") && !strings.Contains(all.String(), strings.TrimSpace(line)) {
				t.Errorf("%s: the query changed: %s", f.Name, line)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files []spec.File
		opts  cut.Options
		want  string
	}{
		"NoFactor":  {shipped(t), cut.Options{BurnRate: pair()}, "the factor is 0, want 1 or more"},
		"NoPair":    {shipped(t), cut.Options{Factor: 30}, "the burn rate is 0s/0s x 0, want"},
		"Backwards": {shipped(t), options(func(o *cut.Options) { o.BurnRate.Long = time.Second }), "the burn rate is 10s/1s x 14.4, want"},
		"TooSteep":  {shipped(t), options(func(o *cut.Options) { o.BurnRate.Factor = 200 }), "cut by 30, the documents no longer load:\ncatalog.yaml:"},
		"Targets":   {shipped(t), options(func(o *cut.Options) { o.Targets = "127.0.0.1:9" }), "targets: \"127.0.0.1:9\" is no absolute URL"},
		"Cooldown": {shipped(t), options(func(o *cut.Options) { o.Cooldown = map[string]time.Duration{"checkout/restart": time.Second} }),
			`there is no action "checkout/restart" for its cooldown`},
		"Documents": {[]spec.File{{Name: "x.yaml", Data: []byte("kind: SLO\n")}}, options(), "x.yaml:1: apiVersion: is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := cut.Files(tc.files, tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || out != nil {
				t.Errorf("got %d files and %v, want no file and %q", len(out), err, tc.want)
			}
		})
	}
}
