package prom_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

// FuzzAnswer holds that no bytes of a server make a measurement that is neither
// known nor unknown, or known and no ratio.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		vector("75"), vector(), vector("NaN"), vector("1", "2"), success(`{"resultType":"scalar","result":[1772366400,"1"]}`),
		success(`{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}`), `{"status":"error"}`, "<html>",
		success(`{"resultType":"vector","result":[{"metric":{},"histogram":[1772366400,{"count":"1","sum":"1"}]}]}`),
		`{"status":"success","isPartial":true}`, "null", "", "\x1f\x8b",
		strings.Replace(vector("1"), `"data"`, `"warnings":["PromQL info: x"],"infos":["y"],"data"`, 1),
	} {
		f.Add([]byte(body))
	}
	a := healthy()
	var body atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind(r.FormValue("query")) == "good" {
			_, _ = w.Write(*body.Load())
			return
		}
		a.ServeHTTP(w, r)
	}))
	f.Cleanup(server.Close)
	var days atomic.Int64
	s := source(f, server.URL, func(o *prom.Options) {
		o.Now = func() time.Time { return now.Add(time.Duration(days.Load()) * 24 * time.Hour) }
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		body.Store(&b)
		days.Add(1) // whatever it remembers of the last one is over
		for _, m := range s.Measure(t.Context(), []measure.Query{queries(objective(), now)[0]}) {
			if m.Known() == (m.Detail != "") {
				t.Fatalf("reason %q with detail %q", m.Reason, m.Detail)
			}
			if m.Known() && (!(m.ErrorRatio >= 0 && m.ErrorRatio <= 1) || !(m.Good >= 0 && m.Good <= m.Total)) {
				t.Fatalf("known, but no ratio: %+v", m)
			}
			if !m.Known() && (m.Good != 0 || m.Total != 0 || m.ErrorRatio != 0) {
				t.Fatalf("unknown, but with numbers: %+v", m)
			}
		}
	})
}
