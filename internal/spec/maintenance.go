package spec

import (
	"fmt"
	"time"
)

// Maintenance mutes or limits services for a schedule.
type Maintenance struct {
	Name     string
	Services []string
	// Effect is the highest mode while it applies.
	Effect        Mode
	Schedule      Schedule
	Owner, Reason string
	MutePages     bool
	Pos           Position
}

// Exception limits one service until a date.
type Exception struct {
	Name, Service string
	Effect        Mode
	Until         time.Time
	Owner, Reason string
	Pos           Position
}

type maintenanceDoc struct {
	Envelope envelope        `yaml:",inline"`
	Spec     maintenanceSpec `yaml:"spec,required"`
}

type maintenanceSpec struct {
	Services  []string    `yaml:"services,required"`
	Effect    Mode        `yaml:"effect,required"`
	Schedule  scheduleDoc `yaml:"schedule,required"`
	Owner     string      `yaml:"owner,required"`
	Reason    string      `yaml:"reason,required"`
	MutePages bool        `yaml:"mutePages"`
}

type exceptionDoc struct {
	Envelope envelope      `yaml:",inline"`
	Spec     exceptionSpec `yaml:"spec,required"`
}

type exceptionSpec struct {
	Service string     `yaml:"service,required"`
	Effect  Mode       `yaml:"effect,required"`
	Until   *time.Time `yaml:"until"`
	Owner   string     `yaml:"owner,required"`
	Reason  string     `yaml:"reason,required"`
}

func readMaintenance(d Document) (Maintenance, Faults) {
	doc := maintenanceDoc{}
	c := checker{doc: d, faults: d.Decode(&doc)}
	s := doc.Spec
	c.name()
	c.that(len(s.Services) > 0, "spec.services", "is empty: name the services it is for")
	c.unique("spec.services", s.Services)
	c.limits(s.Effect, s.Owner, s.Reason)
	m := Maintenance{
		Name: doc.Envelope.Metadata.Name, Services: s.Services, Effect: s.Effect, Schedule: c.schedule("spec.schedule", s.Schedule),
		Owner: s.Owner, Reason: s.Reason, MutePages: s.MutePages, Pos: d.Pos,
	}
	return m, c.faults
}

func readException(d Document) (Exception, Faults) {
	doc := exceptionDoc{}
	c := checker{doc: d, faults: d.Decode(&doc)}
	s := doc.Spec
	c.name()
	c.validName("spec.service", s.Service)
	c.limits(s.Effect, s.Owner, s.Reason)
	c.that(s.Until != nil, "spec.until", "is required: an exception ends by itself, e.g. 2026-12-01T00:00:00Z")
	return Exception{
		Name: doc.Envelope.Metadata.Name, Service: s.Service, Effect: s.Effect, Until: deref(s.Until),
		Owner: s.Owner, Reason: s.Reason, Pos: d.Pos,
	}, c.faults
}

// limits checks what a Maintenance and an Exception have in common.
func (c *checker) limits(effect Mode, owner, reason string) {
	c.that(effect != Auto, "spec.effect", "auto limits nothing: want observe, suggest or approval")
	c.that(owner != "", "spec.owner", "is empty: name who answers for it")
	c.that(reason != "", "spec.reason", "is empty: say why, for whoever meets it at night")
}

// Active reports whether the exception still limits its service.
func (e Exception) Active(now time.Time) bool { return now.Before(e.Until) }

// Active reports whether the maintenance applies to a service at that time.
func (m Maintenance) Active(service string, now time.Time) bool {
	for _, s := range m.Services {
		if s == service {
			on, _ := m.Schedule.Active(now)
			return on
		}
	}
	return false
}

// Expired are the exceptions that have ended and are still in the documents, by
// name: somebody has to take them out, or renew them.
func (s Set) Expired(now time.Time) []Exception {
	var out []Exception
	for _, e := range s.Exceptions {
		if !e.Active(now) {
			out = append(out, e)
		}
	}
	return out
}

// Past are the maintenances that will never be on again, by name.
func (s Set) Past(now time.Time) []Maintenance {
	var out []Maintenance
	for _, m := range s.Maintenances {
		if m.Schedule.Past(now) {
			out = append(out, m)
		}
	}
	return out
}

// Mode is the highest mode that the exceptions and maintenances in force leave
// a service at that time, with the one that says so; Auto and "" without any.
// While it is Observe only the rules are asked, and nothing is done.
func (s Set) Mode(service string, now time.Time) (mode Mode, why string) {
	mode = Auto
	lower := func(to Mode, kind, name, reason string) {
		if to < mode {
			mode, why = to, fmt.Sprintf("%s %s allows %s at most: %s", kind, name, to, reason)
		}
	}
	for _, e := range s.Exceptions {
		if e.Service == service && e.Active(now) {
			lower(e.Effect, "exception", e.Name, e.Reason)
		}
	}
	for _, m := range s.Maintenances {
		if m.Active(service, now) {
			lower(m.Effect, "maintenance", m.Name, m.Reason)
		}
	}
	return mode, why
}
