package openai_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// attributesOf are those of a span, as text.
func attributesOf(s sdktrace.ReadOnlySpan) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes() {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// The names are those of OpenTelemetry's conventions for generative AI, which
// move; dashboards do not.
func TestSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	base := server(t, reply(map[string]any{"role": "assistant", "content": "restart it"}, "stop"))
	second := server(t, completion(good))
	o := options(t, base, second)
	// No tracer is given: that of the pass's own span is used.
	ctx, pass := provider.Tracer("test").Start(t.Context(), "propose")
	p, _ := client(t, o).Propose(ctx, request())
	pass.End()
	if p.Action != "restart" {
		t.Fatal(p.Fault)
	}
	spans := recorder.Ended()
	if len(spans) != 4 {
		t.Fatalf("%d spans, want one for each of three requests and that of the pass", len(spans))
	}
	port := func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return u.Port()
	}
	want := map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "some-model",
		"gen_ai.request.max_tokens": "1024", "gen_ai.response.model": "m-2025", "gen_ai.response.id": "r1",
		"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.usage.input_tokens": "400", "gen_ai.usage.output_tokens": "50",
		"gen_ai.output.type": "json", "gen_ai.prompt.name": o.Prompts.Version(), "server.address": "127.0.0.1", "server.port": port(second),
	}
	if diff := cmp.Diff(want, attributesOf(spans[2])); diff != "" {
		t.Errorf("span of the answer: -want, +got:\n%s", diff)
	}
	want["error.type"], want["server.port"] = "malformed", port(base)
	if diff := cmp.Diff(want, attributesOf(spans[0])); diff != "" {
		t.Errorf("span of the fault: -want, +got:\n%s", diff)
	}
	for i, s := range spans[:3] {
		if s.Name() != "chat some-model" || s.SpanKind() != trace.SpanKindClient || s.Parent().SpanID() != pass.SpanContext().SpanID() {
			t.Errorf("span %d: %s, %s, parent %s", i, s.Name(), s.SpanKind(), s.Parent().SpanID())
		}
		if failed := s.Status().Code == codes.Error; failed != (i < 2) {
			t.Errorf("span %d: status %v", i, s.Status())
		}
	}
}

// What was asked and answered is in a span only where that is asked for.
func TestContentIsOffByDefault(t *testing.T) {
	t.Parallel()
	for _, capture := range []bool{false, true} {
		recorder := tracetest.NewSpanRecorder()
		o := options(t, server(t, completion(good)))
		o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
		o.CaptureContent = capture
		client(t, o).Propose(context.Background(), request())
		got := attributesOf(recorder.Ended()[0])
		in, out := got["gen_ai.input.messages"], got["gen_ai.output.messages"]
		if strings.Contains(in, `"role":"system"`) != capture || strings.Contains(out, "stuck worker") != capture {
			t.Errorf("capture %s: input %q, output %q", strconv.FormatBool(capture), in, out)
		}
	}
}
