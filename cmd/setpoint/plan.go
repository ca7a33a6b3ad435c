package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/step"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) planCommand() *cobra.Command {
	var output string
	var ask, detailed, queries bool
	cmd := &cobra.Command{
		Use:   "plan [service...]",
		Short: "Measure now and show what the next pass would do, and why",
		Long: `Measure now and show what the next pass would do, and why. Nothing is written
and nothing is sent; it works without a ledger and beside a running agent. The
rules are asked for a proposal, a model only with --propose.

With --detailed-exitcode: 0 every objective is met and nothing is proposed,
2 a breach or a proposal, 3 something is unknown (2 wins).

With --explain-queries nothing is measured: it shows which queries each source is
sent, for how many objectives, how often, and why some cannot be grouped.`,
		Example: `  setpoint plan
  setpoint plan checkout -o json
  setpoint plan --propose --detailed-exitcode
  setpoint plan --explain-queries`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if queries {
				return a.explainQueriesOf(cmd, args, output)
			}
			results, items, err := a.planned(cmd.Context(), args, ask)
			if err != nil {
				return err
			}
			if err := a.showPlan(output, items); err != nil {
				return err
			}
			if code := detailedCode(results); detailed && code != exitFine {
				return exitCode(code)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&ask, "propose", false, "ask the configured proposer, which may be a model")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit with 2 on a breach or proposal, 3 on something unknown")
	cmd.Flags().BoolVar(&queries, "explain-queries", false, "show what would be asked of each source, and ask nothing")
	outputFlag(cmd, &output, formatTable, formatWide, formatJSON, formatYAML, formatName)
	return cmd
}

// explainQueriesOf refuses what has no meaning where nothing is measured.
func (a *app) explainQueriesOf(cmd *cobra.Command, services []string, output string) error {
	for _, other := range []string{"propose", "detailed-exitcode"} {
		if cmd.Flags().Changed(other) {
			return usageError(cmd, "--explain-queries measures nothing, so --%s has no meaning beside it", other)
		}
	}
	if output == formatName {
		return usageError(cmd, "--explain-queries names nothing: use -o table, json or yaml")
	}
	return a.explainQueries(services, output)
}

// planned makes passes that write and send nothing.
func (a *app) planned(ctx context.Context, services []string, ask bool) ([]reconcile.Result, web.List[web.PlanItem], error) {
	var none web.List[web.PlanItem]
	s, err := a.site()
	if err != nil {
		return nil, none, err
	}
	loop, done, err := a.onlooker(ctx, s, ask)
	if err != nil {
		return nil, none, err
	}
	defer done()
	for _, name := range services {
		if _, ok := loop.Set().Service(name); !ok {
			return nil, none, unknownService(loop.Set(), name)
		}
	}
	results, err := loop.Plan(ctx, services, ask)
	return results, web.Plan(loop.Set(), s.cfg.Limits.MaxMode, results), err
}

// onlooker is a loop that writes and sends nothing, over the ledger if there is
// one, beside whoever writes it. The caller calls done.
func (a *app) onlooker(ctx context.Context, s site, ask bool) (loop *reconcile.Reconciler, done func(), err error) {
	var store ledger.Store
	done = func() {}
	r, err := readLedger(ctx, s)
	switch {
	case errors.Is(err, ledger.ErrMissing):
		a.say("setpoint: no ledger yet, so no past is known (`setpoint ledger init` creates one)")
	case err != nil:
		a.unreadable(err)
	default:
		store = readOnly{r}
		done = func() { _ = r.Close() } // It was only read.
		a.cautionSeen(ctx, s, r)
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	w, err := a.wire(ctx, s, store, purpose{ask: ask})
	if err != nil {
		return nil, done, err
	}
	loop, err = reconcile.New(ctx, w.options)
	if errors.Is(err, ledger.ErrCorrupt) {
		a.unreadable(err)
		w.options.Store = nil
		loop, err = reconcile.New(ctx, w.options)
	}
	if err != nil {
		return nil, done, err
	}
	if w.options.PolicyFault != "" {
		a.say("setpoint: the policy does not load, so nothing could be done: %s", w.options.PolicyFault)
	}
	return loop, done, nil
}

// detailedCode is the exit code of --detailed-exitcode.
func detailedCode(results []reconcile.Result) int {
	code := exitFine
	for _, r := range results {
		switch {
		case r.Assessment.State == compare.Breached, r.Proposal != nil, r.Step.Kind == step.Execute:
			return exitFound
		case r.Assessment.State != compare.Met:
			code = exitUnknown
		}
	}
	return code
}

func (a *app) showPlan(output string, items web.List[web.PlanItem]) error {
	switch output {
	case formatJSON, formatYAML:
		return emit(a.out, output, items)
	case formatName:
		for _, p := range items.Items {
			if err := a.print("service/%s\n", p.Service); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items.Items) == 0 {
		a.say("no services in the documents")
		return nil
	}
	t := &table{header: []string{"SERVICE", "MODE", "STATE", "REASON", "STEP", "ACTION", "VERDICT", "REASONS"}, coloured: []int{2, 6}}
	if output == formatWide {
		t.header = append(t.header, "ERRORS", "BUDGET", "KEY", "DIGEST")
	}
	for _, p := range items.Items {
		row := planRow(p)
		if output == formatWide {
			row = append(row, planErrors(p), fmt.Sprintf("%.4g of %.4g", p.Balance.Remaining, p.Balance.Capacity), p.Key, planDigest(p))
		}
		t.add(row...)
	}
	if err := t.write(a.out, a.colour); err != nil {
		return err
	}
	return a.planFaults(items.Items)
}

// planFaults says what kept a pass from being finished, why something is
// unknown, and which group it is about.
func (a *app) planFaults(items []web.PlanItem) error {
	for _, p := range items {
		for _, o := range p.Objectives {
			switch {
			case o.State == string(compare.Unknown) && o.Detail != "":
				a.say("%s/%s: %s: %s", p.Service, o.Name, o.Reason, detailText(o))
			case o.State == string(compare.Breached) && o.Groups > 0:
				a.say("%s/%s: %d of %d groups are breached, worst %s", p.Service, o.Name, *o.GroupsBreached, o.Groups, o.Group)
			}
		}
		if p.Proposal != nil && p.Proposal.Guess {
			a.say("%s: the agent asks a model here, and what is shown is what the rules say; --propose asks it", p.Service)
		}
		if p.Error != "" {
			a.say("setpoint: the pass of %s could not be finished: %s", p.Service, p.Error)
		}
	}
	return nil
}

func planRow(p web.PlanItem) []string {
	action, verdict, reasons := "", "", p.Reasons
	if p.Proposal != nil {
		action = strings.TrimSpace(p.Proposal.Action + " " + parametersText(p.Proposal.Parameters))
	}
	if p.Decision != nil {
		verdict, reasons = p.Decision.Verdict, p.Decision.Reasons
	}
	return []string{p.Service, modeText(p.Mode, p.EffectiveMode), p.State, p.Reason, p.Step, action, verdict, words(reasons)}
}

// planErrors is the judge error ratio of each objective.
func planErrors(p web.PlanItem) string {
	var parts []string
	for _, o := range p.Objectives {
		part := o.Name + "=" + percent(o.JudgeErrorRatio)
		if o.Groups > 0 {
			part += "(" + groupsText(o) + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func planDigest(p web.PlanItem) string {
	if p.Decision == nil {
		return ""
	}
	return short(p.Decision.Digest)
}
