package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/inputfile"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// evalFlags are the flags of `policy eval`.
type evalFlags struct{ input, trace, output string }

const policyEvalLong = `Evaluate one gate input, and show what policy says of it, the floors beside it and
the decision that binds. Nothing is measured, written or sent.

An input is what policy sees: "setpoint policy schema --example" prints one to
start from, and "setpoint policy explain d118 --input" the one of a recorded
decision. What it does not hold, such as freezes and limits, is taken as clear;
the last line says what that is.

--trace says of every rule whether it fired, or the first expression that was
false, down into the rules that it asks, with the values that were there. No
shortcut of the engine hides a rule from it. --trace=full prints every step of
the engine as it decides.

Exit code 0 whatever the verdict; 1 when the input, the policy or its evaluation
is at fault.`

func (a *app) policyEvalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval [folder]",
		Short: "Evaluate one input: what policy says, the floors beside it, the decision that binds",
		Long:  policyEvalLong,
		Example: `  setpoint policy eval policies/                     # the example input
  setpoint policy eval --input input.json policies/ --trace
  setpoint policy explain d118 --input | setpoint policy eval --input - policies/ -o json`,
		Args: optionalFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrace(cmd, f.trace); err != nil {
				return err
			}
			return a.policyEval(cmd, args, f)
		},
	}
	cmd.Flags().StringVar(&f.input, "input", "", "the file of the input, - is standard input (default the built-in example)")
	traceFlag(cmd, &f.trace)
	outputFlag(cmd, &f.output, formatTable, formatJSON, formatYAML)
	return cmd
}

// policyEval is the answer of `policy eval -o json`.
type policyEval struct {
	web.Meta
	// Bundle is what ruled: the folder, or "built-in policy".
	Bundle string `json:"bundle"`
	// Input is the file, "-", or "example input".
	Input       string       `json:"input"`
	InputDigest string       `json:"inputDigest"`
	Ruling      evalRuling   `json:"ruling"`
	Floors      []saidFloor  `json:"floors"`
	Decision    saidDecision `json:"decision"`
	// Assumed are the floors of which an input says nothing, by code.
	Assumed []string `json:"assumed"`
	// Differences are parts of the input that the gate would not have built so:
	// floors saw the other value.
	Differences []inputDifference `json:"differences"`
	traced

	proposal string
}

type evalRuling struct {
	// Verdict is that of policy alone.
	Verdict string `json:"verdict"`
	// Asked: a decision on such an input asks policy. It does not about an action
	// that the documents do not have.
	Asked      bool       `json:"asked"`
	Revision   string     `json:"revision"`
	DataDigest string     `json:"dataDigest"`
	Fault      string     `json:"fault,omitempty"`
	Rules      []saidRule `json:"rules"`
}

func (a *app) policyEval(cmd *cobra.Command, args []string, f evalFlags) error {
	name, input, err := a.evalInput(f.input)
	if err != nil {
		return err
	}
	policy, folder, err := a.evalPolicy(args)
	if err != nil {
		return err
	}
	c, err := gate.CaseOf(input)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	ruling := policy.Evaluate(cmd.Context(), input)
	floors := gate.Prepare(c).Floors
	// The bytes that were ruled on are those of the file, and what would be sent is
	// not in them.
	floors.InputDigest, floors.Digest = ruling.InputDigest, ""
	d, findings := floors.Join(ruling), floors.Findings(ruling)
	out := policyEval{
		Meta:   web.Meta{APIVersion: spec.Group, Kind: "PolicyEval"},
		Bundle: bundleName(folder), Input: name, InputDigest: ruling.InputDigest,
		Ruling: evalRuling{
			Verdict: ruling.Verdict().String(), Asked: !floors.Undecidable, Revision: ruling.Revision, DataDigest: ruling.DataDigest, Fault: ruling.Fault,
			Rules: saidRules(d, findings, folder),
		},
		Floors: saidFloors(findings), Decision: decisionSaid(d), Assumed: gate.NotInInput(), proposal: proposalText(c),
	}
	out.Decision.Lasting = floors.Outlook(ruling).Lasting.Verdict.String()
	if out.Differences, err = differences(input, c); err != nil {
		return err
	}
	if out.traced, err = tracedOf(cmd.Context(), f.trace, policy, input, folder); err != nil {
		return err
	}
	return a.showEval(out, f.output)
}

func proposalText(c gate.Case) string {
	p := c.Proposal
	return fmt.Sprintf("%s: %s, proposed by %s, at %s", c.Service.Name,
		strings.TrimSpace(p.Action+" "+parametersText(p.Parameters)), p.Proposer.Kind, clock(c.Facts.Now))
}

// evalInput reads an input strictly.
func (a *app) evalInput(file string) (name string, input []byte, err error) {
	switch file {
	case "":
		return "example input", gate.ExampleInput(), nil
	case "-":
		name = "standard input"
		input, err = io.ReadAll(io.LimitReader(a.in, gate.MaxInput+1))
	default:
		name = file
		input, err = readRegular(file)
	}
	if err != nil {
		return "", nil, fmt.Errorf("--input: %w", err)
	}
	return name, input, inputfile.Check(spec.File{Name: name, Data: input})
}

