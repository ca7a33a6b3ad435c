package rego

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Evaluate rules on one gate input. It never fails: whatever goes wrong is the
// Ruling's Fault, and a Ruling with a fault grants nothing.
func (p *Policy) Evaluate(ctx context.Context, input []byte) (r gate.Ruling) {
	sum := sha256.Sum256(input)
	empty := gate.Ruling{Revision: p.Revision(), DataDigest: p.DataDigest(), InputDigest: hex.EncodeToString(sum[:])}
	fault := func(code string, err any) gate.Ruling {
		f := empty
		f.Fault = fmt.Sprintf("%s: %v", code, err)
		return f
	}
	// A panic of the engine must not take the pass with it, nor grant.
	defer func() {
		if caught := recover(); caught != nil {
			r = fault(gate.FaultPanic, caught)
		}
	}()
	value, err := parseInput(input)
	if errors.Is(err, gate.ErrInputTooLarge) {
		return fault(gate.FaultInputTooLarge, err)
	}
	if err != nil {
		return fault(gate.FaultInputInvalid, err)
	}
	now, err := inputTime(value)
	if err != nil {
		return fault(gate.FaultInputInvalid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.deadline)
	defer cancel()
	results, err := p.query.Eval(ctx, oparego.EvalParsedInput(value), oparego.EvalTime(now))
	if cause := ctx.Err(); cause != nil {
		return fault(stopped(cause), fmt.Sprintf("evaluation took longer than %s or was stopped", p.deadline))
	}
	if err != nil {
		return fault(gate.FaultError, err)
	}
	out, err := p.ruling(empty, results)
	if err != nil {
		return fault(gate.FaultType, err)
	}
	return out
}

func stopped(cause error) string {
	if errors.Is(cause, context.DeadlineExceeded) {
		return gate.FaultTimeout
	}
	return gate.FaultCancelled
}

// inputTime is the only time that a policy may know.
func inputTime(input ast.Value) (time.Time, error) {
	s := ""
	if o, ok := input.(ast.Object); ok {
		if t := o.Get(ast.InternedTerm("now")); t != nil {
			v, _ := t.Value.(ast.String)
			s = string(v)
		}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("now: %w", err)
	}
	return t, nil
}

// ruling reads the result: exactly one, with every set that was asked for.
func (p *Policy) ruling(r gate.Ruling, results oparego.ResultSet) (gate.Ruling, error) {
	if len(p.sets) == 0 {
		return r, nil
	}
	if len(results) != 1 {
		return r, fmt.Errorf("%d results, want 1", len(results))
	}
	for i, set := range p.sets {
		elements, ok := results[0].Bindings[fmt.Sprintf("s%d", i)].([]any)
		if !ok {
			return r, fmt.Errorf("%s is no set", set.name)
		}
		for _, e := range elements {
			rule, err := p.rule(set, e)
			if err != nil {
				return r, fmt.Errorf("%s: %w", set.name, err)
			}
			switch set.name {
			case "deny":
				r.Deny = append(r.Deny, rule)
			case "escalate":
				r.Escalate = append(r.Escalate, rule)
			case "approval":
				r.Approval = append(r.Approval, rule)
			case "auto":
				r.Auto = append(r.Auto, rule)
			}
		}
	}
	return r, nil
}

// rule is the rule that added an element. One that no rule could have added is
// an error, and so is one of the wrong package.
func (p *Policy) rule(set ruleSet, element any) (gate.Rule, error) {
	asked, err := decodeElement(set.name, element)
	if err != nil {
		return gate.Rule{}, err
	}
	known, ok := p.rules[asked.Reason]
	if !ok || known.set != set {
		return gate.Rule{}, fmt.Errorf("reason %.80q is of no such rule", asked.Reason)
	}
	rule := known.Rule
	rule.Approvers, rule.Quorum, rule.Expires = asked.Approvers, asked.Quorum, asked.Expires
	return rule, nil
}
