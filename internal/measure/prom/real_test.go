package prom_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// debian finds a program of the Debian package prometheus.
func debian(t *testing.T, program string) string {
	t.Helper()
	binary, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not in PATH: install the Debian package prometheus", program)
		}
		t.Skipf("%s is not in PATH: install the Debian package prometheus to run this test", program)
	}
	return binary
}

// TestRealPrometheus measures a real exporter through the real server: the
// plan, the client and what PromQL does with a dead target, together.
func TestRealPrometheus(t *testing.T) {
	binary := debian(t, "prometheus")
	var scrapes atomic.Int64
	var dead atomic.Bool
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if dead.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		n := scrapes.Add(1)
		_, _ = fmt.Fprintf(w, "# TYPE http_requests_total counter\n"+
			"http_requests_total{code=\"200\"} %d\nhttp_requests_total{code=\"500\"} %d\n", 90*n, 10*n)
	}))
	t.Cleanup(exporter.Close)
	dir := t.TempDir()
	s := source(t, startPrometheus(t, binary, dir, "scrape_configs: [{job_name: shop, scrape_interval: 1s, scrape_timeout: 1s, "+
		"static_configs: [{targets: ["+strconv.Quote(exporter.Listener.Addr().String())+"]}]}]"))

	o := spec.Objective{
		ID: "availability", Target: 0.99, Window: time.Hour, JudgeWindow: 5 * time.Second,
		Indicator: spec.Indicator{
			Good:  &spec.Query{Expr: `sum(increase(http_requests_total{code!~"5.."}[{{.window}}]))`},
			Total: &spec.Query{Expr: `http_requests_total`, Counter: true},
		},
		BurnRates: []spec.BurnRate{{Short: 5 * time.Second, Long: time.Minute, Factor: 2, Page: true}},
	}
	svc := spec.Service{Name: "shop", Objectives: []spec.Objective{o}}
	look := func() (measure.Measurement, measure.Measurement, time.Time) {
		at := measure.Instant(time.Now())
		set := measure.NewSet(s.Measure(t.Context(), measure.Pass(svc, at)))
		return set.Get(measure.ID{Service: "shop", Objective: o.ID, Window: o.JudgeWindow, At: at}),
			set.Get(measure.CoverageID("shop", o, time.Minute, at)), at
	}

	judge, coverage, at := look()
	eventually(t, 30*time.Second, func() bool { judge, coverage, at = look(); return judge.Known() && judge.Total > 0 }, func() any { return judge })
	if judge.ErrorRatio < 0.099 || judge.ErrorRatio > 0.101 {
		t.Errorf("error ratio %g, want 0.1", judge.ErrorRatio)
	}
	if age := at.Sub(judge.SampleAt); age < 0 || age > 3*time.Second {
		t.Errorf("sample is %s old, want one scrape at most", age)
	}
	if coverage.Reason != measure.NoData || coverage.FirstAt.IsZero() || coverage.FirstAt.After(at) {
		t.Errorf("coverage %+v, want no data and the time of the first sample", coverage)
	}
	if clock := s.Clock(t.Context()); clock.Err != nil || clock.Offset.Abs() > 2*time.Second {
		t.Errorf("clock %+v", clock)
	}
	if kept, ok := s.Retention(t.Context()); !ok || kept != 15*24*time.Hour {
		t.Errorf("retention %s, %t, want the default of 15 days", kept, ok)
	}
	if version, ok := s.Version(t.Context()); !ok || !strings.Contains(version, ".") {
		t.Errorf("version %q", version)
	}
	if r := s.Ask(t.Context(), "http_requests_total", at); len(r.Series) != 2 {
		t.Errorf("two series: %+v", r)
	}
	if r := s.Ask(t.Context(), "http_requests_total + on(job) http_requests_total", at); r.Reason != measure.QueryError {
		t.Errorf("a many-to-many join: %+v", r)
	}
	if r := s.Ask(t.Context(), "sum(", at); r.Reason != measure.QueryError {
		t.Errorf("half an expression: %+v", r)
	}

	// The window still holds samples; a dead target must not look healthy.
	dead.Store(true)
	eventually(t, 20*time.Second, func() bool { judge, _, _ = look(); return judge.Reason == measure.NoData }, func() any { return judge })
}

