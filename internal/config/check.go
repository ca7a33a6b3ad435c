package config

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// checker reports what setpoint.yaml says that cannot be meant.
type checker struct {
	positions spec.Positions
	faults    spec.Faults
}

func (k *checker) fault(path, format string, args ...any) {
	if !slices.ContainsFunc(k.faults, func(f spec.Fault) bool { return f.Path == path }) {
		k.faults = append(k.faults, k.positions.Fault(path, format, args...))
	}
}

func (k *checker) that(ok bool, path, format string, args ...any) {
	if !ok {
		k.fault(path, format, args...)
	}
}

// within checks that a number is in its range.
func within[T cmp.Ordered](k *checker, path string, got, least, most T) {
	k.that(got >= least && got <= most, path, "is %v, want %v to %v", got, least, most)
}

func (k *checker) duration(path string, got, least, most time.Duration) {
	k.that(got >= least && got <= most, path, "is %s, want %s to %s",
		spec.FormatDuration(got), spec.FormatDuration(least), spec.FormatDuration(most))
}

func (k *checker) word(path, got string, words ...string) {
	k.that(slices.Contains(words, got), path, "unknown word %q, want %s", got, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
}

func (k *checker) url(path, raw string) {
	if err := spec.CheckURL(raw); err != nil {
		k.fault(path, "%s", err)
	}
}

func (k *checker) set(path, value string) {
	k.that(value != "", path, "is empty: give a value, or remove the key")
}

const day = 24 * time.Hour

func (k *checker) config(c Config) {
	k.that(len(c.Documents) > 0, "documents", "is empty: name the files or folders that hold the SLOs")
	for i, d := range c.Documents {
		k.set(spec.IndexPath("documents", i), d)
	}
	k.that(!c.Policies.oneFolder(), "policies.shadow", SameShadow)
	k.duration("sweep.interval", c.Sweep.Interval, 100*time.Millisecond, time.Hour)
	within(k, "sweep.jitter", c.Sweep.Jitter, 0, 0.5)
	within(k, "sweep.concurrency", c.Sweep.Concurrency, 1, 1000)
	k.duration("budget.period", c.Budget.Period, time.Second, 365*day)
	within(k, "budget.capacity", c.Budget.Capacity, 0, 10_000)
	k.telemetry(c.Telemetry)
	k.set("ledger.sqlite.path", c.Ledger.SQLite.Path)
	if c.Ledger.Postgres != nil {
		k.set("ledger.postgres.dsnFile", c.Ledger.Postgres.DSNFile)
		k.that(!k.positions.Has("ledger.sqlite"), "ledger.sqlite", "stands beside postgres: there is one ledger, remove the other")
	}
	k.set("ledger.freezeDir", c.Ledger.FreezeDir)
	k.sources(c.Sources)
	k.proposer(c.Proposer)
	k.limits(c.Limits)
	k.receivers(c.Receivers, c.Slack != nil)
	k.slack(c.Slack)
	k.approvers(c.Approvers, c.Slack)
	k.decisionLog(c.Policies.DecisionLog)
	k.web(c.Web)
	for _, name := range sortedKeys(c.Secrets) {
		path := spec.KeyPath("secrets", name)
		k.that(spec.ValidName(name), path, "%q is no name: use at most 63 letters, digits, '.', '_' and '-'", name)
		k.set(path, c.Secrets[name])
	}
	for i, allow := range c.Executors.Webhook.Allow {
		k.allow(spec.IndexPath("executors.webhook.allow", i), allow)
	}
	k.command(c.Executors.Command)
	k.unsupported(c)
}

func (k *checker) sources(all []Source) {
	k.that(len(all) > 0, "sources", "is empty: name at least one Prometheus, e.g. {name: main, url: http://127.0.0.1:9090}")
	names(k, "sources", all, func(s Source) string { return s.Name })
	for i, s := range all {
		at := spec.IndexPath("sources", i)
		k.url(at+".url", s.URL)
		if u, err := url.Parse(s.URL); err == nil {
			k.that(u.RawQuery == "", at+".url", "has a query: give it as params")
		}
		k.duration(at+".timeout", s.Timeout, 100*time.Millisecond, 5*time.Minute)
		k.duration(at+".maxSampleAge", s.MaxSampleAge, time.Second, day)
		within(k, at+".maxConcurrency", s.MaxConcurrency, 1, 100)
		within(k, at+".queriesPerSecond", s.QueriesPerSecond, 0.1, 10_000)
		within(k, at+".chunk", s.Chunk, 1, 1000)
		for _, name := range sortedKeys(s.Params) {
			k.that(!slices.Contains([]string{"query", "time", "timeout"}, name), spec.KeyPath(at+".params", name),
				"is set by Setpoint itself: remove it")
		}
	}
}

// names checks that each element has a valid name of its own.
func names[T any](k *checker, list string, all []T, name func(T) string) {
	first := map[string]int{}
	for i, x := range all {
		path := spec.IndexPath(list, i) + ".name"
		n := name(x)
		k.that(spec.ValidName(n), path, "%q is no name: use at most 63 letters, digits, '.', '_' and '-'", n)
		if j, dup := first[n]; dup {
			k.fault(path, "%q names %s already", n, spec.IndexPath(list, j))
			continue
		}
		first[n] = i
	}
}

func (k *checker) proposer(p Proposer) {
	k.word("proposer.provider", p.Provider, "rules", "openai")
	k.word("proposer.reply", p.Reply, "json_schema", "tool", "json_object", "auto")
	k.set("proposer.rules", p.Rules)
	within(k, "proposer.promptTokens", p.PromptTokens, 100, 1_000_000)
	within(k, "proposer.limits.callsPerHour", p.Limits.CallsPerHour, 0, 100_000)
	within(k, "proposer.limits.callsPerServicePerHour", p.Limits.CallsPerServicePerHour, 0, 10_000)
	within(k, "proposer.limits.tokensPerDay", p.Limits.TokensPerDay, 0, 1_000_000_000)
	if p.Provider == "openai" {
		k.that(len(p.Endpoints) > 0, "proposer.endpoints", "is required with provider openai")
	}
	names(k, "proposer.endpoints", p.Endpoints, func(e Endpoint) string { return e.Name })
	for i, e := range p.Endpoints {
		at := spec.IndexPath("proposer.endpoints", i)
		k.url(at+".baseURL", e.BaseURL)
		k.set(at+".model", e.Model)
		k.word(at+".reply", cmp.Or(e.Reply, "auto"), "json_schema", "tool", "json_object", "auto")
		k.duration(at+".timeout", e.Timeout, 100*time.Millisecond, 10*time.Minute)
	}
}

func (k *checker) limits(l Limits) {
	within(k, "limits.effectsPerHour", l.EffectsPerHour, 0, 10_000)
	within(k, "limits.effectsPerServicePerHour", l.EffectsPerServicePerHour, 0, 10_000)
	within(k, "limits.openApprovals", l.OpenApprovals, 0, 1000)
	within(k, "limits.stormFraction", l.StormFraction, 0.01, 1)
	within(k, "limits.stormMin", l.StormMin, 1, 100_000)
	k.duration("limits.hintInterval", l.HintInterval, 100*time.Millisecond, time.Hour)
	k.duration("limits.minSpacing", l.MinSpacing, 0, day)
	k.duration("limits.stormCooldown", l.StormCooldown, 0, day)
	k.duration("limits.permitTTL", l.PermitTTL, time.Second, 10*time.Minute)
}

// principal is who an authenticated answer can come from.
var principal = regexp.MustCompile(`^(slack:[TE][A-Z0-9_]+/[UW][A-Z0-9_]+|os:[^\s:]+|token:[^\s:]+)$`)

func (k *checker) approvers(all map[string][]string, slack *Slack) {
	for _, group := range sortedKeys(all) {
		at := spec.KeyPath("approvers", group)
		k.that(strings.HasPrefix(group, "@") && spec.ValidName(group[min(1, len(group)):]), at,
			"%q is no group: write it as @name", group)
		k.that(len(all[group]) > 0, at, "is empty: a group needs somebody who can answer")
		for i, p := range all[group] {
			k.that(principal.MatchString(p), spec.IndexPath(at, i),
				"%q is nobody: write slack:<team>/<user>, os:<user> or token:<name>", p)
			if slack.foreign(p) {
				k.fault(spec.IndexPath(at, i), "%s", foreignFault(p, slack.Team))
			}
		}
	}
}

func (k *checker) web(w Web) {
	k.listen("web.listen", w.Listen)
	if w.ExternalURL != "" {
		k.url("web.externalURL", w.ExternalURL)
	}
	k.set("web.socket", w.Socket)
}

func (k *checker) telemetry(t Telemetry) {
	k.word("telemetry.logFormat", t.LogFormat, "logfmt", "json")
	if t.TraceURL != "" {
		k.url("telemetry.traceURL", t.Trace("0"))
		k.that(strings.Contains(t.TraceURL, tracePlaceholder), "telemetry.traceURL", "has no %s: write it where the id of a trace belongs", tracePlaceholder)
	}
}

func (k *checker) listen(path, address string) {
	u, err := url.Parse("tcp://" + address)
	port := 0
	if err == nil {
		port, err = strconv.Atoi(u.Port())
	}
	k.that(err == nil && port <= 65535 && u.Path == "" && u.User == nil, path,
		"%q is no address: write host:port, e.g. 127.0.0.1:8321", address)
}

// allow checks one entry of the allow-list of URLs.
func (k *checker) allow(path, raw string) {
	k.url(path, raw)
	if u, err := url.Parse(raw); err == nil {
		k.that(u.RawQuery == "", path, "has a query, which is not compared: remove it")
		k.that(cleanPath(u), path, "has . or .. or an encoded separator in its path: write it plainly")
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
