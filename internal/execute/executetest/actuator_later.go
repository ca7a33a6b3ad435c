package executetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

// foresee writes into a record what part of it is done, and what is to come:
// the journal says it before it happens, so that a restart still does it.
func (a *Actuator) foresee(t Treatment, o outcome, rec *Record) {
	if t.Mode == ModePartial && o.applied {
		rec.Partial, rec.Changed = true, a.part(rec.Parameters)
		rec.Applied = len(rec.Changed) > 0
	}
	if t.Mode == ModeRevert && o.applied && len(rec.Parameters) > 0 {
		rec.Revert = map[string]any{}
		for name := range rec.Parameters {
			rec.Revert[name] = a.state[name]
		}
	}
	if !rec.waits() {
		return
	}
	rec.Delay = t.Delay
	if a.o.Now != nil {
		rec.Due = rec.Time.Add(t.Delay)
	}
}

// part is what a partial effect writes.
func (a *Actuator) part(asked map[string]any) map[string]any {
	names := slices.Sorted(maps.Keys(asked))
	some := map[string]any{}
	if len(names) == 1 {
		if v, ok := halfway(a.state[names[0]], asked[names[0]]); ok {
			some[names[0]] = v
		}
		return some
	}
	for _, name := range names[:len(names)/2] {
		some[name] = asked[name]
	}
	return some
}

// halfway lies between two numbers, whole if the second is; false if there is
// nothing between them.
func halfway(from, to any) (any, bool) {
	x, ok1 := number(from)
	y, ok2 := number(to)
	if !ok1 || !ok2 {
		return nil, false
	}
	half := x + (y-x)/2
	if y == float64(int64(y)) {
		n := int64(half)
		return n, float64(n) != x && float64(n) != y
	}
	return half, half != x && half != y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// happen does what a record announced, unless that was done or the actuator
// has ended. A journal that cannot be written does nothing: the next start does.
func (a *Actuator) happen(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.carryOut(n)
}

func (a *Actuator) carryOut(n int) error {
	r, waits := a.pending[n]
	if !waits {
		return nil
	}
	if r.Late {
		return a.write(Record{
			Time: a.now(), Key: r.Key, Digest: r.Digest, Service: r.Service, Action: r.Action, Parameters: r.Parameters,
			Path: r.Path, Signed: true, Result: execute.Applied, Applied: true, Late: true, Of: n,
		})
	}
	return a.write(Record{Time: a.now(), Path: r.Path, Result: execute.None, Foreign: true, Changed: r.Revert, Of: n})
}

// resume is the start with what an earlier actuator left to come: what is due,
// or has no time, in the order in which it is; the rest when it is due.
func (a *Actuator) resume() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := slices.SortedFunc(maps.Keys(a.pending), func(x, y int) int {
		return cmp.Or(a.pending[x].Due.Compare(a.pending[y].Due), cmp.Compare(x, y))
	})
	for _, n := range waiting {
		left := a.pending[n].Due.Sub(a.now())
		if left > 0 && a.o.Now != nil {
			a.o.After(left, func() { a.happen(n) })
			continue
		}
		if err := a.carryOut(n); err != nil {
			return fmt.Errorf("do what record %d of the journal announced: %w", n, err)
		}
	}
	return nil
}
