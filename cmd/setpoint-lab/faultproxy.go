package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
)

// proxyFlags is how a fault proxy is to be.
type proxyFlags struct {
	listen, upstream, fault, control string
	next                             int
}

func faultproxyCommand() *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "faultproxy",
		Short: "A proxy in front of one upstream that lets chosen things go wrong",
		Long: `Pass connections on to one upstream, each with a fault. The faults of bytes work
for any protocol; those marked HTTP take the first request of a connection and
end it afterwards. The first line of standard output is its URL; of another
protocol than HTTP take host and port from it.

With --control the next line is "control" and the URL at which another process
changes the fault while the proxy runs:

  PUT  /control/fault          the body is a fault; ?next=3 for three connections
  GET  /control/fault          what is in force
  GET  /control/log            what passed on each connection, and how it ended
  PUT  /control/hold?on=true   stop all bytes, as a network that is cut; on=false
  POST /control/cut            reset every connection that stands

A fault is a kind and what it takes, with commas between: cut-reply,bytes=10,fin.
A cut is a reset unless fin is given. match=TEXT has a fault begin where that
text occurs in the request.

` + faultproxy.Help(),
		Example: `  setpoint-lab faultproxy --upstream 127.0.0.1:9901 --fault drop-reply
  setpoint-lab faultproxy --upstream 127.0.0.1:9901 --fault status,status=500 --next 2
  # a database that commits and cannot say so
  setpoint-lab faultproxy --listen 127.0.0.1:5433 --upstream 127.0.0.1:5432 --fault cut-reply,match=commit
  setpoint-lab faultproxy --upstream 127.0.0.1:9901 --control 127.0.0.1:9801
  curl -X PUT -d blackhole http://127.0.0.1:9801/control/fault`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	listenFlag(cmd, &f.listen)
	cmd.Flags().StringVar(&f.upstream, "upstream", "", "host:port of loopback to which connections are passed (required)")
	cmd.Flags().StringVar(&f.fault, "fault", string(faultproxy.Pass), "what goes wrong")
	cmd.Flags().IntVar(&f.next, "next", 0, "only the first so many connections meet the fault; 0 is all")
	cmd.Flags().StringVar(&f.control, "control", "", "address of loopback for changes at run time (default: none)")
	return cmd
}

func (f proxyFlags) run(cmd *cobra.Command) (err error) {
	fault, err := f.check(cmd)
	if err != nil {
		return err
	}
	p, err := faultproxy.New(f.upstream, faultproxy.Options{Listen: f.listen})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if f.next > 0 {
		err = p.Next(f.next, fault)
	} else {
		err = p.Set(fault)
	}
	if err != nil {
		return usageError(cmd, "--fault: %v", err)
	}
	return f.serve(cmd, p)
}

// serve says where the proxy is, and answers at the control address until the
// command ends.
func (f proxyFlags) serve(cmd *cobra.Command, p *faultproxy.Proxy) error {
	if f.control == "" {
		fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", p.Addr())
		<-cmd.Context().Done()
		return nil
	}
	l, err := loopback(cmd.Context(), f.control)
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s\ncontrol http://%s\n", p.Addr(), l.Addr())
	server := &http.Server{Handler: p.Control(), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(cmd.Context(), func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}

func (f proxyFlags) check(cmd *cobra.Command) (faultproxy.Fault, error) {
	if f.upstream == "" {
		return faultproxy.Fault{}, usageError(cmd, "--upstream is required: host:port of what the proxy stands in front of")
	}
	for _, a := range []struct{ flag, address string }{
		{"--upstream", f.upstream}, {"--listen", f.listen}, {"--control", f.control},
	} {
		if a.address == "" {
			continue
		}
		host, _, err := net.SplitHostPort(a.address)
		if err != nil {
			return faultproxy.Fault{}, usageError(cmd, "%s %q: write host:port, e.g. 127.0.0.1:5432", a.flag, a.address)
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return faultproxy.Fault{}, usageError(cmd, "%s %q: only an address of loopback, e.g. 127.0.0.1:5432", a.flag, a.address)
		}
	}
	if f.next < 0 {
		return faultproxy.Fault{}, usageError(cmd, "--next: a negative number")
	}
	fault, err := faultproxy.Parse(f.fault)
	if err != nil {
		return faultproxy.Fault{}, usageError(cmd, "--fault: %v", err)
	}
	return fault, nil
}
