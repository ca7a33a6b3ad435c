package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	prommodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// cause is why a selector selects nothing.
type cause struct {
	// lately: there was something within a day.
	lately bool
	// le is the other spelling of a bucket's bound, with which there is something.
	le string
	// name is the metric; unnamed selectors have none.
	name string
	// noMetric: nothing has that name. nearest is what is called most like it.
	noMetric bool
	nearest  string
	// matcher is the only one that keeps it from selecting something, and values
	// what its label has.
	matcher string
	values  []string
	meant   string
}

// finding words the cause. known: the query has a value all the same, e.g.
// because it falls back to another metric.
func (c cause) finding(w wanted, known bool) (liveFinding, bool) {
	f := liveFinding{Severity: isError}
	absentIsFine := w.role == "bad" && (known || w.point.in.AbsentBadZero)
	switch {
	case c.le != "":
		c.misspelt(&f, w.selector)
		return f, true
	case c.lately && absentIsFine:
		return f, false // No failure just now.
	case c.lately:
		f.Code, f.Text = codeStopped, w.selector+" selects nothing now, and did within the last day"
		f.Do = "look why nothing exports it any more, then whether the scrape works (up == 0)"
	case c.noMetric:
		c.unnamed(&f, w.selector)
	default:
		c.unmatched(&f, w.selector, absentIsFine)
	}
	if f.Code == codeBadNeverSeen || known && w.role != "bad" {
		f.Severity = isWarning
	}
	return f, true
}

func (c cause) misspelt(f *liveFinding, selector string) {
	f.Code, f.Text = codeLeSpelling, fmt.Sprintf("%s selects nothing, with le=%q it would: servers spell bounds in two ways", selector, c.le)
	f.Do = fmt.Sprintf("select both spellings, as in le=~%q", bothSpellings(selector, c.le))
}

func (c cause) unnamed(f *liveFinding, selector string) {
	f.Code, f.Text = codeNeverExisted, fmt.Sprintf("%s selects nothing and did not within a day: nothing is called %s", selector, c.name)
	f.Do = "correct the name, or wait until something exports it"
	if c.nearest != "" {
		f.Do = fmt.Sprintf("did you mean %s? Correct the name", c.nearest)
	}
}

func (c cause) unmatched(f *liveFinding, selector string, absentIsFine bool) {
	f.Code, f.Text, f.Do = codeNeverMatched, selector+" selects nothing and did not within a day"+c.matcherText(), "correct its matchers"
	switch {
	case absentIsFine:
		f.Code, f.Do = codeBadNeverSeen, "fine if nothing failed for a day; otherwise correct its matchers, or the objective is never missed"
	case c.meant != "":
		f.Do = fmt.Sprintf("did you mean %s? Correct the matcher", c.meant)
	}
}

func (c cause) matcherText() string {
	if c.matcher == "" {
		return ""
	}
	text := fmt.Sprintf(", without %s it would", c.matcher)
	if len(c.values) > 0 {
		text += ": there is " + orList(c.values)
	}
	return text
}

// bothSpellings is a regular expression for the bound as it stands in the
// selector and as it is stored.
func bothSpellings(selector, other string) string {
	values := []string{regexp.QuoteMeta(other)}
	if vs, err := parseSelector(selector); err == nil {
		for _, m := range vs.LabelMatchers {
			if m.Name == labels.BucketLabel {
				values = append(values, regexp.QuoteMeta(m.Value))
			}
		}
	}
	slices.Sort(values)
	return strings.Join(values, "|")
}

// promQL accepts what documents may hold.
var promQL = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})

func parseSelector(text string) (*parser.VectorSelector, error) {
	e, err := promQL.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	vs, ok := e.(*parser.VectorSelector)
	if !ok {
		return nil, errors.New("no selector: " + text)
	}
	return vs, nil
}

// replaced is the selector with one of its matchers replaced, or left out where
// there is nil.
func replaced(vs *parser.VectorSelector, at int, m *labels.Matcher) string {
	out := *vs
	out.LabelMatchers = slices.Clone(vs.LabelMatchers)
	if m != nil {
		out.LabelMatchers[at] = m
	} else {
		out.LabelMatchers = slices.Delete(out.LabelMatchers, at, at+1)
	}
	return out.String()
}

// otherBound is the other spelling of a bucket's bound: Prometheus 3 writes
// whole numbers as "1.0", and before it was as the client wrote them.
func otherBound(le string) string {
	switch {
	case strings.HasSuffix(le, ".0"):
		return strings.TrimSuffix(le, ".0")
	case regexp.MustCompile(`^[0-9]+$`).MatchString(le):
		return le + ".0"
	}
	return ""
}

// diagnosis finds out why selectors of one source select nothing.
type diagnosis struct {
	asker

	found map[string]cause
}

