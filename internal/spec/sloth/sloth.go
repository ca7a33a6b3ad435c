// Package sloth reads the SLOs that people have for Sloth: its own files
// (version: prometheus/v1, keys in snake_case) and its Kubernetes resource
// (sloth.slok.dev/v1 PrometheusServiceLevel, keys in camelCase). It takes
// checked documents and gives services with their objectives, or faults.
//
// Events become bad and total, where an absent error query beside a present
// total is zero errors; a raw error ratio stays one. The objective is a
// percentage. Sloth is told the SLO's period by a flag and not by its files, so
// it is the reader's: 30 days unless Window says otherwise.
//
// An SLI plugin is refused, because its queries are in a program. A chain of
// SLO plugins may change what Sloth computes: the queries are read as they are,
// and a note says so. Alerting is not used: pages are the Remediation's.
package sloth

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The formats that this package reads.
const (
	// FileVersion stands at version in Sloth's own files.
	FileVersion = "prometheus/v1"
	// ResourceVersion is the apiVersion of Sloth's Kubernetes resource.
	ResourceVersion = "sloth.slok.dev/v1"
)

// DefaultWindow is the period of an SLO where Sloth is told none.
const DefaultWindow = 30 * 24 * time.Hour

// PluginChain is the Lint of a note on an SLO whose number Sloth may compute in
// another way.
const PluginChain = "plugin-chain"

// File reads Sloth's own files.
type File struct {
	// Window is the period of each SLO; zero is DefaultWindow.
	Window time.Duration
}

// APIVersion returns prometheus/v1.
func (File) APIVersion() string { return FileVersion }

// Read reads all files of the format.
func (f File) Read(docs []spec.Document) (spec.Reading, spec.Faults) {
	r := newReader(f.Window, fileKeys)
	for _, d := range docs {
		doc := fileDoc{}
		faults := d.Decode(&doc)
		r.read(d, faults, doc.level())
	}
	return r.reading, r.faults
}

// Resource reads Sloth's Kubernetes resource.
type Resource struct {
	// Window is the period of each SLO; zero is DefaultWindow.
	Window time.Duration
}

// APIVersion returns sloth.slok.dev/v1.
func (Resource) APIVersion() string { return ResourceVersion }

// Read reads all documents of the format.
func (c Resource) Read(docs []spec.Document) (spec.Reading, spec.Faults) {
	r := newReader(c.Window, resourceKeys)
	for _, d := range docs {
		switch d.Kind {
		case resourceKind:
		case "AlertWindows":
			r.fault(d, "kind", "AlertWindows is not read: leave the file out, and give burnRates in spec.objectives of a Remediation")
			continue
		default:
			r.fault(d, "kind", "is %q, want %s", d.Kind, resourceKind)
			continue
		}
		doc := resourceDoc{}
		faults := d.Decode(&doc)
		r.read(d, faults, doc.level())
	}
	return r.reading, r.faults
}

// reader collects what the documents say.
type reader struct {
	window  time.Duration
	keys    keys
	first   map[string]spec.Position
	reading spec.Reading
	faults  spec.Faults
}

func newReader(window time.Duration, k keys) *reader {
	if window <= 0 {
		window = DefaultWindow
	}
	return &reader{window: window, keys: k, first: map[string]spec.Position{}}
}

func (r *reader) fault(d spec.Document, path, format string, args ...any) {
	r.faults = append(r.faults, d.Fault(path, format, args...))
}

func (r *reader) note(pos spec.Position, lint, format string, args ...any) {
	r.reading.Notes = append(r.reading.Notes, spec.Note{Pos: pos, Text: fmt.Sprintf(format, args...), Lint: lint})
}

