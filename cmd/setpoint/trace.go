package main

import (
	"context"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"go.opentelemetry.io/otel/attribute"

	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// traceVariables are those that ask for traces. Without one of them nothing is
// exported, although the library's own default is an OTLP endpoint.
var traceVariables = []string{
	"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}

// flushWait bounds how long a stop waits for the last traces.
const flushWait = 3 * time.Second

// newTracer makes the tracer that the OTEL_* variables ask for; flush sends
// what is left.
func newTracer(ctx context.Context, getenv func(string) string) (t trace.Tracer, flush func(), err error) {
	asked := false
	for _, name := range traceVariables {
		asked = asked || getenv(name) != ""
	}
	if !asked || getenv("OTEL_SDK_DISABLED") == "true" {
		return noop.NewTracerProvider().Tracer("setpoint"), func() {}, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, nil, err
	}
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "setpoint")),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	flush = func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWait)
		defer cancel()
		_ = provider.Shutdown(last) // A trace that is lost stops nobody.
	}
	return provider.Tracer("setpoint"), flush, nil
}

// traced lets the spans of a model's requests, which hang under the span of the
// pass, hold what was asked and answered, if the environment says so.
func (a *app) traced(o *openai.Options) {
	o.CaptureContent = a.getenv(openai.CaptureVariable) == "true"
}
