package rego_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/policies"
)

// bare is OPA alone on the same files and the same input, already parsed.
func bare(b *testing.B, in []byte) func() {
	b.Helper()
	opts := []func(*oparego.Rego){oparego.Query("data.setpoint.gate"), oparego.StrictBuiltinErrors(true)}
	p := load(b, policies.FS)
	for _, f := range p.Bundle().Files() {
		if f.Path != "data.yaml" {
			opts = append(opts, oparego.Module(f.Path, string(f.Data)))
		}
	}
	opts = append(opts, oparego.Data(map[string]any{"limits": map[string]any{"largeFactor": json.Number("2"), "fruitlessAttempts": json.Number("3")}}))
	q, err := oparego.New(opts...).PrepareForEval(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(in, &doc); err != nil {
		b.Fatal(err)
	}
	v, err := ast.InterfaceToValue(doc)
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if _, err := q.Eval(context.Background(), oparego.EvalParsedInput(v)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGate is one whole decision: input, schema, policy, floors. The
// metric ratio is its time over that of OPA alone on the same policy.
func BenchmarkGate(b *testing.B) {
	p := load(b, policies.FS)
	c := granted()
	in := input(b, c)
	alone := bare(b, in)
	const n = 200
	start := time.Now()
	for range n {
		alone()
	}
	opa := time.Since(start) / n
	b.ReportAllocs()
	for b.Loop() {
		in, err := gate.BuildInput(c)
		if err != nil {
			b.Fatal(err)
		}
		if d := gate.Decide(c, p.Evaluate(context.Background(), in)); d.Verdict != gate.Auto {
			b.Fatalf("%s %+v", d.Verdict, d.Reasons)
		}
	}
	b.ReportMetric(float64(opa.Nanoseconds()), "opa-ns/op")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(opa), "ratio")
}

// BenchmarkBareOPA is the other side of the ratio, with its allocations.
func BenchmarkBareOPA(b *testing.B) {
	alone := bare(b, input(b, granted()))
	b.ReportAllocs()
	for b.Loop() {
		alone()
	}
}
