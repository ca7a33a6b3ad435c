package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func rootCommand(in io.Reader, out, errs io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "setpoint-lab",
		Short: "See Setpoint work, score proposers, and run the stand-ins that tests use",
		Long: `What must never ship in the agent. Everything runs on loopback; no language
model is asked and nothing leaves this machine.`,
		Example: `  setpoint-lab demo                   # three faults, under four minutes
  setpoint-lab demo --json --yes      # the summary is the last line
  setpoint-lab eval run --proposer rules`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		demoCommand(), newEvalCommand(), fakemodelCommand(), fakepagerCommand(), fakeslackCommand(), effectdCommand(), faultproxyCommand(), crashCommand(), checkCommand(), simCommand(),
	)
	root.AddCommand(mutantsCommand())
	root.AddCommand(worstCommand())
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd, "unexpected argument %q", args[0])
	}
	return nil
}

// unknownCommand refuses a word that is no subcommand, with what it may have
// meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case args[0] == "compare" && cmd.Name() == "eval":
		return errors.New("eval compare: not in this version; compare the output of two eval run -o json")
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := spec.Nearest(args[0], known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
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
	"int": "a whole number", "uint64": "a whole number from 0 on", "float64": "a number",
	"bool": "true or false", "duration": "a duration such as 90s or 5m", "durationSlice": "durations such as 3s,1m",
}

// usageError is a wrong command line; it points at the help of its command.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf(format+"\nRun `%s --help` for usage", append(args, cmd.CommandPath())...)
}
