// Package openslo reads OpenSLO v1 (https://openslo.com): Service, SLI, SLO
// and DataSource. It takes checked documents and gives services with their
// objectives, or faults; Write is the way back.
//
// What is read is the part of OpenSLO that Prometheus can answer without a
// guess, over one rolling window: ratios of good or bad to total, raw ratios,
// and thresholds. Calendar windows, composites and other metric sources are
// refused by their names. AlertPolicy, AlertCondition and
// AlertNotificationTarget are named in a note, because pages are the
// Remediation's.
//
// PromQL is read from metricSource.spec.query. It holds {{.window}} where the
// range goes; without it, counter: true means a plain selector, which is
// wrapped as sum(increase(selector[window])). The query of a thresholdMetric is
// asked at instants and has no {{.window}}: its value is compared in the query's
// own unit, at points that lie 30 s apart, and the share of points at which
// the comparison holds is measured.
//
// With Timeslices the share of good slices is measured, and with RatioTimeslices
// the mean of the slices' ratios. Slices are aligned to their length since 1970.
// A point or a slice without a value, or with NaN (no traffic: 0/0), is left out
// and never counts as bad.
package openslo

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// APIVersion is the format that this package reads.
const APIVersion = "openslo/v1"

// Reader reads OpenSLO v1.
type Reader struct{}

// APIVersion returns openslo/v1.
func (Reader) APIVersion() string { return APIVersion }

// Read reads all documents of the format.
func (Reader) Read(docs []spec.Document) (spec.Reading, spec.Faults) {
	r := reader{
		slis:    map[string]sli{},
		sources: map[string]dataSource{},
		first:   map[string]spec.Position{},
	}
	var slos []spec.Document
	for _, d := range docs {
		if !r.unique(d) {
			continue
		}
		switch d.Kind {
		case "SLO":
			slos = append(slos, d)
		case "SLI":
			r.readSLI(d)
		case "DataSource":
			r.readDataSource(d)
		case "Service":
			r.readService(d)
		case "AlertPolicy", "AlertCondition", "AlertNotificationTarget":
			r.note(d, "%s %q is not used: pages are the Remediation's", d.Kind, d.Name)
		case "":
			r.add(d.Fault("kind", "is required: Service, SLI, SLO or DataSource"))
		default:
			r.add(d.Fault("kind", "unknown kind %q, want Service, SLI, SLO or DataSource", d.Kind))
		}
	}
	for _, d := range slos {
		r.readSLO(d)
	}
	r.unusedSLIs()
	return r.reading, r.faults
}

// reader collects what the documents say.
type reader struct {
	slis    map[string]sli
	sources map[string]dataSource
	first   map[string]spec.Position
	reading spec.Reading
	faults  spec.Faults
}

func (r *reader) add(fs ...spec.Fault) { r.faults = append(r.faults, fs...) }

func (r *reader) note(d spec.Document, format string, args ...any) {
	r.reading.Notes = append(r.reading.Notes, spec.Note{Pos: d.Pos, Text: fmt.Sprintf(format, args...)})
}

// unique refuses a second document of one kind and name. An SLO's name is its
// service's own: twenty services have an SLO availability.
func (r *reader) unique(d spec.Document) bool {
	key := d.Kind + " " + d.Name
	if d.Kind == "SLO" {
		key += " " + serviceOf(d)
	}
	if at, dup := r.first[key]; dup && d.Name != "" {
		r.add(d.Fault("metadata.name", "%s %q is in %s already", d.Kind, d.Name, at))
		return false
	}
	r.first[key] = d.Pos
	return true
}

func serviceOf(d spec.Document) string {
	if s, ok := d.Root().Child("spec"); ok {
		if name, ok := s.Child("service"); ok {
			text, _ := name.Text()
			return text
		}
	}
	return ""
}

// envelope is the outside of each document.
type envelope struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata,required"`
}

// metadata's labels and annotations are free: OpenSLO allows lists in them.
type metadata struct {
	Name        string         `yaml:"name,required"`
	DisplayName string         `yaml:"displayName"`
	Labels      map[string]any `yaml:"labels"`
	Annotations map[string]any `yaml:"annotations"`
}

func (r *reader) checkName(d spec.Document) {
	if d.Name != "" && !spec.ValidName(d.Name) {
		r.add(d.Fault("metadata.name", "%q is no name: use at most 63 letters, digits, '.', '_' and '-', with a letter or digit at both ends", d.Name))
	}
}

type serviceDoc struct {
	Envelope envelope `yaml:",inline"`
	Spec     struct {
		Description string `yaml:"description"`
	} `yaml:"spec"`
}

func (r *reader) readService(d spec.Document) {
	var doc serviceDoc
	r.add(d.Decode(&doc)...)
	r.checkName(d)
	r.reading.Services = append(r.reading.Services, spec.ServiceReading{Name: d.Name, Digest: d.Digest(), Pos: d.Pos})
}

type dataSourceDoc struct {
	Envelope envelope `yaml:",inline"`
	Spec     struct {
		Description       string         `yaml:"description"`
		Type              string         `yaml:"type,required"`
		ConnectionDetails map[string]any `yaml:"connectionDetails"`
	} `yaml:"spec,required"`
}

// dataSource is a DataSource that a metricSourceRef can name.
type dataSource struct {
	kind   string
	digest string
}

func (r *reader) readDataSource(d spec.Document) {
	var doc dataSourceDoc
	r.add(d.Decode(&doc)...)
	r.checkName(d)
	r.sources[d.Name] = dataSource{kind: doc.Spec.Type, digest: d.Digest()}
	if len(doc.Spec.ConnectionDetails) > 0 {
		r.note(d, "DataSource %q: connectionDetails are not used: the source of that name in setpoint.yaml says where it is", d.Name)
	}
}