// evalPolicy loads the bundle of the argument, else the configured or built-in
// one. Its tests are not run: an author looks at what is not finished.
func (a *app) evalPolicy(args []string) (p *rego.Policy, folder string, err error) {
	fsys, folder, err := a.bundleOf(args)
	if err != nil {
		return nil, "", err
	}
	p, err = rego.Load(fsys, rego.Options{})
	var found rego.Findings
	if errors.As(err, &found) {
		for _, f := range found {
			if f.File != "" {
				f.File = path.Join(folder, f.File)
			}
			a.say("%s", f)
		}
		return nil, "", fmt.Errorf("%s: %s; nothing was evaluated", bundleName(folder), count(len(found), "fault"))
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", bundleName(folder), err)
	}
	return p, folder, nil
}

func (a *app) showEval(e policyEval, output string) error {
	if output != formatTable {
		if err := emit(a.out, output, e); err != nil {
			return err
		}
	} else {
		p := &paper{w: a.out}
		p.eval(e)
		if p.err != nil {
			return p.err
		}
	}
	if e.Ruling.Fault != "" {
		a.say("setpoint: the policy could not be evaluated: %s", e.Ruling.Fault)
		return exitCode(exitError)
	}
	return nil
}

func (p *paper) eval(e policyEval) {
	p.line("evaluating %s by %s, revision %s", e.Input, e.Bundle, short(e.Ruling.Revision))
	p.line("%s", e.proposal)
	for _, d := range e.Differences {
		p.line("  %s is %s here; floors see %s, as the gate would write it", d.Path, d.Given, d.Seen)
	}
	said := "policy alone: " + e.Ruling.Verdict
	switch {
	case e.Ruling.Fault != "":
		said = "policy alone: could not be evaluated, which holds"
	case len(e.Ruling.Rules) == 0:
		said += ", as no rule fired"
	}
	if !e.Ruling.Asked {
		said += ", and not asked in a decision"
	}
	p.head(said)
	p.saidRules(e.Ruling.Rules)
	if len(e.Floors) == 0 {
		p.head("floors: none")
	} else {
		p.head("floors")
		p.saidFloors(e.Floors)
	}
	p.head("decision: " + verdictText(e.Decision) + ", by what is marked *")
	p.needs("needs", e.Decision.Needs)
	p.traced(e.traced)
	p.head("not in an input, so taken as clear: " + strings.Join(e.Assumed, ", "))
	p.line("as for a Remediation without its own: costs of at most %.4g, %s to approve within %s",
		spec.DefaultRemediation("").Budget.Costs.Dearest(), gate.InputApprovers, spec.FormatDuration(spec.DefaultRemediation("").ApprovalFor))
}

func verdictText(d saidDecision) string {
	switch {
	case d.Hold && d.Lasting != "":
		return fmt.Sprintf("%s, held for now, then %s", d.Verdict, d.Lasting)
	case d.Hold:
		return d.Verdict + ", held for now"
	}
	return d.Verdict
}

// inputDifference is a part of an input that floors see otherwise.
type inputDifference struct {
	Path string `json:"path"`
	// Given and Seen are JSON.
	Given string `json:"given"`
	Seen  string `json:"seen"`
}

// differences are where the gate would write another input of the case that was
// made of this one: what a person wrote may contradict itself.
func differences(input []byte, c gate.Case) ([]inputDifference, error) {
	built, err := gate.BuildInput(c)
	if err != nil {
		return nil, err
	}
	var given, seen any
	if err := errors.Join(json.Unmarshal(input, &given), json.Unmarshal(built, &seen)); err != nil {
		return nil, err
	}
	out := []inputDifference{}
	compareJSON("", given, seen, func(path string, a, b any) {
		out = append(out, inputDifference{path, jsonText(a), jsonText(b)})
	})
	return out, nil
}

// compareJSON tells of the places where two documents differ by more than
// rounding.
func compareJSON(path string, a, b any, differ func(path string, a, b any)) {
	x, isObject := a.(map[string]any)
	y, bothObjects := b.(map[string]any)
	list, isList := a.([]any)
	other, bothLists := b.([]any)
	switch {
	case isObject && bothObjects:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			compareJSON(spec.KeyPath(path, key), x[key], y[key], differ)
		}
	case isList && bothLists && len(list) == len(other):
		for i := range list {
			compareJSON(spec.IndexPath(path, i), list[i], other[i], differ)
		}
	case !sameJSON(a, b):
		differ(path, a, b)
	}
}

func sameJSON(a, b any) bool {
	const rounding = 1e-9
	x, isNumber := a.(float64)
	y, bothNumbers := b.(float64)
	if isNumber && bothNumbers {
		return math.Abs(x-y) <= rounding*max(1, math.Abs(x))
	}
	return reflect.DeepEqual(a, b)
}

func jsonText(v any) string {
	const most = 80
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}
