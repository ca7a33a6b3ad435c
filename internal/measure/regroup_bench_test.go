package measure_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

const ratioExpr = `sum(rate(http_requests_total{service=%[1]q,namespace="shop",code=~"5.."}[5m]))` +
	` / sum(rate(http_requests_total{service=%[1]q,namespace="shop"}[5m]))`

func hundred(b *testing.B) (expr string, members [][]string) {
	for i := range 100 {
		expr = fmt.Sprintf(ratioExpr, fmt.Sprintf("service-%04d.example", i))
		_, values, reason := measure.Analyse(expr)
		if reason != "" {
			b.Fatal(reason)
		}
		members = append(members, values)
	}
	return expr, members
}

func BenchmarkAnalyse(b *testing.B) {
	expr := fmt.Sprintf(ratioExpr, "checkout")
	b.ReportAllocs()
	for b.Loop() {
		measure.Analyse(expr)
	}
}

func BenchmarkGroup(b *testing.B) {
	expr, members := hundred(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := measure.Group(expr, members); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	expr, members := hundred(b)
	grouped, err := measure.Group(expr, members)
	if err != nil {
		b.Fatal(err)
	}
	for name, more := range map[string]model.Metric{"bare": {}, "labelled": {"instance": "a", "code": "500"}} {
		var series []measure.Sample
		for i := range members {
			m := model.Metric{"service": model.LabelValue(members[i][1])}
			for name, v := range more {
				m[name] = v
			}
			series = append(series, measure.Sample{Metric: m, Value: 1})
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				grouped.Split(series)
			}
		})
	}
}
