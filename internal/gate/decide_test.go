package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func action(c *gate.Case) *spec.Action { return &c.Service.Remediation.Actions[0] }

func asUndo(c *gate.Case) {
	c.Proposal.Undo, c.Proposal.Proposer = true, propose.Proposer{Kind: "undo"}
	c.Facts.Undoes = &gate.Undone{Key: "checkout:1795922400-600", Target: c.Service.Remediation.Actions[0].Canonical(), Wrote: propose.Parameters{"replicas": int64(5)}}
	c.Facts.Item.Live, c.Facts.Item.LiveKnown = propose.Live{"replicas": int64(5)}, true
}

func TestDecideFloors(t *testing.T) {
	for name, tc := range floorCases() {
		t.Run(name, func(t *testing.T) {
			c := granted()
			tc.change(&c)
			d := gate.Decide(c, allows())
			if d.Verdict != tc.want.verdict || d.Hold != tc.want.hold {
				t.Fatalf("%s: verdict %s hold %v, want %s hold %v; reasons %+v", tc.reason, d.Verdict, d.Hold, tc.want.verdict, tc.want.hold, d.Reasons)
			}
			if len(d.Reasons) == 0 || d.Reasons[0].Code != tc.want.first {
				t.Fatalf("%s: reasons %+v, want first %s", tc.reason, d.Reasons, tc.want.first)
			}
			if !strings.Contains(d.Reasons[0].Text, tc.want.text) || d.Reasons[0].Text == "" {
				t.Errorf("%s: text %q, want it to hold %q", tc.reason, d.Reasons[0].Text, tc.want.text)
			}
			var at time.Time
			if tc.want.at != 0 {
				at = now.Add(tc.want.at)
			}
			if !d.Reasons[0].At.Equal(at) {
				t.Errorf("%s: passes at %v, want %v", tc.reason, d.Reasons[0].At, at)
			}
			p, ok := d.Permit()
			if ok != (tc.want.verdict == gate.Auto) {
				t.Errorf("%s: permit %v for verdict %s", tc.reason, ok, d.Verdict)
			}
			if ok && (!p.Valid(now) || p.Valid(now.Add(30*time.Second)) || p.Digest() != d.Digest || p.Key() != c.Key) {
				t.Errorf("%s: the permit is not of this decision: %+v", tc.reason, p)
			}
		})
	}
}

