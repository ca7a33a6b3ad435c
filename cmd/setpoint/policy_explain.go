package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// explainFlags are the flags of `policy explain`.
type explainFlags struct {
	ledger, trace, output string
	input                 bool
}

const policyExplainLong = `Say which rules and floors made a recorded decision: each rule by its title, with
file and line in the bundle that ruled and what can be done, those that decided
first and marked. The recorded input is evaluated again under the recorded bundle,
and a decision that does not come out as it was recorded is said to.

A ticket's id stands for the decision that asked.

--input prints the input that policy saw, and nothing else: it is what "policy
eval" and tables of cases start from, so that an incident becomes a test.

Exit code 1 also when the decision does not reproduce.`

func (a *app) policyExplainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain <decision>",
		Short: "Say which rules made a recorded decision, with file, line and what can be done",
		Long:  policyExplainLong,
		Example: `  setpoint policy explain d118
  setpoint policy explain d118 --trace              # and where every other rule stopped
  setpoint policy explain d118 --input > input.json
  setpoint policy explain t119 --ledger month.jsonl -o json`,
		Args: oneArg("one decision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrace(cmd, f.trace); err != nil {
				return err
			}
			return a.policyExplain(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.ledger, "ledger", "", "read this export instead of the configured ledger; - is standard input")
	cmd.Flags().BoolVar(&f.input, "input", false, "print the input that policy saw, as JSON, and nothing else")
	traceFlag(cmd, &f.trace)
	outputFlag(cmd, &f.output, formatTable, formatJSON, formatYAML)
	exclude(cmd, "input", "trace")
	exclude(cmd, "input", "output")
	return cmd
}

