package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// The bounds on waiting for an agent: short where a person wants it to stop or
// only to look, longer where it writes.
const (
	freezeWait = 2 * time.Second
	readWait   = 2 * time.Second
	writeWait  = 5 * time.Second
)

// errNoAgent says that nobody listens on the socket.
var errNoAgent = errors.New("no agent answers")

// errHung says that somebody listens and does not answer.
var errHung = errors.New("the agent does not answer")

// agent is a running agent behind its unix socket.
type agent struct {
	socket string
	http   *http.Client
}

func newAgent(socket string) *agent {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &agent{socket: socket, http: &http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// message is one request to an agent.
type message struct {
	method, path string
	// body is sent as JSON; nil sends none.
	body any
}

func (m message) request(ctx context.Context) (*http.Request, error) {
	var payload io.Reader
	if m.body != nil {
		data, err := json.Marshal(m.body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, m.method, "http://setpoint"+m.path, payload)
	if err == nil && m.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// do sends one request and waits that long. A refusal of the agent is a
// *web.Error.
func (g *agent) do(ctx context.Context, wait time.Duration, m message, into any) error {
	if g.socket == "" {
		return errNoAgent
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	req, err := m.request(ctx)
	if err != nil {
		return err
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return g.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }() // Everything that matters was read.
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return g.unreachable(err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp.StatusCode, data)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

func (g *agent) unreachable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return errNoAgent
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Errorf("%w on %s", errHung, g.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the socket %s belongs to another user: run this as the agent's user or root", g.socket)
	}
	return fmt.Errorf("%w on %s: %w", errHung, g.socket, err)
}

func refusal(status int, data []byte) error {
	e := &web.Error{Status: status}
	if err := json.Unmarshal(data, e); err != nil || e.Message == "" {
		e.Code, e.Message = "unexpected", fmt.Sprintf("the agent answered with status %d", status)
	}
	return e
}
