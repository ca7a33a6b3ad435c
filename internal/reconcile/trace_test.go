package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// A pass that acts is one trace: what was measured, compared, proposed, gated
// and executed hang under one root, which says how it ended.
func TestOneTracePerPass(t *testing.T) {
	w := prepare(t)
	recorder := tracetest.NewSpanRecorder()
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	w.start()
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)

	var root sdktrace.ReadOnlySpan
	for _, s := range recorder.Ended() {
		if s.Name() == "pass" && slices.Contains(s.Attributes(), attribute.String("setpoint.effect", "applied")) {
			root = s
		}
	}
	if root == nil {
		t.Fatal("no root span of the pass that acted")
	}
	var under []string
	for _, s := range recorder.Ended() {
		if s.SpanContext().TraceID() == root.SpanContext().TraceID() && s.Parent().SpanID() == root.SpanContext().SpanID() {
			under = append(under, s.Name())
		}
	}
	slices.Sort(under)
	if want := []string{"compare", "execute", "gate", "measure", "propose"}; !slices.Equal(under, want) {
		t.Errorf("spans under the pass = %v, want %v", under, want)
	}
	for _, want := range []attribute.KeyValue{
		attribute.String("setpoint.service", "checkout"), attribute.String("setpoint.verdict", "auto"), attribute.String("setpoint.step", "execute"),
	} {
		if !slices.Contains(root.Attributes(), want) {
			t.Errorf("root has no %v", want)
		}
	}
}