// policyExplanation is the answer of `policy explain -o json`.
type policyExplanation struct {
	web.Meta
	ID         string             `json:"id"`
	Time       time.Time          `json:"time"`
	Service    string             `json:"service"`
	Action     string             `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
	Step       string             `json:"step"`
	State      string             `json:"state"`
	Reason     string             `json:"reason"`
	Mode       string             `json:"mode"`
	saidDecision
	Rules  []saidRule  `json:"rules"`
	Floors []saidFloor `json:"floors"`
	// Fault is why policy could not rule.
	Fault       string          `json:"fault,omitempty"`
	InputDigest string          `json:"inputDigest"`
	Policy      explainedPolicy `json:"policy"`
	// Reproduced: the recorded input under the recorded bundle leads to exactly
	// this decision; null where it cannot be told, and Why says why.
	Reproduced *bool       `json:"reproduced"`
	Why        string      `json:"why,omitempty"`
	Shadow     *web.Shadow `json:"shadow,omitempty"`
	traced
}

// explainedPolicy is the bundle that ruled.
type explainedPolicy struct {
	Revision   string `json:"revision"`
	DataDigest string `json:"dataDigest"`
	// InForce: it is the configured one; null without a configuration.
	InForce *bool `json:"inForce"`
	// InForceRevision is the configured one's.
	InForceRevision string `json:"inForceRevision,omitempty"`

	// folder is where the files are, when it is in force.
	folder string
}

func (a *app) policyExplain(ctx context.Context, name string, f explainFlags) (err error) {
	past, err := a.recorded(ctx, f.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, past.close()) }()
	x := explaining{past: past}
	if err := x.find(ctx, name); err != nil {
		return err
	}
	if f.input {
		return a.printInput(ctx, x)
	}
	if err := x.load(ctx); err != nil {
		return err
	}
	out, err := x.answer(ctx, a.inForce(x.decided.Decision.Ruling))
	if err != nil {
		return err
	}
	if f.trace != "" {
		if x.policy == nil {
			return fmt.Errorf("--trace: %s cannot be evaluated again: %s", x.id(), out.notAgain())
		}
		if out.traced, err = tracedOf(ctx, f.trace, x.policy, x.input, out.Policy.folder); err != nil {
			return err
		}
	}
	return a.showExplanation(out, f.output)
}

func (a *app) printInput(ctx context.Context, x explaining) error {
	digest := x.decided.Decision.InputDigest
	if digest == "" {
		return fmt.Errorf("%s has no input: there was nothing to rule on (%s)", x.id(), strings.Join(decisionSaid(x.decided.Decision).Reasons, ", "))
	}
	raw, err := x.past.Blob(ctx, digest)
	if err != nil {
		return fmt.Errorf("the input of %s: %w", x.id(), err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		return fmt.Errorf("the input of %s: %w", x.id(), err)
	}
	return a.print("%s\n", pretty.Bytes())
}

// inForce compares the bundle that ruled with the configured one. Where there is
// no configuration, as beside an export, nobody knows.
func (a *app) inForce(r gate.Ruling) explainedPolicy {
	out := explainedPolicy{Revision: r.Revision, DataDigest: r.DataDigest}
	s, err := a.site()
	if err != nil {
		return out
	}
	fsys, folder, err := s.bundle()
	if err != nil {
		return out
	}
	b, err := rego.Read(fsys)
	if err != nil {
		return out
	}
	same := b.Revision() == r.Revision
	out.InForce, out.InForceRevision = &same, b.Revision()
	if same {
		out.folder = folder
	}
	return out
}

// explaining is a recorded decision with its parts.
type explaining struct {
	past    recorded
	entry   ledger.Entry
	decided ledger.Decided
	// input, policy and floors are nil where the ledger has none; why says why.
	input  []byte
	policy *rego.Policy
	floors *gate.Floors
	why    string
}

func (x *explaining) id() string { return ledger.DecisionID(x.entry.Seq) }

var recordedID = regexp.MustCompile(`^([dt])([1-9][0-9]{0,18})$`)

// find reads the entry of a decision, or the decision of a ticket.
func (x *explaining) find(ctx context.Context, name string) error {
	e, body, err := x.read(ctx, name)
	if err != nil {
		return err
	}
	if ticket, ok := body.(ledger.TicketBody); ok && name[0] == 't' {
		if e, body, err = x.read(ctx, ticket.Decision); err != nil {
			return err
		}
		name = ticket.Decision
	}
	d, ok := body.(ledger.Decided)
	if !ok || name[0] != 'd' {
		return x.unknown(name)
	}
	x.entry, x.decided = e, d
	return nil
}

func (x *explaining) unknown(name string) error {
	return fmt.Errorf("no decision %q in %s: `setpoint get decisions` lists them", name, x.past.name)
}

// read is the entry that an id names.
func (x *explaining) read(ctx context.Context, name string) (e ledger.Entry, body any, err error) {
	m := recordedID.FindStringSubmatch(name)
	if m == nil {
		return e, nil, x.unknown(name)
	}
	seq, err := strconv.ParseUint(m[2], 10, 64)
	if err != nil {
		return e, nil, x.unknown(name)
	}
	e, ok, err := entryAt(ctx, x.past, seq)
	switch {
	case err != nil:
		return e, nil, err
	case !ok:
		return e, nil, x.unknown(name)
	}
	if body, err = ledger.Decode(e); err != nil {
		return e, nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, body, nil
}

// entryAt is one entry, which must follow the one before.
func entryAt(ctx context.Context, src replay.Source, seq uint64) (e ledger.Entry, ok bool, err error) {
	from := max(seq, 2) - 2 // The one before, too.
	page, err := src.Read(ctx, from, 2)
	if err != nil {
		return e, false, err
	}
	var prev ledger.Position
	for _, e := range page {
		if e.Seq == seq {
			return e, true, ledger.Verify(prev, e)
		}
		prev = e.Position()
	}
	return e, false, nil
}

// load reads what is kept beside the decision. What is missing is no error: the
// decision itself says most.
func (x *explaining) load(ctx context.Context) error {
	d := x.decided.Decision
	var err error
	if x.input, err = x.blob(ctx, "input", d.InputDigest); err != nil {
		return err
	}
	raw, err := x.blob(ctx, "floors", x.decided.Floors)
	if err != nil {
		return err
	}
	if raw != nil {
		var floors gate.Floors
		if err := json.Unmarshal(raw, &floors); err != nil {
			return fmt.Errorf("the floors of %s: %w", x.id(), err)
		}
		x.floors = &floors
	}
	bundle, err := x.blob(ctx, "policy bundle", d.Ruling.Revision)
	if err != nil || bundle == nil {
		return err
	}
	b, err := rego.Unpack(bundle)
	if err == nil {
		x.policy, err = b.Load(rego.Options{Deadline: replayDeadline})
	}
	if err != nil {
		x.policy, x.why = nil, fmt.Sprintf("the recorded policy does not load with this version: %v", err)
	}
	return nil
}

// blob reads a part; one that is not there is nil, and noted.
func (x *explaining) blob(ctx context.Context, what, digest string) ([]byte, error) {
	if digest == "" {
		return nil, nil
	}
	raw, err := x.past.Blob(ctx, digest)
	if errors.Is(err, ledger.ErrNoBlob) {
		x.why = fmt.Sprintf("its %s (blob %s) is not in the ledger", what, short(digest))
		return nil, nil
	}
	return raw, err
}

func (x *explaining) answer(ctx context.Context, policy explainedPolicy) (policyExplanation, error) {
	d := x.decided
	findings := x.findings()
	out := policyExplanation{
		Meta: web.Meta{APIVersion: spec.Group, Kind: "PolicyExplanation"},
		ID:   x.id(), Time: x.entry.Time.UTC(), Service: x.entry.Service, Action: string(d.Proposal.Kind), Parameters: d.Proposal.Parameters,
		Step: d.Step, State: string(d.State), Reason: string(d.Reason), Mode: d.Mode.String(),
		saidDecision: decisionSaid(d.Decision), Rules: saidRules(d.Decision, findings, policy.folder), Floors: saidFloors(findings),
		Fault: d.Decision.Ruling.Fault, InputDigest: d.Decision.InputDigest, Policy: policy, Shadow: shadowSaid(d.Shadow),
	}
	if d.Proposal.Kind == propose.KindAction {
		out.Action = d.Proposal.Action
	}
	if x.floors != nil {
		out.Lasting = x.floors.Outlook(d.Decision.Ruling).Lasting.Verdict.String()
	}
	if out.Parameters == nil {
		out.Parameters = propose.Parameters{}
	}
	if out.Why = x.why; x.policy == nil {
		return out, nil
	}
	j, err := replay.One(ctx, x.past, replay.Options{With: x.policy, Load: loadRecorded}, x.entry)
	if err != nil {
		return out, err
	}
	out.Why = j.Why
	if j.Status != replay.NotReplayable {
		same := j.Status == replay.Reproduced
		out.Reproduced = &same
	}
	return out, nil
}

// findings are what made the decision. Without its floors, their reasons alone
// are known.
func (x *explaining) findings() []gate.Finding {
	d := x.decided.Decision
	if x.floors != nil {
		return x.floors.Findings(d.Ruling)
	}
	var out []gate.Finding
	if x.decided.Proposal.Kind != propose.KindAction {
		// There was nothing to rule on, and nothing else to weigh.
		for _, r := range d.Reasons {
			out = append(out, gate.Finding{Effect: d.Verdict.String(), Reason: r, Deciding: true})
		}
		return out
	}
	for _, r := range d.Reasons {
		if !strings.HasPrefix(r.Code, gate.PolicyPrefix) {
			out = append(out, gate.Finding{Reason: r})
		}
	}
	return out
}

func shadowSaid(s *ledger.Shadow) *web.Shadow {
	if s == nil {
		return nil
	}
	return &web.Shadow{
		Revision: s.Revision, Verdict: s.Verdict.String(), Hold: s.Hold, Reasons: append([]string{}, s.Reasons...),
		Differs: s.Differs, Fault: s.Fault,
	}
}
