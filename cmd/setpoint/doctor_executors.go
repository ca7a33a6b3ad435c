package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	execcommand "github.com/setpoint-dev/setpoint/internal/execute/command"
	execwebhook "github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// actuators are the executors with which actions are looked at.
type actuators struct {
	hooks    *execwebhook.Executor
	programs *execcommand.Executor
	// key makes the key of a probe, which no window has.
	key func() gate.Key
}

// executorChecks look at each action of each service. No action is sent.
func (e *examination) executorChecks() []examine {
	if why := e.without(); why != "" {
		return skipAll(aboutExecutors, "not looked at: "+why)
	}
	all, err := e.site.executors(e.app.now)
	if err != nil {
		return []examine{{group: aboutExecutors, limit: localLimit, run: func(context.Context) []checkItem {
			return []checkItem{subject{aboutExecutors, ""}.failed(err.Error(), "correct executors in setpoint.yaml; `setpoint validate` says where")}
		}}}
	}
	with := actuators{key: probeKeys(e.now)}
	with.hooks, _ = all["webhook"].(*execwebhook.Executor)
	with.programs, _ = all["command"].(*execcommand.Executor)
	var out []examine
	for _, svc := range e.services() {
		for _, act := range svc.Remediation.Actions {
			limit := min(max(4*act.Timeout, localLimit), 3*time.Minute)
			out = append(out, examine{group: aboutExecutors, subject: svc.Name + "/" + act.Name, limit: limit, run: func(ctx context.Context) []checkItem {
				return with.items(ctx, svc.Name, act, e.flags.dryRun)
			}})
		}
	}
	if len(out) == 0 {
		return skipAll(aboutExecutors, "the documents have no action")
	}
	return out
}

// probeKeys makes keys that no window has, each once.
func probeKeys(now time.Time) func() gate.Key {
	var n atomic.Int64
	return func() gate.Key {
		return gate.Key(fmt.Sprintf("%s%d-%d", execwebhook.ProbePrefix, now.UnixNano(), n.Add(1)))
	}
}

// items are the lines about one action.
func (a actuators) items(ctx context.Context, service string, act spec.Action, dryRun bool) []checkItem {
	name := service + "/" + act.Name
	permits, observe := a.hooks.Permits, a.hooks.Observe
	switch act.Executor() {
	case "webhook":
	case "command":
		permits, observe = a.programs.Permits, a.programs.Observe
	default:
		return []checkItem{subject{"executors/allowed", name}.skipped("%s is not in this version, which has %s and %s", act.Uses, execwebhook.Uses, execcommand.Uses)}
	}
	refused := permits(act)
	allowed := permitVerdict(subject{"executors/allowed", name}, act, refused)
	if refused != nil && !lacksSecret(refused) {
		return []checkItem{allowed}
	}
	// A status is asked without a signature.
	seen := observe(ctx, act, a.key())
	status := statusVerdict(subject{"executors/status", name}, act, seen)
	out := []checkItem{allowed, status}
	if act.Executor() == "webhook" && refused == nil {
		out = append(out, a.dry(ctx, service, act, dryRun, seen))
	}
	return out
}

func lacksSecret(err error) bool { return strings.HasPrefix(err.Error(), "secret ") }

// permitVerdict judges whether an action could be sent at all.
func permitVerdict(s subject, act spec.Action, err error) checkItem {
	if err == nil {
		what := "its program is listed and executable"
		if act.Executor() == "webhook" {
			what = "its URLs are on the allow-list"
			if act.Target.Secret != "" {
				what += ", its secret is there"
			}
		}
		return s.fine("%s", what)
	}
	text := err.Error()
	switch {
	case lacksSecret(err):
		return s.failed(text, fmt.Sprintf("name a file for %s under secrets in setpoint.yaml, and write the secret into it", act.Target.Secret))
	case strings.Contains(text, "executors.webhook.allow"):
		return s.failed(text, "add the URL, or one above it, to executors.webhook.allow in setpoint.yaml")
	case strings.Contains(text, "executors.command.allow"):
		return s.failed(text, "add the program to executors.command.allow in setpoint.yaml")
	case act.Executor() == "command":
		return s.failed(text, "make the program an executable file that only its owner can write (`chmod 755`), or correct target.argv at "+act.Pos.String())
	}
	return s.failed(text, "correct target at "+act.Pos.String())
}

// statusVerdict judges what an actuator says about a key that was never used.
func statusVerdict(s subject, act spec.Action, o execute.Observation) checkItem {
	asked := "statusURL"
	if act.Executor() == "command" {
		asked = "statusArgv"
	}
	switch {
	case act.Mark() == spec.MarkUnmarked:
		return s.warned(fmt.Sprintf("it has no %s: what is lost on the way can never be told, so it gets approval at most", asked),
			fmt.Sprintf("give target a %s, at %s", asked, act.Pos))
	case !o.Known:
		return s.failed(strings.TrimPrefix(o.Detail, "no answer: "),
			fmt.Sprintf("let %s answer {\"known\": false, \"state\": {…}} for a key that it does not know (at %s): without it what is in doubt waits for a person, and bounds on the present state are not known", asked, act.Pos))
	case o.KeyKnown:
		return s.failed(fmt.Sprintf("it says known: true, result %s, for a key that was never used", o.Result),
			fmt.Sprintf("let %s look up the key that it is asked for: as it is, an effect that was lost counts as landed", asked))
	}
	if missing := missingState(act, o.State); len(missing) > 0 {
		return s.failed("its state lacks "+and(missing),
			fmt.Sprintf("let %s report it under state, or change the action at %s: it cannot be proposed, bounded or undone without", asked, act.Pos))
	}
	text := "an unused key is unknown to it"
	if len(o.State) > 0 {
		text += ", its state is there"
	}
	return s.fine("%s", text)
}

