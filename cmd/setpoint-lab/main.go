// Command setpoint-lab holds what must never ship in the agent: the demo, the
// evals, and the stand-ins for a model, a pager and an actuator. It contacts
// nothing but loopback.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run runs one command line and returns its exit code: 0 for everything
// measured, 1 for an error, or what the error says of itself.
func run(args []string) int {
	stayHere()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends gracefully; a second one kills.
	context.AfterFunc(ctx, stop)
	cmd := rootCommand(os.Stdin, os.Stdout, os.Stderr)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "setpoint-lab: interrupted; everything that was started has ended")
	default:
		fmt.Fprintf(os.Stderr, "setpoint-lab: %s\n", strings.TrimRight(err.Error(), "\n"))
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 1
}

// stayHere lets no name be looked up outside this machine: the scrape manager
// asks for the name of its own host.
func stayHere() {
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("setpoint-lab looks up no names: use an address of loopback")
		},
	}
}
