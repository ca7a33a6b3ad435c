package execute_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

func TestCheckURL(t *testing.T) {
	allow := []string{"http://scaler.internal/", "http://kilo.internal/", "https://flags.internal:8443/api/checkout", "http://one.internal"}
	cases := map[string]struct {
		url  string
		want bool
	}{
		"Below":          {"http://scaler.internal/checkout", true},
		"Root":           {"http://scaler.internal/", true},
		"NoPath":         {"http://scaler.internal", true},
		"DefaultPort":    {"http://scaler.internal:80/checkout", true},
		"UpperHost":      {"http://SCALER.internal/checkout", true},
		"Query":          {"http://scaler.internal/checkout?tenant=eu", true},
		"Exact":          {"https://flags.internal:8443/api/checkout", true},
		"Segment":        {"https://flags.internal:8443/api/checkout/flag", true},
		"HostOnly":       {"http://one.internal/x", true},
		"Sibling":        {"https://flags.internal:8443/api/checkout-admin", false},
		"Above":          {"https://flags.internal:8443/api", false},
		"Scheme":         {"https://scaler.internal/checkout", false},
		"Port":           {"http://scaler.internal:8080/checkout", false},
		"UserInfo":       {"http://scaler.internal@evil.example/", false},
		"UserInfoListed": {"http://u:p@scaler.internal/", false},
		"Suffix":         {"http://scaler.internal.evil.example/", false},
		"Dots":           {"https://flags.internal:8443/api/checkout/../admin", false},
		"EscapedDots":    {"https://flags.internal:8443/api/checkout/%2e%2e/admin", false},
		"EscapedSlash":   {"https://flags.internal:8443/api/checkout%2f..%2fadmin", false},
		"Backslash":      {`http://scaler.internal\@evil.example/`, false},
		"Fragment":       {"http://scaler.internal/#x", false},
		"LooksAlike":     {"http://one.internal\u2024example/", false},
		"KelvinSign":     {"http://\u212Ailo.internal/", false},
		"File":           {"file:///etc/passwd", false},
		"Opaque":         {"http:scaler.internal/", false},
		"NoHost":         {"http:///checkout", false},
		"Empty":          {"", false},
		"Metadata":       {"http://169.254.169.254/latest/meta-data", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := execute.CheckURL(tc.url, allow); (err == nil) != tc.want {
				t.Errorf("%s: %v, want allowed %t", tc.url, err, tc.want)
			}
		})
	}
	if execute.CheckURL("http://scaler.internal/", nil) == nil {
		t.Error("an empty list allows something")
	}
}

