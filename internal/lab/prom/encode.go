package prom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"
)

// response is the envelope of every answer.
type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

// buffer builds an answer by hand: a server does not spend reflection on each
// sample either, and a slow one would make any client look fast beside it.
type buffer struct {
	bytes.Buffer

	err error
}

// success is the whole answer to a query.
func success(v parser.Value, s stats.QueryStats, warnings, infos []string) ([]byte, error) {
	var b buffer
	b.WriteString(`{"status":"success","data":{"resultType":"` + string(v.Type()) + `","result":`)
	b.value(v)
	if s != nil {
		b.WriteString(`,"stats":`)
		b.json(s)
	}
	b.WriteByte('}')
	if len(warnings) > 0 {
		b.WriteString(`,"warnings":`)
		b.json(warnings)
	}
	if len(infos) > 0 {
		b.WriteString(`,"infos":`)
		b.json(infos)
	}
	b.WriteByte('}')
	if b.err != nil {
		return nil, fmt.Errorf("encode the answer: %w", b.err)
	}
	return b.Bytes(), nil
}

// value writes a result; nothing found is an empty list and never null.
func (b *buffer) value(v parser.Value) {
	switch v := v.(type) {
	case promql.Vector:
		b.WriteByte('[')
		for i, s := range v {
			b.comma(i)
			b.sample(s)
		}
		b.WriteByte(']')
	case promql.Matrix:
		b.WriteByte('[')
		for i, s := range v {
			b.comma(i)
			b.series(s)
		}
		b.WriteByte(']')
	default:
		b.json(v)
	}
}

func (b *buffer) comma(i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func (b *buffer) sample(s promql.Sample) {
	b.WriteString(`{"metric":`)
	b.labels(s.Metric)
	if s.H != nil {
		b.WriteString(`,"histogram":`)
		b.json(promql.HPoint{T: s.T, H: s.H})
	} else {
		b.WriteString(`,"value":`)
		b.point(s.T, s.F)
	}
	b.WriteByte('}')
}

func (b *buffer) series(s promql.Series) {
	b.WriteString(`{"metric":`)
	b.labels(s.Metric)
	for i, p := range s.Floats {
		if i == 0 {
			b.WriteString(`,"values":[`)
		}
		b.comma(i)
		b.point(p.T, p.F)
	}
	if len(s.Floats) > 0 {
		b.WriteByte(']')
	}
	if len(s.Histograms) > 0 {
		b.WriteString(`,"histograms":`)
		b.json(s.Histograms)
	}
	b.WriteByte('}')
}

func (b *buffer) labels(ls labels.Labels) {
	b.WriteByte('{')
	i := 0
	ls.Range(func(l labels.Label) {
		b.comma(i)
		i++
		b.text(l.Name)
		b.WriteByte(':')
		b.text(l.Value)
	})
	b.WriteByte('}')
}

// point writes [seconds, "value"]. JSON could not hold NaN or an infinity, so
// values are text.
func (b *buffer) point(t int64, v float64) {
	to := append(b.AvailableBuffer(), '[')
	to = strconv.AppendInt(to, t/1000, 10)
	if ms := t % 1000; ms != 0 {
		if t < 0 {
			// The sign stands before the seconds, which may be zero.
			to = strconv.AppendFloat(append(b.AvailableBuffer(), '['), float64(t)/1000, 'f', -1, 64)
		} else {
			to = append(to, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
		}
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) && !math.IsInf(abs, 0) {
		format = 'e'
	}
	to = append(to, ',', '"')
	to = strconv.AppendFloat(to, v, format, -1, 64)
	b.Write(append(to, '"', ']'))
}

// text writes a string; only one that JSON must escape takes the slow way.
func (b *buffer) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			b.json(s)
			return
		}
	}
	b.WriteByte('"')
	b.WriteString(s)
	b.WriteByte('"')
}

// json writes anything in the way of the standard library, with <, > and & as
// they are.
func (b *buffer) json(v any) {
	enc := json.NewEncoder(&b.Buffer)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		b.err = err
		return
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
}