func TestDecideRulings(t *testing.T) {
	rule := func(reason string) []gate.Rule { return []gate.Rule{{Reason: reason}} }
	cases := map[string]struct {
		reason  string
		ruling  gate.Ruling
		verdict gate.Verdict
		hold    bool
		codes   []string
	}{
		"Undefined":   {"silence grants nothing", gate.Ruling{}, gate.Deny, false, []string{"undefined"}},
		"Fault":       {"a fault is ours and passes", gate.Ruling{Fault: "timeout: 1s", Auto: rule("a")}, gate.Deny, true, []string{"policy-fault"}},
		"TooLarge":    {"no policy looked at it", gate.Ruling{Fault: "input-too-large: 300000 bytes", Auto: rule("a")}, gate.Deny, false, []string{"input-too-large"}},
		"OtherInput":  {"a ruling on other bytes", gate.Ruling{InputDigest: "ff", Auto: rule("a")}, gate.Deny, true, []string{"policy-fault"}},
		"TeamAlone":   {"a team's approval adds a person and grants nothing", gate.Ruling{Approval: []gate.Rule{{Reason: "ask-us", Package: "setpoint.team.payments"}}}, gate.Deny, false, []string{"undefined", "policy:ask-us"}},
		"Deny":        {"strictest wins", gate.Ruling{Auto: rule("a"), Approval: rule("b"), Escalate: rule("c"), Deny: rule("d")}, gate.Deny, false, []string{"policy:d", "policy:c", "policy:b", "policy:a"}},
		"Escalate":    {"strictest wins", gate.Ruling{Auto: rule("a"), Approval: rule("b"), Escalate: rule("c")}, gate.Escalate, false, []string{"policy:c", "policy:b", "policy:a"}},
		"Approval":    {"strictest wins", gate.Ruling{Auto: rule("a"), Approval: rule("b")}, gate.Approval, false, []string{"policy:b", "policy:a"}},
		"Auto":        {"a grant", gate.Ruling{Auto: rule("a")}, gate.Auto, false, []string{"policy:a"}},
		"OnlyAsk":     {"approval grants, with a person", gate.Ruling{Approval: rule("b")}, gate.Approval, false, []string{"policy:b"}},
		"SortedRules": {"order does not depend on policy", gate.Ruling{Auto: append(rule("z"), rule("a")...)}, gate.Auto, false, []string{"policy:a", "policy:z"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(granted(), tc.ruling)
			var codes []string
			for _, r := range d.Reasons {
				codes = append(codes, r.Code)
			}
			if d.Verdict != tc.verdict || d.Hold != tc.hold {
				t.Errorf("%s: %s hold %v, want %s hold %v", tc.reason, d.Verdict, d.Hold, tc.verdict, tc.hold)
			}
			if diff := cmp.Diff(tc.codes, codes); diff != "" {
				t.Errorf("%s: reasons (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecideSilentPolicyBesideAHoldWaits(t *testing.T) {
	c := granted()
	c.Facts.Assessment.State = compare.Unknown
	d := gate.Decide(c, gate.Ruling{})
	if d.Verdict != gate.Deny || !d.Hold {
		t.Fatalf("a policy that is silent about an unknown state is no final refusal: %s hold %v %+v", d.Verdict, d.Hold, d.Reasons)
	}
}

func TestNeeds(t *testing.T) {
	doc := gate.Need{Reason: "class-approval", Approvers: []string{"@payments-oncall"}, Quorum: 1, Expires: 15 * time.Minute}
	cases := map[string]struct {
		reason  string
		change  func(c *gate.Case)
		rules   []gate.Rule
		verdict gate.Verdict
		want    []gate.Need
	}{
		"Defaults": {"missing fields are the document's", nil, []gate.Rule{{Reason: "second-try"}}, gate.Approval,
			[]gate.Need{{Reason: "policy:second-try", Approvers: []string{"@payments-oncall"}, Quorum: 1, Expires: 15 * time.Minute}}},
		"Each": {"every rule is its own need, floors share one", func(c *gate.Case) {
			action(c).Class, action(c).Reversal = spec.ClassApproval, spec.Irreversible
		}, []gate.Rule{
			{Reason: "z", Approvers: []string{"os:bob", "os:eve"}, Quorum: 2, Expires: time.Minute}, {Reason: "a", Approvers: []string{"@dba"}}},
			gate.Approval, []gate.Need{
				{Reason: "policy:a", Approvers: []string{"@dba"}, Quorum: 1, Expires: 15 * time.Minute},
				{Reason: "policy:z", Approvers: []string{"os:bob", "os:eve"}, Quorum: 2, Expires: time.Minute}, doc}},
		"Floor":      {"a floor asks the document's approvers", func(c *gate.Case) { action(c).Class = spec.ClassApproval }, nil, gate.Approval, []gate.Need{doc}},
		"Impossible": {"two of one person", nil, []gate.Rule{{Reason: "a", Approvers: []string{"os:bob", "os:bob"}, Quorum: 2}}, gate.Escalate, nil},
		"Group": {"the size of a group is not known here", nil, []gate.Rule{{Reason: "a", Quorum: 2}}, gate.Approval,
			[]gate.Need{{Reason: "policy:a", Approvers: []string{"@payments-oncall"}, Quorum: 2, Expires: 15 * time.Minute}}},
		"Held": {"nobody is asked while something holds", func(c *gate.Case) { action(c).Class, c.Facts.KeyClaimed = spec.ClassApproval, true }, nil, gate.Deny, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := granted()
			if tc.change != nil {
				tc.change(&c)
			}
			r := allows()
			r.Approval = tc.rules
			d := gate.Decide(c, r)
			if d.Verdict != tc.verdict {
				t.Fatalf("%s: %s, want %s: %+v", tc.reason, d.Verdict, tc.verdict, d.Reasons)
			}
			if diff := cmp.Diff(tc.want, d.Needs); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if _, ok := d.Permit(); ok {
				t.Errorf("%s: an approval that nobody gave minted a permit", tc.reason)
			}
		})
	}
}

func TestApprovedTicket(t *testing.T) {
	ask := granted()
	action(&ask).Class = spec.ClassApproval
	asked := gate.Decide(ask, allows())
	cases := map[string]struct {
		reason  string
		change  func(c *gate.Case)
		ruling  gate.Ruling
		verdict gate.Verdict
		hold    bool
		first   string
	}{
		"Runs":        {"people said yes and everything else still does", nil, allows(), gate.Approval, false, "class-approval"},
		"NoBalance":   {"an approved action charges nothing", func(c *gate.Case) { c.Facts.Balance = budget.Balance{} }, allows(), gate.Approval, false, "class-approval"},
		"TicketsFull": {"its own ticket is no obstacle", func(c *gate.Case) { c.Facts.OpenTickets = 9 }, allows(), gate.Approval, false, "class-approval"},
		"NoMoreFloor": {"it does not become auto", func(c *gate.Case) {
			action(c).Class = spec.ClassAuto
		}, allows(), gate.Approval, false, "approved-ticket"},
		"Deny":       {"policy changed its mind", nil, gate.Ruling{Deny: []gate.Rule{{Reason: "x"}}}, gate.Deny, false, "policy:x"},
		"Silent":     {"policy grants it no longer", nil, gate.Ruling{}, gate.Deny, false, "undefined"},
		"Fault":      {"a policy fault waits", nil, gate.Ruling{Fault: "error: x"}, gate.Deny, true, "policy-fault"},
		"Freeze":     {"a freeze waits", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f"}} }, allows(), gate.Deny, true, "freeze"},
		"OtherBytes": {"the documents changed what would be sent", func(c *gate.Case) { action(c).Target.URL = "http://elsewhere/" }, allows(), gate.Deny, false, "digest-changed"},
		"NoDigest":   {"an approval of nothing", func(c *gate.Case) { c.Facts.ApprovedDigest = "" }, allows(), gate.Deny, false, "digest-changed"},
		"MoreNeeds": {"others must agree now", nil, gate.Ruling{Approval: []gate.Rule{{Reason: "dba", Approvers: []string{"@dba"}}}},
			gate.Deny, false, "needs-changed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := ask
			c.Service = granted().Service
			action(&c).Class = spec.ClassApproval
			c.Facts.ApprovedTicket, c.Facts.ApprovedDigest, c.Facts.ApprovedNeeds = "t9", asked.Digest, asked.Needs
			if tc.change != nil {
				tc.change(&c)
			}
			d := gate.Decide(c, tc.ruling)
			if d.Verdict != tc.verdict || d.Hold != tc.hold || d.Reasons[0].Code != tc.first {
				t.Fatalf("%s: %s hold %v, want %s hold %v first %s; %+v", tc.reason, d.Verdict, d.Hold, tc.verdict, tc.hold, tc.first, d.Reasons)
			}
			p, ok := d.Permit()
			if ok != (tc.verdict == gate.Approval) || (ok && p.Ticket() != "t9") || d.Cost != 0 {
				t.Errorf("%s: permit %v %+v, cost %v", tc.reason, ok, p, d.Cost)
			}
		})
	}
}

func TestCeiling(t *testing.T) {
	c := granted()
	svc := c.Service
	svc.Remediation.Mode = spec.Suggest
	a := scale()
	a.Class, a.Reversal, a.Target.StatusURL = spec.ClassApproval, spec.Irreversible, ""
	v, rs := gate.Ceiling(svc, a, spec.Approval, gate.Approval)
	var codes []string
	for _, r := range rs {
		codes = append(codes, r.Code)
	}
	want := []string{"mode", "max-mode", "ledger-ceiling", "class-approval", "irreversible", "unmarked"}
	if diff := cmp.Diff(want, codes); v != gate.Escalate || diff != "" {
		t.Errorf("ceiling %s (-want +got):\n%s", v, diff)
	}
	if v, rs := gate.Ceiling(c.Service, scale(), spec.Auto, gate.Auto); v != gate.Auto || len(rs) != 0 {
		t.Errorf("nothing lowers it, got %s %+v", v, rs)
	}
}

func TestZeroIsDeny(t *testing.T) {
	if v := (gate.Decision{}).Verdict; v != gate.Deny || v.String() != "deny" {
		t.Errorf("the zero decision is %s", v)
	}
	if _, ok := (gate.Decision{}).Permit(); ok {
		t.Error("the zero decision mints a permit")
	}
	if (gate.Permit{}).Valid(time.Time{}) {
		t.Error("the zero permit is valid")
	}
	if d := gate.Decide(gate.Case{}, gate.Ruling{}); d.Verdict != gate.Deny {
		t.Errorf("the zero case is %s", d.Verdict)
	}
	v := gate.Auto
	if err := v.UnmarshalText([]byte("AUTO")); err != nil || v != gate.Deny {
		t.Errorf("an unknown word is %s (%v)", v, err)
	}
}

func TestNoForgedPermit(t *testing.T) {
	c := granted()
	c.Facts.KeyClaimed = true
	d := gate.Decide(c, allows())
	d.Verdict, d.Hold = gate.Auto, false
	if _, ok := d.Permit(); ok {
		t.Error("changing exported fields made a permit appear")
	}
	d = gate.Decide(granted(), allows())
	d.Digest = strings.Repeat("0", 64)
	if _, ok := d.Permit(); ok {
		t.Error("a decision with another digest still mints")
	}
}

func TestPermitIsACopy(t *testing.T) {
	c := granted()
	p, ok := gate.Decide(c, allows()).Permit()
	if !ok {
		t.Fatal("no permit")
	}
	c.Proposal.Parameters["replicas"] = int64(7)
	p.Parameters()["replicas"] = int64(8)
	if got := p.Parameters()["replicas"]; got != int64(6) {
		t.Errorf("the permit's parameters changed to %v", got)
	}
	c = granted()
	c.Service.Remediation.Actions[0].Target = spec.Target{Argv: []string{"/a", "b"}, StatusArgv: []string{"/s"}}
	p, _ = gate.Decide(c, allows()).Permit()
	p.Action().Target.Argv[1], p.Action().Target.StatusArgv[0] = "x", "/x"
	if got := p.Action().Target; got.Argv[1] != "b" || got.StatusArgv[0] != "/s" {
		t.Errorf("the permit's target changed to %v", got)
	}
}
