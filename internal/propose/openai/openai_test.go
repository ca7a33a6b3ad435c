package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/prompts"
)

const canary openai.Key = "sk-canary-0123456789"

var now = time.Date(2025, 11, 29, 12, 0, 0, 0, time.UTC)

func catalogue() propose.Catalogue {
	deployment := spec.Parameter{Name: "deployment", Type: spec.String, Enum: []string{"checkout"}}
	low, high := 1.0, 20.0
	replicas := spec.Parameter{Name: "replicas", Type: spec.Integer, Minimum: &low, Maximum: &high}
	return propose.Catalogue{
		{Action: spec.Action{Name: "rollback", Parameters: []spec.Parameter{deployment}}},
		{Action: spec.Action{Name: "scale", Parameters: []spec.Parameter{deployment, replicas}}},
		{Action: spec.Action{Name: "restart", Parameters: []spec.Parameter{deployment}}},
	}
}

func request() propose.Request {
	return propose.Request{
		Service: spec.Service{Name: "checkout"}, Now: now, Since: now.Add(-time.Minute), Catalogue: catalogue(),
		Assessment: compare.Assessment{State: compare.Breached, Reason: compare.Burning},
	}
}

var loadPrompts = sync.OnceValues(func() (*propose.Prompts, error) { return propose.LoadPrompts(prompts.FS) })

func options(t *testing.T, urls ...string) openai.Options {
	t.Helper()
	p, err := loadPrompts()
	if err != nil {
		t.Fatal(err)
	}
	o := openai.Options{Prompts: p, Timeout: 10 * time.Second, Now: func() time.Time { return now }}
	for i, u := range urls {
		o.Endpoints = append(o.Endpoints, openai.Endpoint{
			Name: fmt.Sprintf("e%d", i+1), BaseURL: u + "/v1", Model: "some-model", Key: canary,
		})
	}
	return o
}

func client(t *testing.T, o openai.Options) *openai.Client {
	t.Helper()
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func server(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a server that has not read it does not see that the client left
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// completion answers with one choice that stopped with that content.
func completion(content string) http.HandlerFunc {
	return reply(map[string]any{"role": "assistant", "content": content}, "stop")
}

func reply(message map[string]any, finish string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "r1", "model": "m-2025", "choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
			"usage": map[string]any{"prompt_tokens": 400, "completion_tokens": 50, "prompt_tokens_details": map[string]any{"cached_tokens": 300}},
		})
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const good = `{"action":"restart","parameters":{"deployment":"checkout"},"rationale":"a\u202e stuck worker"}`

func TestProposal(t *testing.T) {
	t.Parallel()
	auths, bodies := make(chan string, 1), make(chan map[string]any, 1)
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		auths <- r.Header.Get("Authorization")
		bodies <- body
		completion(good)(w, r)
	})
	p, u := client(t, options(t, url)).Propose(t.Context(), request())
	auth, got := <-auths, <-bodies
	want := propose.Proposal{
		Kind: propose.KindAction, Action: "restart", Parameters: propose.Parameters{"deployment": "checkout"},
		Rationale: "a stuck worker", Proposer: propose.Proposer{Kind: "openai", Endpoint: "e1", Model: "some-model"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("Propose(…): -want, +got:\n%s", diff)
	}
	if auth != "Bearer "+string(canary) {
		t.Errorf("Authorization = %q", auth)
	}
	if temperature, ok := got["temperature"]; !ok || temperature != 0.0 {
		t.Errorf("temperature = %v (sent: %v), want 0", temperature, ok)
	}
	format, _ := got["response_format"].(map[string]any)
	schema, _ := format["json_schema"].(map[string]any)
	if format["type"] != "json_schema" || schema["strict"] != true || schema["schema"] == nil {
		t.Errorf("response_format = %v", format)
	}
	a := u.Exchanges[0]
	var sent map[string]any
	if err := json.Unmarshal(a.Request, &sent); err != nil || cmp.Diff(got, sent) != "" {
		t.Errorf("the kept request differs from the one that was received: %v\n%s", err, cmp.Diff(got, sent))
	}
	wantExchange := propose.Exchange{
		Endpoint: "e1", Model: "some-model", Mode: "json_schema", Result: "ok", Status: 200, InputTokens: 400, OutputTokens: 50,
		Request: a.Request, Reply: a.Reply,
	}
	if diff := cmp.Diff([]propose.Exchange{wantExchange}, u.Exchanges); diff != "" {
		t.Errorf("exchanges: -want, +got:\n%s", diff)
	}
	if u.PromptVersion == "" || len(u.PromptDigest) != 64 || u.EstimatedPromptTokens == 0 {
		t.Errorf("usage does not name its prompt: %+v", u)
	}
}

