package spec

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// DefaultJudgeWindow is the judge window of an objective without its own.
const DefaultJudgeWindow = 5 * time.Minute

// DefaultRemediation is what holds for a service without a document: observe,
// no actions. A Remediation starts from the same values.
func DefaultRemediation(service string) Remediation {
	return Remediation{
		Service:        service,
		Mode:           Observe,
		ActionWindow:   10 * time.Minute,
		HoldFor:        5 * time.Minute,
		UnknownFor:     10 * time.Minute,
		EscalateWithin: 20 * time.Minute,
		ApprovalFor:    15 * time.Minute,
		Budget: Budget{
			Period:   28 * 24 * time.Hour,
			Capacity: 3,
			Costs:    Costs{NoChange: 1, Worsened: 2, Unknown: 1},
		},
		Outcomes: Outcomes{Improved: 0.5, Worsened: 0.2},
	}
}

// remediation is a Remediation with what only the assembly needs.
type remediation struct {
	value     Remediation
	doc       Document
	overrides map[string]override
}

// metadata is what every kind of Setpoint carries.
type metadata struct {
	Name        string            `yaml:"name,required"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// envelope is the outside of each of Setpoint's documents.
type envelope struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata,required"`
}

type remediationDoc struct {
	Envelope envelope        `yaml:",inline"`
	Spec     remediationSpec `yaml:"spec,required"`
}

type remediationSpec struct {
	Service        string              `yaml:"service,required"`
	Owner          string              `yaml:"owner"`
	Mode           Mode                `yaml:"mode"`
	ActionWindow   time.Duration       `yaml:"actionWindow"`
	BreachFor      time.Duration       `yaml:"breachFor"`
	HoldFor        time.Duration       `yaml:"holdFor"`
	UnknownFor     time.Duration       `yaml:"unknownFor"`
	EscalateWithin *time.Duration      `yaml:"escalateWithin"`
	ApprovalFor    time.Duration       `yaml:"approvalFor"`
	Approvers      []string            `yaml:"approvers"`
	DependsOn      []string            `yaml:"dependsOn"`
	Objectives     map[string]override `yaml:"objectives"`
	Evidence       []evidenceDoc       `yaml:"evidence"`
	Actions        []actionDoc         `yaml:"actions"`
	Budget         budgetDoc           `yaml:"budget"`
	Outcomes       outcomesDoc         `yaml:"outcomes"`
	Escalation     escalationDoc       `yaml:"escalation"`
}

type evidenceDoc struct {
	Name       string   `yaml:"name,required"`
	Query      string   `yaml:"query,required"`
	Source     string   `yaml:"source"`
	Labels     []string `yaml:"labels"`
	ShowValues []string `yaml:"showValues"`
	Pos        Position `yaml:",pos"`
}

type budgetDoc struct {
	Period   time.Duration `yaml:"period"`
	Capacity float64       `yaml:"capacity"`
	Costs    costsDoc      `yaml:"costs"`
}

type costsDoc struct {
	NoChange float64 `yaml:"noChange"`
	Worsened float64 `yaml:"worsened"`
	Unknown  float64 `yaml:"unknown"`
}

type outcomesDoc struct {
	Improved float64 `yaml:"improved"`
	Worsened float64 `yaml:"worsened"`
}

type escalationDoc struct {
	Receivers      []string `yaml:"receivers"`
	OwnerReceivers []string `yaml:"ownerReceivers"`
	Observe        bool     `yaml:"observe"`
}

// newRemediationDoc holds the defaults that the document's keys replace.
func newRemediationDoc() remediationDoc {
	r := DefaultRemediation("")
	return remediationDoc{Spec: remediationSpec{
		Mode:         r.Mode,
		ActionWindow: r.ActionWindow,
		HoldFor:      r.HoldFor,
		UnknownFor:   r.UnknownFor,
		ApprovalFor:  r.ApprovalFor,
		Budget:       budgetDoc{Period: r.Budget.Period, Capacity: r.Budget.Capacity, Costs: costsDoc(r.Budget.Costs)},
		Outcomes:     outcomesDoc(r.Outcomes),
	}}
}

