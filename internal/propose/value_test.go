package propose_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

func TestParametersJSON(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		in     propose.Parameters
		want   string
	}{
		"Nil":    {reason: "The digest must not tell nil from empty.", want: `{}`},
		"Sorted": {reason: "Bytes are stable.", in: propose.Parameters{"b": true, "a": int64(6)}, want: `{"a":6,"b":true}`},
		"Whole":  {reason: "A whole float stays one.", in: propose.Parameters{"a": 6.0, "b": -0.5, "c": 1e21, "d": 1e-7}, want: `{"a":6.0,"b":-0.5,"c":1e+21,"d":1e-7}`},
		"Large":  {reason: "No int64 loses a digit.", in: propose.Parameters{"a": int64(9007199254740993)}, want: `{"a":9007199254740993}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(tc.in)
			if err != nil {
				t.Fatalf("%s\njson.Marshal(…): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, string(b)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			var back propose.Parameters
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatalf("%s\njson.Unmarshal(…): %v", tc.reason, err)
			}
			if tc.in == nil {
				tc.in = propose.Parameters{}
			}
			if diff := cmp.Diff(tc.in, back); diff != "" {
				t.Errorf("%s\nround trip: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValuesRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, json, parameters, live string }{
		"Null":      {reason: "Null is no value.", json: `{"a":null}`, parameters: `parameters: "a": must be a number, a string or a boolean, not null`, live: `live state: "a": must be a number, a string or a boolean, not null`},
		"List":      {reason: "Only the state has lists.", json: `{"a":["x","y"]}`, parameters: `parameters: "a": must be a number, a string or a boolean, not a list`},
		"Numbers":   {reason: "Lists hold strings.", json: `{"a":[1]}`, parameters: `parameters: "a": must be a number, a string or a boolean, not a list`, live: `live state: "a": a list holds strings, not a number`},
		"Object":    {reason: "No nesting.", json: `{"a":{}}`, parameters: `parameters: "a": must be a number, a string or a boolean, not an object`, live: `live state: "a": must be a number, a string or a boolean, not an object`},
		"Duplicate": {reason: "The last would win in silence.", json: `{"a":1,"a":2}`, parameters: `parameters: the key "a" is given twice`, live: `live state: the key "a" is given twice`},
		"TooLarge":  {reason: "Not rounded.", json: `{"a":9223372036854775808}`, parameters: `parameters: "a": the integer does not fit in 64 bits`, live: `live state: "a": the integer does not fit in 64 bits`},
		"Infinite":  {reason: "No infinity.", json: `{"a":1e999}`, parameters: `parameters: "a": the number is too large`, live: `live state: "a": the number is too large`},
		"NotObject": {reason: "An object.", json: `[]`, parameters: `parameters: not a JSON object but a list`, live: `live state: not a JSON object but a list`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p propose.Parameters
			var l propose.Live
			if diff := cmp.Diff(tc.parameters, text(json.Unmarshal([]byte(tc.json), &p))); diff != "" {
				t.Errorf("%s\nParameters: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.live, text(json.Unmarshal([]byte(tc.json), &l))); diff != "" {
				t.Errorf("%s\nLive: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLiveJSON(t *testing.T) {
	t.Parallel()
	in := propose.Live{"replicas": int64(6), "ratio": 6.0, "on": true, "version": "v42", "previousVersion": []string{"v41"}, "none": []string{}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var back propose.Live
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, back); diff != "" {
		t.Errorf("round trip: -want, +got:\n%s", diff)
	}
	if _, err := json.Marshal(propose.Live{"a": 6}); err == nil {
		t.Error("an int is none of the permitted types, and was written")
	}
}

func TestCleanText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, in, want string
		limit            int
	}{
		"Plain":   {reason: "Kept.", in: "p99 rose to 2.3 s", limit: 500, want: "p99 rose to 2.3 s"},
		"Lines":   {reason: "One line.", in: " a\r\n\tb\u2028c ", limit: 500, want: "a b c"},
		"Control": {reason: "No terminal escapes.", in: "a\x1b[31mb\x00\x7f\u0085c", limit: 500, want: "a[31mb c"},
		"Bidi":    {reason: "Nothing turns text around.", in: "v42 \u202ekcab\u2066\u200f", limit: 500, want: "v42 kcab"},
		"Zero":    {reason: "Nothing hides.", in: "a\u200b\u200d\ufeff\u2060b\U000e0041\ufe0f\u3164", limit: 500, want: "ab"},
		"Invalid": {reason: "Valid UTF-8.", in: "a\xff\ufffdb", limit: 500, want: "ab"},
		"Emoji":   {reason: "Characters, not bytes.", in: "🔥🔥", limit: 2, want: "🔥🔥"},
		"Cut":     {reason: "The cut shows.", in: "abc def", limit: 5, want: "abc…"},
		"Nothing": {reason: "A limit of nothing.", in: "abc", limit: 0, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, propose.CleanText(tc.in, tc.limit)); diff != "" {
				t.Errorf("%s\nCleanText(%q): -want, +got:\n%s", tc.reason, tc.in, diff)
			}
		})
	}
}
