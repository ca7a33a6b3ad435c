package sim

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// replica is one process of the agent. A crash loses all of it but its host's
// clock and freeze files.
type replica struct {
	id int
	up bool
	// life tells one process from the next: answers to an earlier one are lost.
	life        int
	pausedUntil time.Time
	// skew is how far the host's wall clock is ahead.
	skew time.Duration
	// known is what the process has read of the ledger.
	known *ledger.State
	reads [maxServices]reads
	// policy and docs are what it has loaded.
	policy, docs int
	// files are the freeze files of its host.
	files []ledger.Freeze
	// next is the service whose turn it is, looks how often it looked.
	next, looks int
	stage       stage
	pass        pass
}

// reads counts known reads with different sample times.
type reads struct {
	n    int
	last time.Time
}

func (r *reads) note(a compare.Assessment) {
	if a.State != compare.Unknown && !a.SampleAt.IsZero() && !a.SampleAt.Equal(r.last) {
		r.n, r.last = min(r.n+1, 2), a.SampleAt
	}
}

// wall is what the host's clock says.
func (w *world) wall(r *replica) time.Time { return w.at.Add(r.skew) }

func (w *world) crashAny() { w.crash(&w.reps[w.pick(len(w.reps))]) }

// crash takes a process away, whatever it was doing.
func (w *world) crash(r *replica) {
	if !r.up {
		return
	}
	w.say(r, "crashes before %s", stageNames[r.stage])
	switch r.stage {
	case starting, gating, voiding:
		w.hit("crash between claim and start")
	case sending:
		w.hit("crash between start and send")
	case awaiting, recording:
		w.hit("crash between send and receipt")
	case proposing:
		w.hit("crash between asked and proposal")
	}
	*r = replica{id: r.id, life: r.life + 1, skew: r.skew, files: r.files, looks: r.looks}
}

// start is a new process: it folds the ledger, loads what is published, and
// records that nobody watched.
func (w *world) start(r *replica) {
	r.up, r.known = true, w.chain.head
	w.say(r, "starts")
	w.load(r)
	if w.rng != nil {
		_ = w.write(r, one(func(*ledger.State) (ledger.Draft, error) {
			return ledger.Draft{Kind: ledger.KindGap, Body: ledger.Gap{Why: "start"}}, nil
		}))
	}
}

// pauseAny stops a process where it stands, often for longer than a permit
// lives.
func (w *world) pauseAny() {
	r := &w.reps[w.pick(len(w.reps))]
	if !r.up {
		return
	}
	d := time.Duration(1+w.pick(60)) * time.Second
	r.pausedUntil = w.at.Add(d)
	w.say(r, "is stopped for %s before %s", d, stageNames[r.stage])
}

// clockAny steps or sets a host's clock: within what is tolerated or beyond.
func (w *world) clockAny() {
	r := &w.reps[w.pick(len(w.reps))]
	switch w.pick(4) {
	case 0:
		r.skew = 0
	case 1, 2:
		r.skew = time.Duration(w.pick(8000)-4000) * time.Millisecond
	default:
		r.skew = time.Duration(w.pick(240)-120) * time.Second
	}
	w.say(r, "has a clock that is %s ahead", r.skew)
}

// apart says that a host's clock differs from the store's by too much.
func (w *world) apart(r *replica) string {
	if r.skew.Abs() > apartBy {
		return "the store is " + (-r.skew).String() + " ahead"
	}
	return ""
}

// measured is what a replica reads of a service now. Samples are five seconds
// apart; where nothing is left to chance every look finds a new one.
func (w *world) measured(r *replica, i int) compare.Assessment {
	t := w.truth[i]
	a := compare.Assessment{Service: serviceName(i), At: w.wall(r), State: t.state, Reason: t.reason}
	if t.state == compare.Unknown {
		if w.bad == healthyUnknown {
			a.State, a.Reason = compare.Breached, compare.Burning
		}
		return a
	}
	a.SampleAt = w.at.Truncate(5 * time.Second)
	if w.rng == nil {
		r.looks++
		a.SampleAt = w.at.Add(time.Duration(r.looks))
	}
	a.Objectives = []compare.Objective{{ID: "availability", State: t.state, Reason: t.reason, Target: 0.99}}
	return a
}