// diagnose asks in rounds, so that each asks for all at once.
func (d *diagnosis) diagnose(ctx context.Context, selectors []string) error {
	parsed, names := map[string]*parser.VectorSelector{}, map[string]bool{}
	// bounds are the selectors with the other spelling of their bound.
	bounds := map[string]string{}
	for _, s := range selectors {
		vs, err := parseSelector(s)
		if err != nil {
			return err
		}
		parsed[s] = vs
		if vs.Name != "" {
			names[vs.Name] = true
		}
		if other, ok := otherSpelling(vs); ok {
			bounds[s] = other
		}
	}
	lately := d.present(ctx, selectors, "count(last_over_time((%s)[1d:5m]))")
	spelled := d.present(ctx, slices.Collect(maps.Values(bounds)), "count(%s)")
	named := d.present(ctx, slices.Sorted(maps.Keys(names)), "count(%s)")
	var never []string
	for _, s := range selectors {
		c := cause{lately: lately[s] != nothing, name: parsed[s].Name}
		c.noMetric = c.name != "" && named[c.name] == nothing
		if spelled[bounds[s]] == something {
			c.le = otherBound(boundOf(parsed[s]))
		}
		if d.found[s] = c; !c.lately && c.le == "" && len(never) < maxDiagnosed {
			never = append(never, s)
		}
	}
	d.suggest(ctx, never, parsed)
	return nil
}

// otherSpelling is the selector with its bucket's bound spelled the other way.
func otherSpelling(vs *parser.VectorSelector) (string, bool) {
	for at, m := range vs.LabelMatchers {
		if other := otherBound(m.Value); m.Name == labels.BucketLabel && m.Type == labels.MatchEqual && other != "" {
			return replaced(vs, at, labels.MustNewMatcher(labels.MatchEqual, m.Name, other)), true
		}
	}
	return "", false
}

func boundOf(vs *parser.VectorSelector) string {
	for _, m := range vs.LabelMatchers {
		if m.Name == labels.BucketLabel {
			return m.Value
		}
	}
	return ""
}

// suggest looks for the name or the matcher that was meant.
func (d *diagnosis) suggest(ctx context.Context, never []string, parsed map[string]*parser.VectorSelector) {
	near := map[string]string{}
	var less []string
	for _, s := range never {
		switch c := d.found[s]; {
		case c.noMetric:
			if _, known := near[c.name]; !known {
				near[c.name] = d.nearestMetric(ctx, c.name)
			}
			c.nearest = near[c.name]
			d.found[s] = c
		default:
			for at, m := range parsed[s].LabelMatchers {
				if m.Name != prommodel.MetricNameLabel && len(parsed[s].LabelMatchers) > 1 {
					less = append(less, replaced(parsed[s], at, nil))
				}
			}
		}
	}
	there := d.present(ctx, less, "count(%s)")
	for _, s := range never {
		if c := d.found[s]; !c.noMetric {
			d.found[s] = d.culprit(ctx, c, parsed[s], there)
		}
	}
}

// culprit is the one matcher without which there would be something.
func (d *diagnosis) culprit(ctx context.Context, c cause, vs *parser.VectorSelector, there map[string]presence) cause {
	for at, m := range vs.LabelMatchers {
		rest := replaced(vs, at, nil)
		if m.Name == prommodel.MetricNameLabel || there[rest] != something {
			continue
		}
		c.matcher = m.String()
		r := d.source.Ask(ctx, fmt.Sprintf("count by (%s) (%s)", m.Name, rest), d.at)
		for _, s := range r.Series {
			if v := string(s.Metric[prommodel.LabelName(m.Name)]); v != "" {
				c.values = append(c.values, fmt.Sprintf("%s=%q", m.Name, v))
			}
		}
		slices.Sort(c.values)
		if m.Type == labels.MatchEqual {
			c.meant = spec.Nearest(fmt.Sprintf("%s=%q", m.Name, m.Value), c.values)
		}
		return c
	}
	return c
}

// nearestMetric asks for the names that begin alike, the longest beginning
// first: a server may have a hundred thousand names.
func (d *diagnosis) nearestMetric(ctx context.Context, name string) string {
	prefix := name
	for range 3 {
		cut := strings.LastIndexAny(prefix, "_:")
		if cut <= 0 {
			return ""
		}
		prefix = prefix[:cut]
		r := d.source.Ask(ctx, fmt.Sprintf(`group by (__name__) ({__name__=~"%s.*"})`, prefix), d.at)
		var names []string
		for _, s := range r.Series {
			names = append(names, string(s.Metric[prommodel.MetricNameLabel]))
		}
		if best := spec.Nearest(name, names); best != "" {
			return best
		}
	}
	return ""
}
