package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// speaker is a model's server that says none in whatever form, and keeps what
// it was asked.
type speaker struct {
	mu     sync.Mutex
	forms  []string
	answer string
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Format *struct{ Type string } `json:"response_format"`
		Tools  []any
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &q)
	form, content := "tool", s.answer
	if q.Format != nil {
		form = q.Format.Type
	}
	if strings.Contains(string(body), "kelp-4417") && form == "json_object" {
		content = `{"action":"kelp-4417","parameters":{"mortise":"qe-30a"},"rationale":"vole-83"}`
	}
	s.mu.Lock()
	s.forms = append(s.forms, form)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content}}},
		"usage":   map[string]any{"prompt_tokens": 500, "completion_tokens": 20},
	})
}

func (s *speaker) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.forms...)
}

func modelSite(t *testing.T, endpoints ...config.Endpoint) site {
	t.Helper()
	key := filepath.Join(t.TempDir(), "model.key")
	if err := os.WriteFile(key, []byte("sk-canary-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Proposer.Provider = "openai"
	for _, e := range endpoints {
		e.Model, e.APIKeyFile, e.Timeout = "some-model", key, 10*time.Second
		cfg.Proposer.Endpoints = append(cfg.Proposer.Endpoints, e)
	}
	return site{cfg: cfg}
}

func aRequest() propose.Request {
	now := time.Date(2025, 11, 29, 12, 0, 0, 0, time.UTC)
	return propose.Request{
		Service: spec.Service{Name: "checkout"}, Now: now, Since: now, Catalogue: propose.Catalogue{{Action: spec.Action{Name: "restart"}}},
		Assessment: compare.Assessment{Service: "checkout", At: now, State: compare.Breached, Reason: compare.Burning},
	}
}

// Each endpoint is asked in its own form, the spans hang under that of the
// pass, and what was sent is handed on whole.
func TestModelProposer(t *testing.T) {
	bad, good := &speaker{answer: "no idea"}, &speaker{answer: `{"action":"none","parameters":{},"rationale":"wait"}`}
	first, second := httptest.NewServer(bad), httptest.NewServer(good)
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	s := modelSite(t, config.Endpoint{Name: "first", BaseURL: first.URL}, config.Endpoint{Name: "second", BaseURL: second.URL, Reply: "json_object"})
	for _, capture := range []string{"", "true"} {
		a := &app{getenv: func(name string) string {
			if name == "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" {
				return capture
			}
			return ""
		}}
		p, err := s.proposer(&fileRules{site: s}, a.traced)
		if err != nil {
			t.Fatal(err)
		}
		if who := p.Identity(); who != (propose.Proposer{Kind: "openai", Endpoint: "first", Model: "some-model"}) {
			t.Errorf("identity %+v", who)
		}
		recorder := tracetest.NewSpanRecorder()
		ctx, pass := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "propose")
		got := p.Propose(ctx, aRequest())
		pass.End()
		if got.Proposal.Kind != propose.KindNone || got.Proposal.Proposer.Endpoint != "second" {
			t.Errorf("%+v", got.Proposal)
		}
		var sent []string
		for _, x := range got.Exchanges {
			sent = append(sent, x.Endpoint+" "+x.Mode+" "+x.Result)
			if len(x.Request) == 0 || len(x.Reply) == 0 || x.Status != 200 || x.InputTokens != 500 || x.OutputTokens != 20 {
				t.Errorf("%+v", x)
			}
		}
		if diff := cmp.Diff([]string{"first json_schema malformed", "first json_schema malformed", "second json_object ok"}, sent); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		spans := recorder.Ended()
		if len(spans) != 4 || spans[0].Parent().SpanID() != pass.SpanContext().SpanID() {
			t.Fatalf("%d spans", len(spans))
		}
		held := false
		for _, attribute := range spans[0].Attributes() {
			held = held || attribute.Key == "gen_ai.input.messages"
		}
		if held != (capture == "true") {
			t.Errorf("capture %q: the span holds what was asked: %t", capture, held)
		}
	}
}

// An agent finds out in the background how an endpoint is to be asked; a plan
// asks nothing that it was not told to.
func TestAgentLearnsReplyMode(t *testing.T) {
	sp := &speaker{answer: `{"action":"none","parameters":{},"rationale":"wait"}`}
	server := httptest.NewServer(sp)
	t.Cleanup(server.Close)
	s := modelSite(t, config.Endpoint{Name: "main", BaseURL: server.URL, Reply: string(openai.ReplyAuto)})
	p, err := s.proposer(&fileRules{site: s})
	if err != nil {
		t.Fatal(err)
	}
	learn(t.Context(), p, purpose{ask: true}, spec.Auto)
	learn(t.Context(), p, purpose{ask: true, send: true}, spec.Observe)
	learn(t.Context(), &fileRules{}, purpose{ask: true, send: true}, spec.Auto)
	if got := p.Propose(t.Context(), aRequest()); got.Exchanges[0].Mode != "json_schema" {
		t.Errorf("before it is known: %s", got.Exchanges[0].Mode)
	}
	if diff := cmp.Diff([]string{"json_schema"}, sp.asked()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	learn(t.Context(), p, purpose{ask: true, send: true}, spec.Auto)
	for end := time.Now().Add(10 * time.Second); len(sp.asked()) < 4; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing is learnt: %v", sp.asked())
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got := p.Propose(t.Context(), aRequest())
		if got.Exchanges[0].Mode == "json_object" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after: %s", got.Exchanges[0].Mode)
		}
	}
}
