package prom_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestRealPrometheus measures a real exporter through the real server: the
// plan, the client and what PromQL does with a dead target, together.
func TestRealPrometheus(t *testing.T) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("prometheus is not in PATH: install the Debian package prometheus")
		}
		t.Skip("prometheus is not in PATH: install the Debian package prometheus to run this test")
	}
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
	s := source(t, startPrometheus(t, binary, exporter.Listener.Addr().String()))

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

	q := measure.At("shop", o, o.JudgeWindow, at)
	q.Total = "http_requests_total"
	if m := one(t, s, q); m.Reason != measure.SeveralSeries {
		t.Errorf("a query without sum: %+v", m)
	}
	q.Total = "http_requests_total + on(job) http_requests_total"
	if m := one(t, s, q); m.Reason != measure.QueryError {
		t.Errorf("a many-to-many join: %+v", m)
	}

	// The window still holds samples; a dead target must not look healthy.
	dead.Store(true)
	eventually(t, 20*time.Second, func() bool { judge, _, _ = look(); return judge.Reason == measure.NoData }, func() any { return judge })
}

func eventually(t *testing.T, within time.Duration, ok func() bool, last func() any) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %s: %+v", within, last())
}

// startPrometheus returns the URL of a server which scrapes the target each
// second; it ends with the test.
func startPrometheus(t *testing.T, binary, target string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	conf := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: [%q]}]}]\n", target)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
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
