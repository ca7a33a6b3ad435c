// Package people asks whether the on-call knows. It runs the real loop, one or two
// replicas of it, against services that break, and against receivers, a channel
// for approvals, a ledger, a model, a policy and people that fail in windows drawn
// from a seed. What has to be true is computed from the numbers that were fed in
// and from who was up when, and from nothing that the loop recorded: for each SLO
// that is missed for longer than the bound, somebody is shown an open page.
//
// Play must be called in a bubble of testing/synctest, where hours take moments.
package people

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Fault is what can go wrong for a while.
type Fault string

// The faults. Those of a receiver and of a service name which one.
const (
	// Down, Hang, LostReply and Slow are those of a receiver.
	Down      Fault = "receiver down"
	Hang      Fault = "receiver hangs"
	LostReply Fault = "receiver loses the reply"
	Slow      Fault = "receiver is slow"
	// The channel for approvals refuses, posts and loses the reply, asks to be
	// left alone, hangs, or has somebody who deletes what is posted.
	BoardDown    Fault = "channel down"
	BoardLost    Fault = "channel loses the reply"
	BoardLimited Fault = "channel limits"
	BoardHangs   Fault = "channel hangs"
	BoardDeleted Fault = "cards are deleted"
	// ReadOnly and Unreadable are those of the ledger.
	ReadOnly   Fault = "ledger cannot be written"
	Unreadable Fault = "ledger cannot be read"
	Frozen     Fault = "frozen"
	NoPolicy   Fault = "policy fault"
	Mute       Fault = "model is silent"
	NoIdea     Fault = "model proposes nothing"
	Miss       Fault = "SLO missed"
	Dark       Fault = "service unknown"
	NoSource   Fault = "source down"
)

// Window is one fault for a while, counted from the start.
type Window struct {
	Fault    Fault
	Of       string
	From, To time.Duration
}

func (w Window) String() string { return fmt.Sprintf("%s %s %s to %s", w.Fault, w.Of, w.From, w.To) }

// Answer is what the person on call does with a card.
type Answer string

// The answers.
const (
	Ignores  Answer = "ignores"
	Approves Answer = "approves"
	Denies   Answer = "denies"
)

// Service is one service of a plan.
type Service struct {
	Name      string
	Mode      spec.Mode
	Class     spec.Class
	DependsOn []string
	// Helps: its action mends it. Doubtful: its actuator loses the answer.
	Helps, Doubtful bool
	Answer          Answer
}

// Plan is one play.
type Plan struct {
	Seed     uint64
	Theme    string
	Services []Service
	Windows  []Window
	// Receivers by name, in order; the last one may be left out of a page's list.
	Receivers []string
	// Board: there is a channel for approvals.
	Board bool
	// Replicas are one or two. One of them dies at Dies, when that is not zero;
	// a lone one is started again after Gone.
	Replicas   int
	Dies, Gone time.Duration
	// Acks: somebody acknowledges the first page that is shown.
	Acks bool
	// Capacity of the budget of each action.
	Capacity float64
}

// What a play lasts, and the healthy time at its begin, which a loop needs before
// it may act.
const (
	length  = 95 * time.Minute
	healthy = 12 * time.Minute
	sweep   = 30 * time.Second
)

// Draw makes the plan of a seed.
func Draw(seed uint64) Plan {
	//nolint:gosec // A play has to be repeatable, not secret.
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 1))}
	p := &d.plan
	theme := themes()[seed%uint64(len(themes()))]
	p.Seed, p.Theme = seed, theme.name
	p.Receivers = []string{"first", "second", "chat"}[:2+d.IntN(2)]
	p.Board, p.Replicas, p.Capacity = d.IntN(4) > 0, 1+d.IntN(2), float64(1+d.IntN(3))
	p.Acks = d.IntN(4) == 0
	for i := range 2 + d.IntN(3) {
		p.Services = append(p.Services, d.service(fmt.Sprintf("s%d", i)))
	}
	d.miss("s0")
	for _, s := range p.Services[1:] {
		if d.IntN(2) == 0 {
			d.miss(s.Name)
		}
	}
	theme.set(d, &p.Services[0])
	for range d.IntN(3) {
		d.something()
	}
	return *p
}

type drawer struct {
	*rand.Rand
	plan Plan
}

func (d *drawer) service(name string) Service {
	s := Service{Name: name, Mode: spec.Auto, Class: spec.ClassApproval, Helps: d.IntN(3) == 0}
	if d.IntN(3) == 0 {
		s.Mode = spec.Approval
	}
	if d.IntN(2) == 0 {
		s.Class = spec.ClassAuto
	}
	s.Answer = []Answer{Ignores, Approves, Denies}[d.IntN(3)]
	return s
}

// miss breaks a service for long enough that people have to know.
func (d *drawer) miss(name string) {
	from := healthy + d.minutes(1, 8)
	d.add(Miss, name, from, from+d.minutes(35, 70))
}

func (d *drawer) minutes(least, most int) time.Duration {
	return time.Duration(60*least+d.IntN(60*(most-least)))*time.Second + time.Duration(d.IntN(1000))*time.Millisecond
}

func (d *drawer) add(f Fault, of string, from, to time.Duration) {
	d.plan.Windows = append(d.plan.Windows, Window{Fault: f, Of: of, From: from, To: min(to, length)})
}

