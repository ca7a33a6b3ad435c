package prom_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		vector("75"), vector(), vector("NaN"), vector("1", "2"), success(`{"resultType":"scalar","result":[1,"1"]}`),
		success(`{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}`), `{"status":"error"}`, "<html>",
		success(`{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[[0,"1","2","1"]]}]}]}`),
		success(`{"resultType":"vector","result":[null]}`), `{"status":"success","isPartial":true}`, "null", "[]", "",
		strings.Replace(vector("1"), `"data"`, `"warnings":["PromQL info: x"],"infos":["y"],"data"`, 1), "\x1f\x8b",
	} {
		f.Add([]byte(body))
	}
	var body atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "newest" {
			_, _ = w.Write([]byte(vector(seconds(now))))
			return
		}
		_, _ = w.Write(*body.Load())
	}))
	f.Cleanup(server.Close)
	s, err := prom.New(prom.Options{Name: "main", URL: server.URL, QueriesPerSecond: 1e9})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		body.Store(&b)
		for _, m := range s.Measure(t.Context(), []measure.Query{query()}) {
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
