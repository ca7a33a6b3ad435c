package spec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// evidenceSet loads one piece of evidence beside base.yaml.
func evidenceSet(t *testing.T, query, labels string) spec.Set {
	t.Helper()
	doc := spec.File{Name: "shop.yaml", Data: []byte(`apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  evidence:
    - {name: queue, query: '` + query + `', source: probe, labels: [` + labels + `]}
`)}
	set, err := spec.Load([]spec.File{read(t, "base.yaml"), doc}, readers)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestLintEvidence(t *testing.T) {
	cases := map[string]struct {
		reason        string
		query, labels string
		want          string // "" is no note
	}{
		"By":       {"what its labels say", `sum by (version, zone) (up)`, "zone, version", ""},
		"Top":      {"the largest of them are told apart likewise", `topk(3, sum by (version) (up))`, "version", ""},
		"Ratio":    {"a ratio of two that agree", `sum by (version) (a) / sum by (version) (b)`, "version", ""},
		"Number":   {"one number of the whole", `sum(up)`, "", ""},
		"Plain":    {"a selector has the labels that the target gives it", `up`, "version", "write sum by (version) (…)"},
		"More":     {"series differ in a label that is not listed", `sum by (version, pod) (up)`, "version", "write sum by (version) (…)"},
		"Fewer":    {"a label that is never there", `sum(up)`, "version", "write sum by (version) (…)"},
		"Without":  {"nobody knows which are left", `sum without (pod) (up)`, "version", "write sum by (version) (…)"},
		"NoLabels": {"several series, and nothing to tell them apart", `sum by (version) (up)`, "", "write sum(…)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range evidenceSet(t, tc.query, tc.labels).Notes {
				if n.Lint == spec.LintEvidenceLabels {
					got = append(got, n.Pos.String()+": "+n.Text)
				}
			}
			if tc.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], "shop.yaml:7: ") || tc.want == "" || !strings.Contains(got[0], tc.want) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestEvidenceIsAskedWhere(t *testing.T) {
	query := spec.Query{Expr: `sum by (version) (rate(errors_total[{{.window}}]))`}
	svc := spec.Service{Objectives: []spec.Objective{{
		JudgeWindow: 2 * time.Minute,
		Indicator:   spec.Indicator{Bad: &spec.Query{Expr: "bad", Source: "eu"}, Total: &spec.Query{Expr: "total", Source: "eu"}},
	}}}
	if got := svc.EvidenceSource(spec.Evidence{Query: query}); got != "eu" {
		t.Errorf("without its own, the service's source: %q", got)
	}
	if got := (spec.Service{}).EvidenceSource(spec.Evidence{Query: query}); got != "" {
		t.Errorf("of a service without objectives, the default: %q", got)
	}
	probe, _ := evidenceSet(t, "sum(up)", "").Service("shop")
	if got := probe.EvidenceSource(probe.Remediation.Evidence[0]); got != "probe" {
		t.Errorf("its own source: %q", got)
	}
	if got := svc.EvidenceExpr(spec.Evidence{Query: query}); !strings.Contains(got, "[2m]") {
		t.Errorf("over the judge window: %s", got)
	}
	if got := (spec.Service{}).EvidenceExpr(spec.Evidence{Query: query}); !strings.Contains(got, "[5m]") {
		t.Errorf("over the default one: %s", got)
	}
}
