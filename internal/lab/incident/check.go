package incident

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The bounds keep an incident to what is simulated in moments.
const (
	maxFor   = 48 * time.Hour
	minSweep = time.Second
)

// checker finds values of the right type that make no incident. The documents
// are loaded for it: a right answer about a service that nobody declares would
// be true for ever.
type checker struct {
	in     Incident
	set    spec.Set
	slis   map[string]bool // service/sli
	faults spec.Faults
}

func check(in Incident) spec.Faults {
	c := &checker{in: in, slis: map[string]bool{}}
	c.head()
	set, err := documents(in)
	if err != nil {
		return append(c.faults, faultsOf(in.Pos.File, err)...)
	}
	c.set = set
	c.traffic()
	c.effects()
	c.targets()
	c.proposals()
	c.people()
	c.times()
	c.right(in.Right)
	return c.faults
}

func (c *checker) fault(pos spec.Position, path, format string, args ...any) {
	c.faults = append(c.faults, spec.Fault{Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

// within checks a time of the run.
func (c *checker) within(pos spec.Position, path string, ds ...time.Duration) {
	for _, d := range ds {
		if d < 0 || d > c.in.For {
			c.fault(pos, path, "%s is not within the %s of the incident", spec.FormatDuration(d), spec.FormatDuration(c.in.For))
		}
	}
}

func (c *checker) head() {
	in := c.in
	if !spec.ValidName(in.Name) {
		c.fault(in.Pos, "incident", "%q is no name, want letters, digits and dashes", in.Name)
	}
	if in.For < time.Minute || in.For > maxFor {
		c.fault(in.Pos, "for", "%s is not between 1m and %s", spec.FormatDuration(in.For), spec.FormatDuration(maxFor))
	}
	if len(in.Sweeps) == 0 {
		c.fault(in.Pos, "sweeps", "is empty: nothing would ever look")
	}
	for i, d := range in.Sweeps {
		if d < minSweep || d > in.For {
			c.fault(in.Pos, spec.IndexPath("sweeps", i), "%s is not between %s and the length of the incident",
				spec.FormatDuration(d), spec.FormatDuration(minSweep))
		}
	}
}

func (c *checker) traffic() {
	for i, s := range c.in.SLIs {
		path := spec.IndexPath("slis", i)
		c.course(s, path)
		for _, name := range s.services() {
			c.service(s.Pos, path+".service", name)
			key := name + "/" + s.SLI
			if c.slis[key] {
				c.fault(s.Pos, path+".sli", "%s is there twice", key)
			}
			c.slis[key] = true
		}
	}
}

// course checks one SLI's values.
func (c *checker) course(s SLI, path string) {
	if len(s.Requests) == 0 {
		c.fault(s.Pos, path+".requests", "is empty: give requests a second")
	}
	if (len(s.Errors) == 0) == (len(s.Success) == 0) {
		c.fault(s.Pos, path, "want either errors or success, the share of the requests")
	}
	if s.Every <= 0 {
		c.fault(s.Pos, path+".every", "is not positive")
	}
	for _, p := range append(slices.Clone(s.Errors), s.Success...) {
		if p.Value > 1 {
			c.fault(s.Pos, path, "a share of %g is more than all requests", p.Value)
		}
	}
}

func (c *checker) service(pos spec.Position, path, name string) {
	if _, ok := c.set.Service(name); !ok {
		c.fault(pos, path, "%q is no service of the documents", name)
	}
}

func (c *checker) action(pos spec.Position, path, service, name string) {
	svc, ok := c.set.Service(service)
	if !ok {
		c.fault(pos, path, "%q is no service of the documents", service)
		return
	}
	if _, ok := svc.Action(name); !ok {
		c.fault(pos, path, "%q is no action of %s", name, service)
	}
}

func (c *checker) effects() {
	for i, e := range c.in.Effects {
		path := spec.IndexPath("effects", i)
		c.action(e.Pos, path+".action", e.Service, e.Action)
		if e.Nth < 0 || e.After < 0 {
			c.fault(e.Pos, path, "nth and after are not negative")
		}
		for j, s := range e.Then {
			at := spec.IndexPath(path+".then", j)
			c.course(s, at)
			for _, name := range s.services() {
				if !c.slis[name+"/"+s.SLI] {
					c.fault(s.Pos, at, "%s/%s is none of slis", name, s.SLI)
				}
			}
		}
	}
}

func (c *checker) targets() {
	paths := targetPaths(c.set)
	for i, t := range c.in.Targets {
		path := spec.IndexPath("targets", i)
		if !slices.Contains(paths, t.Path) {
			c.fault(t.Pos, path+".path", "%q is the path of no action's target", t.Path)
		}
		if err := (executetest.Treatment{Mode: t.Mode, Delay: t.Delay}).Check(); err != nil {
			c.fault(t.Pos, path+".mode", "%s", err)
		}
		if t.Mode == executetest.ModeHang {
			c.fault(t.Pos, path+".mode", "hang waits in real time: take drop-reply, which loses the answer as well")
		}
		if t.Next < 0 {
			c.fault(t.Pos, path+".next", "is negative")
		}
		for j, f := range t.Foreign {
			c.within(f.Pos, spec.IndexPath(path+".foreign", j)+".at", f.At)
		}
	}
}

func (c *checker) proposals() {
	for i, p := range c.in.Proposes {
		path := spec.IndexPath("proposes", i)
		c.within(p.Pos, path, p.From, p.Until)
		if p.Service != "" {
			c.service(p.Pos, path+".service", p.Service)
		}
		if p.Service != "" && p.Propose.Kind == propose.KindAction {
			c.action(p.Pos, path+".propose.action", p.Service, p.Propose.Action)
		}
	}
}

func (c *checker) people() {
	for i, a := range c.in.Answers {
		path := spec.IndexPath("answers", i)
		if err := approve.CheckPrincipal(a.Who); err != nil {
			c.fault(a.Pos, path+".who", "%s", err)
		}
		if a.After < 0 {
			c.fault(a.Pos, path+".after", "is negative")
		}
		if a.Service != "" {
			c.service(a.Pos, path+".service", a.Service)
		}
	}
	c.holds("freezes", c.in.Freezes)
	c.holds("silences", c.in.Silences)
	for i, s := range c.in.Silences {
		c.service(s.Pos, spec.IndexPath("silences", i)+".service", s.Service)
	}
}

// holds checks freezes or silences.
func (c *checker) holds(key string, fs []Freeze) {
	for i, f := range fs {
		path := spec.IndexPath(key, i)
		if err := approve.CheckPrincipal(f.Who); err != nil {
			c.fault(f.Pos, path+".who", "%s", err)
		}
		c.span(f.Pos, path, f.From, f.Until)
	}
}

func (c *checker) times() {
	if r := c.in.Restarts; r != nil {
		c.span(r.Pos, "restarts", r.From, r.Until)
		if r.Every < time.Second {
			c.fault(r.Pos, "restarts.every", "is less than 1s")
		}
	}
	for i, s := range c.in.Unreachable {
		c.span(s.Pos, spec.IndexPath("unreachable", i), s.From, s.Until)
	}
}

func (c *checker) span(pos spec.Position, path string, from, until time.Duration) {
	c.within(pos, path, from, until)
	if until <= from {
		c.fault(pos, path+".until", "is not after from")
	}
}

func (c *checker) right(r Right) {
	for _, name := range sorted(keys(r.Effects), keys(r.Outcomes), keys(r.Approvals), keys(r.State), keys(r.Said), keys(r.Last), keys(r.Sent)) {
		c.service(r.Pos, "right", name)
	}
	for name, actions := range r.Effects {
		for _, a := range actions {
			c.action(r.Pos, spec.KeyPath("right.effects", name), name, strings.TrimPrefix(a, undoPrefix))
		}
	}
	for name, s := range r.State {
		if !slices.Contains([]compare.State{compare.Met, compare.Breached, compare.Unknown}, s) {
			c.fault(r.Pos, spec.KeyPath("right.state", name), "unknown state %q, want met, breached or unknown", s)
		}
	}
	for name, v := range r.Last {
		if !slices.Contains(verdicts(), v.Verdict) {
			c.fault(v.Pos, spec.KeyPath("right.last", name), "unknown verdict %q, want one of %s", v.Verdict, strings.Join(verdicts(), ", "))
		}
	}
	if len(r.State) == 0 {
		c.fault(r.Pos, "right.state", "is empty: say how it ends")
	}
	c.never(r)
}

// never checks that what must not be done could be.
func (c *checker) never(r Right) {
	known := map[string]bool{}
	for _, svc := range c.set.Services {
		for _, a := range svc.Remediation.Actions {
			known[a.Name] = true
		}
	}
	for i, a := range r.Never {
		if !known[a] {
			c.fault(r.Pos, spec.IndexPath("right.never", i), "%q is no action of the documents", a)
		}
	}
}

// sorted are the names of several lists, once each.
func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

func keys[V any](m map[string]V) []string { return slices.Collect(maps.Keys(m)) }
