package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Exit codes that scripts rely on.
const (
	exitFine    = 0
	exitError   = 1
	exitFound   = 2
	exitUnknown = 3
)

// app is the command line with everything that it takes from its process.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	now      func() time.Time
	// colour: out is a terminal, and nobody asked for plain text.
	colour bool
	// configPath is the value of --config.
	configPath string
}

func newApp() *app {
	return &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		getenv: os.Getenv, now: rigClock(time.Now),
		colour: isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run runs one command line and returns its exit code.
func (a *app) run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends gracefully; a second one kills.
	context.AfterFunc(ctx, stop)
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &code):
		return int(code)
	}
	a.complain(err)
	return exitError
}

// complain writes an error for people. Faults in documents stand one a line
// and without a prefix, so that editors can jump to them.
func (a *app) complain(err error) {
	var faults spec.Faults
	if errors.As(err, &faults) {
		a.say("%s", faults.Error())
		a.say("setpoint: %s; nothing was loaded", count(len(faults), "fault"))
		return
	}
	a.say("setpoint: %s", strings.TrimSuffix(err.Error(), "\n"))
}

// say writes one line to standard error.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...) // Nobody is left to tell.
}

// print writes to standard output; a reader that is gone ends the command.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// exitCode ends a command whose output has said everything.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// usageError is a wrong command line; it points at the help of its command.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf(format+"\nRun `%s --help` for usage", append(args, cmd.CommandPath())...)
}
