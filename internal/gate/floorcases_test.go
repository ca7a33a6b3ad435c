package gate_test

import (
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// floorCase is one change of granted, and what it leads to under a policy that
// allows everything.
type floorCase struct {
	reason string
	change func(c *gate.Case)
	want   floorWant
}

type floorWant struct {
	verdict gate.Verdict
	hold    bool
	// first is the strictest reason.
	first string
	// at is when it passes, relative to now; zero: not by time alone.
	at time.Duration
	// text is what a person must be able to read.
	text string
}

func floorCases() map[string]floorCase {
	hour := now.Add(time.Hour)
	held := func(code string, at time.Duration, text string) floorWant {
		return floorWant{gate.Deny, true, code, at, text}
	}
	return map[string]floorCase{
		"Granted": {"nothing is in the way", func(*gate.Case) {}, floorWant{gate.Auto, false, "policy:reversible", 0, "Reversible actions run (class.rego:12)"}},

		// hold
		"Freeze":         {"a person stopped it", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1", By: "os:alice", Text: "migration"}} }, held("freeze", 0, "frozen (f1) by os:alice: migration")},
		"FreezeUntil":    {"a freeze with an end says it", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1", Until: hour}} }, held("freeze", time.Hour, "until 2026-11-29 04:12:00Z")},
		"FreezeOver":     {"an ended freeze binds nothing", func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1", Until: now}} }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"KeyClaimed":     {"one effect per key", func(c *gate.Case) { c.Facts.KeyClaimed = true }, held("key-claimed", 8*time.Minute, "one effect per window")},
		"InFlight":       {"an effect is not settled", func(c *gate.Case) { c.Facts.InFlight = "d41 scale" }, held("in-flight", 0, "d41 scale")},
		"InFlightTarget": {"two services, one target", func(c *gate.Case) { c.Facts.InFlightTarget = "d42 of cart" }, held("in-flight-target", 0, "d42 of cart")},
		"Spacing":        {"minSpacing from the time of sending", func(c *gate.Case) { c.Facts.LastSent = now.Add(-30 * time.Second) }, held("min-spacing", 90*time.Second, "30s ago, minSpacing is 2m0s")},
		"SpacingOver":    {"the boundary itself is free", func(c *gate.Case) { c.Facts.LastSent = now.Add(-2 * time.Minute) }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"CapService":     {"rolling cap", func(c *gate.Case) { c.Facts.SentService = 2 }, held("cap-service", 0, "2 effects on this service in the last hour, effectsPerServicePerHour is 2")},
		"CapGlobal":      {"rolling cap", func(c *gate.Case) { c.Facts.SentGlobal = 6 }, held("cap-global", 0, "6 effects in the last hour")},
		"Cooldown":       {"from the time of sending", func(c *gate.Case) { c.Facts.ActionSent = now.Add(-4 * time.Minute) }, held("cooldown", 6*time.Minute, "scale was sent 4m0s ago, its cooldown is 10m0s")},
		"Storm":          {"a shared cause", func(c *gate.Case) { c.Facts.Storm = "31 of 40 services are breached" }, held("storm", 0, "storm brake: 31 of 40")},
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

		"UndoBlind": {"what cannot be seen is not taken back", func(c *gate.Case) { asUndo(c); c.Facts.Item.LiveKnown = false }, held("live-unknown", 0, "checkout:1795922400-600")},

		// approval
		"BudgetSpent": {"permission is paid for", func(c *gate.Case) {
			c.Facts.Balance = budget.Balance{Remaining: 0, Capacity: 3, GlobalRemaining: 7, GlobalCapacity: 10,
				Charges: []budget.Charge{{At: now.Add(-time.Hour), Cost: 3, Outcome: compare.OutcomeNoChange}}}
		}, floorWant{gate.Approval, false, "budget-spent", 27*24*time.Hour + 23*time.Hour, "auto refused: 3 of 3 spent on scale: no-change 3 at 2026-11-29 02:12:00Z; the dearest outcome costs 2"}},
		"BudgetShort":   {"the dearest outcome must fit", func(c *gate.Case) { c.Facts.Balance.Remaining = 1 }, floorWant{gate.Approval, false, "budget-spent", 0, "2 of 3 spent"}},
		"BudgetFits":    {"exactly the dearest outcome fits", func(c *gate.Case) { c.Facts.Balance.Remaining = 2 }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"BudgetGlobal":  {"both must have room", func(c *gate.Case) { c.Facts.Balance.GlobalRemaining = 1 }, floorWant{gate.Approval, false, "budget-spent", 0, "global balance 1 of 10"}},
		"ClassApproval": {"class", func(c *gate.Case) { action(c).Class = spec.ClassApproval }, floorWant{gate.Approval, false, "class-approval", 0, "scale has class approval"}},
		"Irreversible":  {"reversal", func(c *gate.Case) { action(c).Reversal = spec.Irreversible }, floorWant{gate.Approval, false, "irreversible", 0, ""}},
		"Unseen": {"what was there could not be restored", func(c *gate.Case) {
			c.Facts.Item.LiveKnown = false
			action(c).Parameters[0].MaximumFactor = 0
		}, floorWant{gate.Approval, false, "irreversible", 0, "replicas of the target could not be observed"}},
		"NoReversal":    {"an unknown reversal is none", func(c *gate.Case) { action(c).Reversal = "" }, floorWant{gate.Approval, false, "irreversible", 0, "scale is unknown"}},
		"Unmarked":      {"mark", func(c *gate.Case) { action(c).Target.StatusURL = "" }, floorWant{gate.Approval, false, "unmarked", 0, "no statusURL"}},
		"Warming":       {"the long window is not covered", func(c *gate.Case) { c.Facts.Assessment.Warming, c.Facts.Assessment.WarmingUntil = true, hour }, floorWant{gate.Approval, false, "warming", time.Hour, "warming until 2026-11-29 04:12:00Z"}},
		"Documents":     {"a fresh document", func(c *gate.Case) { c.Facts.DocumentsChangedAt = now.Add(-time.Minute) }, floorWant{gate.Approval, false, "documents-changed", 0, "03:11:00Z"}},
		"ModeApproval":  {"mode", func(c *gate.Case) { c.Service.Remediation.Mode = spec.Approval }, floorWant{gate.Approval, false, "mode", 0, "mode approval of the Remediation allows approval at most"}},
		"LedgerDemoted": {"demotion", func(c *gate.Case) { c.Facts.Ceiling = gate.Approval }, floorWant{gate.Approval, false, "ledger-ceiling", 0, "demoted to approval"}},
		"Exception": {"an exception lowers the ceiling", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "checkout", Effect: spec.Approval, Until: hour, Reason: "sales"}}
		}, floorWant{gate.Approval, false, "exception", time.Hour, "exception bf allows approval at most until 2026-11-29 04:12:00Z: sales"}},
		"ExceptionOver": {"an expired one has no effect", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "checkout", Effect: spec.Observe, Until: now}}
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"ExceptionElsewhere": {"another service's", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "cart", Effect: spec.Observe, Until: hour}}
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"MaintenanceApproval": {"a maintenance lowers it too", func(c *gate.Case) {
			c.Facts.Maintenances = []gate.Hold{{ID: "nightly", Until: hour, Effect: spec.Approval}}
		}, floorWant{gate.Approval, false, "maintenance", time.Hour, "allows approval at most"}},

		// escalate
		"ClassEscalate": {"handed over", func(c *gate.Case) { action(c).Class = spec.ClassEscalate }, floorWant{gate.Escalate, false, "class-escalate", 0, "handed over"}},
		"NoClass":       {"an unknown class is never run", func(c *gate.Case) { action(c).Class = "" }, floorWant{gate.Escalate, false, "class-escalate", 0, "class unknown"}},
		"ModeSuggest":   {"suggest shows", func(c *gate.Case) { c.Service.Remediation.Mode = spec.Suggest }, floorWant{gate.Escalate, false, "mode", 0, ""}},
		"NoApprovers":   {"an approval that nobody can give", func(c *gate.Case) { action(c).Class, c.Service.Remediation.Approvers = spec.ClassApproval, nil }, floorWant{gate.Escalate, false, "no-approvers", 0, "no approvers are named"}},
		"EscalateHeld":  {"what is handed over does not wait", func(c *gate.Case) { action(c).Class, c.Facts.KeyClaimed = spec.ClassEscalate, true }, floorWant{gate.Escalate, false, "class-escalate", 0, ""}},

		"Oscillation":    {"what was done a moment ago is not turned round", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{sent("scale", time.Hour, 6, 4)} }, floorWant{gate.Escalate, false, "oscillation", 0, "put back what scale replaced 1h0m0s ago"}},
		"OscillationWay": {"a number that went down does not go up", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{sent("scale", time.Hour, 9, 4)} }, floorWant{gate.Escalate, false, "oscillation", 0, "moved replicas one way"}},
		"OscillationABA": {"A, B, A", func(c *gate.Case) {
			c.Facts.Sent = []gate.Sent{sent("scale", 90*time.Minute, 4, 6), sent("drain", time.Hour, 0, 4)}
			c.Facts.Sent[1].Before = nil
		}, floorWant{gate.Escalate, false, "oscillation", 0, "set again what scale set 1h30m0s ago"}},
		"OscillationOld": {"beyond the horizon it is another story", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{sent("scale", 2*time.Hour, 6, 4)} }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"OscillationOther": {"another target", func(c *gate.Case) {
			s := sent("scale", time.Hour, 6, 4)
			s.Target = "elsewhere"
			c.Facts.Sent = []gate.Sent{s}
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"Again": {"the same again is no oscillation", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{sent("scale", time.Hour, 4, 6)} }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"Fight": {"two reverts are not an accident", func(c *gate.Case) {
			c.Facts.Sent = []gate.Sent{sent("scale", 5*time.Hour, 4, 6), sent("scale", 4*time.Hour, 4, 6)}
		}, floorWant{gate.Escalate, false, "fight", 0, "reverted our change 2 times"}},
		"FightOnce": {"one may be", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{sent("scale", 5*time.Hour, 4, 6)} }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"FightUnseen": {"what was not seen is no revert", func(c *gate.Case) {
			c.Facts.Sent = []gate.Sent{sent("scale", 5*time.Hour, 4, 6), sent("scale", 4*time.Hour, 4, 6)}
			c.Facts.Sent[1].Before = nil
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"FightAutoscaler": {"what only moves on fights nobody", func(c *gate.Case) {
			c.Facts.Sent = []gate.Sent{sent("scale", 6*time.Hour, 4, 6), sent("scale", 5*time.Hour, 7, 9), sent("scale", 4*time.Hour, 10, 14)}
			c.Facts.Item.Live, c.Proposal.Parameters = propose.Live{"replicas": int64(13)}, propose.Parameters{"replicas": int64(15)}
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"FightHalfWay": {"half of the way back is a revert", func(c *gate.Case) {
			c.Facts.Sent = []gate.Sent{sent("scale", 5*time.Hour, 4, 8), sent("scale", 4*time.Hour, 6, 10)}
			c.Facts.Item.Live, c.Proposal.Parameters = propose.Live{"replicas": int64(8)}, propose.Parameters{"replicas": int64(10)}
		}, floorWant{gate.Escalate, false, "fight", 0, "found at replicas 6"}},
		"FightPinned": {"whoever writes a third value each time fights too", func(c *gate.Case) {
			c.Facts.Sent = []gate.Sent{sent("scale", 6*time.Hour, 9, 6), sent("scale", 5*time.Hour, 5, 6), sent("scale", 4*time.Hour, 5, 6)}
			c.Facts.Item.Live = propose.Live{"replicas": int64(5)}
		}, floorWant{gate.Escalate, false, "fight", 0, "reverted our change 2 times"}},
		"Repeat": {"the third time in a day is a backlog item", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{bought(10 * time.Hour), bought(5 * time.Hour)} },
			floorWant{gate.Escalate, false, "repeat", 0, "bought time 2 times in a day, at 2026-11-28 17:12:00Z, 2026-11-28 22:12:00Z (5h0m0s later); now, 5h0m0s later"}},
		"RepeatDay": {"a day later it may help again", func(c *gate.Case) { c.Facts.Sent = []gate.Sent{bought(24 * time.Hour), bought(5 * time.Hour)} }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"RepeatLuck": {"what recovered by itself bought nothing", func(c *gate.Case) {
			s := bought(10 * time.Hour)
			s.Recovering = true
			c.Facts.Sent = []gate.Sent{s, bought(5 * time.Hour)}
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"RepeatWithin": {"within one episode it is not a repeat", func(c *gate.Case) {
			s := bought(time.Hour)
			s.Episode = c.Facts.Episode
			c.Facts.Sent = []gate.Sent{bought(10 * time.Hour), s}
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"ForeignChange": {"somebody else's change is not taken back", func(c *gate.Case) { asUndo(c); c.Facts.Item.Live = propose.Live{"replicas": int64(9)} },
			floorWant{gate.Escalate, false, "foreign-change", 0, "replicas 5, found 9"}},
		"UndoOfNothing": {"an undo takes back something that is known", func(c *gate.Case) { asUndo(c); c.Facts.Undoes = nil }, floorWant{gate.Deny, false, "foreign-change", 0, ""}},
		"UndoSwings":    {"an undo is the opposite of an action, and no oscillation", func(c *gate.Case) { asUndo(c); c.Facts.Sent = []gate.Sent{sent("scale", time.Hour, 6, 4)} }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},

		// deny
		"ModeObserve":     {"observe never acts", func(c *gate.Case) { c.Service.Remediation.Mode = spec.Observe }, floorWant{gate.Deny, false, "mode", 0, "mode observe"}},
		"MaxMode":         {"the operator's own bound", func(c *gate.Case) { c.Limits.MaxMode = spec.Observe }, floorWant{gate.Deny, false, "max-mode", 0, "limits.maxMode observe"}},
		"MaxModeApproval": {"a bound below auto", func(c *gate.Case) { c.Limits.MaxMode = spec.Approval }, floorWant{gate.Approval, false, "max-mode", 0, "limits.maxMode approval"}},
		"LedgerDeny":      {"the zero ceiling", func(c *gate.Case) { c.Facts.Ceiling = gate.Deny }, floorWant{gate.Deny, false, "ledger-ceiling", 0, ""}},
		"ExceptionDeny": {"effect observe", func(c *gate.Case) {
			c.Facts.Exceptions = []spec.Exception{{Name: "bf", Service: "checkout", Until: hour}}
		}, floorWant{gate.Deny, false, "exception", time.Hour, ""}},
		"Suspended":  {"two worsened in a row", func(c *gate.Case) { c.Facts.Suspended = "worsened twice" }, floorWant{gate.Deny, false, "suspended", 0, "worsened twice"}},
		"PersonHold": {"a person said no", func(c *gate.Case) { c.Facts.PersonHold = "os:alice denied t12" }, floorWant{gate.Deny, false, "person-said-no", 0, "os:alice denied t12"}},
		"Unanswered": {"silence is nobody's no, and says so", func(c *gate.Case) { c.Facts.Unanswered = "t12 (scale)" }, floorWant{gate.Deny, false, "unanswered", 0,
			"nobody answered t12 (scale) in time; scale is not asked again in this episode: act by hand, or wait for a new episode"}},
		"UnansweredAndDenied": {"a no weighs more than a silence", func(c *gate.Case) { c.Facts.PersonHold, c.Facts.Unanswered = "t12 was denied", "t13 (scale)" }, floorWant{gate.Deny, false, "person-said-no", 0, "t12"}},
		"Bounds":              {"catalogue bounds", func(c *gate.Case) { c.Proposal.Parameters = propose.Parameters{"replicas": int64(19)} }, floorWant{gate.Deny, false, "bounds", 0, "replicas"}},
		"BoundsLive":          {"a bound needs the live state", func(c *gate.Case) { c.Facts.Item = propose.Item{} }, floorWant{gate.Deny, false, "bounds", 0, "replicas"}},
		"NotExact":            {"a number JSON cannot carry", func(c *gate.Case) { c.Proposal.Parameters = propose.Parameters{"replicas": int64(1<<53 + 1)} }, floorWant{gate.Deny, false, "bounds", 0, "no exact form"}},
		"Ownership":           {"another controller", func(c *gate.Case) { c.Facts.Ownership = "horizontal-pod-autoscaler" }, floorWant{gate.Deny, false, "ownership", 0, "horizontal-pod-autoscaler"}},
		"Expired":             {"the second gate", func(c *gate.Case) { c.Facts.PermitExpires = now }, floorWant{gate.Deny, false, "permit-expired", 0, "03:12:00Z"}},
		"Digest":              {"the second gate", func(c *gate.Case) { c.Facts.PermitDigest = strings.Repeat("a", 64) }, floorWant{gate.Deny, false, "digest-changed", 0, "claimed aaaaaaaaaaaa, now"}},
		"ForeignKey":          {"a key of another service", func(c *gate.Case) { c.Key = "cart:0-600" }, floorWant{gate.Deny, false, "key-invalid", 0, "cart:0-600"}},
		"NoKey":               {"no key at all", func(c *gate.Case) { c.Key = "" }, floorWant{gate.Deny, false, "key-invalid", 0, ""}},
		"UnknownAction":       {"not in the documents", func(c *gate.Case) { c.Proposal.Action = "reboot" }, floorWant{gate.Deny, false, "unknown-action", 0, `"reboot"`}},
		"DenyHeld":            {"a final refusal does not wait", func(c *gate.Case) { c.Facts.Suspended, c.Facts.KeyClaimed = "x", true }, floorWant{gate.Deny, false, "suspended", 0, ""}},
		"NoLimits":            {"the zero limits allow nothing", func(c *gate.Case) { c.Limits = gate.Limits{} }, floorWant{gate.Deny, false, "max-mode", 0, ""}},
		"ProposedNone":        {"nothing to decide", func(c *gate.Case) { c.Proposal.Kind = propose.KindNone }, floorWant{gate.Deny, false, "proposed-none", 0, ""}},
		"Malformed": {"nothing to decide", func(c *gate.Case) {
			c.Proposal.Kind, c.Proposal.Fault = propose.KindMalformed, "malformed: unknown action \"obey me\""
		}, floorWant{gate.Deny, false, "malformed", 0, "the reply was no proposal: the answer is no valid proposal"}},
		"Declined": {"its words are not ours", func(c *gate.Case) {
			c.Proposal.Kind, c.Proposal.Fault = propose.KindMalformed, "refusal: endpoint main: obey me"
		}, floorWant{gate.Deny, false, "model-declined", 0, "the model declined"}},
		"NoModel":          {"nothing to decide", func(c *gate.Case) { c.Proposal.Kind, c.Proposal.Fault = propose.KindMalformed, "timeout: 20s" }, floorWant{gate.Deny, false, "no-model", 0, "no model answered: no answer came in time"}},
		"ProposedEscalate": {"handed over by the proposer", func(c *gate.Case) { c.Proposal.Kind = propose.KindEscalate }, floorWant{gate.Escalate, false, "proposed-escalate", 0, ""}},
		"NoKind":           {"a word nobody knows", func(c *gate.Case) { c.Proposal.Kind = "" }, floorWant{gate.Deny, false, "malformed", 0, ""}},

		// undo
		"UndoFree": {"cooldown, spacing, caps, bounds, debounce and an empty balance do not bind it", func(c *gate.Case) {
			asUndo(c)
			c.Facts.ActionSent, c.Facts.LastSent, c.Facts.SentService, c.Facts.SentGlobal = now, now, 9, 9
			c.Facts.Balance, c.Proposal.Parameters = budget.Balance{}, propose.Parameters{"replicas": int64(50)}
			c.Service.Remediation.BreachFor = time.Hour
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoOfNeighbour": {"its own service may be met", func(c *gate.Case) { asUndo(c); c.Facts.Assessment.State, c.Facts.Assessment.Reason = compare.Met, "" }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoSpec":        {"documents that changed since do not keep it", func(c *gate.Case) { asUndo(c); c.Facts.SpecProblem = "never met" }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoSuspended": {"nor does what is held against the action", func(c *gate.Case) {
			asUndo(c)
			c.Facts.Suspended, c.Facts.PersonHold, c.Facts.Unanswered = "worsened twice", "t12 was denied", "t13 (scale)"
		}, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoDependency": {"nor does a dependency, which may be what the action has hurt", func(c *gate.Case) { asUndo(c); c.Facts.Dependencies["payments-db"] = compare.Breached }, floorWant{gate.Auto, false, "policy:reversible", 0, ""}},
		"UndoMode":       {"mode binds it", func(c *gate.Case) { asUndo(c); c.Service.Remediation.Mode = spec.Observe }, floorWant{gate.Deny, false, "mode", 0, ""}},
		"UndoFreeze":     {"a freeze binds it", func(c *gate.Case) { asUndo(c); c.Facts.Freezes = []gate.Hold{{ID: "f"}} }, held("freeze", 0, "")},
		"UndoInFlight":   {"in flight binds it", func(c *gate.Case) { asUndo(c); c.Facts.InFlight = "x" }, held("in-flight", 0, "")},
		"UndoUnknown":    {"unknown binds it", func(c *gate.Case) { asUndo(c); c.Facts.Assessment.State = compare.Unknown }, held("unknown", 0, "")},
		"UndoOwnership":  {"ownership binds it", func(c *gate.Case) { asUndo(c); c.Facts.Ownership = "hpa" }, floorWant{gate.Deny, false, "ownership", 0, ""}},
		"UndoClaimed":    {"a model that says undo gets no exemption", func(c *gate.Case) { c.Proposal.Undo = true; c.Facts.SentService = 2 }, held("cap-service", 0, "")},
	}
}

// sent is a write of the case's target that long ago.
func sent(action string, before time.Duration, from, to int64) gate.Sent {
	c := granted()
	return gate.Sent{
		Service: "checkout", Action: action, Target: c.Service.Remediation.Actions[0].Canonical(), Reversal: spec.Restore,
		Parameters: propose.Parameters{"replicas": to}, Before: propose.Live{"replicas": from}, At: now.Add(-before),
		Outcome: compare.OutcomeNoChange, Episode: "e1",
	}
}

// bought is an earlier run of the case's action that helped, for a while.
func bought(before time.Duration) gate.Sent {
	s := sent("scale", before, 4, 6)
	s.Reversal, s.Outcome = spec.Transient, compare.OutcomeRecovered
	return s
}
