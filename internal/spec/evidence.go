package spec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/prometheus/common/model"
)

// The bounds on a service's evidence: each entry is a query beside the incident
// that it is about, and a breakdown by more labels is a table that nobody reads.
const (
	MaxEvidence       = 10
	MaxEvidenceLabels = 5
)

// LintEvidenceLabels is an evidence query whose series its labels do not tell
// apart.
const LintEvidenceLabels = "evidence-labels"

func (c *checker) evidence(all []Evidence) {
	c.that(len(all) <= MaxEvidence, "spec.evidence", "has %d entries, want %d at most: each is a query in the midst of an incident", len(all), MaxEvidence)
	var names []string
	for i, e := range all {
		at := IndexPath("spec.evidence", i)
		c.that(e.Name != "" && len(e.Name) <= 120, at+".name", "want 1 to 120 characters")
		if slices.Contains(names, e.Name) {
			c.fault(at+".name", "%q names two pieces of evidence", shorten(e.Name))
		}
		names = append(names, e.Name)
		c.evidenceLabels(at, e)
		if err := e.Query.CheckInstant(); err != nil {
			c.fault(at+".query", "%s", err)
		}
	}
}

func (c *checker) evidenceLabels(at string, e Evidence) {
	c.that(len(e.Labels) <= MaxEvidenceLabels, at+".labels", "has %d labels, want %d at most", len(e.Labels), MaxEvidenceLabels)
	c.unique(at+".labels", e.Labels)
	for j, label := range e.Labels {
		printable := !strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) })
		c.that(label == "" || model.UTF8Validation.IsValidLabelName(label) && printable && len(label) <= 120, IndexPath(at+".labels", j),
			"%q is no label name", shorten(label))
		c.that(label != model.MetricNameLabel, IndexPath(at+".labels", j),
			"is the metric's name, which most operations drop: name a label")
	}
	c.unique(at+".showValues", e.ShowValues)
	for j, label := range e.ShowValues {
		c.that(slices.Contains(e.Labels, label), IndexPath(at+".showValues", j), "%q is none of the labels", shorten(label))
	}
}

// EvidenceSource is where a piece of evidence is asked: its own source, or that
// of the service's first query.
func (s Service) EvidenceSource(e Evidence) string {
	if e.Query.Source != "" {
		return e.Query.Source
	}
	for _, o := range s.Objectives {
		for _, in := range o.Vantages() {
			for _, q := range in.Queries() {
				return q.Source
			}
		}
	}
	return ""
}

// EvidenceExpr is the PromQL of a piece of evidence: {{.window}} is the judge
// window of the service's first objective.
func (s Service) EvidenceExpr(e Evidence) string {
	window := DefaultJudgeWindow
	if len(s.Objectives) > 0 && s.Objectives[0].JudgeWindow > 0 {
		window = s.Objectives[0].JudgeWindow
	}
	return e.Query.At(window)
}

// lintEvidence notes the queries whose outermost aggregation does not name the
// labels, so that series may differ in others, and the breakdown has no rows.
func lintEvidence(set Set) []Note {
	var notes []Note
	for _, svc := range set.Services {
		for _, e := range svc.Remediation.Evidence {
			if n, found := evidenceNote(svc.Remediation, e); found {
				notes = append(notes, n)
			}
		}
	}
	return notes
}

func evidenceNote(r Remediation, e Evidence) (Note, bool) {
	expr, err := parse(e.Query.At(probeWindow))
	if err != nil {
		return Note{}, false // Is a fault already.
	}
	got, want := labelsOf(expr), slices.Compact(slices.Sorted(slices.Values(e.Labels)))
	if got.known && slices.Equal(got.names, want) {
		return Note{}, false
	}
	around := "sum(…)"
	if len(want) > 0 {
		around = "sum by (" + strings.Join(want, ", ") + ") (…)"
	}
	return Note{Pos: e.Query.Pos, Lint: LintEvidenceLabels, Text: fmt.Sprintf(
		"evidence %q of service %q: its outermost aggregation is not by its labels alone, and two series that differ in others leave no breakdown: write %s",
		shorten(e.Name), r.Service, around)}, true
}