// A faulty endpoint is followed by the next; a refusal is an answer.
func TestEndpointsInOrder(t *testing.T) {
	t.Parallel()
	refuse := reply(map[string]any{"content": nil, "refusal": "I cannot\nhelp"}, "stop")
	cases := map[string]struct {
		reason string
		first  http.HandlerFunc
		want   []string
		kind   propose.Kind
	}{
		"Good":        {reason: "One answer is enough.", first: completion(good), want: []string{"ok"}, kind: propose.KindAction},
		"Server":      {reason: "A broken server.", first: status(500, ""), want: []string{"provider-error", "ok"}, kind: propose.KindAction},
		"RateLimited": {reason: "A busy server.", first: status(429, ""), want: []string{"rate-limited", "ok"}, kind: propose.KindAction},
		"Invalid":     {reason: "A weak model.", first: completion("restart it"), want: []string{"malformed", "malformed", "ok"}, kind: propose.KindAction},
		"Truncated":   {reason: "A talkative model.", first: reply(map[string]any{"content": "{"}, "length"), want: []string{"truncated", "truncated", "ok"}, kind: propose.KindAction},
		"Refusal":     {reason: "Nobody is asked until one complies.", first: refuse, want: []string{"refusal"}, kind: propose.KindMalformed},
		"Filtered":    {reason: "Nor here.", first: reply(map[string]any{}, "content_filter"), want: []string{"content-filter"}, kind: propose.KindMalformed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, server(t, tc.first), server(t, completion(good)))
			p, u := client(t, o).Propose(t.Context(), request())
			var got []string
			for _, x := range u.Exchanges {
				got = append(got, x.Result)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.Kind != tc.kind {
				t.Errorf("%s\nkind %s, results: -want, +got:\n%s", tc.reason, p.Kind, diff)
			}
			if last := u.Exchanges[len(got)-1].Endpoint; p.Proposer.Endpoint != last {
				t.Errorf("the proposal names endpoint %s, want %s", p.Proposer.Endpoint, last)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	p, u := client(t, options(t, dead.URL)).Propose(t.Context(), request())
	if p.Fault != "unreachable: endpoint e1: connection refused" || u.Exchanges[0].Status != 0 {
		t.Errorf("Fault = %q, status %d", p.Fault, u.Exchanges[0].Status)
	}
}

// A server that never ends its answer costs no more than the deadline.
func TestDeadline(t *testing.T) {
	t.Parallel()
	hang := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	t.Run("Endpoint", func(t *testing.T) {
		t.Parallel()
		o := options(t, server(t, hang), server(t, completion(good)))
		o.Endpoints[0].Timeout = 50 * time.Millisecond
		p, u := client(t, o).Propose(t.Context(), request())
		if p.Kind != propose.KindAction || u.Exchanges[0].Result != "timeout" {
			t.Errorf("proposal %+v, first attempt %s", p, u.Exchanges[0].Result)
		}
	})
	t.Run("Overall", func(t *testing.T) {
		t.Parallel()
		o := options(t, server(t, hang), server(t, completion(good)))
		o.Timeout = 50 * time.Millisecond
		p, u := client(t, o).Propose(t.Context(), request())
		if p.Fault != "timeout: endpoint e1: no complete answer within the deadline" || len(u.Exchanges) != 1 {
			t.Errorf("Fault = %q after %d attempts", p.Fault, len(u.Exchanges))
		}
	})
	t.Run("Canceled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		o := options(t, server(t, func(w http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }), server(t, completion(good)))
		p, u := client(t, o).Propose(ctx, request())
		if p.Fault != "canceled: endpoint e1: given up" || len(u.Exchanges) != 1 {
			t.Errorf("Fault = %q after %d attempts", p.Fault, len(u.Exchanges))
		}
	})
}

func TestPromptSize(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	o := options(t, server(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); completion(good)(w, r) }))
	o.PromptTokens = 100
	p, _ := client(t, o).Propose(t.Context(), request())
	if !strings.HasPrefix(p.Fault, "prompt: endpoint e1: the prompt exceeds promptTokens") || calls.Load() != 0 {
		t.Errorf("Fault = %q after %d requests", p.Fault, calls.Load())
	}
	o.PromptTokens = 0
	_, whole := client(t, o).Propose(t.Context(), request())
	o.PromptTokens = whole.EstimatedPromptTokens + 200
	r := request()
	for i := range 40 {
		r.Tried = append(r.Tried, propose.Tried{Action: "restart", At: now.Add(time.Duration(i-60) * time.Minute)})
	}
	p, u := client(t, o).Propose(t.Context(), r)
	if p.Kind != propose.KindAction || u.TriedOmitted == 0 || u.EstimatedPromptTokens > o.PromptTokens {
		t.Errorf("%+v: left out %d, about %d tokens", p, u.TriedOmitted, u.EstimatedPromptTokens)
	}
}

func TestReasoningModelGetsNoTemperature(t *testing.T) {
	t.Parallel()
	o := options(t, server(t, completion(good)))
	o.Endpoints[0].Model = "o3-mini"
	p, u := client(t, o).Propose(t.Context(), request())
	if p.Kind != propose.KindAction || strings.Contains(string(u.Exchanges[0].Request), `"temperature"`) {
		t.Errorf("%+v\n%s", p, u.Exchanges[0].Request)
	}
}

// An endpoint that lies about its tokens uses up no more than it can have read and
// written, and less than nothing is nothing.
func TestTokensThatCannotBe(t *testing.T) {
	t.Parallel()
	for usage, most := range map[string]bool{
		`"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807`: true,
		`"prompt_tokens":-5,"completion_tokens":-9223372036854775808`:                 false,
	} {
		body := `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{` + usage + `}}`
		_, u := client(t, options(t, server(t, status(http.StatusOK, body)))).Propose(t.Context(), request())
		if len(u.Exchanges) != 2 {
			t.Fatalf("%d exchanges", len(u.Exchanges))
		}
		for _, x := range u.Exchanges {
			in, out := 0, 0
			if most {
				in, out = len(x.Request), 1024
			}
			if x.InputTokens != in || x.OutputTokens != out {
				t.Errorf("%s: %d and %d tokens, want %d and %d", usage, x.InputTokens, x.OutputTokens, in, out)
			}
		}
	}
}
