package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	diff "github.com/google/go-cmp/cmp"

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
	// secrets are the files of setpoint.yaml's secrets, by name.
	secrets map[string]string
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
	with := actuators{key: probeKeys(e.now), secrets: e.site.cfg.Secrets}
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
	looked := permitted(act, permits)
	looked.asked, looked.files = dryRun, a.secrets
	refused, allowed := looked.err, looked.verdict(subject{"executors/allowed", name})
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
	d := dryRun{at: act.Pos}
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
	// at is where the action stands.
	at spec.Position
	// changed are the names of the state that differ after it.
	changed []string
}

// misled reports an answer that tells of the way to the actuator, or of its
// health, and nothing of what it does with a dry run.
func (d dryRun) misled() bool {
	switch s := d.first.Status; s {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return true
	default:
		return s/100 == 3 || s >= http.StatusInternalServerError
	}
}

// dryVerdict judges whether a key is taken once.
func dryVerdict(s subject, d dryRun) checkItem {
	actuator := server{
		name: "the actuator", key: fmt.Sprintf("target.url at %s", d.at),
		credentials: "let both sides have one secret: the file under secrets in setpoint.yaml, and the actuator's",
	}
	const contract = "see webhook.post in the contract; take dedup: true out of target until it is so"
	switch {
	case len(d.changed) > 0:
		return s.failed("its state changed with the dry run: "+words(d.changed),
			"let it change nothing where the body says \"dryRun\": true (unless somebody else changed it just now: look, and try again); "+contract)
	case d.err != nil:
		return s.failed("no answer: "+d.err.Error(), cmp.Or(actuator.unconnected(d.err.Error()), "look at the actuator: the POST did not come through"))
	case d.misled():
		return s.failed("the first one, with a fresh key, is answered "+d.first.Detail, actuator.answered(d.first.Status))
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
		if !diff.Equal(v, after.State[name]) {
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
