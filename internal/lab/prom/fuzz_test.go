package prom_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

// FuzzParameters holds that whatever stands for a time, a duration, a limit or a
// matcher is answered in JSON, with a status that agrees with it.
func FuzzParameters(f *testing.F) {
	for _, s := range [][3]string{
		{"1764417600.123", "5s", "1"}, {"2026-11-29T12:00:00+01:00", "1m30s", "1e9"}, {"-1e300", "-1", "0x1p-2"},
		{"NaN", "NaN", "Inf"}, {`{a=~"b"}`, "1e300", `{__name__=~".*"}`}, {"", "", ""}, {"9223372036854775807", "1d", "1y"}, {"0001-01-01T00:00:00Z", "0", "1ms"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	e, err := prom.New(prom.Options{Dir: f.TempDir(), Now: func() time.Time { return start }})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	h := e.Handler()
	f.Fuzz(func(t *testing.T, at, timeout, step string) {
		for target, form := range map[string]url.Values{
			"/api/v1/query":       {"query": {"time()"}, "time": {at}, "timeout": {timeout}},
			"/api/v1/query_range": {"query": {"1"}, "start": {"0"}, "end": {"10"}, "step": {step}, "timeout": {timeout}},
			"/api/v1/series":      {"match[]": {at, "up"}, "start": {timeout}, "end": {at}},
			"/api/v1/labels":      {"match[]": {step}, "limit": {at}, "end": {timeout}},
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target+"?"+form.Encode(), nil))
			var answer struct{ Status string }
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%s %s: %v", target, w.Body, err)
			}
			if (answer.Status == "success") != (w.Code == http.StatusOK) || w.Code == http.StatusInternalServerError {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
	})
}
