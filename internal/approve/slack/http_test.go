package slack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
)

func TestOtherRequestsAreRefused(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(r *http.Request)
		status int
	}{
		"Get":     {"a browser", func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"Put":     {"another method", func(r *http.Request) { r.Method = http.MethodPut }, 405},
		"Root":    {"only one path", func(r *http.Request) { r.URL.Path = "/" }, 404},
		"Below":   {"only one path", func(r *http.Request) { r.URL.Path = slack.Path + "/" }, 404},
		"Dots":    {"nothing is cleaned up", func(r *http.Request) { r.URL.Path = "/x/.." + slack.Path }, 404},
		"JSON":    {"Slack posts forms", func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, 415},
		"NoType":  {"Slack posts forms", func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"OddType": {"Slack posts forms", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded;;") }, 415},
		"WithMore": {"a parameter is allowed", func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		}, 200},
		"TooLarge":   {"a click is a few KiB", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<20+1))) }, 413},
		"BrokenBody": {"the sender went away", func(r *http.Request) { r.Body = io.NopCloser(broken{}) }, 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := newWorld(t)
				r := signed(secret, time.Now(), form(w.says(onCall, approveAction).payload(t)))
				tt.change(r)
				if got := w.post(w.handler(secret), r); got != tt.status {
					t.Errorf("%s: status = %d, want %d", tt.reason, got, tt.status)
				}
				if got := len(w.answers()); (got == 1) != (tt.status == 200) {
					t.Errorf("%s: %d answers recorded", tt.reason, got)
				}
			})
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("reset") }

// What is signed is still read strictly.
func TestSignedForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		h, good := w.handler(secret), string(form(w.says(onCall, approveAction).payload(t)))
		for _, bad := range []string{"", "ssl_check=1", "payload=", good + "&" + good, "payload=%zz", "payload", "other=" + good[8:]} {
			if got := w.post(h, signed(secret, time.Now(), []byte(bad))); got != http.StatusBadRequest {
				t.Errorf("%.40q: status = %d, want 400", bad, got)
			}
		}
		if n := w.count(slack.Malformed); n != 7 {
			t.Errorf("%d counted as malformed, want 7", n)
		}
		if got := w.post(h, signed(secret, time.Now(), []byte("a=b&"+good))); got != http.StatusOK {
			t.Errorf("a further field: status = %d, want 200", got)
		}
	})
}

// A click that could not be recorded is not acknowledged, so that the person sees
// a warning.
func TestFailureIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newWorld(t)
		slow.set(5*time.Second, false)
		began := time.Now()
		if got := w.post(w.handler(secret), signed(secret, time.Now(), form(w.says(onCall, approveAction).payload(t)))); got != http.StatusServiceUnavailable {
			t.Errorf("status = %d, want 503", got)
		}
		if took := time.Since(began); took >= 3*time.Second {
			t.Errorf("answered after %s: Slack had gone", took)
		}
	})
}

// served is the handler on a real listener.
func (w *world) served() (address string, stop func()) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- slack.Serve(ctx, l, w.handler(secret), slog.New(slog.DiscardHandler)) }()
	return l.Addr().String(), func() {
		w.t.Helper()
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Serve: %v", err)
		}
	}
}

// The signature is over the bytes, however they were cut into pieces.
func TestChunkedBody(t *testing.T) {
	w, _ := newWorld(t)
	address, stop := w.served()
	defer stop()
	sent := form(w.says(onCall, approveAction).payload(t))
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n%s: %s\r\n%s: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
		slack.Path, hTimestamp, timestamp, hSignature, sign(secret, timestamp, sent))
	for len(sent) > 0 {
		n := min(7, len(sent))
		fmt.Fprintf(conn, "%x\r\n%s\r\n", n, sent[:n])
		sent = sent[n:]
	}
	fmt.Fprint(conn, "0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || w.stand().State != approve.Approved {
		t.Errorf("status = %d, the ticket is %q", resp.StatusCode, w.stand().State)
	}
}

// A stop answers the click that is under way.
func TestServeFinishesAClick(t *testing.T) {
	w, slow := newWorld(t)
	address, stop := w.served()
	slow.set(300*time.Millisecond, false)
	sent := form(w.says(onCall, approveAction).payload(t))
	r := signed(secret, time.Now(), sent)
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", address, ""
	status := make(chan int, 1)
	go func() {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	for deadline := time.Now().Add(5 * time.Second); !slow.asked() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	if got := <-status; got != http.StatusOK || w.stand().State != approve.Approved {
		t.Errorf("status = %d, the ticket is %q, want 200 and approved", got, w.stand().State)
	}
}

// Whoever is slow, or sends without end, costs one connection.
func TestListenerIsBounded(t *testing.T) {
	w, _ := newWorld(t)
	address, stop := w.served()
	defer stop()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", slack.Path, strings.Repeat("x", 64<<10))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status = %d, want 431", resp.StatusCode)
	}
}

// pipes is a listener whose connections are in memory, for a test whose clock
// does not wait.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.ended)
	return nil
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// Whoever sends a byte now and then is hung up on.
func TestSlowSendersAreCut(t *testing.T) {
	for name, begin := range map[string]string{
		"Header": "POST " + slack.Path + " HTTP/1.1\r\n",
		"Body":   "POST " + slack.Path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := newWorld(t)
				l := pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- slack.Serve(ctx, l, w.handler(secret), slog.New(slog.DiscardHandler)) }()
				client, server := net.Pipe()
				l.conns <- server
				go func() { _, _ = io.Copy(io.Discard, client) }()
				began := time.Now()
				_, err := io.WriteString(client, begin)
				for err == nil && time.Since(began) < time.Minute {
					time.Sleep(time.Second)
					_, err = io.WriteString(client, "x")
				}
				if err == nil {
					t.Error("a connection that sends a byte each second is open after a minute")
				}
				_ = client.Close()
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
		})
	}
}
