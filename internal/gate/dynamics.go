package gate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// How far the brakes on dynamics look back. Both are counted in time and not in
// passes, so that a faster loop finds the same.
const (
	// oscillationWindows is how many action windows.
	oscillationWindows = 12
	// Day is the look back of fight and repeat: what somebody reverts may be
	// reverted by a job that runs hourly, and what a restart buys are hours.
	Day = 24 * time.Hour
)

// MaxFoughtOver is how often a change of ours may be found reverted, and
// MaxBought how often an action may buy time, before people have it.
const (
	MaxFoughtOver = 2
	MaxBought     = 2
)

// Sent is an effect that may have changed something, as the brakes on dynamics
// look at it.
type Sent struct {
	Service, Action, Target string
	Reversal                spec.Reversal
	Parameters              propose.Parameters
	// Before is the target's state at the claim; nil where it could not be asked.
	Before  propose.Live
	At      time.Time
	Undo    bool
	Episode string
	Outcome compare.Outcome
	// Recovering: the outcome is none of the action's doing.
	Recovering bool
}

// Undone is the effect that an undo takes back.
type Undone struct {
	Key    Key
	Target string
	Wrote  propose.Parameters
}

// dynamicFloors stop what makes a loop of itself: people get it, now. An undo is
// exempt, because it is the opposite of an earlier action by what it is; it has
// its own demand instead, that the target still holds what we wrote.
func dynamicFloors(c Case, a spec.Action) []finding {
	if isUndo(c) {
		return undoFloors(c)
	}
	var fs []finding
	add := func(code, text string) {
		if text != "" {
			fs = append(fs, finding{effectEscalate, Reason{Code: code, Text: text}})
		}
	}
	writes := writesOn(c, a.Canonical())
	add(ReasonFight, fight(c, writes))
	add(ReasonOscillation, oscillation(c, writes))
	add(ReasonRepeat, repeat(c, a))
	return fs
}

// writesOn are the effects that set a state of the target, oldest first. What
// leaves the desired state as it is (a restart) has nothing that could swing.
func writesOn(c Case, target string) []Sent {
	var ws []Sent
	for _, s := range c.Facts.Sent {
		if s.Target == target && s.Reversal != spec.Transient && len(s.Parameters) > 0 && c.Facts.Now.Sub(s.At) < Day {
			ws = append(ws, s)
		}
	}
	return ws
}

// oscillation says what of an earlier effect the proposal would turn round:
// A, B and A again, or a number that went up and would go down.
func oscillation(c Case, writes []Sent) string {
	horizon := oscillationWindows * c.Service.Remediation.ActionWindow
	now, p := c.Facts.Now, c.Proposal.Parameters
	moved := false // since the write that is looked at
	for _, w := range slices.Backward(writes) {
		if now.Sub(w.At) >= horizon {
			return ""
		}
		same := holds(propose.Live(w.Parameters), p)
		switch {
		case !same && holds(w.Before, p):
			return fmt.Sprintf("it would put back what %s replaced %s ago (%s): %s", w.Action, ago(now, w.At), shown(w.Parameters), shown(p))
		case same && moved:
			return fmt.Sprintf("it would set again what %s set %s ago, and what was changed since: %s", w.Action, ago(now, w.At), shown(p))
		}
		if name := turned(w, c.Facts.Item, p); name != "" {
			return fmt.Sprintf("%s moved %s one way %s ago, it would move it back", w.Action, name, ago(now, w.At))
		}
		moved = moved || !same
	}
	return ""
}

// turned names a number that the write moved one way and the proposal would
// move the other; "" when there is none.
func turned(w Sent, item propose.Item, p propose.Parameters) string {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		from, ok1 := amount(w.Before[name])
		to, ok2 := amount(w.Parameters[name])
		next, ok3 := amount(p[name])
		here, live := amount(item.Live[name])
		if !item.LiveKnown || !live {
			here = to
		}
		if ok1 && ok2 && ok3 && (to-from)*(next-here) < 0 {
			return name
		}
	}
	return ""
}

// fight counts how often what we wrote was found taken back by somebody else: at
// our next claim on the target, or now. What only moved on is no fight: a release
// after a rollback, an autoscaler that adds one.
func fight(c Case, writes []Sent) string {
	var found []string
	seen := propose.Live{} // what was found before, in whatever was changed
	for i, w := range writes {
		next, at := c.Facts.Item.Live, c.Facts.Now
		if i+1 < len(writes) {
			next, at = writes[i+1].Before, writes[i+1].At
		} else if !c.Facts.Item.LiveKnown {
			continue
		}
		if was, back := takenBack(w, next, seen); back {
			found = append(found, fmt.Sprintf("set to %s at %s, found at %s by %s", shown(w.Parameters), clock(w.At), was, clock(at)))
		}
	}
	if len(found) < MaxFoughtOver {
		return ""
	}
	return fmt.Sprintf("somebody else reverted our change %d times, and it would be made again: %s", len(found), strings.Join(found, "; "))
}

