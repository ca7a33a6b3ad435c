package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// telemetry holds the loop's metrics (CONTRACTS, Metrics). No id is a label.
type telemetry struct {
	passDuration   prometheus.Histogram
	passes         *prometheus.CounterVec
	lastPass       prometheus.Gauge
	sweepLate      prometheus.Counter
	serviceState   *prometheus.GaugeVec
	errorBudget    *prometheus.GaugeVec
	measurementAge *prometheus.GaugeVec
	decisions      *prometheus.CounterVec
	effects        *prometheus.CounterVec
	outcomes       *prometheus.CounterVec
	balance        *prometheus.GaugeVec
	receivers      *receiverTelemetry
	policyInfo     *prometheus.GaugeVec
	policyFailed   prometheus.Gauge
	shadowFailed   prometheus.Gauge
	model          *modelTelemetry
	writable       prometheus.Gauge
	isFrozen       prometheus.Gauge
	approvalsOpen  prometheus.Gauge
	approvalWait   prometheus.Histogram
	unasked        prometheus.Gauge
	chores         *prometheus.CounterVec
	driftAge       *prometheus.GaugeVec
	timeToMet      prometheus.Histogram
	conflicts      *prometheus.CounterVec
	clocksApart    prometheus.Gauge
	storm          prometheus.Gauge
	drifting       *prometheus.GaugeVec
	shadows        *prometheus.CounterVec
	shadowDiffs    *prometheus.CounterVec
}

// serviceAttribute is the span attribute of every span of a pass.
func serviceAttribute(name string) attribute.KeyValue {
	return attribute.String("setpoint.service", name)
}

// attributes are those of a pass's root span.
func attributes(res Result) []attribute.KeyValue {
	out := []attribute.KeyValue{
		serviceAttribute(res.Service), attribute.String("setpoint.state", string(res.Assessment.State)),
		attribute.String("setpoint.step", string(res.Step.Kind)), attribute.String("setpoint.key", string(res.Key)),
		attribute.String("setpoint.effect", string(res.Effect)),
	}
	if res.Decision != nil {
		out = append(out, attribute.String("setpoint.verdict", res.Decision.Verdict.String()),
			attribute.String("setpoint.digest", res.Decision.Digest))
	}
	return out
}

func newTelemetry(reg prometheus.Registerer) (*telemetry, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	t := &telemetry{
		passDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "setpoint_pass_duration_seconds", Help: "Time of one pass of one service.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		passes:         counter("setpoint_passes_total", "Passes by what they ended in.", "service", "result"),
		lastPass:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_last_completed_pass_timestamp_seconds", Help: "When the last sweep over all services completed."}),
		sweepLate:      prometheus.NewCounter(prometheus.CounterOpts{Name: "setpoint_sweep_late_total", Help: "Sweeps that began more than two intervals after the one before."}),
		serviceState:   gauge("setpoint_service_state", "1 for the present state of a service.", "service", "state"),
		errorBudget:    gauge("setpoint_slo_error_budget_remaining_ratio", "Share of the SLO's error budget that is left; negative when overspent.", "service", "slo"),
		measurementAge: gauge("setpoint_measurement_age_seconds", "Age of the newest sample under an objective.", "service", "slo"),
		decisions:      counter("setpoint_decisions_total", "Recorded decisions.", "service", "action", "verdict", "reason"),
		effects:        counter("setpoint_effects_total", "What became of what was sent.", "service", "action", "effect"),
		storm:          prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_storm", Help: "1 while the storm brake is on."}),
		drifting:       gauge("setpoint_drift_services", "Services with an open episode, by present state.", "state"),
		conflicts:      counter("setpoint_key_conflicts_total", "Claims refused because the key is held with other bytes.", "service"),
		clocksApart:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_clocks_apart", Help: "1 while the clocks of host, ledger and sources differ by more than 5 s, which holds everything."}),
		shadows:        counter("setpoint_policy_shadow_decisions_total", "Recorded decisions that the shadow policy was asked about: same, differs or fault.", "result"),
		shadowDiffs:    counter("setpoint_policy_shadow_diffs_total", "Recorded decisions that the shadow policy would have made otherwise, by the verdict that binds and its own.", "from", "to"),
		outcomes:       counter("setpoint_outcomes_total", "Outcomes of actions, from measurement.", "service", "action", "outcome"),
		balance:        gauge("setpoint_autonomy_budget_remaining", "Autonomy budget left; action is empty for the global one.", "service", "action"),
		receivers:      newReceiverTelemetry(),
		policyInfo:     gauge("setpoint_policy_info", "1 for the policy that is loaded.", "revision"),
		policyFailed:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_policy_reload_failed", Help: "1 while the policy on disk is not the one in force, because it does not load."}),
		shadowFailed:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_policy_shadow_reload_failed", Help: "1 while the shadow policy on disk is not the one that is asked, because it does not load."}),
		model:          newModelTelemetry(),
		writable:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_ledger_writable", Help: "1 while the ledger can be written."}),
		isFrozen:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_frozen", Help: "1 while a freeze holds everything or a service."}),
		approvalsOpen:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_approvals_open", Help: "Tickets that wait for a person."}),
		approvalWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "setpoint_approval_wait_seconds", Help: "Time from a question to a person's answer.",
			Buckets: []float64{10, 30, 60, 120, 300, 600, 900, 1800},
		}),
		unasked:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_approvals_unasked", Help: "Tickets that wait for a person and that no card in the channel asks about, so that they page."}),
		chores:   counter("setpoint_approval_card_requests_total", "What was asked of the channel of approvals, by what came of it: ok, limited, refused or failed.", "request", "result"),
		driftAge: gauge("setpoint_drift_age_seconds", "Age of a service's open episode; 0 without one.", "service"),
		timeToMet: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "setpoint_time_to_reconcile_seconds", Help: "Length of an episode: from the first missed reading to Met for holdFor.",
			Buckets: prometheus.ExponentialBuckets(30, 2, 12),
		}),
	}
	return t, t.register(reg)
}

