package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
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
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, "%v", err) })
	root.AddCommand(
		demoCommand(), newEvalCommand(), fakemodelCommand(), fakepagerCommand(), effectdCommand(), faultproxyCommand(), crashCommand(), checkCommand(), simCommand(),
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

// usageError is a wrong command line; it points at the help of its command.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf(format+"\nRun `%s --help` for usage", append(args, cmd.CommandPath())...)
}
