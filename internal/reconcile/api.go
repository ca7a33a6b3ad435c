// Package reconcile is the loop. It takes the documents, the sources, a
// proposer, a policy, executors, receivers and a ledger, and makes passes:
// measure, compare, fold, settle, next, propose, gate, execute, append. The
// order stands in reconcile.go; everything decided is decided in the packages
// to the left.
package reconcile

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// Measurer answers the whole fleet's queries, one for one and in order.
type Measurer interface {
	Measure(ctx context.Context, qs []measure.Query) []measure.Measurement
	// Clocks gives, for each source that answers in time, how far its clock is
	// ahead of this host's.
	Clocks(ctx context.Context) map[string]time.Duration
}

// Proposer answers with one proposal; a failure is a Proposal of
// KindMalformed with its Fault. Request and Reply are the exact bytes.
type Proposer interface {
	Propose(ctx context.Context, r propose.Request) Proposed
	// Identity is recorded before the call.
	Identity() propose.Proposer
}

// Proposed is a proposal with the bytes it came from.
type Proposed struct {
	Proposal propose.Proposal
	// Request and Reply are those of a proposer that is no model.
	Request, Reply []byte
	// Exchanges are all that was sent to models, in order.
	Exchanges []propose.Exchange
}

// Policy evaluates one gate input. It never fails: a fault is in the Ruling.
type Policy interface {
	Evaluate(ctx context.Context, input []byte) gate.Ruling
	// Revision names the whole bundle, DataDigest its data alone; Pack is the
	// bundle as bytes whose SHA-256 is the revision.
	Revision() string
	DataDigest() string
	Pack() []byte
}

// Silencer knows who silenced what would be posted.
type Silencer interface {
	// Silences are those of any page of a service: they hold its actions.
	Silences(ctx context.Context, service string) ([]gate.Hold, error)
	// SilencesFor are those of one page: they hold it back.
	SilencesFor(ctx context.Context, p escalate.Page) ([]gate.Hold, error)
}

// FreezeDir is the folder of freeze files, which outranks everything.
type FreezeDir interface {
	// Frozen returns the freezes that bind a service ("" for all); an error
	// means that nobody knows, which holds too.
	Frozen(service string) ([]gate.Hold, error)
	// Sending says that a send begins, and returns what ends it; whoever freezes
	// waits for it. An error means that nothing may be sent.
	Sending() (done func(), err error)
	// List returns all files; Remove deletes one by id.
	List() ([]ledger.Freeze, error)
	Remove(id string) error
}

// Board is the channel where approvals are put before people. approve.ErrGone is
// returned for a message that is not there any more, *approve.Limited where the
// channel asks to be left alone; any other error is tried again.
type Board interface {
	// Post puts up a card and gives its message.
	Post(ctx context.Context, c approve.Card) (approve.Message, error)
	// Update makes a message show the card.
	Update(ctx context.Context, m approve.Message, c approve.Card) error
	// Say posts a note below a message.
	Say(ctx context.Context, m approve.Message, n approve.Note) error
	// Find gives the messages of a ticket that were posted at since or later, by
	// whichever process. Digest is the ticket's.
	Find(ctx context.Context, ticket, digest string, since time.Time) ([]approve.Message, error)
	// Look gives the link to a message that still stands there.
	Look(ctx context.Context, m approve.Message) (link string, err error)
}

// LoosePages keeps pages that were sent although the ledger could not record
// them, through a restart.
type LoosePages interface {
	KeepPages(pages map[string]escalate.Page) error
	KeptPages() (map[string]escalate.Page, error)
}

// DecisionLog gets each decision that this process recorded.
type DecisionLog interface {
	// Record takes a decision to be written. It never waits and never fails; a
	// decision that was not written is counted.
	Record(ctx context.Context, r Recorded)
	// Lost is how many were not written since the start.
	Lost() uint64
}

// Recorded is a decision as the ledger has it, with what it was made of. It is
// not to be changed.
type Recorded struct {
	// ID is that of the entry, e.g. d118.
	ID      string
	Time    time.Time
	Service string
	Decided ledger.Decided
	// Input are the bytes that policy saw; nil where there was nothing to rule
	// on.
	Input []byte
	// Policy is the one of that moment, nil without one; Took is how long it
	// ruled, 0 where there was nothing to rule on.
	Policy Policy
	Took   time.Duration
}

// Documents gives the desired state anew each time it is asked.
type Documents func() (spec.Set, error)

// Options are what New needs. Everything is required but where said.
type Options struct {
	Config    config.Config
	Documents Documents
	Measurer  Measurer
	Proposer  Proposer
	// Rules is the proposer of mode observe; nil: Proposer must be rules.
	Rules Proposer
	// Fallback speaks where no model answers at all; nil: nobody does, and the
	// on-call gets the numbers.
	Fallback Proposer
	// Policy may be nil: observe only, with PolicyFault as the reason.
	Policy      Policy
	PolicyFault string
	// Shadow rules beside Policy and binds nobody; nil: there is none.
	Shadow Policy
	// DecisionLog may be nil.
	DecisionLog DecisionLog
	// Asker answers the evidence that documents ask for; nil: no breakdowns.
	Asker Asker
	// Feed has changes beside those that were posted; nil: there are none.
	Feed Feed
	// Executors by the part of uses before the dot.
	Executors map[string]execute.Executor
	Receivers []escalate.Receiver
	// Board may be nil: then every approval pages, and is answered by command or
	// over HTTP.
	Board Board
	// Silencers may be empty.
	Silencers []Silencer
	// Store may be nil for Plan, which then knows no past.
	Store ledger.Store
	// LedgerFault says why the ledger cannot be used although it was opened, or
	// why Store is nil in an agent: then nothing is done, and people are paged.
	LedgerFault error
	// StoreClock is the clock of the ledger's store; nil: the host's. Its error
	// means that the ledger cannot be written.
	StoreClock func(ctx context.Context) (time.Time, error)
	// Monotonic is time that no correction of the clock moves; nil: not known.
	Monotonic func() time.Duration
	// Hints get a value when somebody else appended to the ledger; nil: nobody
	// tells, and the next sweep sees it.
	Hints <-chan struct{}
	// Shared: other processes write to the ledger too, and watched while this
	// one did not run.
	Shared bool
	// Process names this process in the ledger, for other replicas; "" is none.
	Process string
	Freezes FreezeDir
	// Loose may be nil: then a restart forgets pages that were never recorded.
	Loose  LoosePages
	Now    func() time.Time
	Logger *slog.Logger
	// Registerer and Tracer may be nil.
	Registerer prometheus.Registerer
	Tracer     trace.Tracer
	// OnPass, when set, sees each finished pass (the demo's line per pass).
	OnPass func(Result)
}

// Result is what one pass of one service ended in.
type Result struct {
	Service    string
	Assessment compare.Assessment
	Step       step.Step
	// Proposal and Decision are set when something was proposed.
	Proposal *propose.Proposal
	// Guess: the agent asks a model, and this look at it asked the rules.
	Guess    bool
	Decision *gate.Decision
	// Revised is what the targets listed as rolled out, when they were looked at.
	Revised []measure.Change
	Balance budget.Balance
	Key     gate.Key
	// Effect is what was sent in this pass; None when nothing was.
	Effect execute.Effect
	// Outcome is what was judged in this pass; OutcomeNone when nothing was.
	Outcome      compare.Outcome
	RequeueAfter time.Duration
	// Err is why the pass could not be finished.
	Err error
}
