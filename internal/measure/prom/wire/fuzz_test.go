package wire_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// FuzzRead holds that no bytes break the decoder, that whatever it takes for an
// answer is JSON, and that it reads in it what the standard library reads.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		vector(sample("75")), vector(), vector(sample("NaN"), sample("1e400")), "<html>", "null", "[]", "", "\x1f\x8b",
		`{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`,
		`{"status":"success","data":{"result":[{"metric":{"a":"\u00e9"},"value":[1.5,"2"]}],"resultType":"vector"}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}}`,
		`{"status":"error","errorType":"execution","error":"x"}`, `{"status":"success","isPartial":true}`,
		vector(`{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[[0,"1","2","1"]]}]}`), vector("null"),
		with(`"warnings":["PromQL info: x"],"infos":["y"]`, vector(sample("1"))), vector() + "x",
	} {
		f.Add(200, []byte(body))
		f.Add(422, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		a := wire.Read(status, http.Header{}, body)
		if a.Fault.Is() {
			if a.Fault.Reason == "" || a.Fault.Detail == "" || len(a.Series) > 0 {
				t.Fatalf("half a fault: %+v", a)
			}
			return
		}
		if status/100 != 2 || !json.Valid(body) {
			t.Fatalf("HTTP %d with %q was taken for an answer", status, body)
		}
		if !utf8.Valid(body) {
			return // the standard library replaces what is no text
		}
		same(t, body, a)
	})
}

// same compares an answer with what the standard library reads.
func same(t *testing.T, body []byte, a wire.Answer) {
	t.Helper()
	var e map[string]json.RawMessage
	var d map[string]json.RawMessage
	if json.Unmarshal(body, &e) != nil || json.Unmarshal(e["data"], &d) != nil {
		t.Fatalf("%q is no envelope", body)
	}
	var results []map[string]json.RawMessage
	if string(d["resultType"]) == `"scalar"` {
		results = []map[string]json.RawMessage{{"value": d["result"]}}
	} else if err := json.Unmarshal(d["result"], &results); err != nil {
		return // its type is written with escapes
	}
	if len(results) != len(a.Series) {
		t.Fatalf("%d series in %q, want %d", len(a.Series), body, len(results))
	}
	for i, r := range results {
		s := a.Series[i]
		var metric map[string]string
		var value []any
		if r["metric"] != nil && json.Unmarshal(r["metric"], &metric) != nil || len(metric) != len(s.Metric) {
			t.Fatalf("labels of %q: %v, want %v", body, s.Metric, metric)
		}
		for name, v := range metric {
			if got, ok := s.Metric[model.LabelName(name)]; !ok || string(got) != v {
				t.Fatalf("label %q of %q: %q, want %q", name, body, got, v)
			}
		}
		if s.Histogram || r["value"] == nil {
			continue
		}
		if json.Unmarshal(r["value"], &value) != nil || len(value) != 2 {
			t.Fatalf("value of %q", body)
		}
		text, _ := value[1].(string)
		want, _ := strconv.ParseFloat(text, 64)
		if s.Value != want && !(math.IsNaN(s.Value) && math.IsNaN(want)) {
			t.Fatalf("value of %q: %v, want %v", body, s.Value, want)
		}
		seconds, _ := value[0].(float64)
		if math.Abs(float64(s.At.UnixMilli())-seconds*1000) > 1 {
			t.Fatalf("time of %q: %v, want %v", body, s.At, seconds)
		}
	}
}