func (t *telemetry) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	var errs []error
	for _, c := range append(append(t.model.collectors(), t.receivers.collectors()...),
		t.passDuration, t.passes, t.lastPass, t.sweepLate, t.serviceState, t.errorBudget, t.measurementAge,
		t.decisions, t.effects, t.outcomes, t.balance, t.policyInfo, t.policyFailed, t.shadowFailed,
		t.writable, t.isFrozen, t.approvalsOpen, t.approvalWait, t.unasked, t.chores, t.driftAge, t.timeToMet,
		t.conflicts, t.clocksApart, t.storm, t.drifting, t.shadows, t.shadowDiffs,
	) {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

func (t *telemetry) assessed(svc spec.Service, a compare.Assessment) {
	for _, s := range []compare.State{compare.Met, compare.Breached, compare.Unknown} {
		v := 0.0
		if s == a.State {
			v = 1
		}
		t.serviceState.WithLabelValues(svc.Name, string(s)).Set(v)
	}
	for _, o := range a.Objectives {
		if left, ok := o.ErrorBudgetRemaining(); ok {
			t.errorBudget.WithLabelValues(svc.Name, o.ID).Set(left)
		} else {
			t.errorBudget.DeleteLabelValues(svc.Name, o.ID)
		}
		if o.SampleAge > 0 {
			t.measurementAge.WithLabelValues(svc.Name, o.ID).Set(o.SampleAge.Seconds())
		} else {
			t.measurementAge.DeleteLabelValues(svc.Name, o.ID)
		}
	}
}

func (t *telemetry) passed(ctx context.Context, res Result, took time.Duration) {
	result := string(res.Step.Kind)
	if res.Err != nil {
		result = "error"
	}
	t.passes.WithLabelValues(res.Service, result).Inc()
	sc := trace.SpanContextFromContext(ctx)
	if o, ok := t.passDuration.(prometheus.ExemplarObserver); ok && sc.HasTraceID() {
		o.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": sc.TraceID().String()})
		return
	}
	t.passDuration.Observe(took.Seconds())
}

func (t *telemetry) swept(now time.Time, writable bool) {
	t.lastPass.Set(float64(now.UnixMilli()) / 1000)
	t.writable.Set(bit(writable))
}

// answered observes how long a person took.
func (t *telemetry) answered(ticket approve.Ticket) {
	if !ticket.AnsweredAt.IsZero() {
		t.approvalWait.Observe(ticket.AnsweredAt.Sub(ticket.Asked).Seconds())
	}
}

// card counts one request to the channel; closing a card is none.
func (t *telemetry) card(chore approve.Chore, failure error) {
	var limited *approve.Limited
	var refused *approve.Refused
	result := "failed"
	switch {
	case chore == approve.Close:
		return
	case failure == nil:
		result = "ok"
	case errors.As(failure, &limited):
		result = "limited"
	case errors.As(failure, &refused):
		result = "refused"
	}
	t.chores.WithLabelValues(string(chore), result).Inc()
}

// clocks shows whether they agree.
func (t *telemetry) clocks(apart string) {
	t.clocksApart.Set(0)
	if apart != "" {
		t.clocksApart.Set(1)
	}
}

func (t *telemetry) recovered(took time.Duration) { t.timeToMet.Observe(took.Seconds()) }

// folded shows what only the ledger knows: balances, open tickets, freezes and
// the age of open episodes.
func (t *telemetry) folded(s *ledger.State, set spec.Set, global budget.Policy, now time.Time) {
	charges := s.Charges()
	drifting := map[compare.State]int{compare.Met: 0, compare.Breached: 0, compare.Unknown: 0}
	for _, svc := range set.Services {
		own := budget.Policy{Period: svc.Remediation.Budget.Period, Capacity: svc.Remediation.Budget.Capacity}
		for _, a := range svc.Remediation.Actions {
			b := budget.Of(svc.Name, a.Name, own, global, charges, s.Resets, now)
			t.balance.WithLabelValues(svc.Name, a.Name).Set(b.Remaining)
			t.balance.WithLabelValues("", "").Set(b.GlobalRemaining)
		}
		age := 0.0
		if known, _ := s.Service(svc.Name); known.Episode != "" {
			age = now.Sub(known.EpisodeSince).Seconds()
			drifting[known.State]++
		}
		t.driftAge.WithLabelValues(svc.Name).Set(age)
	}
	for state, n := range drifting {
		t.drifting.WithLabelValues(string(state)).Set(float64(n))
	}
	t.storm.Set(bit(s.Storm.Holds()))
	frozen := false
	for _, f := range s.Freezes {
		frozen = frozen || f.Until.IsZero() || now.Before(f.Until)
	}
	t.isFrozen.Set(bit(frozen))
	t.approvalsOpen.Set(float64(s.OpenTickets()))
}

func (t *telemetry) late() { t.sweepLate.Inc() }

func (t *telemetry) decided(service string, p propose.Proposal, d gate.Decision) {
	reason := ""
	if len(d.Reasons) > 0 {
		reason = d.Reasons[0].Code
	}
	t.decisions.WithLabelValues(service, p.Action, d.Verdict.String(), reason).Inc()
}

// decisionLog shows how many decisions a log lacks.
func (t *telemetry) decisionLog(reg prometheus.Registerer, log DecisionLog) error {
	if reg == nil || log == nil {
		return nil
	}
	return reg.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "setpoint_decision_log_lost_total", Help: "Recorded decisions that were not written to the decision log.",
	}, func() float64 { return float64(log.Lost()) }))
}