// missingState are the names that an action needs in the observed state, and
// what for.
func missingState(act spec.Action, state propose.Live) []string {
	var out []string
	for _, p := range act.Parameters {
		_, there := state[p.Name]
		switch {
		case there:
		case act.Reversal == spec.Restore:
			out = append(out, fmt.Sprintf("%s (reversal: restore)", p.Name))
		case p.MaximumFactor > 0:
			out = append(out, fmt.Sprintf("%s (maximumFactor)", p.Name))
		}
		if _, there := state[p.FromState]; p.FromState != "" && !there {
			out = append(out, fmt.Sprintf("%s (fromState of %s)", p.FromState, p.Name))
		}
	}
	return out
}

// dry sends the same dry run twice, where the target promises to know it.
func (a actuators) dry(ctx context.Context, service string, act spec.Action, asked bool, before execute.Observation) checkItem {
	s := subject{"executors/dry-run", service + "/" + act.Name}
	switch {
	case !act.Target.Dedup:
		return s.skipped("its target does not say dedup: true, so nobody promised that it knows a dry run")
	case !asked:
		return s.skipped(`not tried: --dry-run sends it two POSTs with "dryRun": true`)
	}
	p := execwebhook.Probe{Service: service, Action: act, Key: a.key(), Parameters: harmless(act, before.State)}
	var d dryRun
	if d.first, d.err = a.hooks.DryRun(ctx, p); d.err == nil {
		d.second, d.err = a.hooks.DryRun(ctx, p)
	}
	d.changed = changed(before, a.hooks.Observe(ctx, act, p.Key))
	return dryVerdict(s, d)
}

// dryRun is what came of sending one dry run twice.
type dryRun struct {
	first, second execwebhook.Answer
	err           error
	// changed are the names of the state that differ after it.
	changed []string
}

// dryVerdict judges whether a key is taken once.
func dryVerdict(s subject, d dryRun) checkItem {
	const contract = "see webhook.post in the contract; take dedup: true out of target until it is so"
	switch {
	case len(d.changed) > 0:
		return s.failed("its state changed with the dry run: "+words(d.changed),
			"let it change nothing where the body says \"dryRun\": true (unless somebody else changed it just now: look, and try again); "+contract)
	case d.err != nil:
		return s.failed("no answer: "+d.err.Error(), "look at the actuator: the POST did not come through")
	case d.first.Status == 401 || d.first.Status == 403:
		return s.failed(d.first.Detail, "let both sides have one secret: the file under secrets in setpoint.yaml, and the actuator's")
	case d.first.Status < 200 || d.first.Status > 299 || d.first.Duplicate:
		return s.failed("the first one, with a fresh key, is answered "+d.first.Detail, "let a dry run be answered as the same action would be; "+contract)
	case d.second.Status == 409, d.second.Status/100 == 2 && d.second.Duplicate && d.second.Result == d.first.Result:
		return s.fine("a second POST with one key is answered %s: it acts once per key", d.second.Detail)
	}
	return s.failed("a second POST with one key is answered like a new one: "+d.second.Detail,
		"let it remember keys, and answer 409, or the first result with \"duplicate\": true; "+contract)
}

// changed are the names of the state that differ. Nothing is said where one of
// the two is not known.
func changed(before, after execute.Observation) []string {
	if !before.Known || !after.Known {
		return nil
	}
	var out []string
	for name, v := range before.State {
		if !cmp.Equal(v, after.State[name]) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// harmless are parameters with which even an actuator that ignores dryRun would
// most likely change nothing: what the state is already, and else the smallest
// that the catalogue allows.
func harmless(act spec.Action, state propose.Live) propose.Parameters {
	out := propose.Parameters{}
	for _, p := range act.Parameters {
		now, there := state[p.Name]
		if _, list := now.([]string); there && !list {
			out[p.Name] = now
			continue
		}
		out[p.Name] = smallest(p, state)
	}
	return out
}

func smallest(p spec.Parameter, state propose.Live) any {
	low := 0.0
	if p.Minimum != nil {
		low = *p.Minimum
	}
	switch p.Type {
	case spec.Integer:
		return int64(low)
	case spec.Number:
		return low
	case spec.Boolean:
		return false
	}
	switch from := state[p.FromState].(type) {
	case string:
		return from
	case []string:
		if len(from) > 0 {
			return from[0]
		}
	}
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	return ""
}
