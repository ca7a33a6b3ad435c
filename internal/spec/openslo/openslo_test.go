package openslo_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

func TestValid(t *testing.T) {
	set, err := loadFiles(t, "testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	at := func(line int) spec.Position { return spec.Position{File: "valid.yaml", Line: line} }
	errors := spec.Indicator{
		Bad:           &spec.Query{Expr: `sum(rate(api_requests_total{code=~"5.."}[{{.window}}]))`, Source: "longterm", Pos: at(30)},
		Total:         &spec.Query{Expr: `sum(rate(api_requests_total[{{.window}}]))`, Source: "longterm", Pos: at(34)},
		AbsentBadZero: true,
	}
	latency := spec.Indicator{
		Good:  &spec.Query{Expr: `sum(increase(api_seconds_bucket{le="0.3"}[{{ .window }}]))`, Pos: at(68)},
		Total: &spec.Query{Expr: `api_seconds_count`, Counter: true, Pos: at(69)},
	}
	raw := spec.Indicator{
		Raw: &spec.Query{Expr: `1 - avg(avg_over_time(feed_stale[{{.window}}]))`, Source: "probe", Pos: at(82)},
	}
	objective := func(id, slo, description string, target float64, window time.Duration, i spec.Indicator, line int) spec.Objective {
		return spec.Objective{
			ID: id, SLO: slo, Description: description, Target: target, Window: window, Indicator: i,
			JudgeWindow: 5 * time.Minute, BurnRates: spec.DefaultBurnRates(), Pos: at(line),
		}
	}
	want := []spec.Service{
		{Name: "api", Remediation: spec.DefaultRemediation("api"), Objectives: []spec.Objective{
			objective("api-availability/Acceptable", "api-availability", "Requests are answered.", 0.99, 28*day, errors, 56),
			objective("api-availability/Good", "api-availability", "Requests are answered.", 0.999, 28*day, errors, 55),
			objective("api-latency", "api-latency", "", 0.95, 30*day, latency, 72),
		}},
		{Name: "feed", Remediation: spec.DefaultRemediation("feed"), Objectives: []spec.Objective{
			objective("freshness", "freshness", "", 0.97, 7*day, raw, 86),
		}},
		{Name: "quiet", Remediation: spec.DefaultRemediation("quiet")},
	}
	if diff := cmp.Diff(want, set.Services, cmpopts.IgnoreFields(spec.Service{}, "Digest")); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
	notes := []spec.Note{
		{Pos: at(2), Text: `DataSource "longterm": connectionDetails are not used: the source of that name in setpoint.yaml says where it is`},
		{Pos: at(18), Text: `service "quiet" has no SLO: nothing is measured`},
		{Pos: at(36), Text: `SLI "forgotten" is named by no SLO: nothing is measured`},
		{Pos: at(44), Text: `SLO "api-availability": alertPolicies are not used: pages are the Remediation's`},
		{Pos: at(88), Text: `AlertPolicy "page-me" is not used: pages are the Remediation's`},
	}
	if diff := cmp.Diff(notes, set.Notes); diff != "" {
		t.Errorf("notes (-want, +got)\n%s", diff)
	}
}

// TestTargetPercent: 99.9 percent is exactly the number 0.999, because the
// digits that a person wrote are compared and shown.
func TestTargetPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thousandths := rapid.IntRange(94_000, 99_999).Draw(t, "percent x 1000")
		percent, share := float64(thousandths)/1000, float64(thousandths)/100_000
		set, err := spec.Load([]spec.File{{Name: "a.yaml", Data: []byte(slo(percent))}}, []spec.Reader{openslo.Reader{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Services[0].Objectives[0].Target; got != share || math.IsNaN(got) {
			t.Fatalf("%v%% is %v, want %v", percent, got, share)
		}
	})
}
