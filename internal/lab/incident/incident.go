// Package incident rebuilds incidents that happened: it takes a file that says
// what broke, what a proposer would have wanted and what is right, plays it
// through the whole loop in simulated time, and gives what the oracles say.
//
// The loop, its floors, the shipped policy, PromQL in Prometheus's own engine,
// webhooks over loopback and the freeze files are the product's. Traffic, time,
// the actuators, people, the proposer's script and the ledger's storage, which
// is in memory, are not. What happened is read from what no proposer can reach:
// the actuators' journals, the ledger, the pager and the engine.
package incident

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Incident is one file. Times within it count from Start, and the agent runs
// since a while before, so that its documents are news no longer.
type Incident struct {
	Name string `yaml:"incident,required"`
	// Source is where the incident is told in public, What happened there, and
	// Why what Right says is right.
	Source string `yaml:"source,required"`
	What   string `yaml:"what,required"`
	Why    string `yaml:"why,required"`
	// Start is when the courses begin; the healthy hours that the long windows
	// need come before it. For is how long they are followed.
	Start time.Time     `yaml:"start"`
	For   time.Duration `yaml:"for,required"`
	// Sweeps are intervals between passes. The incident is played once with
	// each, and what was done must not depend on it.
	Sweeps []time.Duration `yaml:"sweeps"`
	// Documents are those that a user writes; Policy is a whole bundle of one
	// file, the shipped one when absent.
	Documents []Text `yaml:"documents,required"`
	Policy    *Text  `yaml:"policy"`
	// Limits and Budget are those of setpoint.yaml.
	Limits config.Limits `yaml:"limits"`
	Budget config.Budget `yaml:"budget"`
	// SLIs are the traffic, Effects how what is done changes it.
	SLIs    []SLI    `yaml:"slis,required"`
	Effects []Effect `yaml:"effects"`
	// Targets are the actuators that are not plain.
	Targets  []Target  `yaml:"targets"`
	Proposes []Propose `yaml:"proposes"`
	Answers  []Answer  `yaml:"answers"`
	Freezes  []Freeze  `yaml:"freezes"`
	// Silences are those of an Alertmanager: each is of one service's pages.
	Silences []Freeze  `yaml:"silences"`
	Restarts *Restarts `yaml:"restarts"`
	// Unreachable are times in which the source of measurement does not answer.
	Unreachable []Span        `yaml:"unreachable"`
	Right       Right         `yaml:"right,required"`
	Pos         spec.Position `yaml:",pos"`
}

// Text is a block of text in another language, for one service or for several:
// with For, each of them gets its own copy, with ${service} replaced.
type Text struct {
	For  []string
	Text string
	// Pos is the line before the first of the text.
	Pos spec.Position
}

// SLI is one counter of requests by result, named by its labels service and sli.
type SLI struct {
	Service string `yaml:"service,required"`
	// Services, when given, are those that share the courses: Service is then
	// the first of them.
	Also     []string `yaml:"also"`
	SLI      string   `yaml:"sli,required"`
	Requests Course   `yaml:"requests,required"`
	// Errors or Success is the share of the requests that fail, or do not.
	Errors  Course `yaml:"errors"`
	Success Course `yaml:"success"`
	// Every is how long a value without a length lasts.
	Every time.Duration `yaml:"every"`
	Pos   spec.Position `yaml:",pos"`
}

// SetDefaults fills in what need not be said.
func (s *SLI) SetDefaults() { s.Every = time.Minute }

// Effect is what follows when an actuator carries something out.
type Effect struct {
	Service string `yaml:"service,required"`
	Action  string `yaml:"action,required"`
	// With are parameters that it must have come with; Nth, from 1, counts those
	// that fit; 0 is each of them.
	With propose.Parameters `yaml:"with"`
	Nth  int                `yaml:"nth"`
	// After is how long it takes until the courses in Then begin.
	After time.Duration `yaml:"after"`
	Then  []SLI         `yaml:"then"`
	// Set is what somebody writes to the target then, beside the parameters.
	Set map[string]any `yaml:"set"`
	Pos spec.Position  `yaml:",pos"`
}

// Target is an actuator: a state that it reports, and how it treats requests.
type Target struct {
	// Path is that of its URL.
	Path  string         `yaml:"path,required"`
	State map[string]any `yaml:"state"`
	// Mode is one of executetest's; Next is for so many requests, 0 is all.
	Mode  executetest.Mode `yaml:"mode"`
	Delay time.Duration    `yaml:"delay"`
	Next  int              `yaml:"next"`
	// Foreign is written by somebody else.
	Foreign []Foreign     `yaml:"foreign"`
	Pos     spec.Position `yaml:",pos"`
}

