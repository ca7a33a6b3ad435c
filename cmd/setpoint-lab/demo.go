package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/demo"
)

func demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Let three services degrade, and watch what the agent may do about it",
		Long: `Three small services really degrade, Prometheus's own engine measures them, and
the built agent runs beside them as a process of its own: a bad release is taken
back; workers are recycled, which does not help, so that the second try asks you;
an exporter dies, which is unknown, never acted on, and pages "blind".

The proposer is a rules file behind an OpenAI-compatible endpoint on loopback,
not a language model. The demo takes two to three minutes, four at most.

Exit 0 only when every claim on the screen was measured; otherwise 1, and each
claim that was not is named. Where nobody can type, the question is answered as
with --yes, and the screen says so.`,
		Example: `  setpoint-lab demo
  setpoint-lab demo --yes                       # answers as os:<you>
  setpoint-lab demo --json --yes | tail -n 1    # the summary
  setpoint-lab demo --keep                      # look at the ledger afterwards`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := locate(&o); err != nil {
				return err
			}
			o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.Terminal = terminal(cmd.InOrStdin())
			screen := o.Out
			if o.JSON {
				screen = o.Err
			}
			o.Colour = coloured(screen)
			if o.Terminal == nil && !o.Yes {
				o.Yes = true
				if _, err := fmt.Fprintln(screen, "No terminal: nobody can type, so the one question is answered as with --yes."); err != nil {
					return err
				}
			}
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object as the last line of standard output, all else on standard error")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "answer the question as os:<you>, by `setpoint approve`")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "keep the folder with ledger, log and journals")
	cmd.Flags().StringVar(&o.Setpoint, "setpoint", "", "the built agent (default: the one beside this program)")
	cmd.Flags().StringVar(&o.Root, "root", "", "the folder with slo/ and evals/ (default: at or above here or this program)")
	return cmd
}

// locate fills in where the agent and the documents are.
func locate(o *demo.Options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if o.Setpoint == "" {
		o.Setpoint = filepath.Join(filepath.Dir(self), "setpoint")
	}
	if o.Setpoint, err = filepath.Abs(o.Setpoint); err != nil {
		return fmt.Errorf("--setpoint: %w", err)
	}
	if _, err := os.Stat(o.Setpoint); err != nil {
		return fmt.Errorf("no agent at %s: `make build` builds both, --setpoint names another", o.Setpoint)
	}
	if o.Root != "" {
		return demo.CheckRoot(o.Root)
	}
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find slo/ and evals/: %w", err)
	}
	o.Root, err = demo.FindRoot(here, filepath.Dir(self))
	return err
}

// terminal is the reader if a person types there, and nil otherwise.
func terminal(r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}

// coloured: a terminal, and nobody asked for plain text.
func coloured(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// isTerminal tells a terminal from a file, a pipe, and the null device, which is
// a character device too.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
