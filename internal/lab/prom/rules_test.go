package prom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

func TestRecord(t *testing.T) {
	e, err := prom.New(prom.Options{Dir: t.TempDir(), Block: 4 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	b := e.Bulk([]labels.Labels{labels.FromStrings("__name__", "n", "a", "1"), labels.FromStrings("__name__", "n", "a", "2")})
	for i := range 61 {
		if err := b.Scrape(start.Add(time.Duration(i)*time.Minute), []float64{float64(i), 2 * float64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	const file = `groups:
- name: counts
  interval: 5m
  rules:
  - {record: n:sum, expr: sum(n), labels: {id: x}}
  - {record: n:each, expr: n}
- {name: often, rules: [{record: n:sum2, expr: 2 * sum(n)}]}
`
	end := start.Add(time.Hour)
	if err := e.Record(t.Context(), []byte(file), start, end); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]float64{
		`n:sum{id="x"}`: 180, `count_over_time(n:sum[2h])`: 13, `n:sum @ 4102446300`: 75,
		`n:each{a="2"}`: 120, `count(n:each)`: 2, `count_over_time(n:sum2[2h])`: 61,
	} {
		if v, _, err := e.Value(t.Context(), expr, end); v != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", expr, v, err, want)
		}
	}
	for words, file := range map[string]string{
		"is no recording rule": `groups: [{name: a, rules: [{alert: A, expr: n}]}]`,
		"parse error":          `groups: [{name: a, rules: [{record: r, expr: "sum("}]}]`,
		"field keep":           `groups: [{name: a, rules: [{keep: r, expr: n}]}]`,
	} {
		if err := e.Record(t.Context(), []byte(file), start, end); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", file, err, words)
		}
	}
}
