package regotest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/trace"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// cases runs the tables through the engine that decides.
func (s *suite) cases(ctx context.Context) ([]Test, error) {
	if len(s.Tables) == 0 {
		return nil, nil
	}
	policy, err := s.bundle.Load(rego.Options{})
	if err != nil {
		return nil, err
	}
	again, err := s.coverQuery(ctx)
	if err != nil {
		return nil, err
	}
	var out []Test
	for _, t := range s.Tables {
		for _, c := range t.Cases {
			if s.Run != nil && !s.Run.MatchString(c.Name) {
				continue
			}
			one, err := s.one(ctx, c, policy, again)
			if err != nil {
				return nil, err
			}
			one.File = t.File
			out = append(out, one)
		}
	}
	return out, nil
}

// one runs one case, and the query again to measure what it reaches.
func (s *suite) one(ctx context.Context, c Case, policy *rego.Policy, again oparego.PreparedEvalQuery) (Test, error) {
	begin := time.Now()
	ruling := policy.Evaluate(ctx, c.Input)
	took := time.Since(begin)
	if err := stopped(ctx); err != nil {
		return Test{}, err
	}
	t := s.judge(c, ruling, policy)
	t.Seconds = took.Seconds()
	if s.Detail && t.Result == Failed {
		t.Missed = s.missed(ctx, c, policy)
	}
	if ruling.Fault != "" {
		return t, nil
	}
	return t, s.cover(ctx, again, c.Input)
}

// judge compares what policy said with what the case wants. A fault is never
// what a case wants, not even one that wants deny: nobody knows what the policy
// would have said.
func (s *suite) judge(c Case, r gate.Ruling, policy *rego.Policy) Test {
	got := Outcome{Verdict: r.Verdict(), Reasons: []string{}}
	for _, rule := range r.Deciding() {
		got.Reasons = append(got.Reasons, rule.Reason)
	}
	slices.Sort(got.Reasons)
	t := Test{Name: c.Name, Line: c.Pos.Line, Result: Passed, Want: &c.Want, Got: &got, Fired: s.fired(r)}
	switch {
	case r.Fault != "":
		t.Result, t.Got, t.Text = Errored, nil, "policy could not be evaluated: "+r.Fault
	case got.Verdict != c.Want.Verdict, c.Want.Reasons != nil && !slices.Equal(got.Reasons, c.Want.Reasons):
		t.Result = Failed
		t.Text = fmt.Sprintf("want %s, got %s%s", c.Want, got, misspelt(c.Want.Reasons, policy))
	}
	return t
}

// missed are the rules that could have made the wanted verdict and did not fire.
func (s *suite) missed(ctx context.Context, c Case, policy *rego.Policy) (out []trace.Rule) {
	rules, err := trace.Of(ctx, policy, c.Input)
	if err != nil {
		return nil // Only a help: the case has failed all the same.
	}
	for _, r := range rules {
		wanted := slices.Contains(c.Want.Reasons, r.Reason) || c.Want.Reasons == nil && r.Set == c.Want.Verdict.String()
		if wanted && !r.Fired && len(out) < maxStops {
			out = append(out, r.In(s.Folder))
		}
	}
	return out
}

// fired are all rules that fired, strictest first, with paths that a person can
// open.
func (s *suite) fired(r gate.Ruling) (out []gate.Rule) {
	for _, set := range [][]gate.Rule{r.Deny, r.Escalate, r.Approval, r.Auto} {
		for _, rule := range set {
			rule.File = s.file(rule.File)
			out = append(out, rule)
		}
	}
	return out
}

// misspelt names a wanted reason that no rule of the bundle has.
func misspelt(want []string, policy *rego.Policy) string {
	var known []string
	for _, r := range policy.Rules() {
		known = append(known, r.Reason)
	}
	for _, w := range want {
		if slices.Contains(known, w) {
			continue
		}
		text := fmt.Sprintf("; no rule has the reason %q", w)
		if near := spec.Nearest(w, known); near != "" {
			text += fmt.Sprintf(", did you mean %q?", near)
		}
		return text
	}
	return ""
}

// coverQuery asks for the four sets as a decision does, one after another.
func (s *suite) coverQuery(ctx context.Context) (oparego.PreparedEvalQuery, error) {
	q, err := oparego.New(
		oparego.Query(`some set in ["auto", "approval", "escalate", "deny"]
			everybody := {x | some x in data.setpoint.gate[set]}
			team := {x | some x in data.setpoint.team[input.service.owner][set]}`),
		oparego.Compiler(s.built.Compiler), oparego.Store(s.built.Store()),
	).PrepareForEval(ctx)
	if err != nil {
		return q, fmt.Errorf("measure coverage: %w", err)
	}
	return q, nil
}

// cover notes what a case reaches. The policy is asked a second time: a
// decision is never traced.
func (s *suite) cover(ctx context.Context, q oparego.PreparedEvalQuery, input []byte) error {
	doc, err := gate.DecodeInput(input)
	if err != nil {
		return err
	}
	value, err := ast.InterfaceToValue(doc)
	if err != nil {
		return err
	}
	if _, err = q.Eval(ctx, oparego.EvalParsedInput(value), oparego.EvalQueryTracer(s.coverage)); err != nil {
		return fmt.Errorf("measure coverage: %w", err)
	}
	return nil
}
