package pyrra_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/pyrra"
)

const day = 24 * time.Hour

var readers = []spec.Reader{pyrra.Reader{}}

func read(t testing.TB, path string) spec.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return spec.File{Name: filepath.Base(path), Data: data}
}

func TestValid(t *testing.T) {
	readings, err := spec.Read([]spec.File{read(t, "testdata/valid.yaml")}, readers)
	if err != nil {
		t.Fatal(err)
	}
	at := func(line int) spec.Position { return spec.Position{File: "valid.yaml", Line: line} }
	query := func(line int, expr string) *spec.Query { return &spec.Query{Expr: expr, Pos: at(line)} }
	service := map[string]string{"pyrra.dev/service": "api"}
	want := []spec.ObjectiveReading{{
		Service: "api", ServicePos: at(7), Labels: map[string]string{"pyrra.dev/service": "api", "pyrra.dev/team": "team-a", "role": "alert-rules"},
		Objective: spec.Objective{
			ID: "api-errors", SLO: "api-errors", Description: "Requests are answered.", Target: 0.999, Window: 28 * day, Pos: at(2),
			GroupBy: []string{"method", "route"},
			Indicator: spec.Indicator{
				Bad:           query(16, `sum by (method, route) (increase(http_requests_total{code=~"5..",job="api"}[{{.window}}]))`),
				Total:         query(17, `sum by (method, route) (increase(http_requests_total{job="api"}[{{.window}}]))`),
				AbsentBadZero: true,
			},
		},
	}, {
		Service: "api", ServicePos: at(24), Labels: service,
		Objective: spec.Objective{
			ID: "api-latency", SLO: "api-latency", Target: 0.9, Window: 28 * day, Pos: at(22),
			Indicator: spec.Indicator{
				Good:  query(33, `sum(increase(http_request_duration_seconds_bucket{job="api",le="0.5"}[{{.window}}]))`),
				Total: query(35, `sum(increase(http_request_duration_seconds_count{job="api"}[{{.window}}]))`),
			},
		},
	}, {
		Service: "probe", ServicePos: at(41),
		Objective: spec.Objective{
			ID: "probe", SLO: "probe", Target: 0.99, Window: 7 * day, Pos: at(39), GroupBy: []string{"service.name", "target"},
			Indicator: spec.Indicator{
				Good:  query(47, `sum by ("service.name", target) (sum_over_time(probe_success[{{.window}}]))`),
				Total: query(47, `sum by ("service.name", target) (count_over_time(probe_success[{{.window}}]))`),
			},
		},
	}}
	ignore := []cmp.Option{cmpopts.IgnoreFields(spec.ObjectiveReading{}, "Digests"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(want, readings[0].Objectives, ignore...); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
	notes := []spec.Note{
		{Pos: at(19), Text: `"api-errors": alerting is not used: pages are the Remediation's`},
		{Pos: at(20), Text: `"api-errors": an answer that is only partial is unknown, also with warn`},
		{Pos: at(28), Text: `"api-latency": performanceOverAccuracy is not used: the whole increase is asked, so the number may differ from Pyrra's`},
		{Pos: at(41), Text: `"probe" names no service, so it is one itself: the label pyrra.dev/service names another`},
	}
	if diff := cmp.Diff(notes, readings[0].Notes); diff != "" {
		t.Errorf("notes (-want, +got)\n%s", diff)
	}
}

// TestTarget: 99.9 percent is exactly the number 0.999, however it is written.
func TestTarget(t *testing.T) {
	text := string(read(t, "testdata/valid.yaml").Data)
	rapid.Check(t, func(t *rapid.T) {
		thousandths := rapid.IntRange(1000, 99_999).Draw(t, "percent x 1000")
		percent := decimal(float64(thousandths)/1000) + rapid.SampledFrom([]string{"", "e0", "E+00"}).Draw(t, "exponent")
		got, err := spec.Read([]spec.File{{Name: "a", Data: []byte(strings.Replace(text, "99.9", percent, 1))}}, readers)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := got[0].Objectives[0].Objective.Target, float64(thousandths)/100_000; got != want {
			t.Fatalf("%s%% is %v, want %v", percent, got, want)
		}
	})
}