// The vector is what a receiver in any language can check its own code with.
func TestSign(t *testing.T) {
	got := execute.Sign([]byte("secret"), time.Unix(1764417600, 0), []byte(`{"key":"checkout:1764417600-600"}`))
	const want = "t=1764417600,v1=aa5bc392701e2506f46c9b09229936d720515a970b6d1836f6cf3e90f786c0e1"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEnvelope(t *testing.T) {
	b, err := json.Marshal(execute.NewEnvelope(gate.Permit{}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"setpoint.dev/v1alpha1","key":"","digest":"","service":"","action":"","parameters":{}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestCleanText(t *testing.T) {
	cases := map[string]struct {
		in    string
		limit int
		want  string
	}{
		"Plain":     {"done", 10, "done"},
		"Lines":     {" a\r\n\tb  c ", 10, "a b c"},
		"Escape":    {"a\x1b[31mred\x1b[0m", 20, "a [31mred [0m"},
		"Bidi":      {"user\u202egpj.exe\u2066", 20, "user gpj.exe"},
		"ZeroWidth": {"pay\u200bments", 20, "pay ments"},
		"BadUTF8":   {"a\xff\xfeb", 20, "a b"},
		"Exactly":   {"abc", 3, "abc"},
		"Long":      {"abcdef", 3, "abc…"},
		"LongSpace": {"ab cd", 3, "ab…"},
		"Runes":     {"äöüß", 2, "äö…"},
		"Empty":     {"\n", 5, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := execute.CleanText(tc.in, tc.limit); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestParseStatus(t *testing.T) {
	none := func(detail string) execute.Observation { return execute.Observation{Detail: "no answer: " + detail} }
	word := "none of applied, no-op, failed, not-now"
	cases := map[string]struct {
		reason string
		body   string
		want   execute.Observation
	}{
		"Applied": {"the key landed", `{"known":true,"result":"applied"}`, execute.Observation{Known: true, KeyKnown: true, Result: execute.Applied}},
		"NotNow":  {"the key was refused", `{"known":true,"result":"not-now"}`, execute.Observation{Known: true, KeyKnown: true, Result: execute.NotNow}},
		"Unknown": {"no such key; a result beside it is ignored", `{"known":false,"result":"applied"}`, execute.Observation{Known: true}},
		"Pending": {"known without a final word is no answer, and never not-landed", `{"known":true,"result":"pending"}`, none(`the result "pending" of a known key is ` + word)},
		"Missing": {"likewise without a word", `{"known":true}`, none(`the result "" of a known key is ` + word)},
		"Claimed": {"our own words are not the actuator's", `{"known":true,"result":"claimed"}`, none(`the result "claimed" of a known key is ` + word)},
		"String":  {"known must be a boolean", `{"known":"true","result":"applied"}`, none("known is not true or false")},
		"Null":    {"null is not false", `{"known":null}`, none("known is not true or false")},
		"Case":    {"keys are what they are", `{"Known":true,"result":"applied"}`, none("known is not true or false")},
		"Twice":   {"two answers are none", `{"known":true,"known":false,"result":"applied"}`, none("a key occurs twice")},
		"Two":     {"two objects are none", `{"known":false}{"known":true,"result":"applied"}`, none("no JSON object")},
		"CutOff":  {"half an answer is none", `{"known":false`, none("the JSON object is cut off")},
		"Empty":   {"nothing is none", ``, none("no JSON object")},
		"Types": {"numbers keep their kind, other shapes are named and dropped",
			`{"known":false,"state":{"i":6,"whole":6.0,"e":2e1,"f":0.25,"neg":-3,"max":9223372036854775807,"over":9223372036854775808,"huge":1e999,"big":1e300,"l":["a"],"none":[],"mixed":["a",1],"o":{"a":1},"n":null}}`,
			execute.Observation{Known: true, Detail: "dropped from the state: huge, mixed, n, o, over", State: propose.Live{
				"i": int64(6), "whole": int64(6), "e": int64(20), "f": 0.25, "neg": int64(-3), "max": int64(9223372036854775807), "big": 1e300, "l": []string{"a"}, "none": []string{},
			}}},
		"StateNoObject": {"a state that is no object is dropped whole", `{"known":false,"state":[1]}`, execute.Observation{Known: true, Detail: "dropped from the state: state (no JSON object)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, execute.ParseStatus([]byte(tc.body))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever a stranger answers: one of five effects, and Applied or InDoubt
// unless a JSON reader finds the same word.
func FuzzParseResult(f *testing.F) {
	for _, s := range []string{``, `ok`, `{"result":"no-op"}`, `{"result":"failed"}x`, ` {"result":"not-now","result":"applied"}`, `{"result":"fai`, `{"Result":"failed"}`, `[{"result":"failed"}]`, `{"a":{"result":"failed"}}`, "\ufeff{}", `{"result":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := execute.ParseResult(body)
		switch got {
		case execute.Applied, execute.InDoubt:
			return
		case execute.NoOp, execute.Failed, execute.NotNow:
		default:
			t.Fatalf("effect %q", got)
		}
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil || m["result"] != string(got) {
			t.Fatalf("%s out of %q", got, body)
		}
	})
}

// Whatever a stranger answers: no answer, or one that a JSON reader finds too,
// with a state of the five types.
func FuzzParseStatus(f *testing.F) {
	for _, s := range []string{``, `{"known":true,"result":"applied","state":{"a":1,"b":[],"c":"x","d":1e9,"e":true}}`, `{"known":false}`, `{"known":true}`, `{"state":{},"known":false}`, `{"known":false,"state":{"a":1,"a":2}}`, `{"known":false,"state":{"a":1e400}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o := execute.ParseStatus(body)
		if !o.Known {
			if o.KeyKnown || o.Result != "" || o.State != nil || o.Detail == "" {
				t.Fatalf("no answer, and yet %+v", o)
			}
			return
		}
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil && !strings.Contains(err.Error(), "number") || err == nil && m["known"] != o.KeyKnown {
			t.Fatalf("%+v out of %q (%v)", o, body, err)
		}
		if o.KeyKnown != (o.Result != "") {
			t.Fatalf("known %t with result %q", o.KeyKnown, o.Result)
		}
		for name, v := range o.State {
			switch v.(type) {
			case int64, float64, string, bool, []string:
			default:
				t.Fatalf("%s is a %T", name, v)
			}
		}
	})
}

func FuzzCleanText(f *testing.F) {
	f.Add("a\x1b[31m\u202e\n", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(0, min(limit, 1000))
		got := execute.CleanText(s, limit)
		if n := utf8.RuneCountInString(got); n > limit+1 {
			t.Fatalf("%d characters of %d", n, limit)
		}
		for _, r := range got {
			if r != ' ' && !unicode.IsPrint(r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
	})
}
