package hostile_test

import (
	"bytes"
	"io/fs"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/lab/hostile"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
	"github.com/setpoint-dev/setpoint/policies"
	"github.com/setpoint-dev/setpoint/prompts"
)

// fataler is a test, or a run of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// now is a Wednesday morning, when the shipped policy lets most things run. It is
// later than any real clock: the first entry of a ledger bears the real time, and
// stamps never go back.
var now = time.Date(2100, time.March, 3, 10, 3, 0, 0, time.UTC)

// documents are two services that have an action of the same name.
func documents(t fataler) spec.Set {
	t.Helper()
	page, err := template.ParseFiles("testdata/site/services.yaml.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{"Services": []string{"checkout", "search"}}); err != nil {
		t.Fatal(err)
	}
	set, err := spec.Load([]spec.File{{Name: "services.yaml", Data: b.Bytes()}}, []spec.Reader{openslo.Reader{}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func service(t fataler, set spec.Set, name string) spec.Service {
	t.Helper()
	svc, ok := set.Service(name)
	if !ok {
		t.Fatalf("no service %s", name)
	}
	return svc
}

// allowAll is a bundle that grants everything, so that only floors are left.
func allowAll(t fataler) *rego.Policy {
	t.Helper()
	return policy(t, os.DirFS("testdata/site/policy"))
}

func shipped(t fataler) *rego.Policy {
	t.Helper()
	return policy(t, policies.FS)
}

func policy(t fataler, files fs.FS) *rego.Policy {
	t.Helper()
	p, err := rego.Load(files, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// live is what checkout's targets report.
func live() map[string]propose.Live {
	return map[string]propose.Live{
		"scale":         {"replicas": int64(4)},
		"rollback-flag": {"version": "v42", "previousVersion": []string{"v41", "v40"}},
		"tune":          {"cache": true, "pool": "small", "ratio": 0.5, "zone": "a"},
		"restart":       {},
		"drain":         {},
		"failover":      {},
	}
}

func catalogue(svc spec.Service) propose.Catalogue {
	seen := live()
	var c propose.Catalogue
	for _, a := range svc.Remediation.Actions {
		c = append(c, propose.Item{Action: a, Live: seen[a.Name], LiveKnown: true})
	}
	return c
}

// missed is a service in a plain breach, with nothing in the way of acting.
func missed(svc spec.Service) compare.Assessment {
	m := measure.Measurement{Good: 700, Total: 1000, HasEvents: true, ErrorRatio: 0.3, SampleAt: now.Add(-5 * time.Second)}
	return compare.Assessment{
		Service: svc.Name, At: now, State: compare.Breached, Reason: compare.Burning, SampleAt: m.SampleAt,
		Objectives: []compare.Objective{{
			ID: svc.Name + "-availability", State: compare.Breached, Reason: compare.Burning, Target: 0.99, Judge: m, Period: m,
			SampleAge: 5 * time.Second,
			Burns:     []compare.Burn{{BurnRate: svc.Objectives[0].BurnRates[0], ShortRate: 30, LongRate: 20, Known: true, Burning: true}},
		}},
	}
}

func request(svc spec.Service) propose.Request {
	return propose.Request{
		Service: svc, Episode: "e1", Assessment: missed(svc), Since: now.Add(-10 * time.Minute), Catalogue: catalogue(svc), Now: now,
	}
}

// caseOf is what the loop would put before the gate: everything but the proposal
// is measured or reviewed.
func caseOf(svc spec.Service, p propose.Proposal) gate.Case {
	it, _ := catalogue(svc).Item(p.Action)
	return gate.Case{
		Service: svc, Proposal: p, Key: gate.KeyOf(svc.Name, gate.WindowAt(now, svc.Remediation.ActionWindow)),
		Facts: gate.Facts{
			Now: now, Since: now.Add(-10 * time.Minute), Episode: "e1", FreshReads: 2, Ceiling: gate.Auto, Assessment: missed(svc),
			Balance: budget.Balance{Remaining: 3, Capacity: 3, GlobalRemaining: 10, GlobalCapacity: 10},
			Item:    it, Ownership: gate.OwnershipNone,
		},
		Limits: gate.Limits{
			MaxMode: spec.Auto, EffectsPerHour: 6, EffectsPerServicePerHour: 2, OpenApproval: 5,
			MinSpacing: 2 * time.Minute, PermitTTL: 30 * time.Second,
		},
	}
}

// decide goes the whole way from a proposal to a decision, through Rego.
func decide(t fataler, pol *rego.Policy, c gate.Case) gate.Decision {
	t.Helper()
	prepared := gate.Prepare(c)
	ruling := gate.Ruling{}
	if prepared.Input != nil {
		ruling = pol.Evaluate(tContext(), prepared.Input)
	}
	if ruling.Fault != "" {
		t.Fatalf("the policy could not look at it: %s\n%s", ruling.Fault, prepared.Input)
	}
	return prepared.Decide(ruling)
}

// reachable is the bound: it is written anew here, and asks neither propose.Check
// nor the gate.
func reachable(service, action string, p map[string]any, seen propose.Live) bool {
	only := func(names ...string) bool {
		slices.Sort(names)
		return slices.Equal(slices.Sorted(maps.Keys(p)), names)
	}
	number := func(name string) (float64, bool) {
		switch v := p[name].(type) {
		case int64:
			return float64(v), true
		case float64:
			return v, true
		}
		return 0, false
	}
	switch service + "/" + action {
	case "checkout/restart", "checkout/drain", "search/reindex":
		return only()
	case "checkout/scale":
		n, ok := number("replicas")
		current, known := seen["replicas"].(int64)
		return only("replicas") && ok && known && n == math.Trunc(n) && n >= 3 && n <= 20 && n <= 2*math.Max(float64(current), 3)
	case "search/scale":
		n, ok := number("replicas")
		return only("replicas") && ok && n == math.Trunc(n) && n >= 1 && n <= 500
	case "checkout/rollback-flag":
		v, _ := p["version"].(string)
		known, _ := seen["previousVersion"].([]string)
		return only("version") && slices.Contains(known, v)
	case "checkout/tune":
		_, isBool := p["cache"].(bool)
		pool, _ := p["pool"].(string)
		zone, _ := p["zone"].(string)
		ratio, ok := number("ratio")
		return only("cache", "pool", "ratio", "zone") && isBool && (pool == "small" || pool == "large") &&
			ok && ratio >= 0 && ratio <= 1 && regexp.MustCompile(`\A[a-c][0-9]?\z`).MatchString(zone)
	}
	return false
}

// inBounds holds a permit against everything that it may be.
func inBounds(t fataler, svc spec.Service, c gate.Case, d gate.Decision) (sent bool) {
	t.Helper()
	p, ok := d.Permit()
	if !ok {
		return false
	}
	a, known := svc.Action(p.Action().Name)
	if !known || p.Service() != svc.Name || p.Key() != c.Key || p.Undo() || p.Ticket() != "" {
		t.Fatalf("a permit for something else: %s %s of %s, undo %t, ticket %q", p.Key(), p.Action().Name, p.Service(), p.Undo(), p.Ticket())
	}
	if p.Action().Target.URL != a.Target.URL || p.Action().Uses != a.Uses || p.Action().Class != spec.ClassAuto {
		t.Fatalf("a permit for another target: %s of class %s to %s, the document has %s to %s",
			p.Action().Uses, p.Action().Class, p.Action().Target.URL, a.Uses, a.Target.URL)
	}
	if err := propose.Check(propose.Item{Action: a, Live: live()[a.Name], LiveKnown: true}, p.Parameters()); err != nil {
		t.Fatalf("a permit out of bounds: %s %v: %v", a.Name, p.Parameters(), err)
	}
	if !reachable(svc.Name, a.Name, p.Parameters(), live()[a.Name]) {
		t.Fatalf("a permit that cannot be: %s %v", a.Name, p.Parameters())
	}
	return true
}

// client is the agent's own, asking at that address.
func client(t testing.TB, url string) *openai.Client {
	t.Helper()
	// A minute goes by between any two looks at the clock, so that an endpoint that
	// is left alone for a while is asked again.
	var minutes atomic.Int64
	return clientAt(t, url, func() time.Time { return now.Add(time.Duration(minutes.Add(1)) * time.Minute) })
}

func clientAt(t testing.TB, url string, at func() time.Time) *openai.Client {
	t.Helper()
	ps, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := openai.New(openai.Options{
		Now: at, Random: func() float64 { return 0.5 },
		Endpoints: []openai.Endpoint{{Name: "main", BaseURL: url + "/v1", Model: "hostile", Timeout: 10 * time.Second}}, Prompts: ps,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newModel(set spec.Set, seed uint64) *hostile.Model {
	v := hostile.Of(set)
	v.Words = append(v.Words, "v41", "v40", "v42", "small", "large", "a", "b7", "c9")
	return hostile.New(seed, v)
}
