package model_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// chatAbout is a request that demands a schema; "" demands none.
func chatAbout(t *testing.T, question, schema string) string {
	t.Helper()
	format := ""
	if schema != "" {
		format = `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`
	}
	return `{"model":"` + model.Name + `","messages":[{"role":"system","content":"The code word is tarn.\nNotes."},` +
		`{"role":"user","content":` + body(t, question) + `}]` + format + `}`
}

// content is what a request is answered, in content or as arguments.
func content(t *testing.T, url, request string) string {
	t.Helper()
	status, got := post(t, url+"/v1/chat/completions", request)
	var c struct {
		Choices []struct {
			Message struct {
				Content   *string
				ToolCalls []struct {
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &c); err != nil || status != http.StatusOK || len(c.Choices) != 1 {
		t.Fatalf("HTTP %d %s (%v)", status, got, err)
	}
	m := c.Choices[0].Message
	if len(m.ToolCalls) == 1 {
		return m.ToolCalls[0].Function.Arguments
	}
	return *m.Content
}

// TestWithoutEvidence: the form alone makes the answer.
func TestWithoutEvidence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, schema, want string }{
		"NoSchema": {"The first line of the first message shows that it arrived.", "", "The code word is tarn."},
		"Enum":     {"The first value of an enum.", `{"enum":["b","a"]}`, `"b"`},
		"Const":    {"A constant, null included.", `{"const":null}`, `null`},
		"Integer":  {"The minimum.", `{"type":"integer","minimum":2.5,"maximum":9}`, `3`},
		"Below":    {"No minimum, and 0 is too much.", `{"type":"integer","exclusiveMaximum":-2}`, `-3`},
		"Object":   {"Required keys and no other.", `{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"string","minLength":2},"c":{}},"required":["b","a"]}`, `{"a":false,"b":"xx"}`},
		"AnyOf":    {"The first branch.", `{"anyOf":[{"type":"array","items":{"type":"null"},"minItems":2},{"type":"string"}]}`, `[null,null]`},
		"Types":    {"The first type.", `{"type":["number","null"]}`, `0`},
		"Any":      {"No demand is an object's.", `{}`, `{}`},
	}
	url := serve(t, shopRules(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := content(t, url, chatAbout(t, "what now?", tc.schema)); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
			if tc.schema == "" {
				return
			}
			tool := strings.TrimSuffix(chatAbout(t, "what now?", ""), "}") +
				`,"tools":[{"type":"function","function":{"name":"x","parameters":` + tc.schema + `}}]}`
			if got := content(t, url, tool); got != tc.want {
				t.Errorf("as a tool: %s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestUnmetSchemas: what cannot be met is refused, and comes to an end.
func TestUnmetSchemas(t *testing.T) {
	t.Parallel()
	url := serve(t, shopRules(t))
	many := strings.Repeat(`{"type":"array","minItems":1000,"items":`, 6) + "{}" + strings.Repeat("}", 6)
	for name, schema := range map[string]string{
		"Ref": `{"$ref":"#"}`, "AllOf": `{"allOf":[{}]}`, "Pattern": `{"type":"string","pattern":"a"}`, "Kind": `{"type":"date"}`, "NoKind": `{"type":7}`,
		"Bounds": `{"type":"integer","minimum":1.2,"maximum":1.8}`, "Long": `{"type":"string","minLength":1000000000}`, "Many": many, "List": `[]`, "False": `false`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, got := post(t, url+"/v1/chat/completions", chatAbout(t, "what now?", schema))
			if status != http.StatusBadRequest {
				t.Fatalf("HTTP %d %s", status, got)
			}
			checkError(t, got, "invalid_schema")
		})
	}
}

// TestProbed: the agent's own questions about the form find an endpoint that
// honours schemas and loses nothing of a prompt.
func TestProbed(t *testing.T) {
	t.Parallel()
	got, err := client(t, serve(t, shopRules(t)), openai.ReplySchema).Probe(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	honoured := map[openai.Reply]bool{}
	for _, m := range got.Modes {
		honoured[m.Mode] = m.Honoured
	}
	want := map[openai.Reply]bool{openai.ReplySchema: true, openai.ReplyTool: true, openai.ReplyObject: false}
	if diff := cmp.Diff(want, honoured); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got.Fault != "" || got.Truncated || got.PromptDetail != "" || got.ProposalFault != "" || got.InputTokens == 0 {
		t.Errorf("got %+v", got)
	}
}

// anySchema draws one that can be met.
func anySchema(t *rapid.T, depth int) map[string]any {
	kinds := []string{"enum", "integer", "number", "string", "boolean", "null"}
	if depth > 0 {
		kinds = append(kinds, "object", "array", "anyOf")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "enum":
		return map[string]any{"enum": rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,4}`), 1, 3).Draw(t, "enum")}
	case "integer", "number":
		out := map[string]any{"type": kind}
		low := rapid.IntRange(-50, 50).Draw(t, "low")
		if rapid.Bool().Draw(t, "bounded below") {
			out[rapid.SampledFrom([]string{"minimum", "exclusiveMinimum"}).Draw(t, "least")] = low
		}
		if rapid.Bool().Draw(t, "bounded above") {
			out[rapid.SampledFrom([]string{"maximum", "exclusiveMaximum"}).Draw(t, "most")] = low + rapid.IntRange(2, 50).Draw(t, "span")
		}
		return out
	case "string":
		return map[string]any{"type": "string", "minLength": rapid.IntRange(0, 5).Draw(t, "length")}
	case "array":
		return map[string]any{"type": "array", "minItems": rapid.IntRange(0, 3).Draw(t, "items"), "items": anySchema(t, depth-1)}
	case "anyOf":
		return map[string]any{"anyOf": []any{anySchema(t, depth-1), anySchema(t, depth-1)}}
	case "object":
		properties, required := map[string]any{}, []string{}
		for n := range rapid.IntRange(0, 4).Draw(t, "properties") {
			name := fmt.Sprintf("p%d", n)
			properties[name] = anySchema(t, depth-1)
			if rapid.Bool().Draw(t, "required") {
				required = append(required, name)
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	default:
		return map[string]any{"type": kind}
	}
}

// TestInstancesAreValid holds the answers against a validator.
func TestInstancesAreValid(t *testing.T) {
	t.Parallel()
	url := serve(t, shopRules(t))
	rapid.Check(t, func(rt *rapid.T) {
		raw, err := json.Marshal(anySchema(rt, 3))
		if err != nil {
			rt.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(raw, &s); err != nil {
			rt.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			rt.Fatal(err)
		}
		var v any
		got := content(t, url, chatAbout(t, "what now?", string(raw)))
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			rt.Fatalf("%s: %v", got, err)
		}
		if err := resolved.Validate(v); err != nil {
			rt.Errorf("%s for %s: %v", got, raw, err)
		}
	})
}
