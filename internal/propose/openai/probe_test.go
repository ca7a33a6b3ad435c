package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// asked is what a server sees of a request.
type asked struct {
	Messages       []struct{ Role, Content string }
	ResponseFormat *struct {
		Type       string
		JSONSchema *struct{ Schema json.RawMessage } `json:"json_schema"`
	} `json:"response_format"`
	Tools []struct{ Function struct{ Name string } }
}

func (a asked) mode() openai.Reply {
	switch {
	case len(a.Tools) > 0:
		return openai.ReplyTool
	case a.ResponseFormat != nil:
		return openai.Reply(a.ResponseFormat.Type)
	}
	return ""
}

func (a asked) text() string {
	s := ""
	for _, m := range a.Messages {
		s += m.Content + "\n"
	}
	return s
}

const (
	formed = `{"action":"dune-0952","parameters":{"mortise":"qe-30a"},"rationale":"vole-83"}`
	step   = `{"action":"scale","parameters":{"replicas":6},"rationale":"more room"}`
)

// honest is a server that honours some modes, counts, and keeps its prompts.
type honest struct {
	honours  []openai.Reply
	fence    bool
	instead  http.HandlerFunc // in the other modes
	cut      int              // characters of a prompt that reach the model; 0: all
	uncounts bool
	requests atomic.Int64
}

func (h *honest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Add(1)
	var a asked
	_ = json.NewDecoder(r.Body).Decode(&a)
	text, mode := a.text(), a.mode()
	if h.cut > 0 {
		text = text[max(0, len(text)-h.cut):]
	}
	tokens := len(text) / 5
	if h.uncounts {
		tokens = 0
	}
	content := step
	switch {
	case mode == "":
		content = "no idea"
		if _, rest, ok := strings.Cut(text, "The code word is "); ok {
			content, _, _ = strings.Cut(rest, ".")
		}
	case mode == openai.ReplyObject && strings.Contains(text, "kelp-4417"),
		mode == openai.ReplySchema && strings.Contains(string(a.ResponseFormat.JSONSchema.Schema), "kelp-4417"),
		mode == openai.ReplyTool && strings.Contains(text, "form that was demanded"):
		content = formed
	}
	for _, m := range h.honours {
		if m == mode || mode == "" {
			if h.fence && mode != "" {
				content = "```json\n" + content + "\n```"
			}
			message := map[string]any{"role": "assistant", "content": content}
			finish := "stop"
			if mode == openai.ReplyTool {
				message = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
					"id": "c", "type": "function", "function": map[string]any{"name": "propose", "arguments": content},
				}}}
				finish = "tool_calls"
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"model": "m-2025", "choices": []any{map[string]any{"message": message, "finish_reason": finish}},
				"usage": map[string]any{"prompt_tokens": tokens, "completion_tokens": 21},
			})
			return
		}
	}
	h.instead(w, r)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	all := []openai.Reply{openai.ReplySchema, openai.ReplyTool, openai.ReplyObject}
	said := func(details ...string) []openai.ModeProbed {
		var out []openai.ModeProbed
		for i, d := range details {
			out = append(out, openai.ModeProbed{Mode: all[i], Honoured: d == "" || strings.Contains(d, "accepted"), Detail: d})
		}
		return out
	}
	prose := completion("I recommend a rollback \u202e of checkout.")
	cases := map[string]struct {
		reason string
		h      *honest
		want   openai.Probed
	}{
		"Healthy": {
			reason: "All is honoured: five questions.", h: &honest{honours: all},
			want: openai.Probed{Status: 200, Best: openai.ReplySchema, Modes: said("", "", ""), ServedModel: "m-2025", OutputTokens: 21},
		},
		"IgnoresSchema": {
			reason: "A server that takes a schema and ignores it.", h: &honest{honours: all[1:], instead: prose},
			want: openai.Probed{Status: 200, Best: openai.ReplyTool, Modes: said(`prose: "I recommend a rollback of checkout."`, "", ""), ServedModel: "m-2025", OutputTokens: 21},
		},
		"RefusesForms": {
			reason: "One that says so.", h: &honest{honours: all[2:], instead: status(400, `{"error":{"message":"response_format of key sk-canary-0123456789 is not supported"}}`)},
			want: openai.Probed{
				Status: 200, Best: openai.ReplyObject, ServedModel: "m-2025", OutputTokens: 21,
				Modes: said("status 400, the provider says: response_format of key <secret> is not supported", "status 400, the provider says: response_format of key <secret> is not supported", ""),
			},
		},
		"Fence": {
			reason: "A fence is odd, and accepted.", h: &honest{honours: all, fence: true},
			want: openai.Probed{
				Status: 200, Best: openai.ReplySchema, ServedModel: "m-2025", OutputTokens: 21,
				Modes: said("inside a fence, which is accepted", "inside a fence, which is accepted", "inside a fence, which is accepted"),
			},
		},
		"OtherObject": {
			reason: "A form by chance is not the schema.", h: &honest{instead: completion(`{"action":"restart","parameters":{},"rationale":"x"}`)},
			want: openai.Probed{
				Status: 200, ServedModel: "m-2025", OutputTokens: 50, Truncated: true,
				PromptDetail: "400 tokens were counted where about 2518 were sent",
				Modes: said(`an object of another form: unknown action "restart": use one of kelp-4417, dune-0952, none, escalate`,
					`no tool call; the content is "{\"action\":\"restart\",\"parameters\":{},\"rationale\":\"x\"}"`,
					`an object of another form: unknown action "restart": use one of kelp-4417, dune-0952, none, escalate`),
			},
		},
		"CutsInSilence": {
			reason: "A short context, cut at the front under status 200.", h: &honest{honours: all, cut: 3000},
			want: openai.Probed{
				Status: 200, Best: openai.ReplySchema, Modes: said("", "", ""), ServedModel: "m-2025", OutputTokens: 21,
				Truncated: true, PromptDetail: "600 tokens were counted where about 2518 were sent",
			},
		},
		"CutsUncounted": {
			reason: "Nor does it count.", h: &honest{honours: all, cut: 3000, uncounts: true},
			want: openai.Probed{
				Status: 200, Best: openai.ReplySchema, Modes: said("", "", ""), ServedModel: "m-2025", OutputTokens: 21,
				Truncated: true, PromptDetail: "the code word at the front of the prompt was not repeated",
			},
		},
		"WrongKey": {
			reason: "Asking on would change nothing.", h: &honest{instead: status(401, `{"error":{"message":"bad key"}}`)},
			want: openai.Probed{Fault: "provider-error: status 401, the provider says: bad key", Status: 401, Modes: said("status 401, the provider says: bad key")},
		},
		"Broken": {
			reason: "What fails in each form fails.", h: &honest{instead: status(500, ``)},
			want: openai.Probed{Fault: "provider-error: status 500", Status: 500, Modes: said("status 500", "status 500", "status 500")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, server(t, tc.h.ServeHTTP))
			o.PromptTokens, o.Reply = 2500, openai.ReplyAuto
			got, err := client(t, o).Probe(t.Context(), "e1")
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Fault == "" {
				tc.want.ProposalMode = openai.ReplySchema
			}
			if tc.want.Best != "" {
				tc.want.ProposalMode = tc.want.Best
			}
			tc.want.Endpoint, tc.want.Model = "e1", "some-model"
			ignore := cmpopts.IgnoreFields(openai.Probed{}, "EstimatedTokens", "CountedTokens", "InputTokens", "Took", "ProposalFault")
			if diff := cmp.Diff(tc.want, got, ignore); diff != "" {
				t.Errorf("%s\nProbe: -want, +got:\n%s", tc.reason, diff)
			}
			if n := tc.h.requests.Load(); n > 5 || got.Fault == "" && n != 5 {
				t.Errorf("%d requests", n)
			}
			if s := fmt.Sprintf("%+v", got); strings.Contains(s, "canary") {
				t.Errorf("the key is shown: %s", s)
			}
			if got.Fault == "" && (got.EstimatedTokens < 2500 || got.EstimatedTokens > 2530) {
				t.Errorf("the long prompt has about %d tokens", got.EstimatedTokens)
			}
			if got.Best != "" && got.ProposalFault != "" {
				t.Errorf("the proposal: %s", got.ProposalFault)
			}
		})
	}
}

