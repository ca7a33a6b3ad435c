package shipped_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/policies"
)

// withTeam is the shipped bundle without its tests, and one file of a team.
func withTeam(t testing.TB, source string) fstest.MapFS {
	t.Helper()
	b := files(t, policies.FS)
	maps.DeleteFunc(b, func(name string, _ *fstest.MapFile) bool { return isTest(name) })
	b["team/overlay.rego"] = &fstest.MapFile{Data: []byte(source)}
	return b
}

// situations each change one fact of the granted case, to any side: what a team
// adds must tighten all of them.
var situations = map[string]func(c *gate.Case){
	"as it is":     func(*gate.Case) {},
	"met":          func(c *gate.Case) { c.Facts.Assessment.State, c.Facts.Assessment.Reason = compare.Met, "" },
	"recovering":   func(c *gate.Case) { c.Facts.Assessment.Reason = compare.Recovering },
	"unknown":      func(c *gate.Case) { c.Facts.Assessment.State = compare.Unknown },
	"nothing":      func(c *gate.Case) { c.Facts.Assessment.Objectives = nil },
	"class ask":    func(c *gate.Case) { c.Service.Remediation.Actions[0].Class = spec.ClassApproval },
	"class hand":   func(c *gate.Case) { c.Service.Remediation.Actions[0].Class = spec.ClassEscalate },
	"irreversible": func(c *gate.Case) { c.Service.Remediation.Actions[0].Reversal = spec.Irreversible },
	"transient":    func(c *gate.Case) { c.Service.Remediation.Actions[0].Reversal = spec.Transient },
	"spent":        func(c *gate.Case) { c.Facts.Balance.Remaining = 0 },
	"large":        func(c *gate.Case) { c.Proposal.Parameters = propose.Parameters{"replicas": int64(20)} },
	"not seen":     func(c *gate.Case) { c.Facts.Item.LiveKnown = false },
	"owned":        func(c *gate.Case) { c.Facts.Ownership = "hpa" },
	"deployed":     func(c *gate.Case) { c.Facts.Changes = []measure.Change{{At: now.Add(-time.Minute), What: "deploy"}} },
	"documents":    func(c *gate.Case) { c.Facts.DocumentsChangedAt = now.Add(-time.Minute) },
	"tried": func(c *gate.Case) {
		c.Facts.Tried = []propose.Tried{{Action: "scale", At: now.Add(-time.Hour), Outcome: compare.OutcomeNoChange, ThisEpisode: true}}
	},
	"undo": func(c *gate.Case) { c.Proposal.Undo, c.Proposal.Proposer.Kind = true, "undo" },
	"model": func(c *gate.Case) {
		c.Proposal.Proposer = propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}
	},
	"no owner": func(c *gate.Case) { c.Service.Remediation.Owner = "" },
	"frozen":   func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1"}} },
	"full":     func(c *gate.Case) { c.Facts.OpenTickets = 99 },
	"nobody":   func(c *gate.Case) { c.Service.Remediation.Approvers = nil },
	"suggest":  func(c *gate.Case) { c.Service.Remediation.Mode = spec.Suggest },
	"ticket": func(c *gate.Case) {
		c.Facts.ApprovedTicket, c.Facts.ApprovedDigest = "t1", gate.Decide(*c, gate.Ruling{}).Digest
		c.Facts.ApprovedNeeds = []gate.Need{{Approvers: []string{"@payments-oncall"}, Quorum: 2}}
	},
}

// conditions of a team's rule: always, never, by the input, by the shared rules.
var conditions = []string{
	"true", "false", "not input.proposal.undo", "input.proposal.undo", `input.state.state == "breached"`, `input.state.state != "breached"`,
	"input.proposal.parameters.replicas > 5", "gate.runnable", "not gate.runnable", "gate.reversible", "not gate.balance_left",
	`count(gate.auto) > 0`, `count(gate.auto) == 0`, `count(gate.deny) == 0`,
}

