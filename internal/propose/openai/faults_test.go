package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	call := func(names ...string) http.HandlerFunc {
		var calls []any
		for _, n := range names {
			calls = append(calls, map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": n, "arguments": good}})
		}
		return reply(map[string]any{"role": "assistant", "content": good, "tool_calls": calls}, "tool_calls")
	}
	raw := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{contentType}
			_, _ = io.WriteString(w, body)
		}
	}
	assistant := func(content any) map[string]any { return map[string]any{"role": "assistant", "content": content} }
	cases := map[string]struct {
		reason string
		mode   openai.Reply
		h      http.HandlerFunc
		fault  string
	}{
		"Server":       {reason: "No proposal.", h: status(503, `{"error":{"message":"over\u001bloaded"}}`), fault: "provider-error: endpoint e1: status 503, the provider says: overloaded"},
		"ServerText":   {reason: "Free text is not quoted.", h: status(500, "<html>"), fault: "provider-error: endpoint e1: status 500"},
		"Unauthorised": {reason: "Said plainly.", h: status(401, `{"error":"bad key sk-canary-0123456789"}`), fault: "provider-error: endpoint e1: status 401, the provider says: bad key <secret>"},
		"Created":      {reason: "Only 200 is an answer.", h: status(201, `{}`), fault: "provider-error: endpoint e1: status 201"},
		"Redirect": {reason: "A key must not travel on.", h: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, fault: "provider-error: endpoint e1: status 307: a redirect is not followed, put the final URL into baseURL"},
		"HTML":            {reason: "A portal in between.", h: raw("text/html", "{}"), fault: `provider-error: endpoint e1: content type "text/html" where JSON was asked for`},
		"TwoDocuments":    {reason: "The library would read the first.", h: raw("application/json", "{}{}"), fault: "provider-error: endpoint e1: the response is not one JSON document"},
		"NotCompletion":   {reason: "JSON of another shape.", h: raw("application/json", `{"choices":7}`), fault: "provider-error: endpoint e1: the answer is no chat completion: json: cannot unmarshal number into Go struct field ChatCompletionResponse.choices of type []openai.ChatCompletionChoice"},
		"NoContentType":   {reason: "None is not a wrong one.", h: raw("", `{"choices":[]}`), fault: "empty: endpoint e1: the completion has no choices"},
		"Flood":           {reason: "Bounded before it is parsed.", h: raw("application/json", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), fault: "provider-error: endpoint e1: the response is longer than 1048576 bytes"},
		"NullContent":     {reason: "Nothing is not none.", h: reply(assistant(nil), "stop"), fault: "empty: endpoint e1: the message has no content"},
		"Parts":           {reason: "Parts of content are not glued together.", h: reply(assistant([]any{map[string]any{"type": "text", "text": good}}), "stop"), fault: "empty: endpoint e1: the message has no content"},
		"NoFinish":        {reason: "Nobody says that it is whole.", h: reply(assistant(good), ""), fault: `malformed: endpoint e1: finish_reason "" is not stop`},
		"LengthButWhole":  {reason: "The reason is read before the content.", h: reply(assistant(good), "length"), fault: "truncated: endpoint e1: finish_reason length: the reply was cut off"},
		"CallNotAsked":    {reason: "A tool nobody offered.", h: reply(map[string]any{"content": good, "tool_calls": []any{map[string]any{"type": "function", "function": map[string]any{"name": "propose", "arguments": good}}}}, "stop"), fault: "malformed: endpoint e1: a tool call was not asked for"},
		"OldCall":         {reason: "Nor the old form.", h: reply(map[string]any{"content": good, "function_call": map[string]any{"name": "propose", "arguments": good}}, "stop"), fault: "malformed: endpoint e1: a function_call was not asked for"},
		"Broken":          {reason: "What decoding replaced is not accepted.", h: raw("application/json", `{"choices":[{"finish_reason":"stop","message":{"content":"{\"action\":\"none\",\"parameters\":{},\"rationale\":\"\ud800\"}"}}]}`), fault: "malformed: endpoint e1: the reply holds a character that could not be decoded"},
		"TwoChoices":      {reason: "One was asked for.", h: raw("application/json", `{"choices":[{},{}]}`), fault: "malformed: endpoint e1: the completion has 2 choices where one was asked for"},
		"Tool":            {reason: "One call is the answer.", mode: openai.ReplyTool, h: call("propose")},
		"ToolTwo":         {reason: "Two actions are none.", mode: openai.ReplyTool, h: call("propose", "propose"), fault: "malformed: endpoint e1: 2 tool calls where exactly one was asked for"},
		"ToolOther":       {reason: "A tool nobody offered.", mode: openai.ReplyTool, h: call("shell"), fault: `malformed: endpoint e1: a call of "shell" where propose was asked for`},
		"ToolProse":       {reason: "Content is no call.", mode: openai.ReplyTool, h: completion(good), fault: "malformed: endpoint e1: 0 tool calls where exactly one was asked for"},
		"Object":          {reason: "The prompt says the form.", mode: openai.ReplyObject, h: completion(good)},
		"DuplicateKey":    {reason: "Which of the two would count?", h: completion(`{"action":"none","action":"restart","parameters":{"deployment":"checkout"},"rationale":""}`), fault: `malformed: endpoint e1: the reply is no proposal: the key "action" is given twice`},
		"DuplicateInner":  {reason: "Nor in the parameters.", h: completion(`{"action":"restart","parameters":{"deployment":"checkout","deployment":"checkout"},"rationale":""}`), fault: `malformed: endpoint e1: the key parameters: the key "deployment" is given twice`},
		"UnknownKey":      {reason: "Confidence is no key.", h: completion(`{"action":"none","parameters":{},"rationale":"","confidence":1}`), fault: `malformed: endpoint e1: unknown key "confidence": the reply has exactly the keys action, parameters and rationale`},
		"Trailing":        {reason: "A second object.", h: completion(good + good), fault: "malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '{' after top-level value"},
		"WrongCase":       {reason: "A key is a key.", h: completion(`{"Action":"none","parameters":{},"rationale":""}`), fault: `malformed: endpoint e1: unknown key "Action": the reply has exactly the keys action, parameters and rationale`},
		"WrongCaseAction": {reason: "A name is a name.", h: completion(`{"action":"Restart","parameters":{"deployment":"checkout"},"rationale":""}`), fault: `malformed: endpoint e1: unknown action "Restart": use one of rollback, scale, restart, none, escalate`},
		"NumberAsString":  {reason: "A string is no number.", h: completion(`{"action":"scale","parameters":{"deployment":"checkout","replicas":"6"},"rationale":""}`), fault: `malformed: endpoint e1: action scale: parameter "replicas": must be of type integer, not a string`},
		"Think":           {reason: "Reasoning before the object is prose.", h: completion("<think>restart it {}</think>\n" + good), fault: "malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '<' looking for beginning of value"},
		"ReasoningOnly":   {reason: "What was only thought was not said.", h: reply(map[string]any{"content": nil, "reasoning_content": good}, "stop"), fault: "empty: endpoint e1: the message has no content"},
		"ReasoningBeside": {reason: "Reasoning in its own place is not read.", h: reply(map[string]any{"content": good, "reasoning_content": "hm"}, "stop")},
		"SpaceAround":     {reason: "Space around is trimmed.", h: completion(strings.Repeat(" \n", 20_000) + good)},
		"SpaceFlood":      {reason: "A flood of it is not.", h: completion(strings.Repeat(" ", 70_000) + good), fault: "malformed: endpoint e1: the reply is longer than 65536 bytes"},
		"SpaceOnly":       {reason: "Space says nothing.", h: completion(strings.Repeat("\t", 5000)), fault: "empty: endpoint e1: the message has no content"},
		"ErrorBody":       {reason: "Status 200 makes no answer of an error.", h: status(200, `{"error":{"message":"model is loading","code":503}}`), fault: "provider-error: endpoint e1: an error under status 200, the provider says: model is loading"},
		"ErrorText":       {reason: "Nor does a flat one.", h: status(200, `{"error":"overloaded","choices":null}`), fault: "provider-error: endpoint e1: an error under status 200, the provider says: overloaded"},
		"ErrorNull":       {reason: "A null error is none.", h: status(200, `{"error":null,"choices":[{"finish_reason":"stop","message":{"content":"{\"action\":\"restart\",\"parameters\":{\"deployment\":\"checkout\"},\"rationale\":\"\"}"}}]}`)},
		"InnerSurrogate":  {reason: "Half a character, escaped twice.", h: completion(`{"action":"none","parameters":{},"rationale":"\ud800"}`), fault: `malformed: endpoint e1: the reply is no proposal: a \u escape is half of a surrogate pair`},
		"InnerNUL":        {reason: "A NUL says that something is broken.", h: completion(`{"action":"none","parameters":{},"rationale":"a\u0000b"}`), fault: "malformed: endpoint e1: the key rationale holds a control character"},
		"RawNUL":          {reason: "Nor a raw one.", h: completion("{\"action\":\"none\",\"parameters\":{},\"rationale\":\"\x00\"}"), fault: `malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '\x00' in string literal`},
		"RawBody":         {reason: "Nor one in the envelope.", h: raw("application/json", "{\"choices\":\x00[]}"), fault: "provider-error: endpoint e1: the response is not one JSON document"},
		"UTF16":           {reason: "Nor another encoding.", h: raw("application/json", "\xff\xfe{\x00}\x00"), fault: "provider-error: endpoint e1: the response is not one JSON document"},
		"Array":           {reason: "A list of one is a list.", h: completion("[" + good + "]"), fault: "malformed: endpoint e1: the reply is no proposal: not a JSON object but a list"},
		"RefusalAndCall":  {reason: "Declined is declined, whatever stands beside it.", h: reply(map[string]any{"content": good, "refusal": "I will not"}, "stop"), fault: "refusal: endpoint e1: the model declined"},
		"Hijack": {reason: "A connection that dies.", h: func(w http.ResponseWriter, _ *http.Request) {
			panic(http.ErrAbortHandler)
		}, fault: "unreachable: endpoint e1: EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			o := options(t, server(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); tc.h(w, r) }))
			o.Reply = tc.mode
			p, u := client(t, o).Propose(t.Context(), request())
			if diff := cmp.Diff(tc.fault, p.Fault); diff != "" {
				t.Errorf("%s\nFault: -want, +got:\n%s", tc.reason, diff)
			}
			if (p.Kind == propose.KindAction) != (tc.fault == "") {
				t.Errorf("%s\nKind = %s", tc.reason, p.Kind)
			}
			want := int64(1)
			if code, _, _ := strings.Cut(tc.fault, ":"); code == propose.FaultMalformed || code == propose.FaultTruncated {
				want = 2
			}
			if calls.Load() != want || len(u.Exchanges) != int(want) {
				t.Errorf("%d requests, %d exchanges, want %d", calls.Load(), len(u.Exchanges), want)
			}
			if all := fmt.Sprintf("%+v %#v %s %s", p, u, u.Exchanges[0].Request, u.Exchanges[0].Reply); strings.Contains(all, string(canary)) {
				t.Errorf("the key is in what is kept: %s", all)
			}
		})
	}
}
