package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Evidence is asked once, and what is wrong with each piece is said at its line.
func TestValidateLiveEvidence(t *testing.T) {
	w := newLiveWorld(t, 0)
	w.count(t, 24*time.Hour, 0, map[string]float64{
		`http_requests_total{service="checkout",code="200",pod="a"}`: 100, `http_requests_total{service="checkout",code="500",pod="a"}`: 1,
		`http_requests_total{service="checkout",code="200",pod="b"}`: 100, `http_requests_total{service="checkout",code="500",pod="b"}`: 1,
	})
	doc := sloDocument("checkout", "1d", "bad", `http_requests_total{service="checkout",code="500"}`, `http_requests_total{service="checkout"}`)
	doc = strings.Replace(doc, "spec: {service: checkout, ", `spec:
  service: checkout
  evidence:
    - {name: well, query: 'sum by (code) (rate(http_requests_total[{{.window}}]))', labels: [code]}
    - {name: pods, query: 'rate(http_requests_total[5m])', labels: [code]}
    - {name: empty, query: 'sum by (code) (rate(htp_requests_total[5m]))', labels: [code]}
    - {name: joined, query: 'sum(http_requests_total * on (code) http_requests_total)'}
    - {name: nothing, query: 'sum(http_requests_total) / (sum(http_requests_total) * 0 - sum(http_requests_total) * 0)'}
  `, 1)
	doc = strings.Replace(doc, "objectives: {checkout: {burnRates: [{short: 5m, long: 1h, factor: 2, page: true}]}}}", "objectives: {checkout: {burnRates: [{short: 5m, long: 1h, factor: 2, page: true}]}}", 1)
	code, v, errs := w.validate(t, map[string]string{"checkout": doc}, "-o", "json")
	var got []string
	for _, f := range v.Live.Findings {
		text, _, _ := strings.Cut(f.Text, ":")
		got = append(got, strings.Join([]string{f.Severity, f.Code, text, f.Do}, " | "))
	}
	want := []string{
		`error | evidence-several-series | evidence "pods" of checkout has no breakdown | aggregate by the labels that are listed, and by no other`,
		`warning | evidence-empty | evidence "empty" of checkout returns nothing now | this is right where nothing of the kind happens; otherwise look at its names`,
		`error | evidence-query-error | evidence "joined" of checkout has no breakdown | correct the query; ` + "`setpoint plan --explain-queries` shows those of the objectives for comparison",
		`warning | evidence-not-finite | evidence "nothing" of checkout has no breakdown | give it a denominator that is not zero, or look whether anything of the kind happens`,
	}
	if diff := cmp.Diff(want, got); diff != "" || code != 1 {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errs, diff)
	}
	for n, f := range v.Live.Findings {
		if n > 0 && f.Line != v.Live.Findings[n-1].Line+1 || f.Service != "checkout" {
			t.Errorf("%s at line %d", f.Code, f.Line)
		}
	}
}