var asks = []string{
	`"%s"`, `{"reason": "%s"}`, `{"reason": "%s", "quorum": 3}`, `{"reason": "%s", "approvers": ["os:alice"], "expires": "1m"}`,
}

func drawTeam(t *rapid.T) string {
	owner := rapid.SampledFrom([]string{"team-payments", "team-payments", "team-payments", "team-cart", ""}).Draw(t, "owner")
	var b strings.Builder
	fmt.Fprintf(&b, "package setpoint.team[%q]\n\nimport data.setpoint.gate\n\nshared if gate.runnable\n", owner)
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		set := rapid.SampledFrom([]string{"deny", "escalate", "approval", "approval"}).Draw(t, "set")
		element := fmt.Sprintf("%q", fmt.Sprintf("own-%d", i))
		if set == "approval" {
			element = fmt.Sprintf(rapid.SampledFrom(asks).Draw(t, "element"), fmt.Sprintf("own-%d", i))
		}
		fmt.Fprintf(&b, "\n%s contains %s if %s\n", set, element, rapid.SampledFrom(conditions).Draw(t, "condition"))
	}
	return b.String()
}

// reach is how far a decision lets a step go: to nothing, to a question, to an
// effect.
func reach(d gate.Decision) int {
	if _, ok := d.Permit(); ok {
		return 2
	}
	if d.Verdict >= gate.Approval {
		return 1
	}
	return 0
}

// Whatever a team adds, nothing may happen that could not happen without it.
func TestTeamOnlyTightens(t *testing.T) {
	alone := load(t, policies.FS)
	cases, befores := map[string]gate.Case{}, map[string]gate.Decision{}
	for name, change := range situations {
		c := granted()
		change(&c)
		cases[name], befores[name] = c, gate.Decide(c, alone.Evaluate(context.Background(), input(t, c)))
	}
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		source := drawTeam(rt)
		p, err := rego.Load(withTeam(t, source), rego.Options{})
		if err != nil {
			rt.Fatalf("%v\n%s", err, source)
		}
		for name, c := range cases {
			before, after := befores[name], gate.Decide(c, p.Evaluate(context.Background(), input(rt, c)))
			seen[before.Verdict.String()+" to "+after.Verdict.String()]++
			if after.Ruling.Fault != "" {
				rt.Fatalf("%s: %s\n%s", name, after.Ruling.Fault, source)
			}
			if reach(after) > reach(before) || after.Verdict == gate.Auto && before.Verdict != gate.Auto {
				rt.Fatalf("%s: loosened from %s %+v to %s %+v by\n%s", name, before.Verdict, before.Reasons, after.Verdict, after.Reasons, source)
			}
			if was, is := before.Ruling.Verdict(), after.Ruling.Verdict(); is >= gate.Approval && is > was {
				rt.Fatalf("%s: policy alone says %s, %s without\n%s", name, is, was, source)
			}
			if lost := missing(before, after); after.Verdict == gate.Approval && lost != "" {
				rt.Fatalf("%s: %s need not be asked any more, by\n%s", name, lost, source)
			}
			if diff := cmp.Diff(shared(before.Ruling), shared(after.Ruling)); diff != "" {
				rt.Fatalf("%s: the shared rules say something else (-without +with):\n%s\n%s", name, diff, source)
			}
		}
	})
	for _, want := range []string{"auto to auto", "auto to approval", "auto to escalate", "auto to deny", "approval to deny"} {
		if seen[want] == 0 {
			t.Errorf("never %s: %v", want, seen)
		}
	}
}

