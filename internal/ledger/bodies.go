package ledger

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Kind is the kind of an entry. The list is append-only: it is on disk.
type Kind string

// The kinds, each with the body of the same name.
const (
	KindInit      Kind = "init"
	KindDocuments Kind = "documents"
	KindGap       Kind = "gap"
	KindState     Kind = "state"
	KindRecovered Kind = "recovered"
	KindAsked     Kind = "asked"
	KindProposal  Kind = "proposal"
	KindDecision  Kind = "decision"
	KindTicket    Kind = "ticket"
	KindAnswer    Kind = "answer"
	KindTicketEnd Kind = "ticket-end"
	KindClaim     Kind = "claim"
	KindStarted   Kind = "started"
	KindVoid      Kind = "void"
	KindReceipt   Kind = "receipt"
	KindSettled   Kind = "settled"
	KindOutcome   Kind = "outcome"
	KindFreeze    Kind = "freeze"
	KindThaw      Kind = "thaw"
	KindPage      Kind = "page"
	KindPageEnd   Kind = "page-end"
	KindDelivery  Kind = "delivery"
	KindAck       Kind = "ack"
	KindReset     Kind = "reset"
	// KindCheckpoint names a fold of everything up to a position.
	KindCheckpoint Kind = "checkpoint"
	KindLowered    Kind = "lowered"
	KindAdopted    Kind = "adopted"
	KindCeiling    Kind = "ceiling"
	KindPolicy     Kind = "policy"
	KindStorm      Kind = "storm"
	KindChange     Kind = "change"
	// KindCard is what a channel is known to hold of a ticket's card.
	KindCard Kind = "card"
)

// Init is the first entry of a chain.
type Init struct {
	Version int    `json:"version"`
	By      string `json:"by"`
}

// Documents records the digests that were loaded: each service's, by name.
type Documents struct {
	Set      string            `json:"set"`
	Services map[string]string `json:"services"`
}

// Gap says that nobody watched, all services or the entry's one: a start, or a
// look more than two sweeps after the last ended. It restarts holdFor.
type Gap struct {
	Why string `json:"why"`
}

// StateChange is a change of a service's state or of its reason class. Its
// entry id names the episode when it leaves Met.
type StateChange struct {
	From        compare.State  `json:"from"`
	To          compare.State  `json:"to"`
	Reason      compare.Reason `json:"reason"`
	SourceFault string         `json:"sourceFault,omitempty"`
	SampleAt    time.Time      `json:"sampleAt,omitzero"`
	// ErrorRatio is the worst objective's judge error ratio, for people.
	ErrorRatio float64 `json:"errorRatio"`
	// By is the process that read it: another one's fresh reading is not
	// overruled at once.
	By string `json:"by,omitempty"`
}

// Recovered ends an episode: Met for holdFor.
type Recovered struct {
	Episode string `json:"episode"`
}

// Asked precedes the call of a proposer. Unique per service and window.
type Asked struct {
	Window   string           `json:"window"`
	Episode  string           `json:"episode"`
	Proposer propose.Proposer `json:"proposer"`
	// Deadline is when an ask without a proposal counts as malformed.
	Deadline time.Time `json:"deadline"`
}

// Proposed is the one proposal of a service and window, recorded before it is
// judged. Unique per service and window.
type Proposed struct {
	Window   string           `json:"window"`
	Episode  string           `json:"episode"`
	Proposal propose.Proposal `json:"proposal"`
	// Request and Reply are digests of blobs; "" without. Of several exchanges
	// they are the last one's.
	Request string `json:"request"`
	Reply   string `json:"reply"`
	// Exchanges are all that was sent to models, in order; empty for rules.
	Exchanges []Exchange `json:"exchanges,omitempty"`
}

// Exchange is one request to one endpoint, and what came back.
type Exchange struct {
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
	Mode     string `json:"mode"`
	Repair   bool   `json:"repair,omitempty"`
	// Result is "ok" or the code of a fault.
	Result      string  `json:"result"`
	Status      int     `json:"status,omitempty"`
	TookSeconds float64 `json:"tookSeconds"`
	// InputTokens and OutputTokens are the endpoint's own count.
	InputTokens  int `json:"inputTokens"`
	OutputTokens int `json:"outputTokens"`
	// Request and Reply are digests of blobs; "" without.
	Request string `json:"request"`
	Reply   string `json:"reply"`
}

// Changed is an entry of the change feed that was posted to this agent; the
// service is the entry's.
type Changed struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"`
	Version string    `json:"version"`
	By      string    `json:"by"`
}

// Decided is a judged proposal. It is appended when it differs from the last
// one of the same window.
type Decided struct {
	Window   string           `json:"window"`
	Episode  string           `json:"episode"`
	Key      gate.Key         `json:"key"`
	Step     string           `json:"step"`
	Proposal propose.Proposal `json:"proposal"`
	Decision gate.Decision    `json:"decision"`
	// State and Reason are those of the assessment that was judged.
	State  compare.State  `json:"state"`
	Reason compare.Reason `json:"reason"`
	Mode   spec.Mode      `json:"mode"`
	// Floors is the digest of the blob of gate.Floors, as JSON; "" where there
	// was nothing to rule on.
	Floors string `json:"floors,omitempty"`
	// Shadow is what the shadow policy would have led to; nil without one.
	Shadow *Shadow `json:"shadow,omitempty"`
}

// Shadow is a decision that binds nobody: the same floors, joined with the
// ruling of another policy on the same input.
type Shadow struct {
	Revision string       `json:"revision"`
	Verdict  gate.Verdict `json:"verdict"`
	Hold     bool         `json:"hold"`
	// Reasons are codes, in the order of gate.Decision.Reasons.
	Reasons []string `json:"reasons"`
	// Differs: verdict, hold or approvals are not those of the binding decision.
	Differs bool `json:"differs"`
	// Fault is why the shadow policy could not rule; "" when it did.
	Fault string `json:"fault,omitempty"`
}

