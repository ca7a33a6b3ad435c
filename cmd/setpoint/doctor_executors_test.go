package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestExecutorVerdicts(t *testing.T) {
	low := 3.0
	scale := spec.Action{
		Name: "scale", Uses: webhook.Uses, Reversal: spec.Restore, Target: spec.Target{URL: "http://a/", StatusURL: "http://a/", Secret: "scaler", Dedup: true},
		Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &low, MaximumFactor: 2}, {Name: "version", Type: spec.String, FromState: "previous"}},
	}
	mute := scale
	mute.Target.StatusURL = ""
	run := spec.Action{Name: "restart", Uses: "command.run", Target: spec.Target{Argv: []string{"x"}, StatusArgv: []string{"y"}}}
	state := propose.Live{"replicas": int64(4), "version": "2", "previous": []string{"1"}}
	unsigned := scale
	unsigned.Target.Dedup = false
	allowed := func(a spec.Action, asked bool) checkItem {
		return permitSeen{act: a, asked: asked}.verdict(ofSubject("c/s"))
	}
	permit := func(a spec.Action, text string, files ...string) checkItem {
		known := map[string]string{}
		for _, f := range files {
			known[f] = f + ".key"
		}
		return permitSeen{act: a, err: errors.New(text), key: "target.x", files: known}.verdict(ofSubject("c/s"))
	}
	const noSecret = `secret "scaler" of action "scale" is not in setpoint.yaml's secrets, or empty`
	silent := func(a spec.Action, detail string) checkItem {
		return statusVerdict(ofSubject("c/s"), a, execute.Observation{Detail: "no answer: " + detail})
	}
	answer := func(status int, result string, duplicate bool) webhook.Answer {
		return webhook.Answer{Status: status, Result: result, Duplicate: duplicate, Detail: fmt.Sprintf("HTTP %d", status)}
	}
	dry := func(first, second webhook.Answer) checkItem {
		return dryVerdict(ofSubject("c/s"), dryRun{first: first, second: second})
	}
	checkVerdicts(t, map[string]verdict{
		"allowed":      {"a secret that is there may be another's: the dry run tells", allowed(scale, false), resultOK, []string{"secret is there", "not known: --dry-run asks it"}},
		"allowed, dry": {"the dry run's own line tells", allowed(scale, true), resultOK, []string{"secret is there"}},
		"no dry run":   {"nobody asks before", allowed(unsigned, true), resultOK, []string{"seen at the first send"}},
		"programs":     {"and programs", allowed(run, false), resultOK, []string{"executable"}},
		"not listed":   {"which key to change", permit(scale, "url x is not on the allow-list (executors.webhook.allow)"), resultFail, []string{"executors.webhook.allow"}},
		"other key":    {"which of the two URLs", permit(scale, "url x is not on the allow-list (executors.webhook.allow)"), resultFail, []string{"target.x x is not on"}},
		"no secret":    {"which name", permit(scale, noSecret), resultFail, []string{"name a file for scaler under secrets"}},
		"no key file":  {"the name is there, the file is not", permit(scale, noSecret, "scaler"), resultFail, []string{"write the secret into scaler.key"}},
		"misspelt":     {"another name is meant", permit(scale, noSecret, "scalar"), resultFail, []string{"did you mean scalar?"}},
		"no program":   {"which key to change", permit(run, "the program x is not in executors.command.allow of"), resultFail, []string{"executors.command.allow"}},
		"not runnable": {"what to do with the file", permit(run, "the program x is not executable"), resultFail, []string{"chmod 755"}},
		"malformed":    {"which document", permit(scale, "url x has no host"), resultFail, []string{"target"}},

		"right":       {"it does not know the key, and has the state", statusVerdict(ofSubject("c/s"), scale, execute.Observation{Known: true, State: state}), resultOK, []string{"state is there"}},
		"no status":   {"approval at most", statusVerdict(ofSubject("c/s"), mute, execute.Observation{}), resultWarn, []string{"statusURL", "approval at most"}},
		"refused":     {"it does not run", silent(scale, "dial tcp 127.0.0.1:1: connect: connection refused"), resultFail, []string{"look whether the actuator runs", "target.statusURL at"}},
		"no host":     {"the name", silent(scale, "dial tcp: lookup a.invalid: no such host"), resultFail, []string{"name server", "target.statusURL at"}},
		"swallowed":   {"the network", silent(scale, "dial tcp 10.0.0.1:80: i/o timeout"), resultFail, []string{"reached from this host"}},
		"slow":        {"its answer is late", silent(scale, "context deadline exceeded"), resultFail, []string{"answers in time"}},
		"hangs up":    {"it closes", silent(scale, "EOF"), resultFail, []string{"closes it without an answer"}},
		"not trusted": {"the certificate", silent(scale, "tls: failed to verify certificate: x509: certificate signed by unknown authority"), resultFail, []string{"authority"}},
		"plain":       {"the scheme", silent(scale, "http: server gave HTTP response to HTTPS client"), resultFail, []string{"http://"}},
		"elsewhere":   {"another path", silent(scale, "HTTP 404: <html>not here</html>"), resultFail, []string{"correct target.statusURL at", "nothing at that path"}},
		"no GET":      {"another path, most likely", silent(scale, "HTTP 405"), resultFail, []string{"correct target.statusURL at", "kind of request"}},
		"who are you": {"a status is never signed", silent(scale, "HTTP 401: log in"), resultFail, []string{"without credentials"}},
		"forbidden":   {"so is 403", silent(scale, "HTTP 403"), resultFail, []string{"without credentials"}},
		"moved":       {"redirects are not followed", silent(scale, "HTTP 302"), resultFail, []string{"redirects"}},
		"broken":      {"it fails by itself", silent(scale, "HTTP 500: boom"), resultFail, []string{"log of the actuator"}},
		"proxy":       {"a proxy speaks for it", silent(scale, "HTTP 502: <html>"), resultFail, []string{"behind the proxy"}},
		"busy":        {"a limit", silent(scale, "HTTP 429"), resultFail, []string{"limit"}},
		"odd":         {"whatever else", silent(scale, "HTTP 422"), resultFail, []string{"log of the actuator"}},
		"unheard of":  {"words that nobody foresaw", silent(scale, "something"), resultFail, []string{"runs"}},
		"a page":      {"200 with a page", silent(scale, "no JSON object"), resultFail, []string{"correct target.statusURL at", "page to log in", `"known": false`}},
		"half":        {"the form", silent(scale, "the JSON object is cut off"), resultFail, []string{`"known": false`}},
		"other form":  {"the form", silent(scale, "known is not true or false"), resultFail, []string{`"known": false`}},
		"words":       {"a program's form", silent(run, "no JSON object"), resultFail, []string{"let statusArgv", `"known": false`}},
		"exits":       {"a program that fails", silent(run, "exit 1: nope"), resultFail, []string{"exit 0"}},
		"held open":   {"a program that leaves one behind", silent(run, "exit 0, but something that it started holds its output open"), resultFail, []string{"what it starts"}},
		"hangs":       {"a program that does not end", silent(run, "killed at its deadline: "), resultFail, []string{"timeout"}},
		"no file":     {"a program that is not there", silent(run, "the program y cannot be found"), resultFail, []string{"target.statusArgv"}},
		"knows all":   {"a lost effect would count as landed", statusVerdict(ofSubject("c/s"), scale, execute.Observation{Known: true, KeyKnown: true, Result: execute.Applied, State: state}), resultFail, []string{"never used"}},
		"no replicas": {"undo needs what was there", statusVerdict(ofSubject("c/s"), scale, execute.Observation{Known: true, State: propose.Live{"version": "2", "previous": "1"}}), resultFail, []string{"replicas (reversal: restore)"}},
		"no previous": {"fromState needs its name", statusVerdict(ofSubject("c/s"), scale, execute.Observation{Known: true, State: propose.Live{"version": "2", "replicas": int64(4)}}), resultFail, []string{"previous (fromState of version)"}},
		"command":     {"a program without state", statusVerdict(ofSubject("c/s"), run, execute.Observation{Known: true}), resultOK, nil},

		"conflict":      {"409 is once per key", dry(answer(200, "applied", false), answer(409, "", false)), resultOK, []string{"once per key"}},
		"duplicate":     {"so is the first result, marked", dry(answer(200, "applied", false), answer(200, "applied", true)), resultOK, nil},
		"another one":   {"but not another result", dry(answer(200, "applied", false), answer(200, "no-op", true)), resultFail, nil},
		"twice":         {"a second effect is possible", dry(answer(200, "applied", false), answer(200, "applied", false)), resultFail, []string{"like a new one"}},
		"always 409":    {"it refuses fresh keys too", dry(answer(409, "", false), answer(409, "", false)), resultFail, []string{"fresh key"}},
		"known before":  {"a fresh key is no duplicate", dry(answer(200, "applied", true), answer(200, "applied", true)), resultFail, []string{"fresh key"}},
		"other secret":  {"the signature", dry(answer(401, "", false), answer(401, "", false)), resultFail, []string{"one secret"}},
		"no such path":  {"the URL, not the dry run", dry(answer(404, "", false), answer(404, "", false)), resultFail, []string{"correct target.url at"}},
		"broken first":  {"its health, not the dry run", dry(answer(500, "", false), answer(500, "", false)), resultFail, []string{"log of the actuator"}},
		"nobody there":  {"it does not run", dryVerdict(ofSubject("c/s"), dryRun{err: errors.New("connect: connection refused")}), resultFail, []string{"look whether the actuator runs"}},
		"not answered":  {"the POST is lost", dryVerdict(ofSubject("c/s"), dryRun{err: errors.New("EOF")}), resultFail, []string{"EOF"}},
		"it did change": {"a dry run that is none", dryVerdict(ofSubject("c/s"), dryRun{first: answer(200, "applied", false), second: answer(409, "", false), changed: []string{"replicas"}}), resultFail, []string{"replicas", "dryRun"}},
	})
}

