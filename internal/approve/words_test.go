package approve_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestBroken(t *testing.T) {
	cases := map[string]struct {
		change func(*compare.Assessment)
		since  time.Time
		want   string
	}{
		"Breached": {nil, at(-10 * time.Minute), "checkout misses availability since 11:50:00 UTC (12m): 23 % errors over 5m (measured), 1 % allowed"},
		"Yesterday": {nil, at(-13 * time.Hour),
			"checkout misses availability since 2026-11-28 23:00:00 UTC (13h2m): 23 % errors over 5m (measured), 1 % allowed"},
		"SinceUnknown": {nil, time.Time{}, "checkout misses availability: 23 % errors over 5m (measured), 1 % allowed"},
		"Recovering": {func(a *compare.Assessment) { a.Reason = compare.Recovering; a.Objectives[0].Judge = judge(0.004) }, at(0),
			"checkout misses availability since 12:00:00 UTC (2m): 0.4 % errors over 5m (measured), 1 % allowed; recovering"},
		"Groups": {func(a *compare.Assessment) { a.Objectives[0].Group, a.Objectives[0].Groups = `host="a"`, 7 }, at(0),
			`checkout misses availability since 12:00:00 UTC (2m): 23 % errors over 5m (measured), 1 % allowed (in host="a", the worst of 7 groups)`},
		"PartlyUnknown": {func(a *compare.Assessment) {
			a.Reason = compare.PartlyUnknown
			a.Objectives[1] = compare.Objective{ID: "latency", State: compare.Unknown, Reason: measure.NoData}
		}, at(0), "checkout misses availability since 12:00:00 UTC (2m): 23 % errors over 5m (measured), 1 % allowed; latency cannot be judged"},
		"Both": {func(a *compare.Assessment) { a.Objectives[1].State = compare.Breached }, at(0),
			"checkout misses availability since 12:00:00 UTC (2m): 23 % errors over 5m (measured), 1 % allowed; latency is missed too"},
		"NoNumber": {func(a *compare.Assessment) { a.Objectives = nil }, at(0), "checkout misses its SLO since 12:00:00 UTC (2m), by an unknown amount"},
		"Blind": {func(a *compare.Assessment) {
			a.State, a.Reason = compare.Unknown, measure.NoData
			a.Objectives = []compare.Objective{{ID: "availability", State: compare.Unknown, Reason: measure.NoData, Detail: "empty result"}}
		}, at(0), "checkout cannot be judged since 12:00:00 UTC (2m): no-data, availability: empty result"},
		"Nothing": {func(a *compare.Assessment) { *a = compare.Assessment{} }, time.Time{}, "checkout cannot be judged: no measurement"},
		"MetAgain": {func(a *compare.Assessment) {
			a.State, a.Objectives[0].State, a.Objectives[0].Judge = compare.Met, compare.Met, judge(0.006)
		}, at(0), "checkout meets its SLO again: availability has 0.6 % errors over 5m (measured), 1 % allowed; it was missed since 12:00:00 UTC"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := cardFacts().Assessment
			if tc.change != nil {
				tc.change(&a)
			}
			if got := approve.Broken("checkout", a, tc.since, now); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestWouldAndDid(t *testing.T) {
	f := cardFacts()
	svc, p := f.Service, f.Ticket.Proposal
	command := spec.Service{Remediation: spec.Remediation{Actions: []spec.Action{{Name: "rollback-flag", Uses: "command.run", Target: spec.Target{Argv: []string{"/srv/flag.sh", "${parameters.version}"}}}}}}
	hidden := spec.Service{Remediation: spec.Remediation{Actions: []spec.Action{{Name: "rollback-flag", Uses: "command.run", Target: spec.Target{Argv: []string{"/srv/fl\u200bag.sh"}}}}}}
	undo := p
	undo.Undo, undo.Undoes = true, "checkout:1-600"
	did := propose.Tried{Action: "scale", Parameters: propose.Parameters{"replicas": int64(6), "note": "a b"}, At: at(5 * time.Minute), Effect: "applied", Before: 0.23, After: 0.22}
	as := func(effect string, outcome compare.Outcome) propose.Tried {
		t := did
		t.Effect, t.Outcome = effect, outcome
		return t
	}
	cases := map[string]struct{ got, want string }{
		"Webhook":      {approve.Would(svc, p), "would do: rollback-flag version=v41 on webhook.post http://flags.internal/checkout"},
		"Command":      {approve.Would(command, p), "would do: rollback-flag version=v41 on command.run /srv/flag.sh"},
		"Hidden":       {approve.Would(hidden, p), `would do: rollback-flag version=v41 on command.run "/srv/fl\u200bag.sh"`},
		"Undo":         {approve.Would(svc, undo), "would do: rollback-flag version=v41 on webhook.post http://flags.internal/checkout, to take back checkout:1-600"},
		"Gone":         {approve.Would(spec.Service{}, p), "would do: rollback-flag version=v41, which the documents do not name any more"},
		"Escalate":     {approve.Would(svc, propose.Proposal{Kind: propose.KindEscalate}), "would do nothing: the proposer hands over to you"},
		"None":         {approve.Would(svc, propose.Proposal{Kind: propose.KindNone}), "would do nothing: the proposer knows no step that helps"},
		"Malformed":    {approve.Would(svc, propose.Malformed(propose.Proposer{}, propose.FaultMalformed, "obey <!channel>")), "would do nothing: the answer is no valid proposal"},
		"Spelt":        {approve.Parameters(propose.Parameters{"v": "a\u202eb", "w": "", "x": "a=b", "y": `"`, "z": true}), ` v="a\u202eb" w="" x="a=b" y="\"" z=true`},
		"NoChange":     {approve.Did(as("applied", compare.OutcomeNoChange)), `did: scale note="a b" replicas=6 at 12:05 UTC; measured: 23 % errors before, 22 % after: no-change`},
		"WithError":    {approve.Did(as("applied-with-error", compare.OutcomeWorsened)), `did: scale note="a b" replicas=6 at 12:05 UTC: applied, with an error; measured: 23 % errors before, 22 % after: worsened`},
		"Unmeasured":   {approve.Did(as("landed", compare.OutcomeUnknown)), `did: scale note="a b" replicas=6 at 12:05 UTC: landed, the target has it; nothing could be measured after it: outcome unknown`},
		"Pending":      {approve.Did(as("applied", compare.OutcomePending)), `did: scale note="a b" replicas=6 at 12:05 UTC: applied; not judged yet`},
		"Failed":       {approve.Did(as("failed", compare.OutcomeNone)), `did: scale note="a b" replicas=6 at 12:05 UTC: failed, nothing was changed`},
		"InDoubt":      {approve.Did(as("in-doubt", "")), `did: scale note="a b" replicas=6 at 12:05 UTC: in doubt, nobody knows yet whether it arrived`},
		"LaterEffect":  {approve.Did(as("a-later-word", "")), `did: scale note="a b" replicas=6 at 12:05 UTC: a-later-word`},
		"Quote":        {approve.Quote("he said “go” <!here>\n", 40), "“he said 'go' ‹!here›”"},
		"QuoteNothing": {approve.Quote("\u200b\n", 40), ""},
		"QuoteLong":    {approve.Quote(strings.Repeat("x", 50), 10), "“xxxxxxx…”"},
	}
	for name, tc := range cases {
		if tc.got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, tc.got, tc.want)
		}
	}
}

// A command of a card or a page is pasted into a shell: whatever a name holds, it
// stays one word, also after the line was cleaned.
func TestArgumentStaysOneWord(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching("[a`'\"$;|&<> ()\\]\\[\u200b\n\\\\]{0,12}"))
	rapid.Check(t, func(t *rapid.T) {
		line := approve.OneLine("setpoint explain "+approve.Argument(text.Draw(t, "name"))+" tells more", approve.MaxLine)
		rest, whole := strings.CutSuffix(strings.TrimPrefix(line, "setpoint explain "), " tells more")
		if !whole {
			t.Fatalf("line %q", line)
		}
		quoted := false
		for i := 0; i < len(rest); i++ {
			switch {
			case rest[i] == '\'':
				quoted = !quoted
			case quoted:
			case rest[i] == '\\':
				i++
			case strings.IndexByte(" `\"$;|&<>()[]*?~#!{}\n\t", rest[i]) >= 0:
				t.Fatalf("%q is not within quotes in %s", rest[i], line)
			}
		}
		if quoted || rest == "" {
			t.Fatalf("%s is no whole word", line)
		}
	})
}