// SetDefaults fills in what need not be said.
func (t *Target) SetDefaults() { t.Mode = executetest.ModeOK }

// Foreign is one write that is not ours.
type Foreign struct {
	At  time.Duration  `yaml:"at,required"`
	Set map[string]any `yaml:"set,required"`
	Pos spec.Position  `yaml:",pos"`
}

// Propose is a line of the proposer's script, first match wins; no match is
// none. It stands for a model, good or bad, and no model was asked.
type Propose struct {
	Service string        `yaml:"service"`
	From    time.Duration `yaml:"from"`
	Until   time.Duration `yaml:"until"`
	Propose Proposal      `yaml:"propose,required"`
	Pos     spec.Position `yaml:",pos"`
}

// Proposal is none, escalate, or an action with parameters.
type Proposal struct {
	Kind       propose.Kind
	Action     string
	Parameters propose.Parameters
}

// Answer is how a person answers a ticket that has waited long enough.
type Answer struct {
	// Service and Action limit it; both may be absent.
	Service string        `yaml:"service"`
	Action  string        `yaml:"action"`
	Who     string        `yaml:"who,required"`
	Approve bool          `yaml:"approve,required"`
	After   time.Duration `yaml:"after,required"`
	Pos     spec.Position `yaml:",pos"`
}

// Freeze is a freeze or a silence by a person, and its end.
type Freeze struct {
	Service string        `yaml:"service"`
	Who     string        `yaml:"who,required"`
	Reason  string        `yaml:"reason,required"`
	From    time.Duration `yaml:"from,required"`
	Until   time.Duration `yaml:"until,required"`
	Pos     spec.Position `yaml:",pos"`
}

// Restarts replace the agent by a new process over the same ledger.
type Restarts struct {
	From  time.Duration `yaml:"from"`
	Every time.Duration `yaml:"every,required"`
	Until time.Duration `yaml:"until,required"`
	Pos   spec.Position `yaml:",pos"`
}

// Span is a part of the time.
type Span struct {
	From  time.Duration `yaml:"from,required"`
	Until time.Duration `yaml:"until,required"`
	Pos   spec.Position `yaml:",pos"`
}

// Right is what must have happened, by service; what is not named must not have
// happened. Doubles, acts on what is unknown, and effects above the caps are
// never right and need no line.
type Right struct {
	// Effects are the actions that the actuators' journals hold, in order.
	Effects map[string][]string `yaml:"effects,required"`
	// Outcomes are what measurement said of them, in order.
	Outcomes map[string][]compare.Outcome `yaml:"outcomes"`
	// Approvals are the tickets in order, each as "action end".
	Approvals map[string][]string `yaml:"approvals"`
	// Pages are the reasons for which people were told, in order: by service, or
	// by id for a page that belongs to none. "reason to NAME" went to another
	// receiver than oncall. Acting and recovering only say how a page goes on
	// and are left out.
	Pages map[string][]string `yaml:"pages,required"`
	// State is that of each service at the end, by the engine.
	State map[string]compare.State `yaml:"state,required"`
	// Never are actions that must not even have been asked for or claimed.
	Never []string `yaml:"never"`
	// Said are reasons that decisions or steps gave at some time.
	Said map[string][]string `yaml:"said"`
	// Last is the newest decision.
	Last map[string]Verdict `yaml:"last"`
	// Sent is how many requests came to the actuators, where that is not the
	// number of effects.
	Sent map[string]int `yaml:"sent"`
	// MaxPerHour is the most effects of one service within any hour.
	MaxPerHour int           `yaml:"maxPerHour"`
	Pos        spec.Position `yaml:",pos"`
}

// Verdict is what a decision said: the word, and reasons that it must give.
type Verdict struct {
	Verdict string        `yaml:"verdict,required"`
	Reasons []string      `yaml:"reasons"`
	Pos     spec.Position `yaml:",pos"`
}

// verdicts are the words of a decision.
func verdicts() []string {
	return []string{gate.Deny.String(), gate.Escalate.String(), gate.Approval.String(), gate.Auto.String()}
}

// newIncident holds the defaults that a file's keys replace: those of
// setpoint.yaml, but maxMode, since an incident is about what may be done alone.
func newIncident() Incident {
	d := config.Default()
	d.Limits.MaxMode = spec.Auto
	return Incident{
		// A Monday, in the morning.
		Start:  time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC),
		Sweeps: []time.Duration{d.Sweep.Interval}, Limits: d.Limits, Budget: d.Budget,
	}
}
