package openai_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

type sentRequest struct {
	Messages            []struct{ Role, Content string }
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Tools               json.RawMessage `json:"tools"`
	ResponseFormat      json.RawMessage `json:"response_format"`
}

// The repair turn is the conversation so far, what was said, and what is wrong
// with it; a reply that was cut off may be longer.
func TestRepairTurn(t *testing.T) {
	t.Parallel()
	call := func(arguments string) map[string]any {
		return map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": "c", "type": "function", "function": map[string]any{"name": "propose", "arguments": arguments},
		}}}
	}
	fixed := map[openai.Reply]http.HandlerFunc{
		openai.ReplySchema: completion(good), openai.ReplyObject: completion(good), openai.ReplyTool: reply(call(good), "tool_calls"),
	}
	cases := map[string]struct {
		reason string
		mode   openai.Reply
		first  http.HandlerFunc
		roles  []string
		echo   string
		fault  string
		tokens int
	}{
		"Prose":     {reason: "What was said is shown.", mode: "json_schema", first: completion("restart it"), roles: []string{"system", "user", "assistant", "user"}, echo: "restart it", fault: "not exactly one JSON object", tokens: 1024},
		"Object":    {reason: "In each mode.", mode: "json_object", first: completion("restart it"), roles: []string{"system", "user", "assistant", "user"}, echo: "restart it", fault: "not exactly one JSON object", tokens: 1024},
		"Call":      {reason: "A call is shown as text: without its result some servers refuse it.", mode: "tool", first: reply(call(`{"action":"reboot"}`), "tool_calls"), roles: []string{"system", "user", "assistant", "user"}, echo: `{"action":"reboot"}`, fault: "missing", tokens: 1024},
		"Truncated": {reason: "A longer one is allowed once.", mode: "json_schema", first: reply(map[string]any{"content": `{"action":"res`}, "length"), roles: []string{"system", "user", "assistant", "user"}, echo: `{"action":"res`, fault: "finish_reason length", tokens: 2048},
		"Thought":   {reason: "Nothing was said, so nothing is shown.", mode: "json_schema", first: reply(map[string]any{"content": "", "reasoning_content": "hm"}, "length"), roles: []string{"system", "user"}, fault: "finish_reason length", tokens: 2048},
		"Long":      {reason: "Of much, the start.", mode: "json_schema", first: completion(strings.Repeat("é", 5000)), roles: []string{"system", "user", "assistant", "user"}, echo: strings.Repeat("é", 1000), fault: "not exactly one JSON object", tokens: 1024},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var requests []sentRequest
			o := options(t, server(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				var q sentRequest
				_ = json.NewDecoder(r.Body).Decode(&q)
				requests = append(requests, q)
				if len(requests) == 1 {
					tc.first(w, r)
					return
				}
				fixed[tc.mode](w, r)
			}))
			o.Reply = tc.mode
			p, u := client(t, o).Propose(t.Context(), request())
			if p.Action != "restart" || len(requests) != 2 {
				t.Fatalf("%s\n%d requests: %+v", tc.reason, len(requests), p)
			}
			first, second := requests[0], requests[1]
			var roles []string
			for _, m := range second.Messages {
				roles = append(roles, m.Role)
			}
			if diff := cmp.Diff(tc.roles, roles); diff != "" {
				t.Errorf("%s\nroles: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.echo != "" && second.Messages[2].Content != tc.echo {
				t.Errorf("%s\nshows %.80q", tc.reason, second.Messages[2].Content)
			}
			last := second.Messages[len(second.Messages)-1].Content
			if !strings.Contains(last, tc.fault) || second.Messages[0] != first.Messages[0] || !strings.HasPrefix(second.Messages[1].Content, first.Messages[1].Content) {
				t.Errorf("%s\nlast message: %s", tc.reason, last)
			}
			if first.MaxCompletionTokens != 1024 || second.MaxCompletionTokens != tc.tokens {
				t.Errorf("%s\n%d and %d tokens", tc.reason, first.MaxCompletionTokens, second.MaxCompletionTokens)
			}
			if !bytes.Equal(first.Tools, second.Tools) || !bytes.Equal(first.ResponseFormat, second.ResponseFormat) {
				t.Errorf("%s\nthe form that is demanded has changed", tc.reason)
			}
			if diff := cmp.Diff([]bool{false, true}, []bool{u.Exchanges[0].Repair, u.Exchanges[1].Repair}); diff != "" {
				t.Errorf("%s\nrepair: %s", tc.reason, diff)
			}
		})
	}
}

// A model that declines when it is asked again has declined.
func TestRepairIsRefused(t *testing.T) {
	t.Parallel()
	n := 0
	o := options(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			completion("restart it")(w, r)
			return
		}
		reply(map[string]any{"refusal": "no"}, "stop")(w, r)
	}), server(t, completion(good)))
	p, u := client(t, o).Propose(t.Context(), request())
	if want := []string{"e1 malformed", "e1 repair refusal"}; cmp.Diff(want, sent(u.Exchanges)) != "" || p.Fault != "refusal: endpoint e1: the model declined" || p.Rationale != "no" {
		t.Errorf("%v: %+v", sent(u.Exchanges), p)
	}
}

// Equal questions are equal bytes, or no recording could answer them.
func TestRequestsAreByteStable(t *testing.T) {
	t.Parallel()
	for _, mode := range []openai.Reply{openai.ReplySchema, openai.ReplyTool, openai.ReplyObject} {
		var first []propose.Exchange
		for i := range 20 {
			o := options(t, server(t, completion("prose")))
			o.Reply = mode
			_, u := client(t, o).Propose(t.Context(), request())
			if i == 0 {
				first = u.Exchanges
				continue
			}
			for j, x := range u.Exchanges {
				if !bytes.Equal(first[j].Request, x.Request) {
					t.Fatalf("%s, request %d: %s", mode, j, cmp.Diff(string(first[j].Request), string(x.Request)))
				}
			}
		}
	}
}

// A repair turn has only what is left of the endpoint's time. That it does not
// end is no failure of the endpoint, and no reason to leave it alone.
func TestRepairHasWhatIsLeft(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	o := options(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1)%2 == 1 {
			completion("restart it")(w, r)
			return
		}
		<-r.Context().Done()
	}))
	o.Endpoints[0].Timeout = 200 * time.Millisecond
	c := client(t, o)
	for range 4 {
		start := time.Now()
		p, u := c.Propose(t.Context(), request())
		if diff := cmp.Diff([]string{"e1 malformed", "e1 repair timeout"}, sent(u.Exchanges)); diff != "" || !strings.HasPrefix(p.Fault, "malformed: endpoint e1: ") {
			t.Errorf("%s\n%s", p.Fault, diff)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %s", took)
		}
	}
}
