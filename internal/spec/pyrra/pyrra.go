// Package pyrra reads Pyrra's Kubernetes resource (pyrra.dev/v1alpha1
// ServiceLevelObjective). It takes checked documents and gives services with
// their objectives, or faults.
//
// Pyrra's metrics are selectors without a function. A ratio and a latency
// become sum(increase(…)) of both metrics, a bool_gauge the sum and the number
// of its samples, so that counts are kept and not only their ratio. With a
// grouping each is summed by those labels, and the objective is judged for each
// group. The target is a percentage in quotes.
//
// Pyrra knows no services. The service is the label pyrra.dev/service, which
// Pyrra puts on its alerts as service; without it, it is the objective's own
// name, and a note says so.
//
// latencyNative is refused by its name. Alerting is not used: pages are the
// Remediation's.
package pyrra

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// APIVersion is the format that this package reads.
const APIVersion = "pyrra.dev/v1alpha1"

const kind = "ServiceLevelObjective"

// serviceLabel names the service.
const serviceLabel = "pyrra.dev/service"

// longest is the longest window of an objective.
const longest = 366 * 24 * time.Hour

// Reader reads Pyrra's resource.
type Reader struct{}

// APIVersion returns pyrra.dev/v1alpha1.
func (Reader) APIVersion() string { return APIVersion }

// Read reads all documents of the format.
func (Reader) Read(docs []spec.Document) (spec.Reading, spec.Faults) {
	r := reader{first: map[string]spec.Position{}}
	for _, d := range docs {
		if d.Kind != kind {
			r.add(d.Fault("kind", "is %q, want %s", d.Kind, kind))
			continue
		}
		doc := document{}
		faults := d.Decode(&doc)
		r.add(faults...)
		r.read(place{reader: &r, doc: d, quiet: len(faults) > 0}, doc)
	}
	return r.reading, r.faults
}

// reader collects what the documents say.
type reader struct {
	first   map[string]spec.Position
	reading spec.Reading
	faults  spec.Faults
}

func (r *reader) add(fs ...spec.Fault) { r.faults = append(r.faults, fs...) }

// place is the document that is read.
type place struct {
	*reader

	doc spec.Document
	// quiet: the document did not decode, so a missing part is no news.
	quiet bool
}

func (p place) fault(path, format string, args ...any) { p.add(p.doc.Fault(path, format, args...)) }

func (p place) note(path, format string, args ...any) {
	p.reading.Notes = append(p.reading.Notes, spec.Note{Pos: p.doc.Positions().At(path), Text: fmt.Sprintf(format, args...)})
}

func (r *reader) read(p place, doc document) {
	d, name := p.doc, doc.Metadata.Name
	if name != "" && !spec.ValidName(name) {
		p.fault("metadata.name", nameText, name)
	}
	if at, dup := p.once(kind+" "+doc.Metadata.Namespace+"/"+name, name); dup {
		p.fault("metadata.name", "%s %q is in %s already", kind, name, at)
		return
	}
	service, from := p.service(doc.Metadata)
	if at, dup := p.once("service "+service+"/"+name, name); dup {
		p.fault(from, "SLO %q of service %q is in %s already: tell them apart by the label %s", name, service, at, serviceLabel)
		return
	}
	p.remarks(doc)
	indicator, grouping := p.indicator(doc.Spec.Indicator)
	r.reading.Objectives = append(r.reading.Objectives, spec.ObjectiveReading{
		Service: service,
		Objective: spec.Objective{
			ID: name, SLO: name, Description: doc.Spec.Description, Target: p.target(doc.Spec.Target),
			Window: p.window(doc.Spec.Window), Indicator: indicator, GroupBy: grouping, Pos: d.Pos,
		},
		Digests: []string{d.Digest()}, ServicePos: d.Positions().At(from), Labels: doc.Metadata.Labels,
	})
}

// once reports where a key was met before. Without a name there is no key.
func (p place) once(key, name string) (first spec.Position, dup bool) {
	first, dup = p.first[key]
	if !dup && name != "" {
		p.first[key] = p.doc.Pos
	}
	return first, dup
}

const nameText = "%q is no name: use at most 63 letters, digits, '.', '_' and '-', with a letter or digit at both ends"

// service is the label's, or the objective's own name, with the place of it.
func (p place) service(m spec.ObjectMeta) (name, path string) {
	label := spec.KeyPath("metadata.labels", serviceLabel)
	name, ok := m.Labels[serviceLabel]
	if !ok {
		if m.Name != "" {
			p.note("metadata.name", "%q names no service, so it is one itself: the label %s names another", m.Name, serviceLabel)
		}
		return m.Name, "metadata.name"
	}
	if !spec.ValidName(name) {
		p.fault(label, "%q is no name of a service: use letters, digits, '.', '_' and '-'", name)
	}
	return name, label
}

// remarks notes what Pyrra would do and Setpoint does not.
func (p place) remarks(doc document) {
	a := doc.Spec.Alerting
	off := a.Disabled != nil && *a.Disabled || a.Burnrates != nil && !*a.Burnrates
	if p.doc.Has("spec.alerting") && !off {
		p.note("spec.alerting", "%q: alerting is not used: pages are the Remediation's", doc.Metadata.Name)
	}
	if doc.Spec.PerformanceOverAccuracy {
		p.note("spec.performanceOverAccuracy",
			"%q: performanceOverAccuracy is not used: the whole increase is asked, so the number may differ from Pyrra's", doc.Metadata.Name)
	}
	switch s := doc.Spec.PartialResponseStrategy; s {
	case "", "abort":
	case "warn":
		p.note("spec.partial_response_strategy", "%q: an answer that is only partial is unknown, also with warn", doc.Metadata.Name)
	default:
		p.fault("spec.partial_response_strategy", "%q is unknown here, want abort or warn", s)
	}
}

// target turns a percentage into a share. 100 leaves no error budget, and what
// is below 1 is a share that somebody took for a percentage.
func (p place) target(text string) float64 {
	if text == "" && p.quiet {
		return 0 // A fault already.
	}
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(percent >= 1 && percent < 100) {
		p.fault("spec.target", "is %q, want a percentage of at least 1 and less than 100, e.g. '99.9'", text)
		return 0
	}
	// Division would give a neighbour of the number that the digits mean.
	share, err := strconv.ParseFloat(strconv.FormatFloat(percent, 'f', -1, 64)+"e-2", 64)
	if err != nil {
		p.fault("spec.target", "cannot be read as a percentage: %s", err)
	}
	return share
}

func (p place) window(text string) time.Duration {
	if text == "" && p.quiet {
		return 0 // A fault already.
	}
	d, err := spec.ParseDuration(text)
	switch {
	case err != nil:
		p.fault("spec.window", "%s", err)
	case d <= 0 || d > longest:
		p.fault("spec.window", "is %s, want more than 0, at most 366d", text)
	}
	return d
}

// grouping are the labels of the groups, sorted. A label that makes no group is
// left out once it was refused, so that one mistake gives one fault.
func (p place) grouping(path string, labels []string) []string {
	var groups []string
	for i, l := range labels {
		at := spec.IndexPath(path, i)
		switch {
		case l == "":
			p.fault(at, "is empty: give a label, or remove the element")
		case l == "__name__":
			p.fault(at, "is the metric's name, which is no group: give a label")
		case slices.Contains(groups, l):
			p.fault(at, "%q is in the list twice", l)
		default:
			groups = append(groups, l)
		}
	}
	slices.Sort(groups)
	return groups
}
