package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// world is everything there is. Its clock, at, is the store's, the actuator's
// and everybody's true time; replicas have clocks of their own.
type world struct {
	set      *setting
	services int
	// rng is nil where nothing is left to chance (Explore).
	rng   *rand.Rand
	bad   mutant
	at    time.Time
	chain chain
	reps  []replica
	act   actuator
	mail  []message
	truth [maxServices]truth
	// policy and docs are what is published; a replica loads them later.
	policy, docs int
	freezes      int
	limits       gate.Limits
	// fate is that of the next append.
	fate    fate
	faults  faults
	calm    bool
	running int
	mon     *monitor
	reached coverage
	trace   io.Writer
	steps   int
}

// truth is how a service really is.
type truth struct {
	state  compare.State
	reason compare.Reason
}

// faults are the rates of one seed, in thousandths of a step or of an
// occasion. Each seed has only some of them: rare mixtures hide otherwise.
type faults struct {
	crash, pause, clock, reload, docs, store, people, net, stale, slow, status, fewer int
}

func newWorld(set *setting, seed uint64, bad mutant, reached coverage) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5e7901))
	n := 1 + rng.IntN(maxServices)
	w := bareWorld(set, n, 2+rng.IntN(2))
	w.rng, w.bad, w.reached = rng, bad, reached
	some := func(most int) int {
		if rng.IntN(2) == 0 {
			return 0
		}
		return 1 + rng.IntN(most)
	}
	w.faults = faults{
		crash: some(30), pause: some(30), clock: some(25), reload: some(20), docs: some(10), store: some(60),
		people: 20 + some(120), net: some(400), stale: some(500), slow: some(80), status: some(600), fewer: some(300),
	}
	w.limits.EffectsPerHour, w.limits.EffectsPerServicePerHour = 1+rng.IntN(6), 2+rng.IntN(3)
	w.mon.limits = w.limits
	for i := range n {
		w.truth[i] = truth{compare.Breached, compare.Burning}
		if rng.IntN(4) == 0 {
			w.truth[i] = w.anyTruth()
		}
	}
	if rng.IntN(3) == 0 {
		w.policy = w.anyPolicy()
	}
	for i := range w.reps {
		w.reps[i].policy = w.policy
	}
	return w
}

// bareWorld is a world before anything went wrong in it.
func bareWorld(set *setting, services, replicas int) *world {
	w := &world{
		set: set, services: services, at: dawn().Add(10 * time.Minute), chain: set.begun[services].clone(),
		reps: make([]replica, replicas), reached: coverage{}, limits: limits(),
	}
	w.mon = newMonitor(w.limits)
	for i := range w.reps {
		w.reps[i] = replica{id: i, up: true, known: w.chain.head}
	}
	for i := range services {
		w.truth[i] = truth{compare.Breached, compare.Burning}
	}
	return w
}

// play runs the seed: steps with faults, then the calm in which everything has
// to come to rest.
func (w *world) play(steps int) {
	for w.steps < steps && len(w.mon.broken) == 0 {
		w.steps++
		w.step()
	}
	if len(w.mon.broken) == 0 {
		w.rest()
	}
}

// step is one event of the world.
func (w *world) step() {
	w.elapse()
	w.deliver()
	w.event()
	w.mon.step = w.steps
}

// event is one of the things that can happen; mostly a replica goes on.
func (w *world) event() {
	f := w.faults
	for _, e := range []struct {
		rate int
		do   func()
	}{
		{f.crash, w.crashAny}, {f.pause, w.pauseAny}, {f.clock, w.clockAny}, {f.reload, w.publishPolicy},
		{f.docs, w.publishDocs}, {15, w.changeTruth}, {f.people, w.person}, {40, w.loadAny},
	} {
		if w.roll(e.rate) {
			e.do()
			return
		}
	}
	w.advance()
}

// advance lets one replica do its next move. The one that moved last is
// likely to move on, so that some passes end in time.
func (w *world) advance() {
	if !w.roll(700) {
		w.running = w.pick(len(w.reps))
	}
	r := &w.reps[w.running]
	switch {
	case !r.up:
		if w.roll(400) {
			w.start(r)
		}
	case w.at.Before(r.pausedUntil):
		w.say(r, "is stopped until %s", clock(r.pausedUntil))
	default:
		w.fate = fateOK
		if w.roll(w.faults.store) {
			w.fate = fateLost + fate(w.pick(2))
		}
		w.move(r)
	}
}