// An approval grants with a person. That of a team adds the person and no grant.
func TestTeamApprovalAloneGrantsNothing(t *testing.T) {
	p := load(t, withTeam(t, "package setpoint.team[\"team-payments\"]\n\napproval contains \"ask-us\" if true\n"))
	c := granted()
	c.Facts.Assessment.Objectives = nil
	d := gate.Decide(c, p.Evaluate(t.Context(), input(t, c)))
	if d.Verdict != gate.Deny || len(d.Needs) > 0 || !slices.ContainsFunc(d.Reasons, func(r gate.Reason) bool { return r.Code == gate.ReasonUndefined }) {
		t.Errorf("the shared rules grant nothing, and a team's approval makes it %s %+v", d.Verdict, d.Reasons)
	}
	if v := d.Ruling.Verdict(); v != gate.Deny {
		t.Errorf("policy alone says %s", v)
	}
}

// missing names a need of one decision that the other does not have.
func missing(before, after gate.Decision) string {
	for _, n := range before.Needs {
		if !slices.ContainsFunc(after.Needs, func(a gate.Need) bool { return cmp.Equal(a, n) }) {
			return n.Reason
		}
	}
	return ""
}

// shared are the reasons that package setpoint.gate gave.
func shared(r gate.Ruling) map[string][]string {
	out := map[string][]string{}
	for set, rules := range map[string][]gate.Rule{"auto": r.Auto, "approval": r.Approval, "escalate": r.Escalate, "deny": r.Deny} {
		for _, rule := range rules {
			if rule.Package == "setpoint.gate" {
				out[set] = append(out[set], rule.Reason)
			}
		}
		slices.Sort(out[set])
	}
	return out
}

func TestTeamCannotGrant(t *testing.T) {
	cases := map[string]struct{ reason, rules string }{
		"Auto":      {"a grant", `auto contains "x" if true`},
		"AutoKnown": {"a grant that the shared rules have", `auto contains "reversible" if true`},
		"Set":       {"a whole set", `auto := {"x"}`},
		"Default":   {"a grant by absence", `default auto := {"x"}`},
		"Function":  {"a function of that name", `auto(_) := {"x"}`},
		"Below":     {"a grant below the name", `auto.x contains "y" if true`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := "package setpoint.team[\"team-payments\"]\n\n" + tc.rules + "\n"
			if _, err := rego.Load(withTeam(t, source), rego.Options{}); err == nil || !strings.Contains(err.Error(), "team/overlay.rego:3") {
				t.Errorf("%s: %v, want a refusal with its line", tc.reason, err)
			}
		})
	}
}

// A team's rules are asked for the services of that owner and no others, and
// what breaks in them breaks there alone.
func TestTeamIsAskedForItsOwnServices(t *testing.T) {
	const broken = "package setpoint.team[\"team-broken\"]\n\ndeny contains \"broken\" if regex.match(input.service.name, \"(\") == regex.match(\"(\", \"\")\n"
	owners := []string{"team-payments", "payments", "team payments/eu", "Ünit", "gate", "team"}
	var cases []string
	b := withTeam(t, broken)
	for i, owner := range owners {
		name := fmt.Sprintf("owner-%d", i)
		cases = append(cases, name)
		b["team/"+name+".rego"] = &fstest.MapFile{Data: fmt.Appendf(nil, "package setpoint.team[%q]\n\ndeny contains %q if true\n", owner, name)}
	}
	p := load(t, b)
	asked := func(owner string) gate.Ruling {
		c := granted()
		c.Service.Remediation.Owner = owner
		return p.Evaluate(t.Context(), input(t, c))
	}
	for i, owner := range owners {
		r := asked(owner)
		if r.Fault != "" || len(r.Deny) != 1 || r.Deny[0].Reason != cases[i] {
			t.Errorf("owner %q: %+v, want %s alone", owner, r.Deny, cases[i])
		}
	}
	for _, owner := range []string{"team-cart", "", "unknown", "team-payment", "team-payments2"} {
		if r := asked(owner); r.Fault != "" || len(r.Deny) > 0 {
			t.Errorf("owner %q: %s%+v, want nothing of any team", owner, r.Fault, r.Deny)
		}
	}
	if r := asked("team-broken"); !strings.HasPrefix(r.Fault, gate.FaultError) {
		t.Errorf("its own services: fault %q, want an error", r.Fault)
	}
}
