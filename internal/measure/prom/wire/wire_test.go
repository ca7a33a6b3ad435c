package wire_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

var at = time.UnixMilli(1764400000781).UTC()

func vector(samples ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

func sample(value string) string {
	return `{"metric":{"a":"x"},"value":[1764400000.781,"` + value + `"]}`
}

func with(key, body string) string { return strings.Replace(body, `"data"`, key+`,"data"`, 1) }

func one(value float64) []measure.Sample {
	return []measure.Sample{{Metric: model.Metric{"a": "x"}, Value: value, At: at}}
}

func TestReadSuccess(t *testing.T) {
	cases := map[string]struct {
		reason, body string
		want         []measure.Sample
		notes        []string
		kind         wire.Kind
		why          measure.Reason
		detail       string
	}{
		"Vector":            {reason: "the plain case", body: vector(sample("0.25")), want: one(0.25)},
		"Empty":             {reason: "no series is an answer", body: vector()},
		"Whitespace":        {reason: "JSON may be spaced", body: " {\n\"status\" : \"success\",\t\"data\":{\"resultType\":\"vector\",\"result\":[ ]}}\r\n"},
		"Exponent":          {reason: "numbers have exponents", body: vector(sample("6.1e-05")), want: one(0.000061)},
		"NaN":               {reason: "it spoils only its own series", body: vector(sample("NaN")), want: one(math.NaN())},
		"Infinite":          {reason: "it spoils only its own series", body: vector(sample("-Inf")), want: one(math.Inf(-1))},
		"1e400":             {reason: "what cannot be held is an infinity", body: vector(sample("1e400")), want: one(math.Inf(1))},
		"No labels":         {reason: "an aggregate has none", body: vector(`{"metric":{},"value":[1764400000.781,"1"]}`), want: []measure.Sample{{Value: 1, At: at}}},
		"No metric":         {reason: "likewise without the key", body: vector(`{"value":[1764400000.781,"1"]}`), want: []measure.Sample{{Value: 1, At: at}}},
		"Escapes":           {reason: "label values hold anything", body: vector(`{"metric":{"a":"\"\\\n\u00e9\ud83d\ude00"},"value":[1764400000.781,"1"]}`), want: []measure.Sample{{Metric: model.Metric{"a": "\"\\\né😀"}, Value: 1, At: at}}},
		"Keys in any order": {reason: "objects have no order", body: `{"data":{"result":[` + sample("2") + `],"resultType":"vector"},"status":"success"}`, want: one(2)},
		"Further keys":      {reason: "servers add what they like", body: `{"status":"success","trace":{"a":[1,{"b":null}]},"data":{"resultType":"vector","stats":{},"result":[{"x":1,"metric":{"a":"x"},"value":[1764400000.781,"3"]}]}}`, want: one(3)},
		"Scalar":            {reason: "one sample without labels", body: `{"status":"success","data":{"resultType":"scalar","result":[1764400000.781,"0.0007"]}}`, want: []measure.Sample{{Value: 0.0007, At: at}}},
		"Histogram":         {reason: "it spoils only its own series", body: vector(sample("1"), `{"metric":{"a":"y"},"histogram":[1764400000.781,{"count":"1","buckets":[[0,"1","2","1"]]}]}`), want: append(one(1), measure.Sample{Metric: model.Metric{"a": "y"}, At: at, Histogram: true})},
		"Infos":             {reason: "they stop nothing", body: with(`"infos":["a","b"]`, vector(sample("1"))), want: one(1), notes: []string{"a", "b"}},
		"Annotation":        {reason: "the engine's own remark is no missing data", body: with(`"warnings":["PromQL warning: x"]`, vector(sample("1"))), want: one(1), notes: []string{"PromQL warning: x"}},
		"Not partial":       {reason: "a plain false is whole", body: with(`"isPartial":false`, vector(sample("1"))), want: one(1)},
		"Partial null":      {reason: "so is nothing", body: with(`"isPartial":null,"warnings":null`, vector(sample("1"))), want: one(1)},

		"Partial":          {reason: "incomplete", body: with(`"isPartial":true`, vector(sample("1"))), kind: wire.Unusable, why: measure.Partial, detail: "isPartial"},
		"Partial at end":   {reason: "wherever it stands", body: strings.TrimSuffix(vector(), "}") + `,"isPartial":true}`, kind: wire.Unusable, why: measure.Partial, detail: "isPartial"},
		"Partial word":     {reason: "only a plain false is whole", body: with(`"isPartial":"false"`, vector(sample("1"))), kind: wire.Unusable, why: measure.Partial, detail: "isPartial"},
		"Partial twice":    {reason: "one of them is enough", body: with(`"isPartial":true,"isPartial":false`, vector(sample("1"))), kind: wire.Unusable, why: measure.Partial, detail: "isPartial"},
		"Warning":          {reason: "some store did not answer", body: with(`"warnings":["PromQL info: x","no store matched"]`, vector()), kind: wire.Unusable, why: measure.Partial, detail: "no store matched"},
		"Marker inside":    {reason: "a warning that quotes an annotation is none", body: with(`"warnings":["store a: PromQL info: x"]`, vector()), kind: wire.Unusable, why: measure.Partial, detail: "store a"},
		"Matrix":           {reason: "not one number", body: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}}`, kind: wire.Unusable, why: measure.NotAVector, detail: "matrix"},
		"String":           {reason: "not a number", body: `{"status":"success","data":{"resultType":"string","result":[1,"75"]}}`, kind: wire.Unusable, why: measure.NotAVector, detail: "string"},
		"Unknown type":     {reason: "a type of the future", body: `{"status":"success","data":{"resultType":"tensor","result":[]}}`, kind: wire.Unusable, why: measure.SourceError, detail: "tensor"},
		"No data":          {reason: "success without data", body: `{"status":"success"}`, kind: wire.Failed, why: measure.SourceError, detail: "no data"},
		"Null data":        {reason: "success without data", body: `{"status":"success","data":null}`, kind: wire.Failed, why: measure.SourceError, detail: "no data"},
		"Null result":      {reason: "nothing is no empty list: an absent bad would be read as zero", body: `{"status":"success","data":{"resultType":"vector","result":null}}`, kind: wire.Failed, why: measure.SourceError, detail: "no data"},
		"No type":          {reason: "of what?", body: `{"status":"success","data":{"result":[]}}`, kind: wire.Unusable, why: measure.SourceError, detail: "unknown type"},
		"Null sample":      {reason: "no sample", body: vector("null"), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"No value":         {reason: "no sample", body: vector(`{"metric":{}}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Two values":       {reason: "which one?", body: vector(`{"metric":{},"value":[1,"1"],"value":[1,"2"]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Value, histogram": {reason: "which one?", body: vector(`{"metric":{},"value":[1,"1"],"histogram":[1,{}]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Two results":      {reason: "which one?", body: `{"status":"success","data":{"resultType":"vector","result":[],"result":[]}}`, kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Two labels":       {reason: "which one?", body: vector(`{"metric":{"a":"x","a":"y"},"value":[1,"1"]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Long value":       {reason: "no pair", body: vector(`{"value":[1,"1",2]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Short value":      {reason: "no pair", body: vector(`{"value":[1]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Number value":     {reason: "values are text", body: vector(`{"value":[1,1]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Word":             {reason: "a server that writes words is believed in nothing", body: vector(sample("lots")), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Far time":         {reason: "no time", body: vector(`{"value":[1e300,"1"]}`), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Cut off":          {reason: "half an answer", body: vector(sample("1"))[:60], kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Two answers":      {reason: "trailing bytes", body: vector() + vector(), kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Trailing brace":   {reason: "trailing bytes", body: vector() + "}", kind: wire.Failed, why: measure.SourceError, detail: "cut off"},
		"Error with 200":   {reason: "its status counts", body: `{"status":"error","errorType":"execution","error":"x"}`, kind: wire.Failed, why: measure.SourceError, detail: "HTTP 200 with an error, execution: x"},
		"Other API":        {reason: "JSON of something else", body: `{"took":3,"hits":{}}`, kind: wire.Refused, why: measure.SourceRefused, detail: "not a Prometheus API"},
		"Odd status":       {reason: "neither success nor error", body: strings.Replace(vector(), "success", "fine", 1), kind: wire.Refused, why: measure.SourceRefused, detail: "not a Prometheus API"},
		"Page":             {reason: "a log-in page", body: "<!doctype html><head><title>Sign &amp; in\n\tplease</title></head>", kind: wire.Refused, why: measure.SourceRefused, detail: `the html page "Sign & in please"`},
		"Bare page":        {reason: "a page without a title", body: "\n <p>hello", kind: wire.Refused, why: measure.SourceRefused, detail: "an html page"},
		"Text":             {reason: "something that listens", body: "OK", kind: wire.Refused, why: measure.SourceRefused, detail: `begins "OK"`},
		"List":             {reason: "JSON, but no object", body: "[]", kind: wire.Refused, why: measure.SourceRefused, detail: "not a Prometheus API"},
		"Nothing":          {reason: "an empty body", body: " \n", kind: wire.Failed, why: measure.SourceError, detail: "empty body"},
		"Gzip":             {reason: "a proxy dropped the header", body: "\x1f\x8b\x08", kind: wire.Failed, why: measure.SourceError, detail: "gzip without Content-Encoding"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := wire.Read(http.StatusOK, http.Header{}, []byte(tc.body))
			f := got.Fault
			if f.Kind != tc.kind || f.Reason != tc.why || !strings.Contains(f.Detail, tc.detail) || (f.Detail == "") != (tc.kind == wire.None) {
				t.Errorf("%s: fault %+v, want kind %d, %s with %q", tc.reason, f, tc.kind, tc.why, tc.detail)
			}
			if diff := cmp.Diff(tc.want, got.Series, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.notes, got.Notes); diff != "" {
				t.Errorf("%s, notes (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadFailure(t *testing.T) {
	apiError := func(kind, text string) string {
		return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, kind, text)
	}
	type want struct {
		Kind   wire.Kind
		Reason measure.Reason
		Told   bool
	}
	query := want{wire.Query, measure.QueryError, true}
	failed, told := want{wire.Failed, measure.SourceError, false}, want{wire.Failed, measure.SourceError, true}
	refused := want{wire.Refused, measure.SourceRefused, false}
	busy, slow := want{wire.Busy, measure.SourceError, false}, want{wire.Slow, measure.SourceError, false}
	cases := map[string]struct {
		reason string
		status int
		body   string
		header http.Header
		want   want
		detail string
	}{
		"bad data":            {"the query's own fault", 400, apiError("bad_data", "parse error"), nil, query, "HTTP 400, bad_data: parse error"},
		"execution":           {"the query's own fault", 422, apiError("execution", "many-to-many"), nil, query, "many-to-many"},
		"bad data with 422":   {"the word belongs to another status", 422, apiError("bad_data", "x"), nil, told, "HTTP 422, bad_data: x"},
		"execution with 400":  {"the word belongs to another status", 400, apiError("execution", "x"), nil, told, ""},
		"execution with 500":  {"the word belongs to another status", 500, apiError("execution", "x"), nil, told, ""},
		"number for a word":   {"VictoriaMetrics: the storage, not the query", 422, apiError("422", "cannot fetch query results from vmstorage"), nil, told, "vmstorage"},
		"a real number":       {"a number is a word as well", 422, `{"status":"error","errorType":422,"error":"x"}`, nil, told, "HTTP 422, 422: x"},
		"400 page":            {"a proxy refuses", 400, "<html>", nil, failed, "HTTP 400 Bad Request with an html page"},
		"success with 500":    {"neither field alone", 500, `{"status":"success","data":{}}`, nil, failed, "HTTP 500"},
		"too many samples":    {"a smaller group may pass", 422, apiError("execution", "query processing would load too many samples into memory in query execution"), nil, want{wire.Size, measure.QueryError, true}, "too many samples"},
		"Mimir's limit":       {"a smaller group may pass", 422, apiError("execution", "the query exceeded the maximum number of chunks"), nil, want{wire.Size, measure.QueryError, true}, ""},
		"VictoriaMetrics'":    {"a smaller group may pass", 422, apiError("422", "cannot select more than -search.maxSamplesPerQuery=1 samples"), nil, want{wire.Size, measure.SourceError, true}, ""},
		"Thanos' limit":       {"whatever the status", 500, apiError("internal", "expanded matching posting: exceeded series limit"), nil, want{wire.Size, measure.SourceError, true}, ""},
		"413":                 {"the request is too large", 413, "", nil, want{wire.Size, measure.SourceError, false}, "HTTP 413 Request Entity Too Large"},
		"414":                 {"the address is too long", 414, "", nil, want{wire.Size, measure.SourceError, false}, ""},
		"429":                 {"too much at once is no size", 429, apiError("bad_data", "too many outstanding requests, limit exceeded"), nil, want{wire.Busy, measure.SourceError, true}, ""},
		"503 later":           {"it says when", 503, "", http.Header{"Retry-After": {"7"}}, busy, ""},
		"503":                 {"starting, or broken", 503, "Service Unavailable", nil, failed, `begins "Service Unavailable"`},
		"503 timeout":         {"the evaluation took too long", 503, apiError("timeout", "query timed out"), nil, want{wire.Slow, measure.SourceError, true}, "query timed out"},
		"504":                 {"so did the way", 504, "<title>Time-out</title>", nil, slow, `"Time-out"`},
		"502 page":            {"not its bytes", 502, "<html>\r\n<head><title>502 Bad Gateway</title></head>", http.Header{"Content-Type": {"text/html"}}, failed, `HTTP 502 Bad Gateway with the html page "502 Bad Gateway"`},
		"401":                 {"credentials", 401, "no", nil, refused, "HTTP 401 Unauthorized"},
		"403":                 {"credentials", 403, "", nil, refused, ""},
		"404":                 {"another path", 404, "404 page not found", nil, refused, ""},
		"302":                 {"a redirect that is not followed", 302, "", nil, refused, "HTTP 302 Found"},
		"418":                 {"whatever it is, it is the source's", 418, "", nil, failed, ""},
		"broken":              {"an error that is cut off", 422, `{"status":"error","errorType":"execution"`, nil, failed, ""},
		"cut between words":   {"half a secret would not be recognized as one", 500, strings.Repeat("x", 70<<10) + " tail", nil, failed, "HTTP 500 Internal Server Error"},
		"words before secret": {"what is whole is told", 500, "begin " + strings.Repeat("y", 70<<10), nil, failed, `begins "begin"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			header := tc.header
			if header == nil {
				header = http.Header{}
			}
			f := wire.Read(tc.status, header, []byte(tc.body)).Fault
			if diff := cmp.Diff(tc.want, want{f.Kind, f.Reason, f.Told}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(f.Detail, tc.detail) || strings.ContainsAny(f.Detail, "<>\r\n") || len(f.Detail) > 1000 {
				t.Errorf("%s: detail %q, want %q", tc.reason, f.Detail, tc.detail)
			}
		})
	}
}

func TestAt(t *testing.T) {
	cases := map[string]struct {
		reason string
		off    time.Duration
		kind   wire.Kind
	}{
		"exact":     {"asked and answered", 0, wire.None},
		"near":      {"rounding", 5 * time.Second, wire.None},
		"old":       {"a cache", -5*time.Second - time.Millisecond, wire.Unusable},
		"of future": {"another clock", time.Hour, wire.Unusable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := wire.Read(200, http.Header{}, []byte(vector(sample("1"), sample("2"))))
			a.Series[1].At = at.Add(tc.off)
			got := a.At(at)
			if got.Fault.Kind != tc.kind || (len(got.Series) == 2) != (tc.kind == wire.None) {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

// hundred is an answer of 100 series.
func hundred() []byte {
	samples := make([]string, 100)
	for i := range samples {
		samples[i] = fmt.Sprintf(`{"metric":{"service":"service-%04d"},"value":[1764400000.781,"%d.%d"]}`, i, i*37, i)
	}
	return []byte(vector(samples...))
}

func BenchmarkRead(b *testing.B) {
	body := hundred()
	b.ReportAllocs()
	for b.Loop() {
		if a := wire.Read(200, http.Header{}, body); len(a.Series) != 100 {
			b.Fatal(a.Fault)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(100*b.N), "ns/series")
}
