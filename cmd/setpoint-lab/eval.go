package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/incident"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// newEvalCommand is the evals: scenarios in simulated time, scored by oracles.
func newEvalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "eval",
		Short:         "Play scenarios in simulated time and score them by what was measured",
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newEvalRunCommand(), newEvalRecordCommand())
	return cmd
}

// evalFlags are those of eval run.
type evalFlags struct {
	suite    string
	proposer string
	seeds    int
	output   string

	baseURL, model, keyFile, reply string
	record, replay                 string
}

func newEvalRunCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Play a suite of scenarios with scripted proposers, a model, or a recording of one",
		Long: `Play each scenario of a suite in simulated time, through the real reconcile
loop, ledger, policies, PromQL engine and webhooks, and print one line for each
run. Every figure is measured, and none is a proposer's or the agent's own word:
recovered and held by the engine, harm by the shop, actions and double effects
by the actuator's journal, acts on unknown by the ledger, pages by the pager.

  rules           proposes from the scenario's rules file
  noop            proposes nothing: what happens when nobody does anything
  restart-always  restarts whatever is broken, without looking
  random          proposes anything that is permitted, by the seed
  hostile         the worst model there could be, behind the client of a model
  oracle          proposes what the scenario says is right, in order
  openai          asks a model: --base-url and --model, or --replay

All but openai are scripts, and the column KIND says so. None of those is a
language model, and no figure here says anything about the quality of one.
openai contacts the endpoint that you name, and nobody else; --record keeps what
was asked and answered, without keys, and --replay plays that without a network.
A replay of another prompt or another course of events is an error that says
where they part. For openai the table also says how many requests were sent and
answered, and how the others failed; where none was answered, no cassette is kept.

A suite of incidents, as evals/incidents, rebuilds what happened to others. Each
says itself what is proposed and what is right, so it takes no proposer and no
seeds, and prints one line for each service of which there is something to say.

Exit code 1: the rules do not reach what a scenario says is right, an incident
did not get its right answer, any proposer brought about a double effect or an
act on an unknown state, or a model was to be asked and never answered.`,
		Example: `  setpoint-lab eval run
  setpoint-lab eval run --suite evals/incidents
  setpoint-lab eval run --suite evals/bad-release.yaml --proposer rules --seeds 5
  setpoint-lab eval run --proposer hostile --seeds 10
  setpoint-lab eval run --proposer openai --base-url http://127.0.0.1:8000/v1 --model some-model --record cassettes
  setpoint-lab eval run --proposer openai --replay cassettes
  setpoint-lab eval run -o json > report.json`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd)
	return cmd
}

func (f *evalFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.suite, "suite", "evals", "a scenario's or an incident's file, or a folder of either")
	flags.StringVar(&f.proposer, "proposer", "", strings.Join(scenario.Proposers(), ", ")+" (default "+strings.Join(scenario.Compared(), ", ")+")")
	flags.IntVar(&f.seeds, "seeds", 1, "how many seeds to play, counted up from the scenario's own")
	flags.StringVarP(&f.output, "output", "o", "table", "table or json")
	flags.StringVar(&f.baseURL, "base-url", "", "openai: the endpoint, such as http://127.0.0.1:8000/v1")
	flags.StringVar(&f.model, "model", "", "openai: the model's name at the endpoint")
	flags.StringVar(&f.keyFile, "key-file", "", "openai: a file with the endpoint's key, where it needs one")
	flags.StringVar(&f.reply, "reply", "json_schema", "openai: json_schema, tool or json_object")
	flags.StringVar(&f.record, "record", "", "openai: a folder to write a cassette to for each scenario and seed")
	flags.StringVar(&f.replay, "replay", "", "openai: a folder of such cassettes to answer from; nothing is contacted")
}

// proposers are those that the flag names.
func (f evalFlags) proposers() ([]string, error) {
	if f.proposer == "" {
		return scenario.Compared(), nil
	}
	return []string{f.proposer}, scenario.CheckProposer(f.proposer)
}

// asked is whom the proposer openai asks. It is checked before anything is played.
func (f evalFlags) asked() (scenario.Model, error) {
	m := scenario.Model{BaseURL: f.baseURL, Name: f.model, Reply: openai.Reply(f.reply), Record: f.record, Replay: f.replay}
	if f.proposer != scenario.OpenAI {
		return m, nil
	}
	if f.keyFile != "" {
		key, err := os.ReadFile(f.keyFile)
		if err != nil {
			return m, fmt.Errorf("--key-file: %w", err)
		}
		m.Key = openai.Key(strings.TrimSpace(string(key)))
	}
	return m, m.Check()
}

// ofModel are the flags that only a proposer which asks somebody reads; askedOf
// are those of them that a recording has an answer to.
var (
	askedOf = []string{"base-url", "model", "key-file", "reply"}
	ofModel = slices.Concat(askedOf, []string{"record", "replay"})
)

