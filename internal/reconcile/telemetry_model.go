package reconcile

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// The metrics of OpenTelemetry's conventions for generative AI, in the form
// that Prometheus gives such names, with the bucket limits of the conventions.
// A test pins all of it.
const (
	genAITokenUsage = "gen_ai_client_token_usage"
	genAIDuration   = "gen_ai_client_operation_duration_seconds"

	genAITokenType = "gen_ai_token_type"
	genAIOperation = "gen_ai_operation_name"
	genAIProvider  = "gen_ai_provider_name"
	genAIModel     = "gen_ai_request_model"
	genAIErrorType = "error_type"

	// operationChat and providerOpenAI are what every request of ours is.
	operationChat  = "chat"
	providerOpenAI = "openai"
)

var (
	genAITokenBuckets = []float64{
		1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
	}
	genAIDurationBuckets = []float64{
		0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
	}
	episodeTokenBuckets   = []float64{0, 1000, 2000, 3000, 5000, 10000, 20000, 50000, 100000}
	episodeRequestBuckets = []float64{0, 1, 2, 3, 5, 8, 13, 21, 34}
)

// modelTelemetry is what models were asked and what it cost.
type modelTelemetry struct {
	requests, tokens, fallbacks    *prometheus.CounterVec
	tokenUsage, duration           *prometheus.HistogramVec
	episodeTokens, episodeRequests prometheus.Histogram
}

func newModelTelemetry() *modelTelemetry {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}
	return &modelTelemetry{
		requests: counter("setpoint_model_requests_total", "Requests to a model's endpoint, and questions to other proposers, by what came back.", "endpoint", "result"),
		tokens:   counter("setpoint_model_tokens_total", "Tokens as the model's endpoint counted them.", "endpoint", "type"),
		fallbacks: counter("setpoint_model_fallbacks_total",
			"Questions that rules answered in the place of a model, by the code of the fault that kept it from answering.", "reason"),
		tokenUsage: prometheus.NewHistogramVec(histogram(genAITokenUsage, "Tokens of one request to a model, as its endpoint counted them.", genAITokenBuckets),
			[]string{genAITokenType, genAIOperation, genAIProvider, genAIModel}),
		duration: prometheus.NewHistogramVec(histogram(genAIDuration, "Time of one request to a model; error_type is empty for a valid proposal.", genAIDurationBuckets),
			[]string{genAIOperation, genAIProvider, genAIModel, genAIErrorType}),
		episodeTokens:   prometheus.NewHistogram(histogram("setpoint_episode_model_tokens", "Tokens that the models of one episode took, observed at its end.", episodeTokenBuckets)),
		episodeRequests: prometheus.NewHistogram(histogram("setpoint_episode_model_requests", "Requests to models of one episode, observed at its end.", episodeRequestBuckets)),
	}
}

func (m *modelTelemetry) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.tokens, m.fallbacks, m.tokenUsage, m.duration, m.episodeTokens, m.episodeRequests}
}

// resultOK is that of an exchange that gave a proposal.
const resultOK = "ok"

// asked counts a question; endpoint and model are names of setpoint.yaml. Who
// speaks without sending anything is counted by his kind: rules, also where they
// stand in, and a model that may not be asked, by the fault that says why.
func (t *telemetry) asked(got Proposed) {
	m := t.model
	for _, x := range got.Exchanges {
		m.requests.WithLabelValues(x.Endpoint, x.Result).Inc()
		failure := x.Result
		if failure == resultOK {
			failure = ""
		}
		m.duration.WithLabelValues(operationChat, providerOpenAI, x.Model, failure).Observe(x.Took.Seconds())
		for kind, n := range map[string]int{"input": x.InputTokens, "output": x.OutputTokens} {
			if n <= 0 {
				continue // Not counted by the endpoint.
			}
			m.tokens.WithLabelValues(x.Endpoint, kind).Add(float64(n))
			m.tokenUsage.WithLabelValues(kind, operationChat, providerOpenAI, x.Model).Observe(float64(n))
		}
	}
	if p := got.Proposal; len(got.Exchanges) == 0 || p.Fallback != "" {
		result := string(p.Kind)
		if code, _, found := strings.Cut(p.Fault, ":"); found {
			result = code
		}
		m.requests.WithLabelValues(p.Proposer.Kind, result).Inc()
		if p.Fallback != "" {
			m.fallbacks.WithLabelValues(propose.FaultCode(p.Fallback)).Inc()
		}
	}
}

// expect begins at zero what may be counted of a model of this kind behind these
// endpoints. A series that begins at one is no increase to Prometheus, so the
// first failure would raise no alert.
func (m *modelTelemetry) expect(kind string, endpoints []config.Endpoint) {
	codes := propose.FaultCodes()
	for _, e := range endpoints {
		for _, result := range append(codes, resultOK) {
			m.requests.WithLabelValues(e.Name, result)
		}
	}
	for _, unasked := range []string{propose.FaultLimit, propose.FaultResting} {
		m.requests.WithLabelValues(kind, unasked)
	}
	for _, code := range codes {
		if propose.NoModel(code) {
			m.fallbacks.WithLabelValues(code)
		}
	}
}

// over observes what the models of an episode cost, in one that asked none too.
func (t *telemetry) over(cost ledger.Asking) {
	t.model.episodeTokens.Observe(float64(cost.InputTokens + cost.OutputTokens))
	t.model.episodeRequests.Observe(float64(cost.Requests))
}
