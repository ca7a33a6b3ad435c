package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// clocks watch this host's clock against the store's, the sources' and itself.
// Windows, permits and horizons rest on it: where it cannot be trusted,
// everything holds and says so.
type clocks struct {
	mu sync.Mutex
	// wall and mono are the last look at the clock and at time that no
	// correction moves; looked says that there was one.
	wall   time.Time
	mono   time.Duration
	looked bool
	// step is by how much the clock was moved, at stepped of mono; told says that
	// it was recorded.
	step    time.Duration
	stepped time.Duration
	told    bool
	// ahead is how far the store's clock is ahead of this host's.
	ahead time.Duration
	// sources are how far the clocks of the sources are ahead.
	sources map[string]time.Duration
}

// maxSkew is the most that two clocks may differ (DESIGN section 7).
const maxSkew = 5 * time.Second

// minStepHold is how long a moved clock holds at least: long enough for NTP to
// move it back, and for a person to see it.
const minStepHold = 2 * time.Minute

// watch notes a clock that was moved since the last call.
func (c *clocks) watch(wall time.Time, mono time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var step time.Duration
	if c.looked {
		step = wall.Round(0).Sub(c.wall) - (mono - c.mono)
	}
	c.wall, c.mono, c.looked = wall.Round(0), mono, true
	if step.Abs() > maxSkew {
		c.step, c.stepped, c.told = step, mono, false
	}
}

// untold is a move that was not recorded yet; 0 without one.
func (c *clocks) untold() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told {
		return 0
	}
	return c.step
}

func (c *clocks) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = true
}

// apart says why the clock cannot be trusted now; "" while it can.
func (c *clocks) apart(hold time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	if c.step != 0 && c.mono-c.stepped < max(hold, minStepHold) {
		out = append(out, fmt.Sprintf("this host's clock was moved by %s %s ago",
			c.step.Round(time.Second), (c.mono-c.stepped).Round(time.Second)))
	}
	if c.ahead.Abs() > maxSkew {
		out = append(out, fmt.Sprintf("the ledger is %s apart", c.ahead.Round(time.Second)))
	}
	for _, name := range sortedKeys(c.sources) {
		if d := c.sources[name].Abs(); d > maxSkew {
			out = append(out, fmt.Sprintf("%s is %s apart", name, d.Round(time.Second)))
		}
	}
	return strings.Join(out, "; ")
}

func (c *clocks) saw(sources map[string]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = sources
}

// skew is how far the clock of a source is apart, when that is too far; 0
// otherwise.
func (c *clocks) skew(source string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.sources[source].Abs(); d > maxSkew {
		return d
	}
	return 0
}

func (c *clocks) storeAhead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

func (c *clocks) setStore(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = ahead
}

// clockNow looks at this host's clock and says why no clock can be trusted now;
// "" while they agree. It needs nothing that could hang.
func (r *Reconciler) clockNow() string {
	if r.o.Monotonic != nil {
		// In this order: a pause between the two reads would look like a step back,
		// which holds as well.
		mono := r.o.Monotonic()
		r.clocks.watch(r.o.Now(), mono)
	}
	return r.clocksApart()
}

// watchClock records a clock that was moved. It is a gap: how long anything
// lasted is not known.
func (r *Reconciler) watchClock(ctx context.Context) {
	r.clockNow()
	step := r.clocks.untold()
	if step == 0 {
		return
	}
	r.log.Error("this host's clock was moved; everything holds for a while", "by", step)
	if err := r.recordGap(ctx, "", "the clock was moved by "+step.Round(time.Second).String()); err != nil {
		r.log.Error("a gap could not be recorded", "error", err)
		return
	}
	r.clocks.tell()
}

// trusted takes for unknown what a source answered whose clock is apart: its
// "now" is another moment, in which the service may have been well.
func (r *Reconciler) trusted(ms []measure.Measurement) []measure.Measurement {
	for i, m := range ms {
		name := m.Source
		if src, ok := r.o.Config.Source(name); ok {
			name = src.Name // "" is the first
		}
		if d := r.clocks.skew(name); d > 0 && m.Known() {
			ms[i] = measure.Measurement{
				ID: m.ID, Source: m.Source, Reason: measure.ClockSkew,
				Detail: fmt.Sprintf("the clocks of this host and of %s are %s apart", name, d.Round(time.Second)),
			}
		}
	}
	return ms
}

// watchStore asks the store for its time, which also says whether the ledger is
// still where it was.
func (r *Reconciler) watchStore(ctx context.Context) {
	if r.o.StoreClock == nil || r.o.LedgerFault != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	before := r.o.Now()
	at, err := r.o.StoreClock(ctx)
	if err != nil {
		r.book.unwritable(fmt.Errorf("ask the ledger for its time: %w", err))
		r.log.Error("the ledger does not answer; observing only", "error", err)
		return
	}
	// The answer was made somewhere between the two: half the way is the best
	// guess, and what took long says nothing about the clocks.
	took := r.o.Now().Sub(before)
	ahead := at.Round(0).Sub(before.Round(0).Add(took / 2))
	if ahead.Abs() <= took {
		ahead = 0
	}
	r.clocks.setStore(ahead)
}

// storeTimeout bounds one question to the store.
const storeTimeout = 10 * time.Second

// clocksApart says why no clock can be trusted now; "" while they agree.
func (r *Reconciler) clocksApart() string { return r.clocks.apart(2 * r.o.Config.Sweep.Interval) }

// storeTime is a time of this host's clock in the store's: windows are those of
// the store, whose entries all replicas share.
func (r *Reconciler) storeTime(t time.Time) time.Time { return t.Add(r.clocks.storeAhead()) }

// hostTime is a time of the store's clock in this host's.
func (r *Reconciler) hostTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-r.clocks.storeAhead())
}