// elapse lets time pass: mostly a moment, sometimes long.
func (w *world) elapse() {
	d := time.Duration(50+w.pick(700)) * time.Millisecond
	switch {
	case w.roll(w.faults.slow / 4):
		d = time.Duration(30+w.pick(240)) * time.Second
	case w.roll(60 + w.faults.slow):
		d = time.Duration(2+w.pick(20)) * time.Second
	}
	w.at = w.at.Add(d)
}

// roll is true in so many of a thousand cases. It is false when nothing is
// left to chance.
func (w *world) roll(perMille int) bool {
	return w.rng != nil && perMille > 0 && w.rng.IntN(1000) < perMille
}

// fault is a roll for what goes wrong, which ends with the faults.
func (w *world) fault(perMille int) bool { return !w.calm && w.roll(perMille) }

// pick is a number below n.
func (w *world) pick(n int) int {
	if w.rng == nil {
		return 0
	}
	return w.rng.IntN(n)
}

func (w *world) anyTruth() truth {
	return [...]truth{
		{compare.Met, ""}, {compare.Met, ""}, {compare.Met, ""}, {compare.Breached, compare.Recovering},
		{compare.Breached, compare.PartlyUnknown}, {compare.Unknown, "no-data"}, {compare.Unknown, compare.LowTraffic},
		{compare.Breached, compare.Burning},
	}[min(w.pick(18), 7)]
}

func (w *world) changeTruth() {
	i := w.pick(w.services)
	w.truth[i] = w.anyTruth()
	w.note("%s is %s %s", serviceName(i), w.truth[i].state, w.truth[i].reason)
}

func (w *world) anyPolicy() int {
	if w.roll(400) {
		return policyAuto
	}
	return w.pick(policies)
}

func (w *world) publishPolicy() {
	w.policy = w.anyPolicy()
	w.note("policy p%d is published", w.policy)
}

func (w *world) publishDocs() {
	w.docs = w.pick(docsRevisions)
	w.note("documents %d are published", w.docs)
}

// loadAny lets one replica load what is published.
func (w *world) loadAny() {
	r := &w.reps[w.pick(len(w.reps))]
	if !r.up || w.at.Before(r.pausedUntil) {
		return
	}
	w.load(r)
}

// load takes policy and documents into force in one process, and records the
// documents.
func (w *world) load(r *replica) {
	r.policy = w.policy
	r.docs = w.docs
	svcs := w.set.sites[w.services][r.docs]
	w.fate = fateOK
	_ = w.write(r, func(s *ledger.State) ([]ledger.Draft, error) {
		if s.Set == documentsDraft(svcs).Body.(ledger.Documents).Set {
			return nil, nil
		}
		return []ledger.Draft{documentsDraft(svcs)}, nil
	})
	w.say(r, "has loaded policy p%d and documents %d", r.policy, r.docs)
}

// specs are the documents in force in a process.
func (w *world) specs(r *replica) []spec.Service { return w.set.sites[w.services][r.docs] }

// write appends for a replica by this step's fate. What a replica knows moves
// on only when the store says that it wrote.
func (w *world) write(r *replica, plan planning) error {
	if w.fate == fateLost {
		w.hit("append not written")
		return errStore
	}
	if r.known.Head.Seq < w.chain.head.Head.Seq {
		w.hit("append on an old position")
	}
	drafts, err := w.chain.append(r.known, w.at, plan)
	if err != nil {
		return err
	}
	w.look(r, drafts)
	if w.fate == fateUnsure && len(drafts) > 0 {
		w.hit("append written, answer lost")
		return errStore
	}
	r.known = w.chain.head
	return nil
}

// look shows the monitors what was appended, and by whom (nil: a person).
func (w *world) look(by *replica, drafts []ledger.Draft) {
	first := len(w.chain.entries) - len(drafts)
	for i, d := range drafts {
		e := w.chain.entries[first+i]
		w.note("%d %s %s %s", e.Seq, e.Kind, e.Service, e.Unique)
		w.mon.entry(e, d.Body, by)
		w.counted(e, d.Body)
	}
}

func (w *world) hit(name string) { w.reached[name]++ }

// say traces what a replica does, note what the world does.
func (w *world) say(r *replica, format string, args ...any) {
	if w.trace != nil {
		w.note("replica %d "+format, slices.Insert(args, 0, any(r.id))...)
	}
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%4d %s  %s\n", w.steps, clock(w.at), fmt.Sprintf(format, args...))
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
