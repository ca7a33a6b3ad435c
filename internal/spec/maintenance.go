package spec

import (
	"time"
	_ "time/tzdata" // A time zone is known on every host, or on none.
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

// Schedule is a cron start with a duration, in a named time zone.
type Schedule struct {
	Cron     string
	Duration time.Duration
	TimeZone string
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

type scheduleDoc struct {
	Cron     string        `yaml:"cron,required"`
	Duration time.Duration `yaml:"duration,required"`
	TimeZone string        `yaml:"timeZone"`
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
	doc := maintenanceDoc{Spec: maintenanceSpec{Schedule: scheduleDoc{TimeZone: "UTC"}}}
	c := checker{doc: d, faults: d.Decode(&doc)}
	s := doc.Spec
	c.name()
	c.that(len(s.Services) > 0, "spec.services", "is empty: name the services it is for")
	c.unique("spec.services", s.Services)
	c.limits(s.Effect, s.Owner, s.Reason)
	c.between("spec.schedule.duration", s.Schedule.Duration, time.Minute, maxMaintenance)
	if _, err := parseCron(s.Schedule.Cron); err != nil {
		c.fault("spec.schedule.cron", "%s", err)
	}
	if _, err := location(s.Schedule.TimeZone); err != nil {
		c.fault("spec.schedule.timeZone", "%s", err)
	}
	return Maintenance{
		Name: doc.Envelope.Metadata.Name, Services: s.Services, Effect: s.Effect, Schedule: Schedule(s.Schedule),
		Owner: s.Owner, Reason: s.Reason, MutePages: s.MutePages, Pos: d.Pos,
	}, c.faults
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