func readRemediation(d Document) (remediation, Faults) {
	doc := newRemediationDoc()
	faults := d.Decode(&doc)
	s := doc.Spec
	r := Remediation{
		Name: doc.Envelope.Metadata.Name, Service: s.Service, Owner: s.Owner, Mode: s.Mode,
		ActionWindow: s.ActionWindow, BreachFor: s.BreachFor, HoldFor: s.HoldFor, UnknownFor: s.UnknownFor,
		EscalateWithin: 2 * s.ActionWindow, ApprovalFor: s.ApprovalFor,
		Approvers: s.Approvers, DependsOn: s.DependsOn,
		Budget:     Budget{Period: s.Budget.Period, Capacity: s.Budget.Capacity, Costs: Costs(s.Budget.Costs)},
		Outcomes:   Outcomes(s.Outcomes),
		Escalation: Escalation(s.Escalation),
		Pos:        d.Pos,
		Where:      d.Positions(),
	}
	if s.EscalateWithin != nil {
		r.EscalateWithin = *s.EscalateWithin
	}
	for _, e := range s.Evidence {
		r.Evidence = append(r.Evidence, Evidence{Name: e.Name, Query: Query{Expr: e.Query, Source: e.Source, Pos: e.Pos}, Labels: e.Labels, ShowValues: e.ShowValues})
	}
	c := checker{doc: d, faults: faults}
	for i, a := range s.Actions {
		r.Actions = append(r.Actions, c.action(IndexPath("spec.actions", i), a))
	}
	c.name()
	c.remediation(r)
	c.overrides(s.Objectives)
	return remediation{value: r, doc: d, overrides: s.Objectives}, c.faults
}

// checker reports what a document says that cannot be meant. It is silent on a
// path that has a fault already: one mistake, one fault.
type checker struct {
	doc    Document
	faults Faults
}

func (c *checker) fault(path, format string, args ...any) {
	if len(c.faults) > 5*maxFaults {
		return
	}
	f := c.doc.Fault(path, format, args...)
	if !slices.ContainsFunc(c.faults, func(g Fault) bool { return covers(g, path) }) {
		c.faults = append(c.faults, f)
	}
}

// covers reports whether a fault says already what is wrong at a path: it is
// there, or the path's parent is missing or of the wrong type.
func covers(g Fault, path string) bool {
	if g.Path == path {
		return true
	}
	inside := strings.HasPrefix(path, g.Path+".") || strings.HasPrefix(path, g.Path+"[")
	return inside && (g.Text == requiredText || g.Text == noValueText || strings.HasPrefix(g.Text, "want "))
}

func (c *checker) that(ok bool, path, format string, args ...any) {
	if !ok {
		c.fault(path, format, args...)
	}
}

// between checks a duration; its text names both bounds.
func (c *checker) between(path string, d, least, most time.Duration) {
	c.that(d >= least && d <= most, path, "is %s, want %s to %s",
		FormatDuration(d), FormatDuration(least), FormatDuration(most))
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// ValidName reports whether a name can stand in keys, labels, tables and URLs:
// at most 63 letters, digits, dots, dashes and underscores.
func ValidName(name string) bool { return nameForm.MatchString(name) }

const nameText = "%q is no name: use at most 63 letters, digits, '.', '_' and '-', with a letter or digit at both ends"

func (c *checker) name() { c.validName("metadata.name", c.doc.Name) }

func (c *checker) validName(path, name string) {
	c.that(ValidName(name), path, nameText, shorten(name))
}

// unique checks that no name stands twice in a list.
func (c *checker) unique(path string, names []string) {
	seen := map[string]bool{}
	for i, n := range names {
		c.that(n != "", IndexPath(path, i), "is empty: give a name, or remove the element")
		c.that(!seen[n], IndexPath(path, i), "%q is in the list twice", shorten(n))
		seen[n] = true
	}
}