// Policy says with which policy decisions are made from now on. The bundle is
// the entry's blob, named by its revision.
type Policy struct {
	Revision string `json:"revision"`
	// Data is the digest of the bundle's data files.
	Data string `json:"data"`
	// Shadow: it is the shadow policy's.
	Shadow bool `json:"shadow"`
}

// TicketEnd ends a ticket other than by an answer.
type TicketEnd struct {
	Ticket string        `json:"ticket"`
	State  approve.State `json:"state"`
	Reason string        `json:"reason"`
}

// Claim reserves a key, durably and for ever, before anything is sent. It
// carries what later passes need even when the documents change.
type Claim struct {
	Key      gate.Key `json:"key"`
	Decision string   `json:"decision"`
	Episode  string   `json:"episode"`
	Ticket   string   `json:"ticket"`
	Digest   string   `json:"digest"`
	// Target is the canonical target that stays locked until the outcome.
	Target     string             `json:"target"`
	Action     spec.Action        `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
	// Live is the state observed at the claim, for an undo.
	Live propose.Live `json:"live"`
	Undo bool         `json:"undo"`
	// Undoes is the key of the effect that an undo takes back; "" otherwise.
	Undoes  gate.Key     `json:"undoes,omitempty"`
	Verdict gate.Verdict `json:"verdict"`
	// Charge is the dearest outcome's cost; 0 unless the verdict was auto.
	Charge  float64    `json:"charge"`
	Costs   spec.Costs `json:"costs"`
	Expires time.Time  `json:"expires"`
	// State is the recorded assessment's, so that "acted on unknown" can be
	// counted from the chain alone.
	State compare.State `json:"state"`
	// HoldFor and UnknownFor are the Remediation's at the claim.
	HoldFor    time.Duration `json:"holdFor"`
	UnknownFor time.Duration `json:"unknownFor"`
	// Promised is what the outcome is judged by, whatever the documents say later;
	// empty in a claim from before there was one.
	Promised []compare.Promise `json:"promised,omitempty"`
}

// Started is durable before the first byte leaves.
type Started struct {
	Key gate.Key `json:"key"`
}

// Void ends a claim that was never started; the charge is refunded and the
// window stays spent.
type Void struct {
	Key    gate.Key `json:"key"`
	Reason string   `json:"reason"`
}

// Receipt is the actuator's answer.
type Receipt struct {
	Key     gate.Key        `json:"key"`
	Receipt execute.Receipt `json:"receipt"`
}

// Settled ends an in-doubt effect, once.
type Settled struct {
	Key    gate.Key       `json:"key"`
	Effect execute.Effect `json:"effect"`
	// AppliedAt is the horizon for landed.
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
}

// Outcome is what measurement says, once per effect; it replaces the charge.
type Outcome struct {
	Key       gate.Key          `json:"key"`
	Judgement compare.Judgement `json:"judgement"`
	Cost      float64           `json:"cost"`
}

// Freeze stops everything, or one service. The file of that id outranks it.
type Freeze struct {
	ID      string    `json:"id"`
	Service string    `json:"service"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Until   time.Time `json:"until,omitzero"`
	At      time.Time `json:"at"`
}

// Thaw lifts a freeze.
type Thaw struct {
	ID     string `json:"id"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// PageEnd ends a page.
type PageEnd struct {
	Page   string `json:"page"`
	Reason string `json:"reason"`
}

// Ack says that a person has seen a page.
type Ack struct {
	Page string `json:"page"`
	By   string `json:"by"`
	// Via is cli, web, slack or the name of the receiver; "" in old entries.
	Via string `json:"via,omitempty"`
}

// Reset is a named person's reset of a budget and suspension.
type Reset struct {
	Action string    `json:"action"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Until  time.Time `json:"until,omitzero"`
}

// Checkpoint says that folding the chain up to At gives the state whose bytes
// are the blob State. It saves time and decides nothing: whoever doubts it folds
// the chain.
type Checkpoint struct {
	At    Position `json:"at"`
	State string   `json:"state"`
}

// Lowered ends the consequences of a clock that ran ahead: the chain goes on
// with the present time, and the mark of the entry's service is set back to a
// window. Keys that were claimed stay claimed.
type Lowered struct {
	// To is the window; "" in an entry without a service.
	To     string `json:"to"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Adopted says that a named person goes on with a chain that is older than what
// this host has seen of it, or another one. Nobody knows which keys were
// claimed in what is lost, so every window that began until then is spent.
type Adopted struct {
	// Seen is the newest position that is lost.
	Seen   Position `json:"seen"`
	By     string   `json:"by"`
	Reason string   `json:"reason"`
}

// Ceiling is the highest verdict that an action ("" for all of the service) may
// get from now on, until Until if that is set.
type Ceiling struct {
	Action string       `json:"action"`
	To     gate.Verdict `json:"to"`
	By     string       `json:"by"`
	Reason string       `json:"reason"`
	Until  time.Time    `json:"until,omitzero"`
}

// PageBody is the body of KindPage: the page as it should be from now on.
type PageBody = escalate.Page

// DeliveryBody is the body of KindDelivery.
type DeliveryBody = escalate.Delivery

// TicketBody is the body of KindTicket. Its ID is set by the fold.
type TicketBody = approve.Ticket

// CardBody is the body of KindCard.
type CardBody = approve.Posted

// AnswerBody is the body of KindAnswer.
type AnswerBody = approve.Answer
