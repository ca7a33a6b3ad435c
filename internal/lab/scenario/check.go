package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// faults are those that a scenario may name.
var faults = []shop.Fault{shop.BadRelease, shop.DeadExporter, shop.PoisonedWorkers, shop.SelfHealing, shop.Unfixable}

// maxFor keeps a scenario to what can be simulated in a moment.
const maxFor = 24 * time.Hour

// checker finds values of the right type that make no scenario.
type checker struct {
	s      Scenario
	faults spec.Faults
}

func check(s Scenario) spec.Faults {
	c := &checker{s: s}
	c.head()
	c.breaks()
	c.people()
	c.right(s.Right)
	c.doings(s.Right)
	return c.faults
}

func (c *checker) fault(pos spec.Position, path, format string, args ...any) {
	c.faults = append(c.faults, spec.Fault{Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) head() {
	s := c.s
	if !spec.ValidName(s.Name) {
		c.fault(s.Pos, "name", "%q is no name, want lower-case letters, digits and dashes", s.Name)
	}
	if s.For < time.Minute || s.For > maxFor {
		c.fault(s.Pos, "for", "%s is not between 1m and %s", s.For, spec.FormatDuration(maxFor))
	}
	if s.Seed < 0 {
		c.fault(s.Pos, "seed", "is negative")
	}
}

func (c *checker) breaks() {
	s := c.s
	if len(s.Faults) == 0 {
		c.fault(s.Pos, "faults", "is empty: a scenario in which nothing breaks proves nothing")
	}
	for i, f := range s.Faults {
		path := spec.IndexPath("faults", i)
		if !slices.Contains(faults, f.Fault) {
			c.fault(f.Pos, path+".fault", "unknown fault %q, want one of %s", f.Fault, words(faults))
		}
		if f.At < 0 || f.At >= s.For {
			c.fault(f.Pos, path+".at", "%s is not within the %s of the scenario", spec.FormatDuration(f.At), spec.FormatDuration(s.For))
		}
	}
}

func (c *checker) people() {
	a := c.s.Answers
	if a == nil {
		return
	}
	if err := approve.CheckPrincipal(a.Who); err != nil {
		c.fault(a.Pos, "answers.who", "%s", err)
	}
	if a.After < 0 {
		c.fault(a.Pos, "answers.after", "is negative")
	}
}

func (c *checker) right(r Right) {
	states := []compare.State{compare.Met, compare.Breached, compare.Unknown}
	if !slices.Contains(shop.Names(), r.Service) {
		c.fault(r.Pos, "right.service", "%q is no service of the shop, want one of %s", r.Service, words(shop.Names()))
	}
	if !slices.Contains(states, r.State) {
		c.fault(r.Pos, "right.state", "unknown state %q, want one of %s", r.State, words(states))
	}
	if r.RecoveredWithin > 0 && r.State != compare.Met {
		c.fault(r.Pos, "right.recoveredWithin", "goes with state met, not %s", r.State)
	}
	if r.RecoveredWithin < 0 || r.RecoveredWithin > c.s.For {
		c.fault(r.Pos, "right.recoveredWithin", "is not within the %s of the scenario", spec.FormatDuration(c.s.For))
	}
}

// doings are what is right to be done, by agent and people.
func (c *checker) doings(r Right) {
	if r.Approved < 0 || r.Approved > len(r.Actions) {
		c.fault(r.Pos, "right.approved", "%d of %d actions cannot be approved", r.Approved, len(r.Actions))
	}
	if r.Approved > 0 && c.s.Answers == nil {
		c.fault(r.Pos, "right.approved", "needs answers: without them nobody approves")
	}
	if r.MaxHarm < 0 {
		c.fault(r.Pos, "right.maxHarm", "is negative")
	}
}

// words lists what may stand somewhere, for people.
func words[T ~string](ws []T) string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
