package prom

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// data is what a query gives.
type data struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     any              `json:"result"`
}

// point is a time in seconds and a value as text, which JSON could not hold
// where it is NaN or infinite.
type point struct {
	t int64
	v float64
}

// MarshalJSON writes [seconds, "value"].
func (p point) MarshalJSON() ([]byte, error) {
	format := byte('f')
	if abs := math.Abs(p.v); abs != 0 && (abs < 1e-6 || abs >= 1e21) && !math.IsInf(abs, 0) {
		format = 'e'
	}
	return json.Marshal([...]any{float64(p.t) / 1000, strconv.FormatFloat(p.v, format, -1, 64)})
}

// one is a sample of a vector: a value or a histogram.
type one struct {
	Metric    labels.Labels  `json:"metric"`
	Value     *point         `json:"value,omitempty"`
	Histogram *promql.HPoint `json:"histogram,omitempty"`
}

// many is a series of a matrix.
type many struct {
	Metric     labels.Labels   `json:"metric"`
	Values     []point         `json:"values,omitempty"`
	Histograms []promql.HPoint `json:"histograms,omitempty"`
}

// encode gives a value in the form of the HTTP API, in which nothing found is
// an empty list and never null.
func encode(v parser.Value) any {
	switch v := v.(type) {
	case promql.Vector:
		out := make([]one, len(v))
		for i, s := range v {
			out[i].Metric = s.Metric
			if s.H != nil {
				out[i].Histogram = &promql.HPoint{T: s.T, H: s.H}
			} else {
				out[i].Value = &point{s.T, s.F}
			}
		}
		return out
	case promql.Matrix:
		out := make([]many, len(v))
		for i, s := range v {
			out[i] = many{Metric: s.Metric, Histograms: s.Histograms}
			for _, p := range s.Floats {
				out[i].Values = append(out[i].Values, point{p.T, p.F})
			}
		}
		return out
	}
	return v
}
