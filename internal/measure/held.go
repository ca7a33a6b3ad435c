package measure

import (
	"slices"
	"sync"
	"time"
)

// Held are the values of one service that were measured last. A window is asked
// again at a cadence in proportion to its length, so that the cost of a pass
// does not grow with the windows (a 30-day window every 12 hours, an hour every
// minute). Nothing is lost with it: after a restart everything is asked anew.
// It is safe for concurrent use.
type Held struct {
	mu     sync.Mutex
	plan   *Plan
	values [][]Measurement
	born   time.Time
}

// The shares of a window's length that make its cadence.
const (
	// refresh is the cadence of a window: it is at most a sixtieth of its length
	// old.
	refresh = 60
	// hasten divides the cadence of the long windows of an objective that misses
	// its target on the judge window: its burn should not be judged by old values.
	hasten = 6
	// settled divides the length of a window that was found covered by data into
	// the time until that is looked at again, maxSettled at most.
	settled    = 6
	maxSettled = 6 * time.Hour
	// filling divides a window into the steps in which it is looked whether data
	// fills it.
	filling = 1440
	// shown spreads the first reading of windows that decide nothing after a
	// start: they are the dear ones.
	shown = 5 * time.Minute
)

// Cadence is how often a window of that length is measured again.
func Cadence(window, sweep time.Duration) time.Duration { return max(sweep, window/refresh) }

