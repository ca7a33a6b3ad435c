package openslo

import (
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

type sloDoc struct {
	Envelope envelope `yaml:",inline"`
	Spec     sloSpec  `yaml:"spec,required"`
}

type sloSpec struct {
	Description     string         `yaml:"description"`
	Service         string         `yaml:"service,required"`
	Indicator       *inlineSLI     `yaml:"indicator"`
	IndicatorRef    string         `yaml:"indicatorRef"`
	TimeWindow      []timeWindow   `yaml:"timeWindow,required"`
	BudgetingMethod string         `yaml:"budgetingMethod,required"`
	Objectives      []objectiveDoc `yaml:"objectives,required"`
	AlertPolicies   any            `yaml:"alertPolicies"`
}

type inlineSLI struct {
	Metadata metadata      `yaml:"metadata"`
	Spec     indicatorSpec `yaml:"spec,required"`
}

// timeWindow's parts are read as they are: what is wrong with them is said in
// terms of OpenSLO.
type timeWindow struct {
	Duration  string    `yaml:"duration,required"`
	IsRolling *bool     `yaml:"isRolling"`
	Calendar  *calendar `yaml:"calendar"`
}

type calendar struct {
	StartTime any    `yaml:"startTime,required"`
	TimeZone  string `yaml:"timeZone,required"`
}

type objectiveDoc struct {
	DisplayName     string        `yaml:"displayName"`
	Op              string        `yaml:"op"`
	Value           *float64      `yaml:"value"`
	Target          *float64      `yaml:"target"`
	TargetPercent   *float64      `yaml:"targetPercent"`
	TimeSliceTarget *float64      `yaml:"timeSliceTarget"`
	TimeSliceWindow spec.Value    `yaml:"timeSliceWindow"`
	Indicator       any           `yaml:"indicator"`
	IndicatorRef    any           `yaml:"indicatorRef"`
	CompositeWeight any           `yaml:"compositeWeight"`
	Pos             spec.Position `yaml:",pos"`
}

// sloReader reads one SLO.
type sloReader struct {
	*reader
	doc   spec.Document
	quiet bool
}

func (r *reader) readSLO(d spec.Document) {
	var doc sloDoc
	faults := d.Decode(&doc)
	r.add(faults...)
	r.checkName(d)
	s := sloReader{reader: r, doc: d, quiet: len(faults) > 0}
	if doc.Spec.Service != "" && !spec.ValidName(doc.Spec.Service) {
		s.fault("spec.service", "%q is no name of a service: use letters, digits, '.', '_' and '-'", doc.Spec.Service)
	}
	indicator, digests := s.indicator(doc.Spec)
	window := s.window(doc.Spec.TimeWindow)
	if doc.Spec.AlertPolicies != nil {
		r.note(d, "SLO %q: alertPolicies are not used: pages are the Remediation's", d.Name)
	}
	for i, o := range doc.Spec.Objectives {
		at := spec.IndexPath("spec.objectives", i)
		m := s.method(at, doc.Spec.BudgetingMethod, o)
		s.operands(at, o, indicator)
		s.noComposite(at)
		objective := spec.Objective{
			ID: s.id(at, o, len(doc.Spec.Objectives)), SLO: d.Name, Description: doc.Spec.Description,
			Target: s.target(at, o), Window: window, Indicator: indicator.measured(m), Slice: m.slice, Pos: o.Pos,
		}
		r.reading.Objectives = append(r.reading.Objectives, spec.ObjectiveReading{
			Service: doc.Spec.Service, Objective: objective, Digests: append(slices.Clone(digests), d.Digest()),
			ServicePos: d.Positions().At("spec.service"),
		})
	}
	if len(doc.Spec.Objectives) == 0 && d.Has("spec.objectives") && !s.quiet {
		s.fault("spec.objectives", "is empty: give at least one")
	}
}

func (s *sloReader) fault(path, format string, args ...any) {
	s.add(s.doc.Fault(path, format, args...))
}

func (s *sloReader) indicator(doc sloSpec) (indicator, []string) {
	hasInline, hasRef := s.doc.Has("spec.indicator"), s.doc.Has("spec.indicatorRef")
	switch {
	case hasInline && hasRef:
		s.fault("spec.indicatorRef", "is given beside indicator: give one of them")
	case hasInline && doc.Indicator != nil:
		in := indicators{reader: s.reader, doc: s.doc, quiet: s.quiet}
		out := in.read("spec.indicator.spec", doc.Indicator.Spec)
		return out, in.digests
	case hasRef:
		return s.ref(doc.IndicatorRef)
	case !hasInline && !s.composite(doc):
		s.fault("spec.indicator", "is required: give an indicator, or name an SLI by indicatorRef")
	}
	return indicator{}, nil
}

// composite reports whether the indicators stand in the objectives, which is
// refused there.
func (s *sloReader) composite(doc sloSpec) bool {
	for _, o := range doc.Objectives {
		if o.Indicator != nil || o.IndicatorRef != nil {
			return true
		}
	}
	return false
}

func (s *sloReader) ref(name string) (indicator, []string) {
	found, ok := s.slis[name]
	if !ok {
		known := make([]string, 0, len(s.slis))
		for n := range s.slis {
			known = append(known, n)
		}
		hint := "declare it as kind SLI"
		if near := spec.Nearest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		s.reading.Unresolved = append(s.reading.Unresolved, s.doc.Fault("spec.indicatorRef", "there is no SLI %q: %s", name, hint))
		return indicator{}, nil
	}
	*found.used = true
	return found.indicator, found.digests
}

// inexact are OpenSLO's units without a fixed length, with what to write.
var inexact = regexp.MustCompile(`^[0-9]+([MQY])$`)

func (s *sloReader) window(all []timeWindow) time.Duration {
	if len(all) != 1 {
		if s.doc.Has("spec.timeWindow") && !s.quiet {
			s.fault("spec.timeWindow", "has %d windows, want exactly one", len(all))
		}
		return 0
	}
	w, at := all[0], "spec.timeWindow[0]"
	rolling := w.IsRolling != nil && *w.IsRolling
	switch {
	case s.doc.Has(at + ".calendar"):
		s.fault(at+".calendar", "calendar windows are not supported by this version: write isRolling: true and no calendar")
		if text, ok := text(w.Calendar); ok && !startTime.MatchString(text) {
			s.fault(at+".calendar.startTime", "%q is no time: OpenSLO wants YYYY-MM-DD hh:mm:ss", text)
		}
	case !rolling && !s.quiet:
		s.fault(at+".isRolling", "want isRolling: true: calendar windows are not supported by this version")
	}
	return s.duration(at+".duration", w.Duration)
}

var startTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d`)

func text(c *calendar) (string, bool) {
	if c == nil {
		return "", false
	}
	s, ok := c.StartTime.(string)
	return s, ok
}

func (s *sloReader) duration(path, raw string) time.Duration {
	if raw == "" {
		if !s.quiet {
			s.fault(path, "is empty: write a duration like 28d")
		}
		return 0
	}
	if m := inexact.FindStringSubmatch(raw); m != nil {
		days := map[string]string{"M": "30d", "Q": "90d", "Y": "365d"}[m[1]]
		s.fault(path, "%q has no fixed length, so it is not supported: count days, e.g. %s for 1%s", raw, days, m[1])
		return 0
	}
	d, err := spec.ParseDuration(raw)
	if err != nil {
		s.fault(path, "%s", err)
		return 0
	}
	if d <= 0 || d > 366*24*time.Hour {
		s.fault(path, "is %s, want more than 0, at most 366d", raw)
	}
	return d
}

func (s *sloReader) target(at string, o objectiveDoc) float64 {
	switch {
	case o.Target != nil && o.TargetPercent != nil:
		s.fault(at, "has both target and targetPercent: give one of them")
	case o.Target != nil:
		if *o.Target > 0 && *o.Target < 1 {
			return *o.Target
		}
		s.fault(at+".target", "is %v, want a share above 0 and below 1, e.g. 0.99 (a percentage is targetPercent)", *o.Target)
	case o.TargetPercent != nil:
		if *o.TargetPercent > 0 && *o.TargetPercent < 100 {
			// 99.9 / 100 is not the number next to 0.999: round it there.
			return math.Round(*o.TargetPercent*1e10) / 1e12
		}
		s.fault(at+".targetPercent", "is %v, want more than 0 and less than 100, e.g. 99.9", *o.TargetPercent)
	case !s.doc.Has(at+".target") && !s.doc.Has(at+".targetPercent"):
		s.fault(at+".target", "is required: give target or targetPercent")
	}
	return 0
}

var objectiveName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,61}[A-Za-z0-9])?$`)

// id is the SLO's name, or "slo/displayName" where it has several objectives.
func (s *sloReader) id(at string, o objectiveDoc, count int) string {
	if count == 1 {
		return s.doc.Name
	}
	if !objectiveName.MatchString(o.DisplayName) && !s.quiet {
		s.fault(at+".displayName", "%q names no objective: with several in one SLO each needs a name of letters, digits, ' ', '.', '_' and '-'", o.DisplayName)
	}
	return s.doc.Name + "/" + o.DisplayName
}