// takenBack reports whether a state that is known is no longer what was written
// and has gone back, and in what. What was found is added to seen.
func takenBack(w Sent, live propose.Live, seen propose.Live) (was string, back bool) {
	var diff []string
	for _, name := range slices.Sorted(maps.Keys(w.Parameters)) {
		have, known := live[name]
		if !known {
			return "", false
		}
		if !equal(have, w.Parameters[name]) {
			diff = append(diff, fmt.Sprintf("%s %v", name, have))
			back = back || wentBack(w, name, have) || equal(have, seen[name])
			seen[name] = have
		}
	}
	return strings.Join(diff, ", "), back
}

// wentBack: to where it was before our write, or for a number at least half of
// the way there. Where nobody knows where it was, any change counts.
func wentBack(w Sent, name string, have any) bool {
	before, known := w.Before[name]
	if !known || equal(before, have) || equal(before, w.Parameters[name]) {
		return true
	}
	from, ok1 := amount(before)
	to, ok2 := amount(w.Parameters[name])
	now, ok3 := amount(have)
	return ok1 && ok2 && ok3 && (to-now)*(to-from) > 0 && 2*math.Abs(to-now) >= math.Abs(to-from)
}

// repeat hands over an action that keeps buying time: it helped, and the same
// breach came back, so that one more looks like success and is a backlog item.
func repeat(c Case, a spec.Action) string {
	var when []string
	var last time.Time
	for _, s := range c.Facts.Sent {
		if s.Service != c.Service.Name || s.Action != a.Name || !s.boughtTime() ||
			c.Facts.Now.Sub(s.At) >= Day || s.Episode != "" && s.Episode == c.Facts.Episode {
			continue
		}
		at := clock(s.At)
		if !last.IsZero() {
			at += fmt.Sprintf(" (%s later)", ago(s.At, last))
		}
		when, last = append(when, at), s.At
	}
	if len(when) < MaxBought {
		return ""
	}
	return fmt.Sprintf("%s bought time %d times in a day, at %s; now, %s later, it would be needed again: the cause is not mended by it",
		a.Name, len(when), strings.Join(when, ", "), ago(c.Facts.Now, last))
}

// boughtTime reports whether it helped, by its own doing.
func (s Sent) boughtTime() bool {
	helped := s.Outcome == compare.OutcomeRecovered || s.Outcome == compare.OutcomeImproved
	return helped && !s.Undo && !s.Recovering
}

// undoFloors let an undo take back what we wrote, and nothing else.
func undoFloors(c Case) []finding {
	u, item := c.Facts.Undoes, c.Facts.Item
	if u == nil {
		return []finding{{effectDeny, Reason{Code: ReasonForeignChange, Text: "no effect is known that this would take back"}}}
	}
	if u.Target != item.Action.Canonical() {
		return []finding{{effectEscalate, Reason{Code: ReasonForeignChange, Text: "the documents name another target now than " + string(u.Key) + " wrote to"}}}
	}
	for _, name := range slices.Sorted(maps.Keys(u.Wrote)) {
		if _, known := c.Proposal.Parameters[name]; !known {
			return []finding{{effectEscalate, Reason{Code: ReasonForeignChange, Text: fmt.Sprintf("nobody knows what %s was before %s, so it cannot be put back", name, u.Key)}}}
		}
	}
	if err := propose.Fits(item.Action, c.Proposal.Parameters); err != nil {
		return []finding{{effectEscalate, Reason{Code: ReasonForeignChange, Text: fmt.Sprintf("%s cannot be taken back by the action of the documents: %s", u.Key, err)}}}
	}
	if !item.LiveKnown {
		return []finding{{effectHold, Reason{Code: ReasonLiveUnknown, Text: fmt.Sprintf("nobody can tell whether the target still holds what %s wrote", u.Key)}}}
	}
	for _, name := range slices.Sorted(maps.Keys(u.Wrote)) {
		if have, known := item.Live[name]; !known || !equal(have, u.Wrote[name]) {
			return []finding{{effectEscalate, Reason{Code: ReasonForeignChange, Text: fmt.Sprintf(
				"the target no longer holds what %s wrote (%s %v, found %v): somebody else changed it, so it is not taken back", u.Key, name, u.Wrote[name], have)}}}
		}
	}
	return nil
}

// unseen names a parameter whose present value nobody knows, or which is none of
// its type, although the action promises to restore it; "" when there is none.
func unseen(c Case, a spec.Action) string {
	if a.Reversal != spec.Restore || isUndo(c) {
		return ""
	}
	for _, p := range a.Parameters {
		if v, known := c.Facts.Item.Live[p.Name]; !known || !c.Facts.Item.LiveKnown || !propose.OfType(p, v) {
			return p.Name
		}
	}
	return ""
}

// holds reports whether a known state has all of the parameters' values.
func holds(live propose.Live, p propose.Parameters) bool {
	if len(live) == 0 || len(p) == 0 {
		return false
	}
	for name, v := range p {
		if have, known := live[name]; !known || !equal(have, v) {
			return false
		}
	}
	return true
}

// equal compares two values as a document or an actuator's JSON gives them.
func equal(a, b any) bool {
	x, ok1 := amount(a)
	y, ok2 := amount(b)
	if ok1 || ok2 {
		return ok1 && ok2 && x == y
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func amount(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// shown are parameters in words, in a stable order.
func shown(p propose.Parameters) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		out = append(out, fmt.Sprintf("%s %v", name, p[name]))
	}
	return strings.Join(out, ", ")
}
