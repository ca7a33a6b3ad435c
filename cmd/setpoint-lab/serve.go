package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// listenFlag is where a stand-in listens.
func listenFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "listen", "127.0.0.1:0", "address of loopback; port 0 takes a free one")
}

// serve answers on loopback until ctx ends. The first line of standard output
// is the URL, so that a script can read it.
func serve(cmd *cobra.Command, listen string, h http.Handler) error {
	l, err := loopback(cmd.Context(), listen)
	if err != nil {
		return err
	}
	return serveOn(cmd, l, h)
}

// serveOn is serve for a listener that is open already.
func serveOn(cmd *cobra.Command, l net.Listener, h http.Handler) error {
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", l.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(cmd.Context(), func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// loopback listens, and refuses every address that others can reach.
func loopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: write host:port, e.g. 127.0.0.1:9901", address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("--listen %q: only an address of loopback, e.g. 127.0.0.1:9901: a stand-in has no authentication", address)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return l, nil
}
