package webhook_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
)

// The TLS handshake is part of reaching the target: who is asked before it is
// asked too early, and nothing of the request is sent with it.
func TestReadyIsAskedAfterTheHandshake(t *testing.T) {
	var seen atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer srv.Close()
	config := trusting(srv)
	var agreed bool
	config.VerifyConnection = func(tls.ConnectionState) error { agreed = true; return nil }
	e := executor(t, webhook.Options{Allow: []string{srv.URL + "/"}, TLS: config})
	frozen := errors.New("frozen")
	r, err := e.Execute(t.Context(), executetest.Permit(t, action(srv.URL), six, now), func() error {
		if !agreed {
			t.Error("asked before the handshake")
		}
		return frozen
	})
	if !errors.Is(err, frozen) || r.Effect != execute.Failed || seen.Load() != 0 {
		t.Errorf("%+v, %v, %d requests; want failed, the refusal, and none", r, err, seen.Load())
	}
}

// A target that accepts and then hangs in the handshake holds the action until
// the permit expires, however long the action's own timeout is.
func TestHandshakeHangsPastTheExpiry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	url := "https://" + l.Addr().String()
	cases := map[string]struct {
		reason string
		// left of the permit, and the action's own timeout.
		left, timeout time.Duration
		refused       bool
	}{
		"Expiry":  {"the permit ends first: it is none", 50 * time.Millisecond, time.Minute, true},
		"Timeout": {"the timeout ends first: the target failed, before a byte", executetest.TTL, 50 * time.Millisecond, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := now.Add(executetest.TTL - tc.left)
			e := executor(t, webhook.Options{Allow: []string{url + "/"}, Now: func() time.Time { return at }})
			a := action(url)
			a.Timeout = tc.timeout
			began := time.Now()
			r, err := e.Execute(t.Context(), executetest.Permit(t, a, six, now), func() error {
				t.Error("asked without a connection")
				return nil
			})
			if errors.Is(err, execute.ErrNoPermit) != tc.refused || (err == nil) == tc.refused {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if r.Effect != execute.Failed || !strings.HasPrefix(r.Detail, "not sent: ") {
				t.Errorf("%s: %+v", tc.reason, r)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s: took %s", tc.reason, took)
			}
		})
	}
}

// The connection is closed whatever becomes of it.
func TestNoConnectionIsLeft(t *testing.T) {
	var open atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	closed := make(chan struct{}, 8)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
			closed <- struct{}{}
		}
	}
	srv.Start()
	defer srv.Close()
	e := executor(t, webhook.Options{Allow: []string{srv.URL + "/"}})
	for _, answer := range []error{nil, errors.New("frozen")} {
		_, _ = e.Execute(t.Context(), executetest.Permit(t, action(srv.URL), six, now), func() error { return answer })
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Fatalf("ready said %v: %d connections are open", answer, open.Load())
		}
	}
}
