package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

// webChecks look at a running agent, behind its socket.
func (e *examination) webChecks() []examine {
	socket := e.site.cfg.Web.Socket
	if socket == "" {
		return skipAll(aboutWeb, "web.socket is not configured")
	}
	return []examine{{group: aboutWeb, subject: socket, limit: localLimit, run: func(ctx context.Context) []checkItem {
		return agentVerdicts(socket, lookAtAgent(ctx, newAgent(socket)), buildInfo())
	}}}
}

// agentSeen is what a running agent says.
type agentSeen struct {
	// err is why it says nothing.
	err error
	// ready is its word on /-/ready.
	ready     bool
	readyText string
	// version and revision are what it was built from; "" when it does not say.
	version, revision string
}

func lookAtAgent(ctx context.Context, g *agent) (seen agentSeen) {
	status, text, err := g.text(ctx, "/-/ready")
	if err != nil {
		return agentSeen{err: err}
	}
	seen.ready, seen.readyText = status == http.StatusOK, strings.TrimSpace(text)
	if _, metrics, err := g.text(ctx, "/metrics"); err == nil {
		seen.version, seen.revision = builtFrom(metrics)
	}
	return seen
}

// text reads a page that is no JSON.
func (g *agent) text(ctx context.Context, path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	req, err := message{method: http.MethodGet, path: path}.request(ctx)
	if err != nil {
		return 0, "", err
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return 0, "", g.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }() // Everything that matters was read.
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, "", g.unreachable(err)
	}
	return resp.StatusCode, string(data), nil
}

var builtLabel = regexp.MustCompile(`\b(version|revision)="([^"\\]*)"`)

// builtFrom reads version and revision out of the agent's metrics.
func builtFrom(metrics string) (version, revision string) {
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "setpoint_build_info{") {
			continue
		}
		for _, m := range builtLabel.FindAllStringSubmatch(line, -1) {
			if m[1] == "version" {
				version = m[2]
			} else {
				revision = m[2]
			}
		}
	}
	return version, revision
}

// agentVerdicts are the lines about a running agent.
func agentVerdicts(socket string, seen agentSeen, own build) []checkItem {
	s := subject{"web/agent", socket}
	switch {
	case errors.Is(seen.err, errNoAgent):
		return []checkItem{s.warned("no agent answers: nothing is measured and nobody is told", "start it: `setpoint run` (or its service unit)")}
	case seen.err != nil:
		return []checkItem{s.failed(execute.CleanText(seen.err.Error(), execute.MaxDetail), "look at its log and restart it; `setpoint freeze --reason …` works meanwhile")}
	}
	out := []checkItem{s.fine("an agent answers")}
	v := subject{"web/version", socket}
	switch {
	case seen.version == "" && seen.revision == "":
		out = append(out, v.skipped("it does not say from what it was built"))
	case seen.version != own.Version || seen.revision != own.Revision:
		out = append(out, v.warned(fmt.Sprintf("the agent is %s (revision %s), this is %s (revision %s)",
			execute.CleanText(seen.version, 60), short(execute.CleanText(seen.revision, 60)), own.Version, short(own.Revision)),
			"restart the agent with this binary, or call the one that runs: `setpoint version` shows which is which"))
	default:
		out = append(out, v.fine("the agent and this binary are one: %s", own.Version))
	}
	r := subject{"web/ready", socket}
	if !seen.ready {
		return append(out, r.failed(execute.CleanText(seen.readyText, execute.MaxDetail), "its words say what is missing; its log has more, and `setpoint doctor` the rest"))
	}
	return append(out, r.fine("it is ready"))
}
