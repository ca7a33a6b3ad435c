package rego_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/policies"
)

// The two questions that OPA alone is asked: everything of the package, as a
// program would that knows nothing of its rules, and the four sets alone, which
// is what the gate asks.
const (
	wholePackage = "data.setpoint.gate"
	fourSets     = "[data.setpoint.gate.deny, data.setpoint.gate.escalate, data.setpoint.gate.approval, data.setpoint.gate.auto]"
)

// bare is OPA alone on the same policy, data and input, which is parsed already.
func bare(b *testing.B, p *rego.Policy, query string, in []byte) func() {
	b.Helper()
	opts := []func(*oparego.Rego){oparego.Query(query), oparego.StrictBuiltinErrors(true), oparego.Store(p.Built().Store())}
	for _, m := range p.Built().Rules {
		opts = append(opts, oparego.ParsedModule(m.Copy()))
	}
	q, err := oparego.New(opts...).PrepareForEval(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	doc, err := gate.DecodeInput(in)
	if err != nil {
		b.Fatal(err)
	}
	v, err := ast.InterfaceToValue(doc)
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if rs, err := q.Eval(context.Background(), oparego.EvalParsedInput(v)); err != nil || len(rs) != 1 {
			b.Fatal(rs, err)
		}
	}
}

// medians takes turns between the functions, so that whatever else the machine
// does meets all alike, and gives the median time of each.
func medians(b *testing.B, fs ...func()) []float64 {
	b.Helper()
	times := make([][]float64, len(fs))
	for b.Loop() {
		for i, f := range fs {
			const n = 10
			start := time.Now()
			for range n {
				f()
			}
			times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/n)
		}
	}
	out := make([]float64, len(fs))
	for i, ts := range times {
		slices.Sort(ts)
		out[i] = ts[len(ts)/2]
	}
	return out
}

// BenchmarkGate is one whole decision, with input, schema, digests, policy and
// floors, in turn with OPA alone. ratio is against the whole package, ratio-sets
// against the four sets; schema-ns is what checking and decoding the input takes
// of it.
func BenchmarkGate(b *testing.B) {
	p := load(b, policies.FS)
	c := granted()
	in := input(b, c)
	allocs := func(f func()) float64 { return testing.AllocsPerRun(100, f) }
	whole := func() {
		prepared := gate.Prepare(c)
		if d := prepared.Decide(p.Evaluate(context.Background(), prepared.Input)); d.Verdict != gate.Auto {
			b.Fatalf("%s %+v", d.Verdict, d.Reasons)
		}
	}
	alone, sets := bare(b, p, wholePackage, in), bare(b, p, fourSets, in)
	parse := func() {
		if _, err := rego.ParseInput(in); err != nil {
			b.Fatal(err)
		}
	}
	m := medians(b, whole, alone, sets, parse)
	b.ReportMetric(0, "ns/op") // The medians say more.
	b.ReportMetric(m[0], "whole-ns")
	b.ReportMetric(m[1], "bare-ns")
	b.ReportMetric(m[3], "schema-ns")
	b.ReportMetric(m[0]/m[1], "ratio")
	b.ReportMetric(m[0]/m[2], "ratio-sets")
	b.ReportMetric(allocs(whole), "whole-allocs")
	b.ReportMetric(allocs(alone), "bare-allocs")
}

// BenchmarkGateData is a decision whose rules look up data of 10,000 services in
// turn with one over data of 100: what is not asked for must cost nothing.
func BenchmarkGateData(b *testing.B) {
	of := func(n int) func() {
		p := load(b, bundle("p.rego", gatePackage+`auto contains "tier" if data.services[input.service.name].tier == "two"
`, "data.json", services(n)))
		in := input(b, granted())
		return func() {
			if r := p.Evaluate(context.Background(), in); len(r.Auto) != 1 {
				b.Fatalf("%+v", r)
			}
		}
	}
	m := medians(b, of(10_000), of(100))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(m[0], "10000-ns")
	b.ReportMetric(m[1], "100-ns")
	b.ReportMetric(m[0]/m[1], "ratio")
}

// services is data of n services, checkout among them.
func services(n int) string {
	lines := []string{`"checkout": {"tier": "two", "regions": ["a", "b"], "cost": 12.5}`}
	for i := range n - 1 {
		lines = append(lines, fmt.Sprintf(`"service-%d": {"tier": "one", "regions": ["a", "b"], "cost": %d}`, i, i))
	}
	return `{"services": {` + strings.Join(lines, ",\n") + `}}`
}
