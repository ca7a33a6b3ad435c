package openslo

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Write gives one SLO, as any Reader found it, as an OpenSLO document with a
// comment above it. Its objectives are those of one SLO, with one indicator.
// Read again, it gives the same objectives: what OpenSLO has no words for, the
// groups, is in the queries. It refuses what only a Remediation can have added.
func Write(comment string, objectives ...spec.ObjectiveReading) ([]byte, error) {
	if err := writable(objectives); err != nil {
		return nil, err
	}
	first := objectives[0]
	doc := sloOut{APIVersion: APIVersion, Kind: "SLO"}
	doc.Metadata = metadataOut{Name: first.Objective.SLO, Labels: first.Labels}
	doc.Spec = specOut{
		Description:     first.Objective.Description,
		Service:         first.Service,
		Indicator:       indicatorOut{Metadata: metadataOut{Name: first.Objective.SLO}},
		TimeWindow:      []windowOut{{Duration: shorthand(first.Objective.Window), IsRolling: true}},
		BudgetingMethod: occurrences,
	}
	doc.Spec.Indicator.Spec.RatioMetric = ratioOf(first.Objective.Indicator)
	for _, o := range objectives {
		out := objectiveOut{Target: decimal(o.Objective.Target)}
		if o.Objective.ID != o.Objective.SLO {
			out.DisplayName = strings.TrimPrefix(o.Objective.ID, o.Objective.SLO+"/")
		}
		doc.Spec.Objectives = append(doc.Spec.Objectives, out)
	}
	var b bytes.Buffer
	for line := range strings.Lines(comment) {
		b.WriteString("# " + strings.TrimSpace(line) + "\n")
	}
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return nil, fmt.Errorf("write SLO %q: %w", first.Objective.SLO, err)
	}
	return b.Bytes(), nil
}

// writable refuses what would be lost without a word.
func writable(objectives []spec.ObjectiveReading) error {
	if len(objectives) == 0 {
		return errors.New("no objective to write")
	}
	first := objectives[0].Objective
	for _, o := range objectives {
		in := o.Objective.Indicator
		switch {
		case o.Service != objectives[0].Service || o.Objective.SLO != first.SLO:
			return fmt.Errorf("SLO %q of service %q and SLO %q of service %q are not one SLO", first.SLO, objectives[0].Service, o.Objective.SLO, o.Service)
		case !sameIndicator(in, first.Indicator) || o.Objective.Window != first.Window:
			return fmt.Errorf("SLO %q: its objectives have different indicators or windows, and OpenSLO has one of each", first.SLO)
		case o.Objective.Slice != 0:
			return fmt.Errorf("SLO %q has time slices: keep its own document", first.SLO)
		case len(o.Objective.Others) > 0 || slices.ContainsFunc(in.Queries(), func(q spec.Query) bool { return q.Recorded }):
			return fmt.Errorf("SLO %q has further vantage points or recorded series, which are the Remediation's", first.SLO)
		}
	}
	return nil
}

func sameIndicator(a, b spec.Indicator) bool {
	return slices.EqualFunc(a.Queries(), b.Queries(), func(x, y spec.Query) bool {
		return x.Expr == y.Expr && x.Counter == y.Counter && x.Source == y.Source
	}) && (a.Good == nil) == (b.Good == nil) && a.RawSuccess == b.RawSuccess
}

// The documents as they are written, in the order of OpenSLO's own examples.
type sloOut struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Metadata   metadataOut `yaml:"metadata"`
	Spec       specOut     `yaml:"spec"`
}

type metadataOut struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels,omitempty"`
}

type specOut struct {
	Description     string         `yaml:"description,omitempty"`
	Service         string         `yaml:"service"`
	Indicator       indicatorOut   `yaml:"indicator"`
	TimeWindow      []windowOut    `yaml:"timeWindow"`
	BudgetingMethod string         `yaml:"budgetingMethod"`
	Objectives      []objectiveOut `yaml:"objectives"`
}

type indicatorOut struct {
	Metadata metadataOut `yaml:"metadata"`
	Spec     struct {
		RatioMetric ratioOut `yaml:"ratioMetric"`
	} `yaml:"spec"`
}

type ratioOut struct {
	Counter bool       `yaml:"counter,omitempty"`
	Good    *metricOut `yaml:"good,omitempty"`
	Bad     *metricOut `yaml:"bad,omitempty"`
	Total   *metricOut `yaml:"total,omitempty"`
	Raw     *metricOut `yaml:"raw,omitempty"`
	RawType string     `yaml:"rawType,omitempty"`
}

type metricOut struct {
	MetricSource sourceOut `yaml:"metricSource"`
}

type sourceOut struct {
	MetricSourceRef string   `yaml:"metricSourceRef,omitempty"`
	Type            string   `yaml:"type,omitempty"`
	Spec            queryOut `yaml:"spec"`
}

type queryOut struct {
	Query string `yaml:"query"`
}

type windowOut struct {
	Duration  string `yaml:"duration"`
	IsRolling bool   `yaml:"isRolling"`
}

type objectiveOut struct {
	DisplayName string    `yaml:"displayName,omitempty"`
	Target      yaml.Node `yaml:"target"`
}

func ratioOf(in spec.Indicator) ratioOut {
	out := ratioOut{Good: metricOf(in.Good), Bad: metricOf(in.Bad), Total: metricOf(in.Total), Raw: metricOf(in.Raw)}
	for _, q := range in.Queries() {
		// A query with {{.window}} beside it says its range itself.
		out.Counter = out.Counter || q.Counter
	}
	switch {
	case in.Raw == nil:
	case in.RawSuccess:
		out.RawType = "success"
	default:
		out.RawType = "failure"
	}
	return out
}

func metricOf(q *spec.Query) *metricOut {
	if q == nil {
		return nil
	}
	m := metricOut{MetricSource: sourceOut{MetricSourceRef: q.Source, Spec: queryOut{Query: q.Expr}}}
	if q.Source == "" {
		m.MetricSource.Type = "Prometheus"
	}
	return &m
}

// shorthand writes a duration as OpenSLO has it, one number with one unit. What
// does not fit is written as Prometheus does, which only Setpoint reads.
func shorthand(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		letter string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d > 0 && d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.letter
		}
	}
	return spec.FormatDuration(d)
}

// decimal is a number with the digits that a person would write, never as 1e-05.
func decimal(v float64) yaml.Node {
	return yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(v, 'f', -1, 64)}
}