// TestPermittedKeys: which of the two URLs of a target is refused is named.
func TestPermittedKeys(t *testing.T) {
	hooks, err := webhook.New(webhook.Options{Allow: []string{"http://a.example/"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	const in, off = "http://a.example/x", "http://b.example/x"
	for name, tc := range map[string]struct {
		target spec.Target
		want   string
	}{
		"url":          {spec.Target{URL: off, StatusURL: in}, "target.url http://b.example/x is not on the allow-list"},
		"both":         {spec.Target{URL: off, StatusURL: off}, "target.url http://b.example/x is not on the allow-list"},
		"status":       {spec.Target{URL: in, StatusURL: off}, "target.statusURL http://b.example/x is not on the allow-list"},
		"and a secret": {spec.Target{URL: in, StatusURL: off, Secret: "s"}, "target.statusURL http://b.example/x is not on the allow-list"},
		"a secret":     {spec.Target{URL: in, StatusURL: in, Secret: "s"}, `secret "s" of action`},
	} {
		act := spec.Action{Name: "scale", Uses: webhook.Uses, Target: tc.target}
		if got := permitted(act, hooks.Permits).verdict(ofSubject("c/s")); !strings.HasPrefix(got.Detail, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got.Detail, tc.want)
		}
	}
}

// TestStatusAdvice: the form of the answer is advised where an answer of another
// form came, and nowhere else.
func TestStatusAdvice(t *testing.T) {
	act := spec.Action{Name: "scale", Uses: webhook.Uses, Target: spec.Target{URL: "http://a/", StatusURL: "http://a/"}}
	const form = `"known": false`
	for _, body := range []string{"", "[]", "<html>", `{"known"`, `{"known":1}`, `{}`, `{"known":true}`, `{"known":true,"result":"so"}`, `{"known":false,"known":false}`} {
		o := execute.ParseStatus([]byte(body))
		if got := statusVerdict(ofSubject("c/s"), act, o); got.Result != resultFail || !strings.Contains(got.Remedy, form) {
			t.Errorf("%s: want the form in %+v", body, got)
		}
	}
	for _, text := range []string{
		"dial tcp 127.0.0.1:1: connect: connection refused", "dial tcp: lookup a.invalid: no such host", "context deadline exceeded",
		"EOF", "HTTP 401", "HTTP 403", "HTTP 404: no JSON object", "HTTP 405", "HTTP 500: {}", "HTTP 302", "something",
	} {
		if got := statusVerdict(ofSubject("c/s"), act, execute.Observation{Detail: "no answer: " + text}); strings.Contains(got.Remedy, form) {
			t.Errorf("%s: the form is not what is wrong: %+v", text, got)
		}
	}
}

func TestHarmless(t *testing.T) {
	low := 3.0
	act := spec.Action{Parameters: []spec.Parameter{
		{Name: "mode", Type: spec.String, Enum: []string{"slow", "fast"}},
		{Name: "on", Type: spec.Boolean},
		{Name: "replicas", Type: spec.Integer, Minimum: &low},
		{Name: "share", Type: spec.Number, Minimum: &low},
		{Name: "version", Type: spec.String, FromState: "previous"},
	}}
	cases := map[string]struct {
		reason string
		state  propose.Live
		want   propose.Parameters
	}{
		"state":   {"what is so already changes nothing", propose.Live{"replicas": int64(7), "version": "2", "on": true, "mode": "fast", "share": 4.5}, propose.Parameters{"replicas": int64(7), "version": "2", "on": true, "mode": "fast", "share": 4.5}},
		"nothing": {"else the least that is allowed", nil, propose.Parameters{"replicas": int64(3), "version": "", "on": false, "mode": "slow", "share": 3.0}},
		"lists":   {"a list names what is permitted", propose.Live{"previous": []string{"1", "0"}}, propose.Parameters{"replicas": int64(3), "version": "1", "on": false, "mode": "slow", "share": 3.0}},
	}
	for name, tc := range cases {
		if got := harmless(act, tc.state); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}