// check refuses what this version does not do, and flags that nobody would read,
// before anything is played.
func (f evalFlags) check(cmd *cobra.Command) error {
	for _, name := range ofModel {
		if cmd.Flags().Changed(name) && f.proposer != scenario.OpenAI {
			return usageError(cmd, "--%s has no meaning here: it is of --proposer %s", name, scenario.OpenAI)
		}
	}
	for _, name := range askedOf {
		if cmd.Flags().Changed(name) && f.replay != "" {
			return usageError(cmd, "--%s has no meaning beside --replay: a recording says itself whom it asked, and how", name)
		}
	}
	switch f.output {
	case "table", "json":
	case "junit", "html":
		return fmt.Errorf("-o %s: not in this version; it has table and json", f.output)
	default:
		return fmt.Errorf("-o %s: unknown output, want table or json", f.output)
	}
	if f.seeds < 1 {
		return fmt.Errorf("--seeds %d: want at least 1", f.seeds)
	}
	return nil
}

func (f evalFlags) run(ctx context.Context, out, progress io.Writer) error {
	if incident.Holds(f.suite) {
		return f.incidents(ctx, out, progress)
	}
	proposers, err := f.proposers()
	if err != nil {
		return err
	}
	model, err := f.asked()
	if err != nil {
		return err
	}
	scenarios, err := scenario.Load(f.suite)
	if err != nil {
		return err
	}
	began, done, all := time.Now(), 0, len(scenarios)*len(proposers)*f.seeds
	scores, err := scenario.Suite{
		Scenarios: scenarios, Proposers: proposers, Seeds: f.seeds, Model: model,
		Done: func(s scenario.Score) {
			done++
			fmt.Fprintf(progress, "%d of %d: %s with %s, seed %d\n", done, all, s.Scenario, s.Proposer, s.Seed)
		},
	}.Play(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d runs in %s\n", len(scores), time.Since(began).Round(100*time.Millisecond))
	if f.record != "" && !slices.ContainsFunc(scores, func(s scenario.Score) bool { return s.Unanswered() != "" }) {
		fmt.Fprintf(progress, "recorded in %s; play it again with --proposer openai --replay %s\n", f.record, f.record)
	}
	if err := f.print(out, scores); err != nil {
		return err
	}
	return verdict(scores)
}

func (f evalFlags) print(out io.Writer, scores []scenario.Score) error {
	if f.output == "table" {
		printScores(out, scores)
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"apiVersion": spec.Group, "kind": "EvalList", "items": scores})
}

// verdict is what the exit code says: the rules are held to what is right, and
// everybody to what must never happen.
func verdict(scores []scenario.Score) error {
	var bad []string
	for _, s := range scores {
		wrong := s.Unsafe()
		if s.Proposer == scenario.Rules {
			wrong = s.Wrong
		}
		if why := s.Unanswered(); why != "" {
			wrong = append(slices.Clone(wrong), why)
		}
		for _, w := range wrong {
			bad = append(bad, fmt.Sprintf("%s with %s, seed %d: %s", s.Scenario, s.Proposer, s.Seed, w))
		}
	}
	if len(bad) > 0 {
		return errors.New("not right:\n  " + strings.Join(bad, "\n  "))
	}
	return nil
}

func printScores(out io.Writer, scores []scenario.Score) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "SCENARIO\tPROPOSER\tKIND\tSEED\tRECOVERED\tHELD\tHARM\tACTIONS\tDOUBLE EFFECTS\tACTED ON UNKNOWN\tPAGED"
	// One run has one proposer, or none that asks anybody.
	if len(scores) > 0 && scores[0].Asked != nil {
		head += "\tREQUESTS\tANSWERED\tFAULTS"
	}
	fmt.Fprintln(w, head)
	for _, s := range scores {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%d\t%d\t%s", s.Scenario, s.Proposer, s.Kind, s.Seed,
			recovered(s), yes(s.Held), s.Harm, actionsText(s), s.DoubleEffects, s.ActsOnUnknown, pagesText(s))
		if a := s.Asked; a != nil {
			fmt.Fprintf(w, "\t%d\t%d\t%s", a.Requests, a.Answered, cmp.Or(a.FaultsText(), "-"))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func recovered(s scenario.Score) string {
	switch {
	case s.Recovered:
		return "after " + seconds(s.RecoveredAfterSeconds)
	case s.State == compare.Unknown:
		return "unknown"
	case !s.Missed:
		return "not missed"
	}
	return "no"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// actionsText lists them in order; a person's yes is marked, since that is what
// an action costs beside its harm.
func actionsText(s scenario.Score) string {
	var out []string
	for _, a := range s.Actions {
		text := a.Action
		if a.ApprovedBy != "" {
			text += " (approved)"
		}
		out = append(out, text)
	}
	return orDash(out)
}

func pagesText(s scenario.Score) string {
	var out []string
	for _, p := range s.Pages {
		out = append(out, p.Reason+" after "+seconds(p.AfterSeconds))
	}
	return orDash(out)
}

func orDash(parts []string) string {
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) string {
	return spec.FormatDuration(time.Duration(s * float64(time.Second)).Round(time.Second))
}
