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
}

func TestDecideFloors(t *testing.T) {
	hour := now.Add(time.Hour)
	type want struct {
		verdict gate.Verdict
		hold    bool
		// first is the strictest reason.
		first string
		// at is when it passes, relative to now; zero: not by time alone.
		at time.Duration
		// text is what a person must be able to read.
		text string
	}
	held := func(code string, at time.Duration, text string) want {
		return want{gate.Deny, true, code, at, text}
	}
	cases := map[string]struct {
		reason string
		change func(c *gate.Case)
		want   want
	}{
		"Granted": {"nothing is in the way", func(*gate.Case) {}, want{gate.Auto, false, "policy:reversible", 0, "Reversible actions run (class.rego:12)"}},

		// hold
		"Freeze":         {"a person stopped it", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1", By: "os:alice", Text: "migration"}} }, held("freeze", 0, "frozen (f1) by os:alice: migration")},
		"FreezeUntil":    {"a freeze with an end says it", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1", Until: hour}} }, held("freeze", time.Hour, "until 2026-11-29 04:12:00Z")},
		"FreezeOver":     {"an ended freeze binds nothing", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1", Until: now}} }, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"KeyClaimed":     {"one effect per key", func(c *gate.Case) { c.Facts.KeyClaimed = true }, held("key-claimed", 8*time.Minute, "one effect per window")},
		"InFlight":       {"an effect is not settled", func(c *gate.Case) { c.Facts.InFlight = "d41 scale" }, held("in-flight", 0, "d41 scale")},
		"InFlightTarget": {"two services, one target", func(c *gate.Case) { c.Facts.InFlightTarget = "d42 of cart" }, held("in-flight-target", 0, "d42 of cart")},
		"Spacing":        {"minSpacing from the time of sending", func(c *gate.Case) { c.Facts.LastSent = now.Add(-30 * time.Second) }, held("min-spacing", 90*time.Second, "30s ago, minSpacing is 2m0s")},
		"SpacingOver":    {"the boundary itself is free", func(c *gate.Case) { c.Facts.LastSent = now.Add(-2 * time.Minute) }, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"CapService":     {"rolling cap", func(c *gate.Case) { c.Facts.SentService = 2 }, held("cap-service", 0, "2 effects on this service in the last hour, effectsPerServicePerHour is 2")},
		"CapGlobal":      {"rolling cap", func(c *gate.Case) { c.Facts.SentGlobal = 6 }, held("cap-global", 0, "6 effects in the last hour")},
		"Cooldown":       {"from the time of sending", func(c *gate.Case) { c.Facts.ActionSent = now.Add(-4 * time.Minute) }, held("cooldown", 6*time.Minute, "scale was sent 4m0s ago, its cooldown is 10m0s")},
		"Storm":          {"a shared cause", func(c *gate.Case) { c.Facts.Storm = true }, held("storm", 0, "storm brake")},
		"Unknown": {"unknown is never a reason to act", func(c *gate.Case) {
			c.Facts.Assessment.State, c.Facts.Assessment.Reason = compare.Unknown, compare.Stale
		}, held("unknown", 0, "stale")},
		"PartlyUnknown":  {"breached beside unknown pages only", func(c *gate.Case) { c.Facts.Assessment.Reason = compare.PartlyUnknown }, held("unknown", 0, "partly-unknown")},
		"NoState":        {"a zero assessment is unknown", func(c *gate.Case) { c.Facts.Assessment = compare.Assessment{} }, held("unknown", 0, "no measurement")},
		"Met":            {"nothing to do", func(c *gate.Case) { c.Facts.Assessment.State, c.Facts.Assessment.Reason = compare.Met, "" }, held("not-breached", 0, "")},
		"Recovering":     {"the judge window is good", func(c *gate.Case) { c.Facts.Assessment.Reason = compare.Recovering }, held("recovering", 0, "")},
		"BreachFor":      {"a further debounce", func(c *gate.Case) { c.Service.Remediation.BreachFor = 5 * time.Minute }, held("breach-for", time.Minute, "breached for 4m0s of 5m0s")},
		"BreachForUnset": {"an unknown beginning is not long ago", func(c *gate.Case) { c.Service.Remediation.BreachFor, c.Facts.Since = time.Second, time.Time{} }, held("breach-for", 0, "unknown time")},
		"SpecProblem":    {"never met since loaded", func(c *gate.Case) { c.Facts.SpecProblem = "never met" }, held("spec-problem", 0, "never met")},
		"FreshReads":     {"a young process", func(c *gate.Case) { c.Facts.FreshReads = 1 }, held("two-fresh-reads", 0, "1 of 2")},
		"SilencesUnread": {"a guard that cannot be read holds", func(c *gate.Case) { c.Facts.SilencesUnreadable = "connection refused" }, held("silences-unreadable", 0, "connection refused")},
		"Silence":        {"people know already", func(c *gate.Case) { c.Facts.Silences = []gate.Hold{{ID: "s1", By: "bob", Until: hour}} }, held("silence", time.Hour, "silenced in Alertmanager (s1) by bob")},
		"Maintenance":    {"effect observe passes", func(c *gate.Case) { c.Facts.Maintenances = []gate.Hold{{ID: "nightly", Until: hour}} }, held("maintenance", time.Hour, "nightly")},
		"Dependency":     {"do not treat a symptom", func(c *gate.Case) { c.Facts.Dependencies["payments-db"] = compare.Breached }, held("dependency", 0, "payments-db is breached")},
		"DependencyLost": {"not measured is unknown", func(c *gate.Case) { c.Facts.Dependencies = nil }, held("dependency", 0, "payments-db is unknown")},
		"Clocks":         {"time cannot be trusted", func(c *gate.Case) { c.Facts.ClocksApart = "prometheus 9s behind" }, held("clocks-apart", 0, "9s behind")},
		"PolicyFault":    {"no snapshot", func(c *gate.Case) { c.Facts.PolicyFault = "gate.rego:3: syntax" }, held("policy-fault", 0, "gate.rego:3")},
		"OpenApprovals": {"nobody can read a hundred questions", func(c *gate.Case) { action(c).Class = spec.ClassApproval; c.Facts.OpenTickets = 5 },
			held("open-approvals", 0, "5 approvals are open")},

		// approval
		"BudgetSpent": {"permission is paid for", func(c *gate.Case) {
			c.Facts.Balance = budget.Balance{Remaining: 0, Capacity: 3, GlobalRemaining: 7, GlobalCapacity: 10,
				Charges: []budget.Charge{{At: now.Add(-time.Hour), Cost: 3, Outcome: compare.OutcomeNoChange}}}
		}, want{gate.Approval, false, "budget-spent", 27*24*time.Hour + 23*time.Hour, "auto refused: 3 of 3 spent on scale: no-change 3 at 2026-11-29 02:12:00Z; the dearest outcome costs 2"}},
		"BudgetShort":   {"the dearest outcome must fit", func(c *gate.Case) { c.Facts.Balance.Remaining = 1 }, want{gate.Approval, false, "budget-spent", 0, "2 of 3 spent"}},
		"BudgetFits":    {"exactly the dearest outcome fits", func(c *gate.Case) { c.Facts.Balance.Remaining = 2 }, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"BudgetGlobal":  {"both must have room", func(c *gate.Case) { c.Facts.Balance.GlobalRemaining = 1 }, want{gate.Approval, false, "budget-spent", 0, "global balance 1 of 10"}},
		"ClassApproval": {"class", func(c *gate.Case) { action(c).Class = spec.ClassApproval }, want{gate.Approval, false, "class-approval", 0, "scale has class approval"}},
		"Irreversible":  {"reversal", func(c *gate.Case) { action(c).Reversal = spec.Irreversible }, want{gate.Approval, false, "irreversible", 0, ""}},
		"NoReversal":    {"an unknown reversal is none", func(c *gate.Case) { action(c).Reversal = "" }, want{gate.Approval, false, "irreversible", 0, "scale is unknown"}},
		"Unmarked":      {"mark", func(c *gate.Case) { action(c).Target.StatusURL = "" }, want{gate.Approval, false, "unmarked", 0, "no statusURL"}},
		"Warming":       {"the long window is not covered", func(c *gate.Case) { c.Facts.Assessment.Warming, c.Facts.Assessment.WarmingUntil = true, hour }, want{gate.Approval, false, "warming", time.Hour, "warming until 2026-11-29 04:12:00Z"}},
		"Documents":     {"a fresh document", func(c *gate.Case) { c.Facts.DocumentsChangedAt = now.Add(-time.Minute) }, want{gate.Approval, false, "documents-changed", 0, "03:11:00Z"}},
		"ModeApproval":  {"mode", func(c *gate.Case) { c.Service.Remediation.Mode = spec.Approval }, want{gate.Approval, false, "mode", 0, "mode approval of the Remediation allows approval at most"}},
		"LedgerDemoted": {"demotion", func(c *gate.Case) { c.Facts.Ceiling = gate.Approval }, want{gate.Approval, false, "ledger-ceiling", 0, "demoted to approval"}},
		"Exception": {"an exception lowers the ceiling", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "checkout", Effect: spec.Approval, Until: hour, Reason: "sales"}}
		}, want{gate.Approval, false, "exception", time.Hour, "exception bf allows approval at most until 2026-11-29 04:12:00Z: sales"}},
		"ExceptionOver": {"an expired one has no effect", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "checkout", Effect: spec.Observe, Until: now}}
		}, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"ExceptionElsewhere": {"another service's", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "cart", Effect: spec.Observe, Until: hour}}
		}, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"MaintenanceApproval": {"a maintenance lowers it too", func(c *gate.Case) {
			c.Facts.Maintenances = []gate.Hold{{ID: "nightly", Until: hour, Effect: spec.Approval}}
		}, want{gate.Approval, false, "maintenance", time.Hour, "allows approval at most"}},

		// escalate
		"ClassEscalate": {"handed over", func(c *gate.Case) { action(c).Class = spec.ClassEscalate }, want{gate.Escalate, false, "class-escalate", 0, "handed over"}},
		"NoClass":       {"an unknown class is never run", func(c *gate.Case) { action(c).Class = "" }, want{gate.Escalate, false, "class-escalate", 0, "class unknown"}},
		"ModeSuggest":   {"suggest shows", func(c *gate.Case) { c.Service.Remediation.Mode = spec.Suggest }, want{gate.Escalate, false, "mode", 0, ""}},
		"NoApprovers":   {"an approval that nobody can give", func(c *gate.Case) { action(c).Class, c.Service.Remediation.Approvers = spec.ClassApproval, nil }, want{gate.Escalate, false, "no-approvers", 0, "no approvers are named"}},
		"EscalateHeld":  {"what is handed over does not wait", func(c *gate.Case) { action(c).Class, c.Facts.KeyClaimed = spec.ClassEscalate, true }, want{gate.Escalate, false, "class-escalate", 0, ""}},

		// deny
		"ModeObserve": {"observe never acts", func(c *gate.Case) { c.Service.Remediation.Mode = spec.Observe }, want{gate.Deny, false, "mode", 0, "mode observe"}},
		"MaxMode":     {"the operator's own bound", func(c *gate.Case) { c.Limits.MaxMode = spec.Observe }, want{gate.Deny, false, "max-mode", 0, "limits.maxMode observe"}},
		"LedgerDeny":  {"the zero ceiling", func(c *gate.Case) { c.Facts.Ceiling = gate.Deny }, want{gate.Deny, false, "ledger-ceiling", 0, ""}},
		"ExceptionDeny": {"effect observe", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "checkout", Until: hour}}
		}, want{gate.Deny, false, "exception", time.Hour, ""}},
		"Suspended":        {"two worsened in a row", func(c *gate.Case) { c.Facts.Suspended = "worsened twice" }, want{gate.Deny, false, "suspended", 0, "worsened twice"}},
		"PersonHold":       {"a person said no", func(c *gate.Case) { c.Facts.PersonHold = "os:alice denied t12" }, want{gate.Deny, false, "person-said-no", 0, "os:alice denied t12"}},
		"Bounds":           {"catalogue bounds", func(c *gate.Case) { c.Proposal.Parameters = propose.Parameters{"replicas": int64(19)} }, want{gate.Deny, false, "bounds", 0, "replicas"}},
		"BoundsLive":       {"a bound needs the live state", func(c *gate.Case) { c.Facts.Item = propose.Item{} }, want{gate.Deny, false, "bounds", 0, "replicas"}},
		"NotExact":         {"a number JSON cannot carry", func(c *gate.Case) { c.Proposal.Parameters = propose.Parameters{"replicas": int64(1<<53 + 1)} }, want{gate.Deny, false, "bounds", 0, "no exact form"}},
		"Ownership":        {"another controller", func(c *gate.Case) { c.Facts.Ownership = "horizontal-pod-autoscaler" }, want{gate.Deny, false, "ownership", 0, "horizontal-pod-autoscaler"}},
		"Expired":          {"the second gate", func(c *gate.Case) { c.Facts.PermitExpires = now }, want{gate.Deny, false, "permit-expired", 0, "03:12:00Z"}},
		"Digest":           {"the second gate", func(c *gate.Case) { c.Facts.PermitDigest = strings.Repeat("a", 64) }, want{gate.Deny, false, "digest-changed", 0, "claimed aaaaaaaaaaaa, now"}},
		"ForeignKey":       {"a key of another service", func(c *gate.Case) { c.Key = "cart:0-600" }, want{gate.Deny, false, "key-invalid", 0, "cart:0-600"}},
		"NoKey":            {"no key at all", func(c *gate.Case) { c.Key = "" }, want{gate.Deny, false, "key-invalid", 0, ""}},
		"UnknownAction":    {"not in the documents", func(c *gate.Case) { c.Proposal.Action = "reboot" }, want{gate.Deny, false, "unknown-action", 0, `"reboot"`}},
		"DenyHeld":         {"a final refusal does not wait", func(c *gate.Case) { c.Facts.Suspended, c.Facts.KeyClaimed = "x", true }, want{gate.Deny, false, "suspended", 0, ""}},
		"NoLimits":         {"the zero limits allow nothing", func(c *gate.Case) { c.Limits = gate.Limits{} }, want{gate.Deny, false, "max-mode", 0, ""}},
		"ProposedNone":     {"nothing to decide", func(c *gate.Case) { c.Proposal.Kind = propose.KindNone }, want{gate.Deny, false, "proposed-none", 0, ""}},
		"Malformed":        {"nothing to decide", func(c *gate.Case) { c.Proposal.Kind, c.Proposal.Fault = propose.KindMalformed, "timeout: 20s" }, want{gate.Deny, false, "malformed", 0, "timeout: 20s"}},
		"ProposedEscalate": {"handed over by the proposer", func(c *gate.Case) { c.Proposal.Kind = propose.KindEscalate }, want{gate.Escalate, false, "proposed-escalate", 0, ""}},
		"NoKind":           {"a word nobody knows", func(c *gate.Case) { c.Proposal.Kind = "" }, want{gate.Deny, false, "malformed", 0, ""}},

		// undo
		"UndoFree": {"cooldown, spacing, caps, bounds, debounce and an empty balance do not bind it", func(c *gate.Case) {
			asUndo(c)
			c.Facts.ActionSent, c.Facts.LastSent, c.Facts.SentService, c.Facts.SentGlobal = now, now, 9, 9
			c.Facts.Balance, c.Proposal.Parameters = budget.Balance{}, propose.Parameters{"replicas": int64(50)}
			c.Service.Remediation.BreachFor = time.Hour
		}, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoOfNeighbour": {"its own service may be met", func(c *gate.Case) { asUndo(c); c.Facts.Assessment.State, c.Facts.Assessment.Reason = compare.Met, "" }, want{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoMode":        {"mode binds it", func(c *gate.Case) { asUndo(c); c.Service.Remediation.Mode = spec.Observe }, want{gate.Deny, false, "mode", 0, ""}},
		"UndoFreeze":      {"a freeze binds it", func(c *gate.Case) { asUndo(c); c.Facts.Freezes = []gate.Hold{{ID: "f"}} }, held("freeze", 0, "")},
		"UndoInFlight":    {"in flight binds it", func(c *gate.Case) { asUndo(c); c.Facts.InFlight = "x" }, held("in-flight", 0, "")},
		"UndoUnknown":     {"unknown binds it", func(c *gate.Case) { asUndo(c); c.Facts.Assessment.State = compare.Unknown }, held("unknown", 0, "")},
		"UndoOwnership":   {"ownership binds it", func(c *gate.Case) { asUndo(c); c.Facts.Ownership = "hpa" }, want{gate.Deny, false, "ownership", 0, ""}},
		"UndoClaimed":     {"a model that says undo gets no exemption", func(c *gate.Case) { c.Proposal.Undo = true; c.Facts.SentService = 2 }, held("cap-service", 0, "")},
	}
	for name, tc := range cases {
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
