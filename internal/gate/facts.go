package gate

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Limits are setpoint.yaml's limits, as far as they bind a decision. They are
// taken as they stand: zero means none, so the zero Limits allow nothing.
type Limits struct {
	MaxMode                                                spec.Mode
	EffectsPerHour, EffectsPerServicePerHour, OpenApproval int
	MinSpacing, PermitTTL                                  time.Duration
}

// Hold is one passing thing that people or the world put in the way, e.g. a
// freeze, a maintenance, a silence.
type Hold struct {
	ID, By, Text string
	// Until is its end; zero is open. A Hold whose end has passed has no
	// effect.
	Until time.Time
	// Effect is the highest mode while a maintenance applies. Observe, the zero
	// value, holds everything; other modes lower the ceiling. It means nothing
	// for freezes and silences, which always hold.
	Effect spec.Mode
}

// Facts are plain values that the reconciler fills from the ledger, the
// documents and the sources. They hold everything that binds a decision beside
// the proposal itself, and no word of a model.
type Facts struct {
	Now time.Time
	// Assessment is of this pass; the second gate takes a fresh one.
	Assessment compare.Assessment
	// Since is when the service entered its present state; zero when unknown.
	Since   time.Time
	Episode string
	// FreshReads counts known reads with different sample times by this
	// process, 0 to 2; a breach seen before needs no second one of itself.
	FreshReads int

	Freezes      []Hold
	Maintenances []Hold
	Silences     []Hold
	// SilencesUnreadable says why an Alertmanager could not be asked; a guard
	// that cannot be read holds.
	SilencesUnreadable string
	Exceptions         []spec.Exception
	// Storm says in words why the storm brake is on; empty: it is not.
	Storm string
	// ClocksApart is the difference of two clocks in words; empty when close.
	ClocksApart string
	// PolicyFault is set while no policy snapshot is loaded.
	PolicyFault string
	// SpecProblem is set when the objective was never met since loaded.
	SpecProblem string

	// KeyClaimed: the key of this case is claimed already.
	KeyClaimed bool
	// InFlight names an unsettled claim or an outcome that is still awaited on
	// this service; InFlightTarget likewise on the canonical target.
	InFlight, InFlightTarget string
	// LastSent is the newest time of sending on this service.
	LastSent time.Time
	// ActionSent is the newest time of sending of the proposed action.
	ActionSent time.Time
	// SentService and SentGlobal count effects in the last hour.
	SentService, SentGlobal int
	OpenTickets             int
	// PersonHold: a person denied this action in this episode (equivalent actions
	// on the same target included).
	PersonHold string
	// Unanswered names the ticket of such an action that expired in this episode
	// without an answer.
	Unanswered string
	// Suspended says why the action waits for a named reset; empty: it is not.
	Suspended string
	// DocumentsChangedAt is the last change of the service's documents while
	// it still limits to approval; zero when it no longer does.
	DocumentsChangedAt time.Time
	// Ceiling is the ledger's own ceiling of the action; Auto when none.
	Ceiling Verdict

	Dependencies map[string]compare.State
	Balance      budget.Balance
	Tried        []propose.Tried
	// Sent are the effects of the last Day on this service or on the proposed
	// action's target, whatever service sent them, oldest first.
	Sent []Sent
	// Undoes is what an undo takes back; nil for any other proposal.
	Undoes *Undone
	// Item is the catalogue entry of the proposed action with its live state.
	Item propose.Item
	// Ownership is who else controls the target: OwnershipNone, or "unknown"
	// (or empty) when not asked; neither binds.
	Ownership string
	// Changes is the change feed for this service, newest first.
	Changes []measure.Change
	// ApprovedTicket is the id of the approved ticket that this decision
	// executes; empty for a fresh proposal. ApprovedDigest must be set with it:
	// people approved those bytes and no others. ApprovedNeeds are the ticket's
	// needs: one that is needed now must be among them.
	ApprovedTicket, ApprovedDigest string
	ApprovedNeeds                  []Need
	// PermitDigest and PermitExpires are those of the permit that the claim
	// keeps. They are set for the second gate only, and nothing may differ.
	PermitDigest  string
	PermitExpires time.Time
}

// OwnershipNone says that nobody else controls the target.
const OwnershipNone = "none"

// Case is one thing to decide.
type Case struct {
	Service  spec.Service
	Proposal propose.Proposal
	Key      Key
	Facts    Facts
	Limits   Limits
}
