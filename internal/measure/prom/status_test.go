package prom_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

func TestRetention(t *testing.T) {
	flags := func(text string) string { return success(`{"storage.tsdb.retention.time":"` + text + `"}`) }
	info := func(text string) string { return success(`{"storageRetention":"` + text + `"}`) }
	const day = 24 * time.Hour
	cases := map[string]struct {
		reason, flags, info string
		want                time.Duration
	}{
		"flag":           {"somebody set it", flags("30d"), "", 30 * day},
		"default":        {"the flag is 0 then", flags("0s"), info("15d"), 15 * day},
		"time and size":  {"whichever comes first", flags("0s"), info("15d or 10GiB"), 15 * day},
		"size alone":     {"nobody knows how long that lasts", flags("0s"), info("10GiB"), 0},
		"no such flag":   {"Thanos has other ones", success(`{"log.level":"info"}`), info("90d"), 90 * day},
		"no such page":   {"Mimir has none", "", "", 0},
		"broken":         {"no answer", "<html>", "", 0},
		"another answer": {"no answer", success("[]"), "", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			for path, body := range map[string]string{"flags": tc.flags, "runtimeinfo": tc.info} {
				if body != "" {
					mux.Handle("/api/v1/status/"+path, status(200, body))
				}
			}
			mux.Handle("/api/v1/query", healthy())
			s := serve(t, mux)
			got, ok := s.Retention(t.Context())
			if got != tc.want || ok != (tc.want > 0) {
				t.Errorf("%s: got %s, %t, want %s", tc.reason, got, ok, tc.want)
			}
			if m := one(t, s, objective()); !m.Known() {
				t.Errorf("%s: the source is blamed for it: %+v", tc.reason, m)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason, body, want string
	}{
		"Prometheus": {"it says so", success(`{"version":"2.42.0"}`), "2.42.0"},
		"hostile":    {"it is shown to people", success(`{"version":"3\u001b[2J"}`), "3 [2J"},
		"none":       {"no such page", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			if tc.body != "" {
				mux.Handle("/api/v1/status/buildinfo", status(200, tc.body))
			}
			if got, ok := serve(t, mux).Version(t.Context()); got != tc.want || ok != (tc.want != "") {
				t.Errorf("%s: got %q, %t", tc.reason, got, ok)
			}
		})
	}
	nobody := source(t, "http://prometheus.invalid", func(o *prom.Options) { o.Timeout = time.Second })
	if v, ok := nobody.Version(t.Context()); ok || v != "" {
		t.Errorf("nobody's version is %q", v)
	}
}

func TestAsk(t *testing.T) {
	cases := map[string]struct {
		reason string
		http.Handler
		series int
		want   measure.Reason
	}{
		"series":  {"as many as there are", answers{"total": vector("1", "2", "3")}, 3, ""},
		"none":    {"an answer too", answers{"total": vector()}, 0, ""},
		"refused": {"with the server's words", status(400, `{"status":"error","errorType":"bad_data","error":"x"}`), 0, measure.QueryError},
		"cached":  {"an answer for another instant is none", answers{"total": success(`{"resultType":"vector","result":[{"value":[1,"1"]}]}`)}, 0, measure.SourceError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := serve(t, tc.Handler).Ask(t.Context(), "total", now)
			if len(r.Series) != tc.series || r.Reason != tc.want || (r.Reason == "") != (r.Detail == "") {
				t.Errorf("%s: got %+v", tc.reason, r)
			}
		})
	}
}
