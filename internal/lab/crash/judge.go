package crash

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// limits are what the site's documents and configuration say; the checker
// knows nothing of them otherwise.
func limits(acks []ledger.Position, skew time.Duration) checker.Options {
	return checker.Options{
		Slack: 100 * time.Millisecond, Skew: 50*time.Millisecond + skew, MinSpacing: time.Second, Sweep: world.Sweep,
		EffectsPerHour: 50, EffectsPerServicePerHour: 50,
		Budget: checker.Budget{Period: time.Hour, Capacity: 1000}, Global: checker.Budget{Period: time.Hour, Capacity: 1000},
		Acknowledged: acks,
	}
}

// run is one case under way; what it finds goes into its result.
type run struct {
	*world.World
	result Result
	// skew is how far the clocks of host and actuator were set apart.
	skew time.Duration
	// unasked are acknowledged entries that the fault itself may take away.
	unasked []ledger.Position
}

func begin(w *world.World) *run { return &run{World: w, result: Result{world: w}} }

// broke notes what a class demands and did not get.
func (r *run) broke(format string, args ...any) {
	r.result.Violations = append(r.result.Violations, fmt.Sprintf(format, args...))
}

// failed ends a run that could not be carried out. It counts as a violation: a
// point that was not tried proves nothing.
func failed(err error) Result { return Result{Violations: []string{"not carried out: " + err.Error()}} }

// judge holds the ledger against the journal and the acknowledged entries.
func (r *run) judge(ctx context.Context) Result {
	if err := r.Close(); err != nil {
		r.broke("the actuator's journal: %v", err)
	}
	if err := r.SavePages(); err != nil {
		r.broke("the pager's pages: %v", err)
	}
	acks, err := r.Acks()
	if err != nil {
		r.broke("the acknowledged entries cannot be read: %v", err)
	}
	acks = slices.DeleteFunc(acks, func(p ledger.Position) bool { return slices.Contains(r.unasked, p) })
	journal, err := executetest.ReadJournal(r.Path(world.JournalFile))
	if err != nil {
		r.broke("the actuator's journal cannot be read: %v", err)
	}
	if journal == nil {
		journal = []executetest.Record{}
	}
	exported, err := r.Export(ctx)
	if err != nil {
		r.result.Report = checker.Corrupt(err)
	} else {
		r.result.Report = checker.Check(exported, journal, limits(acks, r.skew))
	}
	r.count()
	return r.result
}

// count takes the report's violations over.
func (r *run) count() {
	for _, v := range r.result.Report.Violations {
		r.result.Violations = append(r.result.Violations, v.String())
	}
}

// over reports whether the episode has ended.
func (r *run) over(ctx context.Context) bool { return r.Settled(ctx) }

// settle lets a clean agent run on until the episode is over.
func (r *run) settle(ctx context.Context) {
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	r.settled(ctx, agent)
}

// settled waits for the episode's end under an agent and stops it. Where it
// never ends, the promise that a missed SLO is acted on or escalated is broken.
func (r *run) settled(ctx context.Context, agent *world.Agent) {
	if err := r.Until(ctx, agent, patience, func() bool { return r.over(ctx) }); err != nil {
		r.broke("the episode never ended: %v", err)
		agent.Kill()
		return
	}
	if err := agent.Stop(patience); err != nil {
		r.broke("%v", err)
	}
}

// patience is how long an episode may take on a busy machine: it is over after
// three to six seconds.
const patience = 25 * time.Second

// mayLose takes the acknowledged entries after a position off the account: the
// fault that comes now takes them away.
func (r *run) mayLose(after uint64) {
	acks, err := r.Acks()
	if err != nil {
		r.broke("the acknowledged entries cannot be read: %v", err)
	}
	for _, p := range acks {
		if p.Seq > after {
			r.unasked = append(r.unasked, p)
		}
	}
}

// sent are the journal's requests of one key.
func (r *run) sent(key string) int {
	n := 0
	for _, rec := range r.Actuator.Journal() {
		if rec.Key == key && rec.Of == 0 {
			n++
		}
	}
	return n
}
