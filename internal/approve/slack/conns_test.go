package slack_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve/slack"
)

// Whoever opens connection upon connection is hung up on, and those that are there
// are served: the process has other things to do with its files.
func TestConnectionsAreBounded(t *testing.T) {
	w, _ := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- slack.Serve(ctx, l, w.handler(secret), slog.New(slog.DiscardHandler)) }()
	const many = 400
	var conns []net.Conn
	for range many {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	open := 0
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		} else if !errors.Is(err, io.EOF) {
			t.Logf("a connection ended with %v", err)
		}
	}
	if open == 0 || open > 300 {
		t.Errorf("%d of %d connections are open", open, many)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	deadline := time.Now().Add(10 * time.Second)
	for statusOf(l.Addr().String()) != http.StatusMethodNotAllowed && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if got := statusOf(l.Addr().String()); got != http.StatusMethodNotAllowed {
		t.Errorf("after they went: status %d", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// statusOf is the status of a request; 0 without an answer.
func statusOf(address string) int {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address + slack.Path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