// during adds a fault that covers the time at which people have to be told, or
// ends within it.
func (d *drawer) during(f Fault, of string) {
	from := healthy + d.minutes(0, 20)
	d.add(f, of, from, from+d.minutes(3, 50))
}

// throughout adds a fault over the whole of the missing.
func (d *drawer) throughout(f Fault, of string) { d.add(f, of, healthy, length) }

// theme is what a play is mostly about.
type theme struct {
	name string
	set  func(d *drawer, first *Service)
}

// themes come up in turn, so that a few seeds see all of them; chance mixes in the
// rest.
func themes() []theme {
	pick := func(d *drawer, fs ...Fault) Fault { return fs[d.IntN(len(fs))] }
	return append([]theme{
		{"nothing", func(*drawer, *Service) {}},
		{"first receiver", func(d *drawer, _ *Service) { d.throughout(pick(d, Down, Hang, LostReply), "first") }},
		{"all receivers", func(d *drawer, _ *Service) {
			for _, name := range d.plan.Receivers {
				d.add(Down, name, healthy, healthy+d.minutes(24, 45))
			}
		}},
		{"channel", func(d *drawer, first *Service) {
			d.plan.Board, first.Class, first.Answer = true, spec.ClassApproval, Approves
			d.throughout(pick(d, BoardDown, BoardLost, BoardHangs), "")
		}},
		{"deleted", func(d *drawer, first *Service) {
			d.plan.Board, first.Class, first.Answer = true, spec.ClassApproval, Ignores
			d.throughout(BoardDeleted, "")
		}},
		{"limits", func(d *drawer, first *Service) {
			d.plan.Board, first.Class = true, spec.ClassApproval
			d.during(BoardLimited, "")
		}},
		{"nobody answers", func(_ *drawer, first *Service) { first.Class, first.Answer = spec.ClassApproval, Ignores }},
		{"denied", func(_ *drawer, first *Service) { first.Class, first.Answer = spec.ClassApproval, Denies }},
		{"frozen", func(d *drawer, _ *Service) { d.during(Frozen, "") }},
		{"policy", func(d *drawer, _ *Service) { d.during(NoPolicy, "") }},
		{"model", func(d *drawer, _ *Service) { d.throughout(pick(d, Mute, NoIdea), "") }},
		{"ledger", func(d *drawer, _ *Service) { d.during(pick(d, ReadOnly, Unreadable), "") }},
		{"blind", func(d *drawer, _ *Service) { d.during(pick(d, Dark, NoSource), "s0") }},
	}, more()...)
}

// more are the themes about services and processes.
func more() []theme {
	return []theme{
		{"storm", (*drawer).storm},
		{"budget", func(d *drawer, first *Service) {
			first.Class, first.Mode, first.Helps, first.Answer, d.plan.Capacity = spec.ClassAuto, spec.Auto, false, Ignores, 1
		}},
		{"dependency", func(d *drawer, _ *Service) {
			d.plan.Services[1].DependsOn = []string{"s0"}
			d.miss("s1")
		}},
		{"observe", func(_ *drawer, first *Service) { first.Mode = spec.Observe }},
		{"replica", func(d *drawer, _ *Service) { d.plan.Replicas, d.plan.Dies = 2, healthy+d.minutes(1, 45) }},
		{"restart", func(d *drawer, _ *Service) {
			d.plan.Replicas, d.plan.Dies, d.plan.Gone = 1, healthy+d.minutes(1, 45), d.minutes(0, 3)
		}},
		{"doubt", func(_ *drawer, first *Service) {
			first.Class, first.Mode, first.Doubtful = spec.ClassAuto, spec.Auto, true
		}},
		{"void", func(d *drawer, first *Service) {
			// The freeze comes after the asking, and before the answer is acted on.
			first.Class, first.Mode, first.Answer = spec.ClassApproval, spec.Auto, Approves
			asked := d.plan.Windows[0].From + 110*time.Second
			d.add(Frozen, "", asked, asked+45*time.Minute)
		}},
	}
}

func (d *drawer) storm(*Service) {
	p := &d.plan
	for len(p.Services) < 4 {
		p.Services = append(p.Services, d.service(fmt.Sprintf("s%d", len(p.Services))))
	}
	for _, s := range p.Services[1:] {
		d.miss(s.Name)
	}
}

// something adds a fault that the theme does not ask for.
func (d *drawer) something() {
	p := &d.plan
	anyOf := func(names []string) string { return names[d.IntN(len(names))] }
	switch d.IntN(6) {
	case 0:
		d.during([]Fault{Down, Hang, LostReply, Slow}[d.IntN(4)], anyOf(p.Receivers))
	case 1:
		d.during([]Fault{BoardDown, BoardLost, BoardLimited, BoardHangs, BoardDeleted}[d.IntN(5)], "")
	case 2:
		d.during([]Fault{Frozen, NoPolicy, Mute, NoIdea}[d.IntN(4)], "")
	case 3:
		if p.Dies == 0 {
			d.during([]Fault{ReadOnly, Unreadable}[d.IntN(2)], "")
		}
	case 4:
		d.during(Dark, p.Services[d.IntN(len(p.Services))].Name)
	case 5:
		d.during(NoSource, "")
	}
}
