// Package spec is the desired state: what each service promises (its SLOs),
// and what may be done about it (its Remediation).
//
// It takes documents as bytes and gives a Set, or every Fault found in them
// with file, line and path. It reads no file and knows no clock.
package spec

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Group is the API group and version of Setpoint's own kinds.
const Group = "setpoint.dev/v1alpha1"

// Set is everything that was loaded at once. Its slices are sorted by name,
// so that two loads of the same files give equal Sets.
type Set struct {
	Services     []Service
	Maintenances []Maintenance
	Exceptions   []Exception
	// Notes name documents that were read but have no effect in this version.
	Notes []Note
	// Digest is the SHA-256 over the digests of all documents, hex.
	Digest string
}

// Service returns the service of that name.
func (s Set) Service(name string) (Service, bool) {
	i, ok := slices.BinarySearchFunc(s.Services, name, func(svc Service, name string) int { return cmp.Compare(svc.Name, name) })
	if !ok {
		return Service{}, false
	}
	return s.Services[i], true
}

// Note is a remark on a document that is no fault.
type Note struct {
	Pos  Position
	Text string
	// Lint is the code of a finding that most often is a mistake, e.g.
	// other-service; "" for a plain remark.
	Lint string
}

// Service is one service with the objectives that judge it and the one
// Remediation that says what may be done when they are missed.
type Service struct {
	Name string
	// Objectives are sorted by ID.
	Objectives []Objective
	// Remediation holds the defaults (mode observe, no actions) when no
	// document declares one; then its Name is empty.
	Remediation Remediation
	// Digest is the SHA-256 over this service's SLOs and Remediation, hex. A new digest
	// limits actions to approval until one holdFor without an episode.
	Digest string
}

// Action returns the action of that name.
func (s Service) Action(name string) (Action, bool) {
	for _, a := range s.Remediation.Actions {
		if a.Name == name {
			return a, true
		}
	}
	return Action{}, false
}

// Mode is how much a service's Remediation may do, from least to most.
type Mode int8

// The modes, in rising order.
const (
	Observe Mode = iota
	Suggest
	Approval
	Auto
)

var modeWords = [...]string{"observe", "suggest", "approval", "auto"}

// String returns the word used in documents.
func (m Mode) String() string {
	if m < Observe || m > Auto {
		return fmt.Sprintf("mode(%d)", int8(m))
	}
	return modeWords[m]
}

