package openai

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"strconv"

	api "github.com/sashabaranov/go-openai"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	// The last release that holds the conventions for generative AI, which have
	// left the set since; this file alone names them.
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// The span attributes, as a test pins them.
const (
	keyProvider      = semconv.GenAIProviderNameKey
	keyRequestModel  = semconv.GenAIRequestModelKey
	keyMaxTokens     = semconv.GenAIRequestMaxTokensKey
	keyResponseModel = semconv.GenAIResponseModelKey
	keyResponseID    = semconv.GenAIResponseIDKey
	keyFinish        = semconv.GenAIResponseFinishReasonsKey
	keyInputTokens   = semconv.GenAIUsageInputTokensKey
	keyOutputTokens  = semconv.GenAIUsageOutputTokensKey
	keyPromptName    = semconv.GenAIPromptNameKey
	keyInput         = semconv.GenAIInputMessagesKey
	keyOutput        = semconv.GenAIOutputMessagesKey
	keyErrorType     = semconv.ErrorTypeKey
	keyServer        = semconv.ServerAddressKey
	keyPort          = semconv.ServerPortKey
)

// CaptureVariable is the environment variable that, when true, lets spans hold
// what was asked and answered.
const CaptureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// maxSpanWord bounds a provider's word in a span, in characters.
const maxSpanWord = 100

func (c *Client) startSpan(ctx context.Context, e *endpoint, t turn) (context.Context, trace.Span) {
	tracer := c.opts.Tracer
	if tracer == nil {
		tracer = trace.SpanFromContext(ctx).TracerProvider().Tracer("github.com/setpoint-dev/setpoint")
	}
	attributes := []attribute.KeyValue{
		semconv.GenAIOperationNameChat, keyProvider.String(Kind), keyRequestModel.String(e.Model),
		keyMaxTokens.Int(t.request.MaxCompletionTokens), keyPromptName.String(t.prompt),
	}
	if t.mode != "" {
		attributes = append(attributes, semconv.GenAIOutputTypeJSON)
	}
	if host, port := serverOf(e.BaseURL); host != "" {
		attributes = append(attributes, keyServer.String(host), keyPort.Int(port))
	}
	return tracer.Start(ctx, "chat "+e.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

func (c *Client) endSpan(span trace.Span, t turn, s said) {
	defer span.End()
	r := s.response
	if r.Model != "" {
		span.SetAttributes(keyResponseModel.String(c.clean(r.Model, maxSpanWord)))
	}
	if r.ID != "" {
		span.SetAttributes(keyResponseID.String(c.clean(r.ID, maxSpanWord)))
	}
	if reasons := c.finishes(r); len(reasons) > 0 {
		span.SetAttributes(keyFinish.StringSlice(reasons))
	}
	if x := s.exchange; x.InputTokens > 0 || x.OutputTokens > 0 {
		span.SetAttributes(keyInputTokens.Int(x.InputTokens), keyOutputTokens.Int(x.OutputTokens))
	}
	if s.fault != nil {
		span.SetAttributes(keyErrorType.String(s.fault.code))
		span.SetStatus(codes.Error, s.fault.text)
	}
	if c.opts.CaptureContent {
		span.SetAttributes(keyInput.String(c.messages(t.request.Messages)), keyOutput.String(c.messages(spoken(r))))
	}
}

func (c *Client) finishes(r api.ChatCompletionResponse) []string {
	var out []string
	for _, choice := range r.Choices[:min(len(r.Choices), 4)] {
		out = append(out, c.clean(string(choice.FinishReason), maxSpanWord))
	}
	return out
}

func spoken(r api.ChatCompletionResponse) []api.ChatCompletionMessage {
	var out []api.ChatCompletionMessage
	for _, choice := range r.Choices {
		out = append(out, choice.Message)
	}
	return out
}

// messages are in the conventions' JSON form, with the keys cut out.
func (c *Client) messages(all []api.ChatCompletionMessage) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	out := []message{}
	for _, m := range all {
		text := m.Content
		if len(m.ToolCalls) == 1 {
			text = m.ToolCalls[0].Function.Arguments
		}
		out = append(out, message{Role: c.clean(m.Role, maxSpanWord), Parts: []part{{Type: "text", Content: c.scrubText(text)}}})
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b)
}

func serverOf(baseURL string) (host string, port int) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "", 0
	}
	port = 80
	if u.Scheme == "https" {
		port = 443
	}
	if h, p, err := net.SplitHostPort(u.Host); err == nil {
		if n, err := strconv.Atoi(p); err == nil {
			return h, n
		}
	}
	return u.Hostname(), port
}
