// Package gate decides. It takes a proposal with measured facts and reviewed
// documents, asks policy for a Ruling, and gives the binding Decision: auto,
// approval, escalate or deny, with every reason. Policy can allow less than
// the floors here, never more.
//
// The package is pure; Rego is evaluated in gate/rego.
package gate

import (
	"time"
)

// Verdict is the binding word. The zero value is Deny.
type Verdict int8

// The verdicts, strictest first, so that min is the stricter.
const (
	Deny Verdict = iota
	Escalate
	Approval
	Auto
)

var verdictWords = [...]string{"deny", "escalate", "approval", "auto"}

// String returns the word.
func (v Verdict) String() string {
	if v < Deny || v > Auto {
		return "deny"
	}
	return verdictWords[v]
}

// MarshalText returns the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a word; anything unknown is Deny.
func (v *Verdict) UnmarshalText(b []byte) error {
	*v = Deny
	for i, w := range verdictWords {
		if w == string(b) {
			*v = Verdict(i)
		}
	}
	return nil
}

// Rule is one element of a rule set that fired.
type Rule struct {
	Reason string `json:"reason"`
	// Package is where it was defined, e.g. setpoint.gate.
	Package string `json:"package"`
	Title   string `json:"title"`
	Remedy  string `json:"remedy"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	// Approvers, Quorum and Expires belong to approval rules; zero: the
	// document's.
	Approvers []string      `json:"approvers,omitempty"`
	Quorum    int           `json:"quorum,omitempty"`
	Expires   time.Duration `json:"expires,omitempty"`
}

// Ruling is what policy said of one input. The zero Ruling grants nothing.
type Ruling struct {
	// Revision is the digest of the policy snapshot.
	Revision string `json:"revision"`
	// DataDigest is the digest of the snapshot's data files alone.
	DataDigest string `json:"dataDigest,omitempty"`
	Auto       []Rule `json:"auto"`
	Approval   []Rule `json:"approval"`
	Escalate   []Rule `json:"escalate"`
	Deny       []Rule `json:"deny"`
	// Fault is a stable code (see the Fault constants), then ": " and words; a
	// Ruling with a fault grants nothing.
	Fault string `json:"fault"`
	// InputDigest is the SHA-256 (hex) of the bytes that were ruled on. When it
	// is set, Decide refuses a ruling on another input.
	InputDigest string `json:"inputDigest"`
}

// The codes that a Ruling's Fault starts with.
const (
	FaultInputInvalid  = "input-invalid"
	FaultInputTooLarge = "input-too-large"
	FaultTimeout       = "timeout"
	FaultCancelled     = "cancelled"
	FaultError         = "error"
	FaultType          = "type"
	FaultPanic         = "panic"
)

// Reason codes of floors; "policy:<reason>" are those of rules.
const (
	ReasonFreeze      = "freeze"
	ReasonKeyClaimed  = "key-claimed"
	ReasonInFlight    = "in-flight"
	ReasonUnsettled   = "unsettled"
	ReasonSpacing     = "min-spacing"
	ReasonCapService  = "cap-service"
	ReasonCapGlobal   = "cap-global"
	ReasonCooldown    = "cooldown"
	ReasonStorm       = "storm"
	ReasonUnknown     = "unknown"
	ReasonNotBreached = "not-breached"
	ReasonRecovering  = "recovering"
	ReasonBreachFor   = "breach-for"
	ReasonSpecProblem = "spec-problem"
	ReasonFreshReads  = "two-fresh-reads"
	ReasonSilence     = "silence"
	// ReasonSilencesUnreadable: nobody can tell whether somebody silenced it.
	ReasonSilencesUnreadable = "silences-unreadable"
	ReasonMaintenance        = "maintenance"
	ReasonException          = "exception"
	ReasonDependency         = "dependency"
	ReasonClock              = "clocks-apart"
	ReasonPolicyFault        = "policy-fault"
	ReasonUndefined          = "undefined"
	ReasonBudgetSpent        = "budget-spent"
	ReasonClassApproval      = "class-approval"
	ReasonClassEscalate      = "class-escalate"
	ReasonIrreversible       = "irreversible"
	ReasonUnmarked           = "unmarked"
	ReasonWarming            = "warming"
	// ReasonGrouped: the objective that is missed has groups, and the action does
	// not aim at the worst one.
	ReasonGrouped          = "grouped"
	ReasonDocumentsChanged = "documents-changed"
	ReasonMode             = "mode"
	ReasonMaxMode          = "max-mode"
	ReasonLedgerCeiling    = "ledger-ceiling"
	ReasonSuspended        = "suspended"
	ReasonBounds           = "bounds"
	ReasonOwnership        = "ownership"
	ReasonExpired          = "permit-expired"
	ReasonDigest           = "digest-changed"
	ReasonPersonHold       = "person-said-no"
	// ReasonUnanswered: nobody answered the question, which is nobody's no. It is
	// not asked again in its episode all the same.
	ReasonUnanswered    = "unanswered"
	ReasonOpenApprovals = "open-approvals"
	ReasonUnknownAction = "unknown-action"
	// ReasonProposedEscalate: the proposer handed over.
	ReasonProposedEscalate = "proposed-escalate"
	// ReasonProposedNone: the proposer had nothing to propose.
	ReasonProposedNone = "proposed-none"
	// ReasonMalformed: the proposer's reply was no proposal.
	ReasonMalformed = "malformed"
	// ReasonDeclined: the model, or its provider, would not answer.
	ReasonDeclined = "model-declined"
	// ReasonNoModel: no model answered at all.
	ReasonNoModel = "no-model"
	// ReasonInFlightTarget: another claim on the same target is unsettled.
	ReasonInFlightTarget = "in-flight-target"
	// ReasonInputTooLarge: the input exceeds MaxInput, so no policy saw it.
	ReasonInputTooLarge = "input-too-large"
	// ReasonInput: no input could be made of the facts, or the ruling is on
	// another input.
	ReasonInput = "input-invalid"
	// ReasonKey: the key is not one of this service.
	ReasonKey = "key-invalid"
	// ReasonApproved: people approved it, so it is not auto and costs nothing.
	ReasonApproved = "approved-ticket"
	// ReasonNoApprovers: an approval is needed that nobody can give.
	ReasonNoApprovers = "no-approvers"
	// ReasonNeedsChanged: an approval is needed now that the ticket did not ask
	// for.
	ReasonNeedsChanged = "needs-changed"
	// ReasonOscillation: it would turn round what was done a moment ago.
	ReasonOscillation = "oscillation"
	// ReasonFight: somebody else keeps reverting what we write.
	ReasonFight = "fight"
	// ReasonRepeat: the action keeps buying time.
	ReasonRepeat = "repeat"
	// ReasonForeignChange: an undo's target holds something else than we wrote.
	ReasonForeignChange = "foreign-change"
	// ReasonLiveUnknown: an undo's target cannot be asked what it holds.
	ReasonLiveUnknown = "live-unknown"
	// PolicyPrefix comes before the reasons of rules.
	PolicyPrefix = "policy:"
)

// Reason is one part of a decision: a stable code with words and, where it
// helps, the time at which it passes by itself.
type Reason struct {
	Code string    `json:"code"`
	Text string    `json:"text"`
	At   time.Time `json:"until,omitzero"`
}

// Decision is the binding answer for one proposal.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Hold: nothing but passing floors (or a policy that is silent beside
	// them) is in the way. The verdict is then deny, and the same proposal is
	// judged again next pass. A refusal that time alone does not lift, and an
	// escalate, are final: Hold is false whatever else passes.
	Hold bool `json:"hold"`
	// Reasons hold every rule and floor that fired, strictest first: deny,
	// escalate, hold, approval, auto. Within one effect floors come before
	// rules, floors in the fixed order of the code, rules by reason.
	Reasons []Reason `json:"reasons"`
	Ruling  Ruling   `json:"ruling"`
	Key     Key      `json:"key"`
	Digest  string   `json:"digest"`
	// InputDigest is the SHA-256 of the exact bytes that policy saw.
	InputDigest string `json:"inputDigest"`
	// Needs are the approvals that all must be satisfied; empty unless Verdict
	// is Approval.
	Needs []Need `json:"needs,omitempty"`
	// Cost is what a claim by verdict auto would be charged.
	Cost float64 `json:"cost"`

	permit permitFields
}

// Need is one group of people that must approve.
type Need struct {
	Reason    string        `json:"reason"`
	Approvers []string      `json:"approvers"`
	Quorum    int           `json:"quorum"`
	Expires   time.Duration `json:"expires"`
}