// MarshalText returns the word used in documents.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText accepts exactly the four words.
func (m *Mode) UnmarshalText(b []byte) error {
	for i, w := range modeWords {
		if w == string(b) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("unknown mode %q, want observe, suggest, approval or auto", b)
}

// Class is the highest verdict that an action may get.
type Class string

// The classes of an action.
const (
	ClassAuto     Class = "auto"
	ClassApproval Class = "approval"
	ClassEscalate Class = "escalate"
)

// Reversal says how an action is taken back.
type Reversal string

// The reversals of an action.
const (
	// Transient leaves the desired state unchanged: restart, evict, flush.
	Transient Reversal = "transient"
	// Restore is undone by the same action with the parameters observed at the
	// claim.
	Restore Reversal = "restore"
	// Irreversible actions need a person.
	Irreversible Reversal = "irreversible"
)

// Mark says how an actuator can be asked later what became of an effect.
type Mark string

// The marks of an action.
const (
	MarkDedup       Mark = "dedup"
	MarkConditional Mark = "conditional"
	MarkQuery       Mark = "query"
	MarkUnmarked    Mark = "unmarked"
)

// Remediation is the kind of that name: what may be done for one service.
type Remediation struct {
	Name, Service, Owner string
	Mode                 Mode
	// ActionWindow is the length of a window_id: at most one action in each.
	ActionWindow time.Duration
	// BreachFor is a further debounce before anything is proposed.
	BreachFor time.Duration
	// HoldFor is how long Met must hold to end an episode.
	HoldFor time.Duration
	// UnknownFor is how long Unknown may last before it pages as blind.
	UnknownFor time.Duration
	// EscalateWithin bounds how long a miss without a permitted step stays
	// unpaged; two action windows when absent.
	EscalateWithin time.Duration
	ApprovalFor    time.Duration
	Approvers      []string
	DependsOn      []string
	Evidence       []Evidence
	// Actions keep the document's order, which is the order of the catalogue.
	Actions    []Action
	Budget     Budget
	Outcomes   Outcomes
	Escalation Escalation
	Pos        Position
	// Where finds the place of each value of the document.
	Where Positions `json:"-"`
}

// Evidence is a further read-only query whose numbers are shown to the model,
// one for each combination of Labels.
type Evidence struct {
	Name  string
	Query Query
	// Labels are those that tell the numbers apart. Their names are sent, their
	// values stand under placeholders.
	Labels []string
	// ShowValues are the labels among them whose values are sent as they are:
	// whoever can write one of them writes into the prompt.
	ShowValues []string
}

// Budget is the autonomy error budget of each action of a service.
type Budget struct {
	Period   time.Duration
	Capacity float64
	Costs    Costs
}

// Costs are what a judged outcome leaves charged. Every other outcome is free.
type Costs struct {
	NoChange float64 `json:"noChange"`
	Worsened float64 `json:"worsened"`
	Unknown  float64 `json:"unknown"`
}

// Dearest is what a claim is charged until its outcome is measured.
func (c Costs) Dearest() float64 { return max(c.NoChange, c.Worsened, c.Unknown) }

// Outcomes are shares of the excess (error ratio above 1 - target).
type Outcomes struct {
	// Improved: the excess fell by at least this share (0.5).
	Improved float64
	// Worsened: the excess rose by at least this share (0.2).
	Worsened float64
}

// Escalation names who is told.
type Escalation struct {
	// Receivers are tried in order; each must exist in setpoint.yaml.
	Receivers      []string
	OwnerReceivers []string
	// Observe: page in mode observe too.
	Observe bool
}

// Action is one entry of the typed catalogue. It states a target, never a
// change.
type Action struct {
	Name string `json:"name"`
	// Uses is executor.verb, e.g. webhook.post.
	Uses        string        `json:"uses"`
	Target      Target        `json:"target"`
	Class       Class         `json:"class"`
	Reversal    Reversal      `json:"reversal"`
	Settle      time.Duration `json:"settle"`
	Cooldown    time.Duration `json:"cooldown"`
	Timeout     time.Duration `json:"timeout"`
	MaxLateness time.Duration `json:"maxLateness"`
	// Parameters are sorted by name; all are required.
	Parameters []Parameter `json:"parameters"`
	Pos        Position    `json:"-"`
}

// Executor returns the part of Uses before the dot.
func (a Action) Executor() string {
	for i := range a.Uses {
		if a.Uses[i] == '.' {
			return a.Uses[:i]
		}
	}
	return a.Uses
}

// Mark is what the action's target lets Setpoint ask later. A dedup claim
// needs a proof that only a probe of the actuator gives, so without one an
// action with a statusURL is query. So is one with a statusArgv.
func (a Action) Mark() Mark {
	if a.Target.StatusURL != "" || len(a.Target.StatusArgv) > 0 {
		return MarkQuery
	}
	return MarkUnmarked
}

// Horizon is how long after the start a lost effect may still land.
func (a Action) Horizon() time.Duration { return a.Timeout + a.MaxLateness }

// Canonical names the target for locks: executor plus URL without query, or
// plus the program and its arguments that are not parameters. Two actions with
// one canonical target never run at the same time.
func (a Action) Canonical() string {
	if len(a.Target.Argv) > 0 {
		return commandTarget(a.Target.Argv)
	}
	u, err := url.Parse(a.Target.URL)
	if err != nil {
		return a.Executor() + " " + a.Target.URL
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	u.Scheme, u.Host = strings.ToLower(u.Scheme), canonicalHost(u)
	// One spelling of the path, without a slash at its end: what is taken for the
	// same is locked together, which does no harm.
	u.Path, u.RawPath = path.Clean("/"+u.Path), ""
	return a.Executor() + " " + u.String()
}

// canonicalHost is one spelling of where a URL leads: names are not told apart by
// case or a dot at their end, and a scheme has a port of its own.
func canonicalHost(u *url.URL) string {
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		return host
	}
	return host + ":" + port
}

// Target is where an action goes: the keys of its executor, and no other. The
// model never names it. The fields stand in the order of their names in JSON,
// which is the canonical one.
type Target struct {
	// Argv is the program, by its path, and its arguments, of which those that
	// Placeholder reads stand for parameters.
	Argv  []string `json:"argv,omitempty"`
	Dedup bool     `json:"dedup,omitempty"`
	// Secret names an entry of setpoint.yaml's secrets.
	Secret string `json:"secret,omitempty"`
	// StatusArgv prints what became of the key in SETPOINT_KEY.
	StatusArgv []string `json:"statusArgv,omitempty"`
	StatusURL  string   `json:"statusURL,omitempty"`
	URL        string   `json:"url,omitempty"`
}

// ParameterType is the type of a parameter's value.
type ParameterType string

// The parameter types.
const (
	Integer ParameterType = "integer"
	Number  ParameterType = "number"
	String  ParameterType = "string"
	Boolean ParameterType = "boolean"
)

// Parameter is one bounded argument of an action.
type Parameter struct {
	Name    string        `json:"name"`
	Type    ParameterType `json:"type"`
	Minimum *float64      `json:"minimum,omitempty"`
	Maximum *float64      `json:"maximum,omitempty"`
	// MaximumFactor bounds the value to factor x max(current, Minimum).
	MaximumFactor float64  `json:"maximumFactor,omitempty"`
	Enum          []string `json:"enum,omitempty"`
	// Pattern must match the whole value.
	Pattern string `json:"pattern,omitempty"`
	// FromState names a value or a list in the observed state.
	FromState string   `json:"fromState,omitempty"`
	Pos       Position `json:"-"`
}

// Position is where a value stands in a document.
type Position struct {
	File string
	Line int
}

// String returns file:line.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}