// read reads one document, which did not decode where there are faults.
func (r *reader) read(d spec.Document, faults spec.Faults, l level) {
	r.faults = append(r.faults, faults...)
	at := r.keys.root
	if l.service != "" && !spec.ValidName(l.service) {
		r.fault(d, at+"service", nameText, l.service)
	}
	if len(l.slos) == 0 && d.Has(at+"slos") && len(faults) == 0 {
		r.fault(d, at+"slos", "is empty: give at least one")
	}
	r.chain(d, at+r.keys.plugins, "service", l.service, l.plugins)
	paging := 0
	for i, s := range l.slos {
		p := place{doc: d, path: spec.IndexPath(at+"slos", i), quiet: len(faults) > 0}
		if r.slo(p, l, s) && d.Has(p.path+".alerting") && !s.alerting.PageAlert.Disable {
			paging++
		}
	}
	if paging > 0 {
		r.note(d.Pos, "", "service %q: alerting of %s is not used: pages are the Remediation's", l.service, slos(paging))
	}
}

func slos(n int) string {
	if n == 1 {
		return "1 SLO"
	}
	return fmt.Sprintf("%d SLOs", n)
}

const nameText = "%q is no name: use at most 63 letters, digits, '.', '_' and '-', with a letter or digit at both ends"

// place is one SLO of a document.
type place struct {
	doc  spec.Document
	path string
	// quiet: the document did not decode, so a missing part is no news.
	quiet bool
}

// slo reads one SLO. It reports whether it is the first of its name.
func (r *reader) slo(p place, l level, s slo) bool {
	if s.Name != "" && !spec.ValidName(s.Name) {
		r.fault(p.doc, p.path+".name", nameText, s.Name)
	}
	key := l.service + "/" + s.Name
	if at, dup := r.first[key]; dup && s.Name != "" {
		r.fault(p.doc, p.path+".name", "SLO %q of service %q is in %s already", s.Name, l.service, at)
		return false
	}
	r.first[key] = s.Pos
	r.chain(p.doc, p.path+".plugins", "SLO", s.Name, s.Plugins)
	r.reading.Objectives = append(r.reading.Objectives, spec.ObjectiveReading{
		Service: l.service,
		Objective: spec.Objective{
			ID: s.Name, SLO: s.Name, Description: s.Description, Target: r.target(p, s.Objective),
			Window: r.window, Indicator: r.indicator(p, s.sli), Pos: s.Pos,
		},
		Digests:    []string{p.doc.Digest()},
		ServicePos: p.doc.Positions().At(r.keys.root + "service"),
		Labels:     r.merged(l.labels, s.Labels),
	})
	return true
}

// merged are the labels of the service and of the SLO, whose own ones win.
func (r *reader) merged(service, slo labels) map[string]string {
	all := map[string]string{}
	for _, ls := range []labels{service, slo} {
		for name, v := range ls {
			text, ok := v.Scalar()
			if _, isText := v.Text(); !ok && !isText { // An empty text is one too.
				r.faults = append(r.faults, v.Fault("want text: a label has one value"))
			}
			all[name] = text
		}
	}
	return all
}

// target turns a percentage into a share. 100 leaves no error budget, and what
// is below 1 is a share that somebody took for a percentage.
func (r *reader) target(p place, percent *float64) float64 {
	if percent == nil {
		return 0 // The missing key is a fault already.
	}
	if *percent < 1 || *percent >= 100 {
		r.fault(p.doc, p.path+".objective", "is %v, want a percentage of at least 1 and less than 100, e.g. 99.9", *percent)
		return 0
	}
	// Division would give a neighbour of the number that the digits mean.
	share, err := strconv.ParseFloat(strconv.FormatFloat(*percent, 'f', -1, 64)+"e-2", 64)
	if err != nil {
		r.fault(p.doc, p.path+".objective", "cannot be read as a percentage: %s", err)
	}
	return share
}

// chain notes plugins that Sloth would run over its rules.
func (r *reader) chain(d spec.Document, path, what, name string, c *chain) {
	if c == nil || len(c.Chain) == 0 {
		return
	}
	ids := make([]string, len(c.Chain))
	for i, p := range c.Chain {
		ids[i] = p.ID
	}
	r.note(d.Positions().At(path), PluginChain,
		"%s %q: the plugins %s are not run: the queries are measured as they are written, so the number may differ from what Sloth computes",
		what, name, strings.Join(ids, ", "))
}
