package fleet_test

import (
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/setpoint-dev/setpoint/internal/lab/fleet"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

func open(t testing.TB, o fleet.Options) *fleet.Fleet {
	t.Helper()
	o.Dir = t.TempDir()
	f, err := fleet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// value asks the engine for a number that must be there.
func value(t *testing.T, f *fleet.Fleet, at time.Time, expr string, args ...any) float64 {
	t.Helper()
	expr = fmt.Sprintf(expr, args...)
	v, ok, err := f.Engine.Value(t.Context(), expr, at)
	if err != nil || !ok {
		t.Fatalf("%s: %v, found %t", expr, err, ok)
	}
	return v
}

func TestFleetHoldsWhatWasAskedFor(t *testing.T) {
	f := open(t, fleet.Options{
		Services: 7, Instances: 2, Shapes: 3, Interval: 30 * time.Second, Span: 2 * time.Hour, Broken: 2, Histogram: true,
	})
	counts := map[string]float64{
		`count({__name__=~"http_requests.*_total"})`:                                                7 * 2 * 2,
		`count(http_requests_total)`:                                                                3 * 2 * 2,
		`count(http_requests_2_total)`:                                                              2 * 2 * 2,
		`count(http_request_duration_seconds_bucket)`:                                               7 * 2 * 8,
		`count(http_request_duration_seconds_count)`:                                                7 * 2,
		`count_over_time(http_request_duration_seconds_sum{service="svc-00001",instance="i1"}[3h])`: 2*60*2 + 1,
	}
	for expr, want := range counts {
		if got := value(t, f, f.End(), expr); got != want {
			t.Errorf("%s = %v, want %v", expr, got, want)
		}
	}
	for i := range 7 {
		ratio, err := f.Ratio(t.Context(), i, 30*time.Minute, f.End())
		if want := map[bool]float64{true: 0.2, false: 0.0002}[i < 2]; err != nil || math.Abs(ratio-want) > want/2 {
			t.Errorf("%s fails %v of its requests, %v, want about %v", fleet.Name(i), ratio, err, want)
		}
		ratio, err = f.Ratio(t.Context(), i, 30*time.Minute, f.End().Add(-90*time.Minute))
		if err != nil || ratio > 0.001 {
			t.Errorf("%s fails %v of its requests before it breaks, %v", fleet.Name(i), ratio, err)
		}
	}
	if rate := value(t, f, f.End(), `sum(rate(http_requests_total{service="svc-00001"}[1h]))`); rate < 10 || rate > 30 {
		t.Errorf("%v requests per second of two instances, want about 20", rate)
	}
}

// TestSpikyTrafficFoolsAveragesOfRatios holds that a fleet is worth testing
// with: most requests in little time, and the mean of ratios far off.
func TestSpikyTrafficFoolsAveragesOfRatios(t *testing.T) {
	const day = 24 * time.Hour
	f := open(t, fleet.Options{Interval: time.Minute, Span: 30 * day, Spiky: true})
	total := value(t, f, f.End(), `sum(increase(http_requests_total[30d]))`)
	// A step of ten minutes is as long as a burst.
	busy := value(t, f, f.End(), `quantile_over_time(0.985, sum(increase(http_requests_total[10m]))[30d:10m])`)
	most := value(t, f, f.End(), `max_over_time(sum(increase(http_requests_total[10m]))[30d:10m])`)
	if most < 1000*busy {
		t.Errorf("the busiest ten minutes have %v requests, and 98.5 %% of the time at most %v: no spikes", most, busy)
	}
	if bursts := total / most; bursts < 25 || bursts > 60 {
		t.Errorf("all requests are %v of the busiest ten minutes, want about 1 %% of %d", bursts, 30*24*6)
	}
	right, err := f.Ratio(t.Context(), 0, 30*day, f.End())
	if err != nil {
		t.Fatal(err)
	}
	wrong := value(t, f, f.End(), `avg_over_time((sum(increase(http_requests_total{code="500"}[5m])) / sum(increase(http_requests_total[5m])))[30d:5m])`)
	if wrong < 5*right {
		t.Errorf("the mean of ratios is %v and the ratio %v: not several-fold", wrong, right)
	}
}

func TestSameOptionsGiveTheSameFleet(t *testing.T) {
	ask := func(seed uint64) float64 {
		f := open(t, fleet.Options{Services: 5, Span: 10 * time.Minute, Seed: seed})
		return value(t, f, f.End(), "sum(http_requests_total)")
	}
	if a, b := ask(1), ask(1); a != b {
		t.Errorf("two fleets of one seed have %v and %v requests", a, b)
	}
	if a, b := ask(1), ask(2); a == b {
		t.Errorf("two fleets of two seeds have %v requests", a)
	}
}

func TestDocumentsSayWhatWasAskedFor(t *testing.T) {
	rates := []spec.BurnRate{{Short: 5 * time.Minute, Long: time.Hour, Factor: 14.4, Page: true}, {Short: 6 * time.Hour, Long: 72 * time.Hour, Factor: 1}}
	f := open(t, fleet.Options{Services: 1001, Shapes: 2, Interval: time.Minute, Span: time.Minute, Target: 0.99, Period: 7 * 24 * time.Hour, BurnRates: rates})
	set, err := f.Options.Set()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Services) != 1001 || len(f.Options.Documents()) != 3 {
		t.Fatalf("%d services in %d files, want 1001 in 3", len(set.Services), len(f.Options.Documents()))
	}
	last := set.Services[1000]
	o := last.Objectives[0]
	o.Pos, o.Indicator = spec.Position{}, spec.Indicator{Good: &spec.Query{Expr: o.Indicator.Good.Expr}, Total: &spec.Query{Expr: o.Indicator.Total.Expr}}
	want := spec.Objective{
		ID: "svc-01001-availability", SLO: "svc-01001-availability", Target: 0.99, Window: 7 * 24 * time.Hour, JudgeWindow: 5 * time.Minute,
		Indicator: spec.Indicator{
			Good:  &spec.Query{Expr: `http_requests_total{service="svc-01001",code!~"5.."}`},
			Total: &spec.Query{Expr: `http_requests_total{service="svc-01001"}`},
		},
		BurnRates: rates,
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if other := set.Services[999].Objectives[0].Indicator.Total.Expr; !strings.HasPrefix(other, "http_requests_1_total{") {
		t.Errorf("the service before it measures %s, want the other shape", other)
	}
	dir := t.TempDir()
	if err := f.Options.Write(dir); err != nil {
		t.Fatal(err)
	}
	var files []spec.File
	for _, d := range f.Options.Documents() {
		data, err := os.ReadFile(filepath.Join(dir, d.Name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Name: d.Name, Data: data})
	}
	written, err := spec.Load(files, []spec.Reader{openslo.Reader{}})
	if err != nil || written.Digest != set.Digest {
		t.Errorf("the written files say something else: %v", err)
	}
}

// TestBareSendsExactlyWhatWasSent holds that the baseline asks what was asked,
// no more and no less, and that it hears of answers that are none.
func TestBareSendsExactlyWhatWasSent(t *testing.T) {
	f := open(t, fleet.Options{Services: 3, Span: 10 * time.Minute})
	recorder := fleet.Record(f.Engine.Handler())
	server := httptest.NewServer(recorder)
	t.Cleanup(server.Close)
	c, err := api.NewClient(api.Config{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ask := v1.NewAPI(c)
	query := func(expr string) {
		if _, _, _, err := ask.Query(t.Context(), expr, f.End()); err != nil {
			t.Fatal(err)
		}
	}
	query("1")
	recorder.Begin()
	before := f.Engine.Counts()
	query(`sum by (service) (increase(http_requests_total[5m]))`)
	query("up or http_requests_total")
	if _, err := ask.Flags(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := f.Engine.Counts().Since(before)
	calls := recorder.End()
	query("2")
	if len(calls) != 2 || calls[1].Expr() != "up or http_requests_total" {
		t.Fatalf("recorded %+v, want the two queries", calls)
	}
	bare, err := fleet.NewBare(server.URL, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bare.Close)
	before = f.Engine.Counts()
	recorder.Begin()
	n, err := bare.Send(t.Context(), calls)
	if err != nil || n < 500 {
		t.Errorf("%d bytes, %v", n, err)
	}
	again := f.Engine.Counts().Since(before)
	delete(first.Requests, "status/flags")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the engine saw other queries (-first +again):\n%s", diff)
	}
	if got := recorder.End(); len(got) != 2 {
		t.Errorf("sent %+v", got)
	}
	if _, err := bare.Send(t.Context(), []fleet.Call{{Path: "/api/v1/query", Form: "query=sum("}}); err == nil {
		t.Error("a refused query was taken for an answer")
	}
}