// TestProbeAsConfigured: the proposal is asked for as it would be in an incident,
// and not as it would be best.
func TestProbeAsConfigured(t *testing.T) {
	t.Parallel()
	for _, mode := range []openai.Reply{openai.ReplySchema, openai.ReplyTool} {
		o := options(t, server(t, (&honest{honours: []openai.Reply{openai.ReplyTool}, instead: completion("I recommend a rollback.")}).ServeHTTP))
		o.Reply = mode
		got, err := client(t, o).Probe(t.Context(), "e1")
		if err != nil {
			t.Fatal(err)
		}
		valid := mode == openai.ReplyTool
		if got.Best != openai.ReplyTool || got.ProposalMode != mode || (got.ProposalFault == "") != valid {
			t.Errorf("%s: got %+v", mode, got)
		}
	}
}

func TestProbeUnreachable(t *testing.T) {
	t.Parallel()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	c := client(t, options(t, dead.URL))
	got, err := c.Probe(t.Context(), "e1")
	if err != nil || got.Fault != "unreachable: connection refused" || got.Status != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Probe(t.Context(), "e9"); err == nil {
		t.Error("an endpoint that is not configured was probed")
	}
	// It left no rest behind.
	if p, _ := c.Propose(t.Context(), request()); !strings.HasPrefix(p.Fault, propose.FaultUnreachable) {
		t.Errorf("after a probe: %s", p.Fault)
	}
}

func TestProbeOfOneThatHangs(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	o := options(t, server(t, func(_ http.ResponseWriter, r *http.Request) { n.Add(1); <-r.Context().Done() }))
	o.Endpoints[0].Timeout = 50 * time.Millisecond
	got, err := client(t, o).Probe(t.Context(), "e1")
	if err != nil || !strings.HasPrefix(got.Fault, propose.FaultTimeout) || n.Load() != 1 {
		t.Errorf("%+v, %v after %d requests", got, err, n.Load())
	}
}