// Hold returns an empty Held for the plan; before, which may be nil, gives its
// values when it is of the same documents.
func Hold(plan *Plan, before *Held) *Held {
	h := &Held{plan: plan, values: make([][]Measurement, len(plan.objectives))}
	for i, o := range plan.objectives {
		h.values[i] = make([]Measurement, len(o.slots))
	}
	if before == nil {
		return h
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	if before.plan == plan {
		return before
	}
	if plan.digest != "" && before.plan.digest == plan.digest && len(before.values) == len(h.values) {
		h.born = before.born
		for i := range h.values { // Copied, because a pass may still keep answers in the old ones.
			copy(h.values[i], before.values[i])
		}
	}
	return h
}

// Due returns the queries that a pass needs at now: the judge window always,
// every other that decides and was never asked, or whose cadence is over.
func (h *Held) Due(now time.Time, sweep time.Duration) []Query {
	return h.choose(func(o *objective, s slot, held *Measurement) bool {
		return s.acting && h.due(o, s, held, now, sweep)
	}, now)
}

// Shown returns the queries of windows that decide nothing and whose cadence is
// over. They are the dearest, and no pass should wait for them.
func (h *Held) Shown(now time.Time, sweep time.Duration) []Query {
	return h.choose(func(o *objective, s slot, held *Measurement) bool {
		return !s.acting && (h.due(o, s, held, now, sweep) || h.hastened(o, s, held, now, sweep))
	}, now)
}

// hastened: what is shown of an objective that misses its target, or could not
// be measured, is asked every few minutes: people look at it now.
func (h *Held) hastened(o *objective, s slot, held *Measurement, now time.Time, sweep time.Duration) bool {
	if held.ID.Window == 0 {
		return false // spread after a start
	}
	every := shown
	switch i := slices.Index(h.plan.objectives, o); {
	case !held.Known() && held.Reason == NoData && s.covers > 0:
		every = max(shown, s.covers/filling)
	case !held.Known():
	default:
		judge := o.judged(h.values[i])
		if _, misses := o.looks(judge); !judge.Known() || !misses {
			return false
		}
	}
	return passed(held.AsOf.Add(s.before), now, max(sweep, every), o.phase)
}

// Slow reports whether a window longer than an hour is due, so that services
// with none need not wait for those that have one.
func (h *Held) Slow(now time.Time, sweep time.Duration) bool {
	return len(h.choose(func(o *objective, s slot, held *Measurement) bool {
		return s.window > time.Hour && s.acting && h.due(o, s, held, now, sweep)
	}, now)) > 0
}

func (h *Held) choose(wanted func(o *objective, s slot, held *Measurement) bool, now time.Time) []Query {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.born.IsZero() || h.born.After(now) {
		h.born = now
	}
	var qs []Query
	for i, o := range h.plan.objectives {
		for j, s := range o.slots {
			if wanted(o, s, &h.values[i][j]) {
				if qs == nil {
					qs = make([]Query, 0, len(o.slots)/2)
				}
				qs = append(qs, o.query(j, now))
			}
		}
	}
	return qs
}

func (h *Held) due(o *objective, s slot, held *Measurement, now time.Time, sweep time.Duration) bool {
	switch {
	case o.isJudge(s):
		return true
	case s.totalOnly && s.covers == 0 && len(o.o.GroupBy) == 0:
		return false // asked only where traffic is low
	case held.ID.Window == 0:
		return s.acting || now.Sub(h.born) >= time.Duration(o.phase%uint64(shown))
	}
	return passed(held.AsOf.Add(s.before), now, s.cadence(held, sweep), o.phase)
}

// cadence is how long the slot's value is held.
func (s slot) cadence(held *Measurement, sweep time.Duration) time.Duration {
	switch {
	case s.covers > 0 && held.Known():
		return max(sweep, min(s.covers/settled, maxSettled))
	case s.covers > 0 && held.Reason == NoData:
		return Cadence(s.covers, sweep)
	case !held.Known():
		return max(sweep, max(s.window, s.covers)/refresh/hasten)
	}
	return Cadence(s.window, sweep)
}

// passed reports whether a boundary of the cadence lies between then and now.
// The boundaries are those of the clock, moved by the phase: whoever shares a
// phase is due at once, after a restart too.
func passed(then, now time.Time, cadence time.Duration, phase uint64) bool {
	if then.After(now) || now.Sub(then) >= cadence {
		return true
	}
	shift := int64(phase % uint64(cadence))
	return (now.UnixNano()-shift)/int64(cadence) != (then.UnixNano()-shift)/int64(cadence)
}

// Keep remembers answers; ms[i] answers qs[i]. One that was asked before another
// look at the same service, and comes after it, is of the past already.
func (h *Held) Keep(qs []Query, ms []Measurement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, q := range qs {
		if q.o == nil || q.slot < 0 {
			continue
		}
		for j, o := range h.plan.objectives {
			if o.same(q.o) {
				m := ms[i]
				m.ID, m.AsOf = q.ID, q.ID.At
				if newer := h.values[j][q.slot].AsOf.Sub(m.AsOf); newer > 0 && newer <= ahead {
					continue
				}
				h.values[j][q.slot] = m
			}
		}
	}
}

// same: a query that was planned before a reload answers the objective after
// it, unless the service's documents were changed.
func (o *objective) same(asked *objective) bool {
	return o == asked || o.digest != "" && o.digest == asked.digest && o.o.ID == asked.o.ID && o.vantage == asked.vantage
}

// Follow returns what must be asked besides, seen what was kept for now: the
// hour before where traffic is low, and the long windows of an objective that
// misses its target or has a group that they do not know yet.
func (h *Held) Follow(now time.Time, sweep time.Duration) []Query {
	h.mu.Lock()
	defer h.mu.Unlock()
	var qs []Query
	for i, o := range h.plan.objectives {
		judge := o.judged(h.values[i])
		if !judge.Known() {
			continue
		}
		low, misses := o.looks(judge)
		for j, s := range o.slots {
			held := &h.values[i][j]
			if held.ID.At.Equal(s.at(now)) {
				continue // just asked
			}
			if low && o.isHourBefore(s) || s.aged(held, now, sweep) && (misses && o.isLonger(s) || lacks(s, held, judge)) {
				qs = append(qs, o.query(j, now))
			}
		}
	}
	return qs
}

// isLonger holds for a window that decides whether the objective burns, or that
// such a window is covered.
func (o *objective) isLonger(s slot) bool {
	return s.acting && (s.covers > 0 || !o.isHourBefore(s))
}

// aged reports whether a value is too old to judge a burn by. One of the last
// sweep is, also where jitter made this one come early: half an interval tells the
// two apart.
func (s slot) aged(held *Measurement, now time.Time, sweep time.Duration) bool {
	return held.ID.Window == 0 ||
		now.Sub(held.AsOf.Add(s.before)) >= max(sweep/2, max(s.window, s.covers)/refresh/hasten)
}

// lacks reports whether a group was seen in the judge window for the first time
// since a longer one was measured.
func lacks(s slot, held, judge *Measurement) bool {
	if !s.acting || s.totalOnly || !held.Known() {
		return false
	}
	return slices.ContainsFunc(judge.Groups, func(g NamedGroup) bool {
		return g.Known() && held.Of(g.Name).Reason == NoData
	})
}

// judged is the judge window that was measured last.
func (o *objective) judged(values []Measurement) *Measurement {
	for j, s := range o.slots {
		if o.isJudge(s) {
			return &values[j]
		}
	}
	return &Measurement{Reason: NotMeasured}
}

func (o *objective) isJudge(s slot) bool {
	return s.window == o.o.JudgeWindow && s.before == 0 && !s.totalOnly
}

// looks says of the judge window whether it holds few events, and whether it
// misses the target; each group counts.
func (o *objective) looks(judge *Measurement) (low, misses bool) {
	look := func(m *Measurement) {
		low = low || m.HasEvents && (m.Total == 0 || m.Total < o.o.MinEvents)
		misses = misses || m.ErrorRatio > 1-o.o.Target
	}
	look(judge)
	for i := range judge.Groups {
		if g := &judge.Groups[i].Measurement; g.Known() {
			look(g)
		}
	}
	return low, misses
}

// Refresh returns the queries of windows that decide the state and are held from
// before now; the hour before is one where it shows which groups vanished.
func (h *Held) Refresh(now time.Time) []Query {
	return h.choose(func(o *objective, s slot, held *Measurement) bool {
		decides := !s.totalOnly || o.isHourBefore(s) && len(o.o.GroupBy) > 0
		return s.acting && decides && !held.ID.At.Equal(s.at(now))
	}, now)
}

// Renew returns the queries of all windows that decide, however fresh they are,
// and of those that are shown and not held: for the look just before an effect.
func (h *Held) Renew(now time.Time, sweep time.Duration) []Query {
	return h.choose(func(o *objective, s slot, held *Measurement) bool {
		return s.acting || !s.holds(held, now, sweep)
	}, now)
}

// Measured returns everything that is held, as of now. A value that is older
// than its cadence is left out: it was due, and is not known.
func (h *Held) Measured(now time.Time, sweep time.Duration) []Measurement {
	return h.AppendMeasured(nil, now, sweep)
}

// AppendMeasured appends to out what Measured returns, for whoever goes through
// a fleet.
func (h *Held) AppendMeasured(out []Measurement, now time.Time, sweep time.Duration) []Measurement {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, o := range h.plan.objectives {
		for j, s := range o.slots {
			if m := &h.values[i][j]; s.holds(m, now, sweep) {
				out = append(out, *m)
				out[len(out)-1].ID = o.id(s, now)
			}
		}
	}
	return out
}

// ahead is how far a value may lie after now: another look at the same service
// may have just ended, and clocks that were set back further hold nothing.
const ahead = 5 * time.Second

// holds reports whether a value still speaks for now.
func (s slot) holds(m *Measurement, now time.Time, sweep time.Duration) bool {
	age := now.Sub(m.AsOf.Add(s.before))
	return m.ID.Window != 0 && age >= -ahead && age <= s.cadence(m, sweep)
}
