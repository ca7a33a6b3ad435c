package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// connect opens the connection of one send, TLS included. It ends at the
// permit's expiry, with ErrNoPermit: a target that is slow to accept must not
// hold an action until it may no longer start.
func (e *Executor) connect(ctx context.Context, p gate.Permit, u *url.URL) (net.Conn, error) {
	expired := fmt.Errorf("%w: it expired at %s, before the target was connected",
		execute.ErrNoPermit, p.Expires().UTC().Format(time.RFC3339))
	ctx, cancel := context.WithTimeoutCause(ctx, p.Expires().Sub(e.now()), expired)
	defer cancel()
	conn, err := e.dial(ctx, "tcp", address(u))
	if err == nil && u.Scheme == "https" {
		conn, err = e.handshake(ctx, conn, u.Hostname())
	}
	if err != nil && errors.Is(context.Cause(ctx), execute.ErrNoPermit) {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

func (e *Executor) handshake(ctx context.Context, plain net.Conn, host string) (net.Conn, error) {
	c := &tls.Config{}
	if e.tls != nil {
		c = e.tls.Clone()
	}
	if c.ServerName == "" {
		c.ServerName = host
	}
	c.NextProtos = []string{"http/1.1"}
	conn := tls.Client(plain, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, fmt.Errorf("TLS with %s: %w", host, err)
	}
	return conn, nil
}

// address is where a URL connects to.
func address(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// errSecond: the transport wanted to connect again, which is a second send.
var errSecond = errors.New("a second connection was asked for")

// over is a transport that has one connection, once: whatever it would like to
// try again, it cannot.
func over(conn net.Conn) *http.Transport {
	var taken atomic.Bool
	give := func(context.Context, string, string) (net.Conn, error) {
		if taken.Swap(true) {
			return nil, errSecond
		}
		return conn, nil
	}
	t := newTransport()
	t.DialContext, t.DialTLSContext = give, give
	return t
}
