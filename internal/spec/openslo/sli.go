package openslo

import (
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// sli is an SLI document that an indicatorRef can name.
type sli struct {
	indicator indicator
	digests   []string
	doc       spec.Document
	used      *bool
}

type sliDoc struct {
	Envelope envelope      `yaml:",inline"`
	Spec     indicatorSpec `yaml:"spec,required"`
}

type indicatorSpec struct {
	Description     string  `yaml:"description"`
	RatioMetric     *ratio  `yaml:"ratioMetric"`
	ThresholdMetric *metric `yaml:"thresholdMetric"`
}

// indicator is what an SLI says, before a budgeting method and an objective
// make of it what is measured.
type indicator struct {
	ratio spec.Indicator
	// threshold is the query whose value an objective bounds; nil for a ratio.
	threshold *spec.Query
}

type ratio struct {
	Counter bool    `yaml:"counter"`
	Good    *metric `yaml:"good"`
	Bad     *metric `yaml:"bad"`
	Total   *metric `yaml:"total"`
	Raw     *metric `yaml:"raw"`
	RawType string  `yaml:"rawType"`
}

type metric struct {
	MetricSource metricSource `yaml:"metricSource,required"`
}

// metricSource.spec is read by its own, only when the source is Prometheus:
// another source has other keys.
type metricSource struct {
	MetricSourceRef string     `yaml:"metricSourceRef"`
	Type            string     `yaml:"type"`
	Spec            spec.Value `yaml:"spec,required"`
}

type prometheusSpec struct {
	Query string `yaml:"query,required"`
}

func (r *reader) readSLI(d spec.Document) {
	var doc sliDoc
	faults := d.Decode(&doc)
	r.add(faults...)
	r.checkName(d)
	in := indicators{reader: r, doc: d, quiet: len(faults) > 0}
	used := false
	r.slis[d.Name] = sli{
		indicator: in.read("spec", doc.Spec), digests: append(in.digests, d.Digest()), doc: d, used: &used,
	}
}

// unusedSLIs notes SLIs that no SLO names: most often a forgotten SLO.
func (r *reader) unusedSLIs() {
	for name, s := range r.slis {
		if !*s.used {
			r.note(s.doc, "SLI %q is named by no SLO: nothing is measured", name)
		}
	}
}

// indicators reads the indicators of one document.
type indicators struct {
	reader *reader
	doc    spec.Document
	// quiet: the document did not decode, so a missing part is no news.
	quiet bool
	// digests are of the DataSources that were named.
	digests []string
}

func (in *indicators) fault(path, format string, args ...any) {
	in.reader.add(in.doc.Fault(path, format, args...))
}

func (in *indicators) read(at string, s indicatorSpec) indicator {
	hasRatio, hasThreshold := in.doc.Has(at+".ratioMetric"), in.doc.Has(at+".thresholdMetric")
	switch {
	case hasRatio && hasThreshold:
		in.fault(at+".thresholdMetric", "is given beside ratioMetric: give one of them")
	case s.ThresholdMetric != nil:
		return indicator{threshold: in.threshold(at+".thresholdMetric", *s.ThresholdMetric)}
	case s.RatioMetric != nil:
		return indicator{ratio: in.ratio(at+".ratioMetric", *s.RatioMetric)}
	case !in.quiet:
		in.fault(at+".ratioMetric", "is required: give ratioMetric or thresholdMetric")
	}
	return indicator{}
}

// threshold reads a query whose value is compared at instants, so its range is
// its own and not the window's.
func (in *indicators) threshold(at string, m metric) *spec.Query {
	q, path, ok := in.source(at, m)
	switch err := q.CheckInstant(); {
	case !ok:
	case q.HasWindow():
		in.fault(path, "has {{.window}}, but a threshold compares the value at instants: write a range of its own, e.g. [5m]")
	case err != nil:
		in.fault(path, "%s", err)
	}
	return q
}

func (in *indicators) ratio(at string, m ratio) spec.Indicator {
	out := spec.Indicator{
		Good:       in.query(at+".good", m.Good, m.Counter),
		Bad:        in.query(at+".bad", m.Bad, m.Counter),
		Total:      in.query(at+".total", m.Total, m.Counter),
		Raw:        in.query(at+".raw", m.Raw, false),
		RawSuccess: m.RawType == "success",
	}
	if m.Raw != nil {
		in.rawShape(at, m)
		return out
	}
	out.AbsentBadZero = m.Bad != nil
	switch {
	case in.quiet:
	case m.Good != nil && m.Bad != nil:
		in.fault(at, "has both good and bad: give one of them, and total")
	case m.Good == nil && m.Bad == nil:
		in.fault(at, "needs good or bad (with total), or raw")
	case m.Total == nil:
		in.fault(at+".total", "is required beside good or bad: a ratio without its total hides how much it rests on")
	}
	if m.RawType != "" {
		in.fault(at+".rawType", "belongs to raw: remove it")
	}
	in.sameSource(at, out)
	return out
}

func (in *indicators) rawShape(at string, m ratio) {
	if m.Good != nil || m.Bad != nil || m.Total != nil {
		in.fault(at, "has raw beside good, bad or total: give one kind")
	}
	if m.RawType != "success" && m.RawType != "failure" {
		in.fault(at+".rawType", "is %q, want success (raw is the share of good events) or failure (of bad ones)", m.RawType)
	}
	if m.Counter {
		in.fault(at+".counter", "counter: true is for counts; raw is a ratio already: remove it")
	}
}

// sameSource refuses a ratio over two sources: their clocks and gaps differ.
func (in *indicators) sameSource(at string, i spec.Indicator) {
	qs := i.Queries()
	for _, q := range qs {
		if q.Source != qs[0].Source {
			in.fault(at, "asks two sources, %q and %q: a ratio needs both counts from one", qs[0].Source, q.Source)
			return
		}
	}
}

func (in *indicators) query(at string, m *metric, counter bool) *spec.Query {
	if m == nil {
		return nil
	}
	q, path, ok := in.source(at, *m)
	q.Counter = counter && !q.HasWindow()
	if err := q.Check(); ok && err != nil {
		in.fault(path, "%s", err)
	}
	return q
}

// source reads the query of a metric, and where it stands; not ok is a fault
// already.
func (in *indicators) source(at string, m metric) (q *spec.Query, path string, ok bool) {
	at += ".metricSource"
	path = at + ".spec.query"
	q = &spec.Query{Source: m.MetricSource.MetricSourceRef, Pos: in.doc.Positions().At(path)}
	if !in.prometheus(at, m.MetricSource) {
		return q, path, false
	}
	var s prometheusSpec
	if faults := m.MetricSource.Spec.Decode(&s); len(faults) > 0 {
		in.reader.add(faults...)
		return q, path, false
	}
	q.Expr = strings.TrimSpace(s.Query)
	return q, path, in.doc.Has(path) // A missing spec is a fault already.
}

// prometheus reports whether the source is one that can be asked, and refuses
// any other: a log query sent to Prometheus would be a guess.
func (in *indicators) prometheus(at string, m metricSource) bool {
	known, declared := in.reader.sources[m.MetricSourceRef]
	if declared && m.MetricSourceRef != "" {
		in.digests = append(in.digests, known.digest)
	}
	kind, where := m.Type, at+".type"
	if kind == "" {
		kind, where = known.kind, at+".metricSourceRef"
	}
	switch {
	case strings.EqualFold(kind, "prometheus"):
		return true
	case kind != "":
		in.fault(where, "metric source type %q is not supported: only Prometheus is", kind)
		return false
	case m.MetricSourceRef != "":
		return true // A source of setpoint.yaml, which is always Prometheus.
	default:
		if !in.quiet {
			in.fault(at+".type", "is required: write type: Prometheus, or name a source by metricSourceRef")
		}
		return false
	}
}
