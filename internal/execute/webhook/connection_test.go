package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Before a connection stands, not one byte was sent: failed. From then on a
// write may have begun: in-doubt.
func TestWhenTheConnectionBreaks(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + closed.Addr().String()
	_ = closed.Close()

	tlsServer := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	defer tlsServer.Close()

	cases := map[string]struct {
		reason string
		url    string
		dial   func(context.Context, string, string) (net.Conn, error)
		want   execute.Effect
		text   string
	}{
		"Refused":    {reason: "nobody listens", url: refusing, want: execute.Failed, text: "not sent: "},
		"UnknownCA":  {reason: "the server is not who we think", url: tlsServer.URL, want: execute.Failed, text: "certificate"},
		"PlainOnTLS": {reason: "http to a TLS port is answered with 400", url: strings.Replace(tlsServer.URL, "https", "http", 1), want: execute.Failed, text: "HTTP 400"},
		"NoSuchHost": {
			reason: "a name that does not resolve has no connection", url: "http://scaler.internal", want: execute.Failed, text: "no such host",
			dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "scaler.internal", IsNotFound: true}}
			},
		},
		"DialHangs": {
			reason: "a deadline that passes while connecting sent nothing", url: "http://scaler.internal", want: execute.Failed, text: "not sent: ",
			dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		},
		"ResetBeforeWrite": {
			reason: "a connection stood; whether a byte left cannot be proven", url: "http://scaler.internal", want: execute.InDoubt, text: "no answer: ",
			dial: func(context.Context, string, string) (net.Conn, error) { return brokenConn{}, nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := executor(t, webhook.Options{Allow: []string{tc.url + "/"}, Dial: tc.dial})
			a := action(tc.url)
			if name == "DialHangs" {
				a.Timeout = 100 * time.Millisecond
			}
			r := send(t, e, a)
			if r.Effect != tc.want || !strings.Contains(r.Detail, tc.text) || !r.AppliedAt.IsZero() {
				t.Errorf("%s: %+v, want %s with %q", tc.reason, r, tc.want, tc.text)
			}
		})
	}
}

// brokenConn accepts a connection and no byte.
type brokenConn struct{ net.Conn }

var errBroken = errors.New("broken pipe")

func (brokenConn) Read([]byte) (int, error)         { return 0, errBroken }
func (brokenConn) Write([]byte) (int, error)        { return 0, errBroken }
func (brokenConn) Close() error                     { return nil }
func (brokenConn) SetDeadline(time.Time) error      { return nil }
func (brokenConn) SetReadDeadline(time.Time) error  { return nil }
func (brokenConn) SetWriteDeadline(time.Time) error { return nil }
func (brokenConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (brokenConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// dyingServer answers the first request of the first connection in a way that
// invites to keep it, and dies on the next one without a reply. It counts what
// it read.
func dyingServer(t *testing.T) (url string, requests, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests, connections = new(atomic.Int32), new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			first := connections.Add(1) == 1
			go func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				for i := 0; ; i++ {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = bufio.NewReader(req.Body).Discard(int(req.ContentLength))
					if n := requests.Add(1); n == 2 || i > 0 && first {
						return // died after the effect, before the reply
					}
					_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), requests, connections
}

// Go replays a POST whose reused connection dies before the reply, if it has a
// body to rewind and a header named Idempotency-Key. The control shows that
// this server provokes it; the executor must send two requests for two calls.
func TestNoReplayOnADeadConnection(t *testing.T) {
	t.Run("Control", func(t *testing.T) {
		url, requests, _ := dyingServer(t)
		plain := &http.Transport{}
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "checkout:1")
			if resp, err := plain.RoundTrip(req); err == nil {
				_, _ = bufio.NewReader(resp.Body).Discard(2)
				_ = resp.Body.Close()
			}
		}
		if n := requests.Load(); n != 3 {
			t.Fatalf("the server saw %d requests for 2 calls; it must provoke a replay, or this test proves nothing", n)
		}
	})
	t.Run("Executor", func(t *testing.T) {
		url, requests, connections := dyingServer(t)
		e := executor(t, webhook.Options{Allow: []string{url + "/"}})
		if r := send(t, e, action(url)); r.Effect != execute.Applied {
			t.Fatalf("first: %+v", r)
		}
		if r := send(t, e, action(url)); r.Effect != execute.InDoubt {
			t.Errorf("second: %+v, want in-doubt", r)
		}
		if requests.Load() != 2 || connections.Load() != 2 {
			t.Errorf("%d requests on %d connections for 2 calls, want 2 on 2", requests.Load(), connections.Load())
		}
	})
}

