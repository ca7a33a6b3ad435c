package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Validate checks that every name in the documents resolves here, and that
// every URL that an action sends to or asks, and every program that it runs, is
// allowed. The error is
// spec.Faults with everything that is wrong.
func (c Config) Validate(set spec.Set) error {
	v := validator{config: c}
	for _, svc := range set.Services {
		for _, o := range svc.Objectives {
			for i, in := range o.Vantages() {
				for _, q := range in.Queries() {
					v.source(svc.Remediation, o, i, q)
				}
			}
		}
		v.evidence(svc.Remediation)
		v.remediation(svc.Remediation)
	}
	return v.faults.Err()
}

type validator struct {
	config Config
	faults spec.Faults
}

func (v *validator) fault(r spec.Remediation, path, format string, args ...any) {
	f := r.Where.Fault(path, format, args...)
	if f.Pos.File == "" { // A Remediation that no document gave, as in tests.
		f.Pos = r.Pos
	}
	v.faults = append(v.faults, f)
}

// source checks the name, where the Remediation gives it, otherwise once for
// each query at the query's own line.
func (v *validator) source(r spec.Remediation, o spec.Objective, vantage int, q spec.Query) {
	if _, ok := v.config.Source(q.Source); ok {
		return
	}
	f := spec.Fault{Pos: q.Pos, Text: fmt.Sprintf(
		"objective %q is measured at %q, which is no source in setpoint.yaml, %s",
		o.ID, q.Source, hint(q.Source, v.config.Sources, func(s Source) string { return s.Name }))}
	for _, name := range []string{o.ID, o.SLO} {
		path := spec.IndexPath(spec.KeyPath("spec.objectives", name)+".sources", vantage)
		if r.Where.Has(path) {
			f.Pos, f.Path = r.Where.At(path), path
			break
		}
	}
	if !slices.Contains(v.faults, f) {
		v.faults = append(v.faults, f)
	}
}

// evidence checks the sources that evidence names itself.
func (v *validator) evidence(r spec.Remediation) {
	for i, e := range r.Evidence {
		if _, ok := v.config.Source(e.Query.Source); !ok && e.Query.Source != "" {
			v.fault(r, spec.IndexPath("spec.evidence", i)+".source", "there is no source %q in setpoint.yaml, %s",
				e.Query.Source, hint(e.Query.Source, v.config.Sources, func(s Source) string { return s.Name }))
		}
	}
}

func (v *validator) remediation(r spec.Remediation) {
	for i, name := range r.Escalation.Receivers {
		v.receiver(r, spec.IndexPath("spec.escalation.receivers", i), name)
	}
	for i, name := range r.Escalation.OwnerReceivers {
		v.receiver(r, spec.IndexPath("spec.escalation.ownerReceivers", i), name)
	}
	for i, name := range r.Approvers {
		v.approver(r, spec.IndexPath("spec.approvers", i), name)
	}
	for i, a := range r.Actions {
		at := spec.IndexPath("spec.actions", i) + ".target"
		if a.Target.Secret != "" && v.config.Secrets[a.Target.Secret] == "" {
			v.fault(r, at+".secret", "there is no secret %q in setpoint.yaml: add it under secrets, with its file", a.Target.Secret)
		}
		v.reach(r, at, a.Target)
	}
}

// reach checks every place that a target names against its allow-list.
func (v *validator) reach(r spec.Remediation, at string, t spec.Target) {
	if len(t.Argv) > 0 {
		v.program(r, at+".argv[0]", t.Argv[0])
		if len(t.StatusArgv) > 0 {
			v.program(r, at+".statusArgv[0]", t.StatusArgv[0])
		}
		return
	}
	v.allowed(r, at+".url", t.URL)
	if t.StatusURL != "" {
		v.allowed(r, at+".statusURL", t.StatusURL)
	}
}

func (v *validator) receiver(r spec.Remediation, path, name string) {
	if _, ok := v.config.Receiver(name); !ok {
		v.fault(r, path, "there is no receiver %q in setpoint.yaml, %s",
			name, hint(name, v.config.Receivers, func(r Receiver) string { return r.Name }))
	}
}

// approver accepts a group of setpoint.yaml or a principal by itself.
func (v *validator) approver(r spec.Remediation, path, name string) {
	_, group := v.config.Approvers[name]
	switch {
	case v.config.Slack.foreign(name):
		v.fault(r, path, "%s", foreignFault(name, v.config.Slack.Team))
		return
	case group, principal.MatchString(name):
		return
	}
	v.fault(r, path, "there is no group %q in setpoint.yaml under approvers, %s",
		name, hint(name, sortedKeys(v.config.Approvers), func(s string) string { return s }))
}

// hint ends a sentence about a name that is not there.
func hint[T any](name string, all []T, of func(T) string) string {
	known := make([]string, len(all))
	for i, x := range all {
		known[i] = of(x)
	}
	if n := spec.Nearest(name, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if len(known) == 0 {
		return "where none is declared"
	}
	return "known are " + strings.Join(known, ", ")
}

// allowed checks one URL of an action against the allow-list. Who may write a
// document may thereby choose among these places, and no other.
func (v *validator) allowed(r spec.Remediation, path, raw string) {
	if !v.config.Executors.Webhook.Allows(raw) {
		v.fault(r, path, "%s is not below any URL of executors.webhook.allow in setpoint.yaml", raw)
	}
}

// Allows reports whether a URL is below an entry of the list: same scheme and
// host with port, and a path that continues the entry's at a whole segment.
// http://a/b allows http://a/b and http://a/b/c, never http://a/bc,
// http://a.example/b or http://a/b/../c.
func (w WebhookExecutor) Allows(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || spec.CheckURL(raw) != nil || !cleanPath(u) {
		return false
	}
	for _, entry := range w.Allow {
		a, err := url.Parse(entry)
		if err == nil && a.Scheme == u.Scheme && hostPort(a) == hostPort(u) && below(a.Path, u.Path) {
			return true
		}
	}
	return false
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + " " + port
}

// below reports whether a path continues an allowed one at a whole segment. It
// compares decoded paths, where no separator is hidden (cleanPath).
func below(allowed, path string) bool {
	if path == "" {
		path = "/" // As it is sent.
	}
	if strings.HasSuffix(allowed, "/") {
		return strings.HasPrefix(path, allowed)
	}
	return path == allowed || strings.HasPrefix(path, allowed+"/")
}

// cleanPath refuses what a server might read as another path than we do: dot
// segments, empty segments, backslashes and encoded separators.
func cleanPath(u *url.URL) bool {
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || strings.Contains(u.Path, `\`) ||
		strings.Contains(u.Path, "//") || strings.ContainsFunc(u.Path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
