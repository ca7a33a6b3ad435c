package world_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestSource asks with the agent's own client.
func TestSource(t *testing.T) {
	var s world.Source
	server := httptest.NewServer(&s)
	defer server.Close()
	client, err := prom.New(prom.Options{
		Name: "main", URL: server.URL, HTTP: config.DefaultHTTPClientConfig, Timeout: 5 * time.Second,
		MaxConcurrency: 4, QueriesPerSecond: 1000, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	objective := spec.Objective{
		ID: "availability", Target: 0.9, JudgeWindow: time.Second, Window: time.Hour,
		Indicator: spec.Indicator{
			Good:  &spec.Query{Expr: "shop_good_total", Counter: true},
			Total: &spec.Query{Expr: "shop_requests_total", Counter: true},
		},
	}
	cases := map[string]struct {
		reason     string
		broken     time.Duration
		mended     time.Duration
		at         time.Duration
		low, high  float64
		wantReason measure.Reason
	}{
		"Good":   {reason: "never broken", high: 0.001},
		"Broken": {reason: "broken for ten seconds", broken: 10 * time.Second, low: 0.75, high: 0.91},
		"Mended": {reason: "good again for two", broken: 10 * time.Second, mended: 2 * time.Second, high: 0.001},
		"Past":   {reason: "an instant before the outage", broken: 10 * time.Second, at: -time.Minute, high: 0.001},
		"Future": {reason: "no samples of tomorrow: a wrong clock sees nothing", at: 24 * time.Hour, wantReason: measure.NoData},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.Reset(time.Time{})
			if tc.broken > 0 {
				s.Reset(now.Add(-tc.broken))
			}
			if tc.mended > 0 {
				s.Mend(now.Add(-tc.mended))
			}
			m := client.Measure(t.Context(), measure.At("checkout", objective, time.Second, now.Add(tc.at)))[0]
			if m.Reason != tc.wantReason || m.ErrorRatio < tc.low || m.ErrorRatio > tc.high {
				t.Errorf("%s: %+v, want a ratio between %v and %v, reason %q", tc.reason, m, tc.low, tc.high, tc.wantReason)
			}
		})
	}
	if c := client.Clock(t.Context()); c.Err != nil || c.Offset.Abs() > time.Second {
		t.Errorf("clock: %+v", c)
	}
	resp, err := http.PostForm(server.URL+"/api/v1/query", url.Values{"query": {"something_else"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a query that it cannot compute: HTTP %d, want 400", resp.StatusCode)
	}
}
