package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

const defaultConfig = "setpoint.yaml"

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "setpoint",
		Short: "Keep services inside their SLOs, one permitted step at a time",
		Long: `Setpoint compares what Prometheus measures with what each SLO demands. Where
they differ it may take at most one permitted step per window, and the next
pass measures again.`,
		Example: `  setpoint init slo/checkout.yaml     # a config, a ledger and a Remediation in observe
  setpoint validate                   # every fault, and what each action may get
  setpoint plan                       # what the next pass would do, and why
  setpoint run                        # the agent
  setpoint freeze --reason "looking"  # stop it, whatever state it is in`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// A bare `setpoint` shows the help; a wrong word gets a suggestion.
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.SuggestionsMinimumDistance = 2
	root.PersistentFlags().StringVar(&a.configPath, "config", "",
		"configuration file (default setpoint.yaml, or $SETPOINT_CONFIG)")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		a.initCommand(), a.runCommand(), a.planCommand(), a.getCommand(), a.explainCommand(),
		a.historyCommand(), a.answerCommand(true), a.answerCommand(false), a.freezeCommand(),
		a.thawCommand(), a.settleCommand(), a.ackCommand(), a.validateCommand(), a.policyCommand(),
		a.ledgerCommand(), a.budgetCommand(), a.scorecardCommand(), a.ceilingCommand(), a.sloCommand(), a.versionCommand(),
		a.doctorCommand(), a.changeCommand(), a.promptCommand(),
	)
	root.Version = buildInfo().line()
	root.SetVersionTemplate("{{.Version}}\n")
	strict(root)
	return root
}

// strict makes the two commands that cobra brings refuse a word they do not
// know, as every other one does: by themselves they print something and exit
// with 0.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args = unknownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		case "help":
			cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, args []string) error { return help(root, args) }
		}
	}
}

// help shows the help of the command that the words name.
func help(root *cobra.Command, words []string) error {
	found, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return unknownCommand(found, rest)
	}
	found.InitDefaultHelpFlag()
	return found.Help()
}

// unknownCommand refuses a word that is no subcommand, with what it may have
// meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += fmt.Sprintf("; did you mean %s?", strings.Join(like, " or "))
	}
	return usageError(cmd, "%s", text)
}

// flagError is a flag that is not known, with what it may have meant, or one
// whose value is not of its kind.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &value) && kindOf[value.GetFlag().Value.Type()] != "":
		return usageError(cmd, "--%s: want %s, not %q", value.GetFlag().Name, kindOf[value.GetFlag().Value.Type()], value.GetValue())
	case !errors.As(err, &unknown):
		return usageError(cmd, "%v", err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	text := err.Error()
	if near := spec.Nearest(unknown.GetSpecifiedName(), known); near != "" && unknown.GetSpecifiedShortnames() == "" {
		text += fmt.Sprintf("; did you mean --%s?", near)
	}
	return usageError(cmd, "%s", text)
}

// kindOf is what a flag takes, by the library's name of its type.
var kindOf = map[string]string{
	"int": "a whole number", "float64": "a number", "bool": "true or false", "duration": "a duration such as 90s or 5m",
}

// exclude lets two flags not be given together, and says so in words of ours.
func exclude(cmd *cobra.Command, one, other string) {
	cmd.MarkFlagsMutuallyExclusive(one, other) // Completion offers only one of them.
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(one) && cmd.Flags().Changed(other) {
			return usageError(cmd, "--%s and --%s exclude each other", one, other)
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subs...)
	return cmd
}

// configFile is --config, SETPOINT_CONFIG or setpoint.yaml.
func (a *app) configFile() string {
	if a.configPath != "" {
		return a.configPath
	}
	if env := a.getenv("SETPOINT_CONFIG"); env != "" {
		return env
	}
	return defaultConfig
}

func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError(cmd, "want %s, got %s", what, count(len(args), "argument"))
		}
		return nil
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd, "unexpected argument %q", args[0])
	}
	return nil
}