// TestSameStates holds that Debian's server and the engine in this process, a
// major version apart, give the same measurements of the same samples, asked
// together and one by one.
func TestSameStates(t *testing.T) {
	promtool, binary := debian(t, "promtool"), debian(t, "prometheus")
	// Not at a whole scrape: whether a range includes its left end differs.
	start := time.Now().UTC().Truncate(time.Minute).Add(-2 * time.Hour)
	at := start.Add(39*scrape + 7*time.Second)
	var fleet []drawn
	var all []series
	for i, ill := range append([]string{"none"}, ills[4:]...) {
		for objective := range 4 {
			d := drawn{name: fmt.Sprintf("s%d-%d", i, objective), ill: ill, objective: objective, rate: float64(10 + i)}
			if ill == "ended" || ill == "refused" {
				continue // promtool writes no marker of an end, and nothing refuses here
			}
			fleet, all = append(fleet, d), append(all, d.series()...)
		}
	}
	e := engine(t, t.TempDir(), at)
	t.Cleanup(func() { _ = e.Close() })
	load(t, e, start, 40, all)

	dir := t.TempDir()
	blocks := filepath.Join(dir, "data")
	text := filepath.Join(dir, "samples")
	if err := os.WriteFile(text, openMetrics(start, 40, all), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", text, blocks).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	debians := startPrometheus(t, binary, dir, "")
	ours := httptest.NewServer(e.Handler())
	t.Cleanup(ours.Close)

	services := make([]spec.Service, len(fleet))
	for i, d := range fleet {
		services[i] = spec.Service{Name: d.name, Objectives: []spec.Objective{shapes(d.name, d.objective)}}
	}
	plans := measure.Compile(services, nil)
	var qs []measure.Query
	for _, svc := range services {
		qs = append(qs, plans.Service(svc.Name).Pass(at)...)
	}
	want := source(t, ours.URL).Measure(t.Context(), qs)
	got := source(t, debians).Measure(t.Context(), qs)
	seen := map[measure.Reason]int{}
	for _, m := range want {
		seen[m.Reason]++
	}
	t.Logf("%d measurements: %v", len(want), seen)
	same := cmp.Options{
		cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreFields(measure.Measurement{}, "Detail"),
		// The oldest sample is found in steps, whose first one stands elsewhere.
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".FirstAt" }, cmpopts.EquateApproxTime(scrape)),
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i], same); diff != "" {
			t.Errorf("%s, %s (-3.x +Debian):\n%s", fleet[slotOf(services, want[i].ID.Service)].ill, want[i].ID.Window, diff)
		}
	}
	for _, r := range []measure.Reason{"", measure.NoData, measure.NotFinite, measure.OutOfRange, measure.QueryError, measure.CounterResets} {
		if seen[r] == 0 {
			t.Errorf("no measurement was %q, so it was not compared", r)
		}
	}
}

func slotOf(services []spec.Service, name string) int {
	for i, s := range services {
		if s.Name == name {
			return i
		}
	}
	return -1
}

// openMetrics writes samples as promtool reads them.
func openMetrics(start time.Time, scrapes int, all []series) []byte {
	var b bytes.Buffer
	for _, name := range []string{"good", "total", "bad"} {
		_, _ = fmt.Fprintf(&b, "# TYPE %s unknown\n", name)
		for _, s := range all {
			if s.labels.Get("__name__") != name {
				continue
			}
			plain := strings.ReplaceAll(labels.NewBuilder(s.labels).Del("__name__").Labels().String(), `", `, `",`)
			for i := range scrapes {
				v := s.value(i)
				if math.IsNaN(v) {
					continue
				}
				at := start.Add(time.Duration(i) * scrape).Unix()
				_, _ = fmt.Fprintf(&b, "%s%s %s %d\n", name, plain, strconv.FormatFloat(v, 'g', -1, 64), at)
			}
		}
	}
	b.WriteString("# EOF\n")
	return b.Bytes()
}

// startPrometheus returns the URL of a server with its data in a folder; it
// ends with the test.
func startPrometheus(t *testing.T, binary, dir, conf string) string {
	t.Helper()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(conf+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			if b, err := os.ReadFile(log.Name()); err == nil && len(b) > 0 {
				t.Logf("prometheus said: %s", strings.TrimSpace(string(b)))
			}
		}
	})
	eventually(t, 20*time.Second, func() bool {
		resp, err := http.Get("http://" + listen + "/-/ready")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	}, func() any { return "prometheus is not ready" })
	return "http://" + listen
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