// shadowed counts what the shadow policy would have led to; nil: it was not
// asked. A fault says nothing of its rules, so it is no difference.
func (t *telemetry) shadowed(d gate.Decision, s *ledger.Shadow) {
	switch {
	case s == nil:
	case s.Fault != "":
		t.shadows.WithLabelValues("fault").Inc()
	case !s.Differs:
		t.shadows.WithLabelValues("same").Inc()
	default:
		t.shadows.WithLabelValues("differs").Inc()
		t.shadowDiffs.WithLabelValues(verdictWord(d.Verdict, d.Hold), verdictWord(s.Verdict, s.Hold)).Inc()
	}
}

// verdictWord tells a refusal for now from one for good.
func verdictWord(v gate.Verdict, hold bool) string {
	if hold {
		return "hold"
	}
	return v.String()
}

func (t *telemetry) effect(service, action string, e execute.Effect) {
	t.effects.WithLabelValues(service, action, string(e)).Inc()
}

func (t *telemetry) outcome(service, action string, o compare.Outcome) {
	t.outcomes.WithLabelValues(service, action, string(o)).Inc()
}

// policyLoaded shows what rules, and whether the folder says otherwise.
func (t *telemetry) policyLoaded(ru rules) {
	t.policyInfo.Reset()
	if ru.policy != nil {
		t.policyInfo.WithLabelValues(ru.policy.Revision()).Set(1)
	}
	t.policyFailed.Set(bit(ru.policy == nil || ru.stale != ""))
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