// Observe reads and nothing else; only a 200 with a boolean known is an answer.
func TestObserve(t *testing.T) {
	live := `{"known":true,"result":"applied","state":{"replicas":6,"ratio":0.5,"version":"v41","previous":["v40","v39"],"on":true,"bad":null}}`
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   execute.Observation
	}{
		"Known": {"the whole answer", 200, live, execute.Observation{
			Known: true, KeyKnown: true, Result: execute.Applied, Detail: "dropped from the state: bad",
			State: propose.Live{"replicas": int64(6), "ratio": 0.5, "version": "v41", "previous": []string{"v40", "v39"}, "on": true},
		}},
		"Unknown":  {"known false is an answer, and proves nothing before the horizon", 200, `{"known":false,"state":{"replicas":4}}`, execute.Observation{Known: true, State: propose.Live{"replicas": int64(4)}}},
		"NoState":  {"a state may be missing", 200, `{"known":false}`, execute.Observation{Known: true, State: propose.Live{}}},
		"NoKnown":  {"without known it is no answer, whatever the state", 200, `{"state":{"replicas":4}}`, execute.Observation{Detail: "no answer: known is not true or false"}},
		"NotFound": {"404 is not known:false", 404, `{"known":false}`, execute.Observation{Detail: `no answer: HTTP 404: {"known":false}`}},
		"Created":  {"only 200", 201, live, execute.Observation{Detail: "no answer: HTTP 201: " + live}},
		"Redirect": {"is not followed", 302, "", execute.Observation{Detail: "no answer: HTTP 302"}},
		"Html":     {"a login page", 200, "<html>", execute.Observation{Detail: "no answer: no JSON object"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			e, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Clone(context.Background())
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			a.Target.StatusURL += "?tenant=eu"
			o := e.Observe(t.Context(), a, "checkout:1764417600-600")
			if diff := cmp.Diff(tc.want, o); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got.Method != http.MethodGet || got.URL.RawQuery != "key=checkout%3A1764417600-600&tenant=eu" {
				t.Errorf("%s %s", got.Method, got.URL)
			}
			if _, ok := got.Header["X-Setpoint-Signature"]; ok {
				t.Error("a GET is not signed")
			}
		})
	}
}

func TestObserveIsBoundToo(t *testing.T) {
	e, a := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	a.Timeout = 100 * time.Millisecond
	if o := e.Observe(t.Context(), a, "k"); o.Known || o.Detail == "" {
		t.Errorf("a target that hangs: %+v", o)
	}
	a.Target.StatusURL = "http://169.254.169.254/latest"
	if o := e.Observe(t.Context(), a, "k"); o.Known || !strings.Contains(o.Detail, "allow-list") {
		t.Errorf("a statusURL that is not listed: %+v", o)
	}
	a.Target.StatusURL = ""
	if o := e.Observe(t.Context(), a, "k"); o.Known || o.Detail != "the action has no statusURL" {
		t.Errorf("no statusURL: %+v", o)
	}
}

// One executor serves many services at once.
func TestConcurrent(t *testing.T) {
	target, err := executetest.NewActuator(executetest.ActuatorOptions{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	e, a := serve(t, target.ServeHTTP)
	p := executetest.Permit(t, a, six, now)
	done := make(chan execute.Effect)
	for range 8 {
		go func() {
			r, _ := e.Execute(context.Background(), p, nil)
			done <- r.Effect
		}()
	}
	remotes := map[string]bool{}
	for range 8 {
		if got := <-done; got != execute.Applied {
			t.Errorf("effect %s, want applied", got)
		}
	}
	for _, j := range target.Journal() {
		remotes[j.Remote] = true
	}
	if len(remotes) != 8 {
		t.Errorf("8 sends shared connections: %d", len(remotes))
	}
}
