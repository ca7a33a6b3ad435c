package main

import (
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// permitSeen is whether an action could be sent at all.
type permitSeen struct {
	act spec.Action
	// err says why it would be refused; nil if it would not.
	err error
	// key is the key of target that err is about; "" where it is about none.
	key string
	// asked: a dry run asks the actuator whether it takes the signature.
	asked bool
	// files are the secrets of setpoint.yaml, by name.
	files map[string]string
}

func lacksSecret(err error) bool { return strings.HasPrefix(err.Error(), "secret ") }

// permitted asks whether an action would be refused, and because of which key of
// its target.
func permitted(act spec.Action, permits func(spec.Action) error) permitSeen {
	seen := permitSeen{act: act, err: permits(act)}
	if seen.err == nil || lacksSecret(seen.err) {
		return seen
	}
	// An action may be sent without a way to ask for its status: what is then
	// refused no more was refused for that.
	rest := act
	rest.Target.StatusURL, rest.Target.StatusArgv = "", nil
	err := permits(rest)
	status := err == nil || lacksSecret(err)
	switch command := act.Executor() == "command"; {
	case command && status:
		seen.key = "target.statusArgv"
	case command:
		seen.key = "target.argv"
	case status:
		seen.key = "target.statusURL"
	default:
		seen.key = "target.url"
	}
	return seen
}

func (p permitSeen) verdict(s subject) checkItem {
	switch {
	case p.err == nil:
		return s.fine("%s", p.listed())
	case lacksSecret(p.err):
		return p.unsigned(s)
	}
	text, at := p.text(), fmt.Sprintf("%s at %s", p.key, p.act.Pos)
	switch {
	case strings.Contains(text, "executors.webhook.allow"):
		return s.failed(text, "add that URL, or one above it, to executors.webhook.allow in setpoint.yaml, or correct "+at)
	case strings.Contains(text, "executors.command.allow"):
		return s.failed(text, "add that program to executors.command.allow in setpoint.yaml, or correct "+at)
	case p.act.Executor() == "command":
		return s.failed(text, "make the program an executable file that only its owner can write (`chmod 755`), or correct "+at)
	}
	return s.failed(text, "correct "+at)
}

// text names the key in the place of the word url: a target has two of them.
func (p permitSeen) text() string {
	text := p.err.Error()
	if rest, ok := strings.CutPrefix(text, "url "); ok && p.key != "" {
		return p.key + " " + rest
	}
	return text
}

// listed says what is there, and of a secret that this is not yet all.
func (p permitSeen) listed() string {
	switch {
	case p.act.Executor() != "webhook":
		return "its program is listed and executable"
	case p.act.Target.Secret == "":
		return "its URLs are on the allow-list"
	case p.asked && p.act.Target.Dedup:
		return "its URLs are on the allow-list, its secret is there"
	case p.act.Target.Dedup:
		return "its URLs are on the allow-list, its secret is there; whether the actuator takes it is not known: --dry-run asks it"
	}
	return "its URLs are on the allow-list, its secret is there; whether the actuator takes it is seen at the first send"
}

// unsigned: the secret has no file, or the file has no secret.
func (p permitSeen) unsigned(s subject) checkItem {
	name := p.act.Target.Secret
	if file, there := p.files[name]; there {
		return s.failed(fmt.Sprintf("nothing can be signed: secret %s is not in %s, or it cannot be read", name, file),
			fmt.Sprintf("write the secret into %s, readable by the agent's user (secrets.%s in setpoint.yaml names that file)", file, name))
	}
	names := make([]string, 0, len(p.files))
	for known := range p.files {
		names = append(names, known)
	}
	if near := spec.Nearest(name, names); near != "" {
		return s.failed(p.err.Error(), fmt.Sprintf("did you mean %s? Correct target.secret at %s, or name a file for %s under secrets in setpoint.yaml", near, p.act.Pos, name))
	}
	return s.failed(p.err.Error(), fmt.Sprintf("name a file for %s under secrets in setpoint.yaml, and write the secret into it", name))
}
