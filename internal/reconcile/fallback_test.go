package reconcile_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// far is a model behind an endpoint, made of a function.
type far struct {
	w     *world
	calls int
	reg   *prometheus.Registry
	says  func() (propose.Proposal, []propose.Exchange)
}

func (f *far) Identity() propose.Proposer {
	return propose.Proposer{Kind: "openai", Endpoint: "main", Model: "some-model"}
}

func (f *far) Propose(context.Context, propose.Request) reconcile.Proposed {
	f.calls++
	p, xs := f.says()
	p.Proposer = f.Identity()
	return reconcile.Proposed{Proposal: p, Exchanges: xs}
}

// fails is a model that gives nothing, for a fault.
func fails(fault string) func() (propose.Proposal, []propose.Exchange) {
	code, _, _ := strings.Cut(fault, ":")
	return func() (propose.Proposal, []propose.Exchange) {
		x := propose.Exchange{
			Endpoint: "main", Model: "some-model", Mode: "json_schema", Result: code, Took: 3 * time.Second,
			InputTokens: 700, OutputTokens: 30, Request: []byte("asked"), Reply: []byte("said"),
		}
		return propose.Proposal{Kind: propose.KindMalformed, Parameters: propose.Parameters{}, Fault: fault}, []propose.Exchange{x}
	}
}

// farWorld is a world whose proposer is a model; rules may stand in.
func farWorld(t *testing.T, standIn bool, says func() (propose.Proposal, []propose.Exchange)) (*world, *far) {
	t.Helper()
	w := prepare(t)
	f := &far{w: w, says: says}
	w.options = func(o *reconcile.Options) {
		f.reg = prometheus.NewRegistry() // a process has its own
		o.Proposer, o.Registerer = f, f.reg
		if standIn {
			o.Fallback = scripted{w}
		}
	}
	return w, f
}

// proposals are the recorded ones.
func (w *world) proposals() []ledger.Proposed {
	var out []ledger.Proposed
	for _, e := range w.entries() {
		if e.Kind != ledger.KindProposal {
			continue
		}
		var p ledger.Proposed
		if err := json.Unmarshal(e.Body, &p); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// sample is the value of a counter, or the sum of a histogram.
type sample struct {
	value  float64
	count  uint64
	limits []float64
}

// gathered is one metric by its labels, as text.
func gathered(t *testing.T, reg prometheus.Gatherer, name string) map[string]sample {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]sample{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				key += l.GetName() + "=" + l.GetValue() + " "
			}
			h := m.GetHistogram()
			got := sample{value: m.GetCounter().GetValue() + h.GetSampleSum(), count: h.GetSampleCount()}
			for _, b := range h.GetBucket() {
				got.limits = append(got.limits, b.GetUpperBound())
			}
			out[strings.TrimSpace(key)] = got
		}
	}
	return out
}

// Where no model answers, the rules' proposal is judged as theirs, and it says
// in whose place they spoke.
func TestRulesStandIn(t *testing.T) {
	const fault = "unreachable: endpoint main: connection refused"
	w, f := farWorld(t, true, fails(fault))
	var kinds []string
	allow := w.rule
	w.rule = func(input []byte) gate.Ruling {
		var in struct {
			Proposal struct {
				Proposer propose.Proposer `json:"proposer"`
			} `json:"proposal"`
		}
		if err := json.Unmarshal(input, &in); err != nil {
			t.Error(err)
		}
		kinds = append(kinds, in.Proposal.Proposer.Kind+"/"+in.Proposal.Proposer.Endpoint)
		return allow(input)
	}
	w.start()
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 20*time.Minute, applied)
	got := w.proposals()[0]
	want := propose.Proposal{
		Kind: propose.KindAction, Action: "scale", Parameters: got.Proposal.Parameters, Proposer: propose.Proposer{Kind: "rules"}, Fallback: fault,
	}
	if diff := cmp.Diff(want, got.Proposal); diff != "" {
		t.Errorf("recorded proposal: -want, +got:\n%s", diff)
	}
	if len(got.Exchanges) != 1 || got.Exchanges[0].Result != "unreachable" || got.Exchanges[0].Request == "" || got.Exchanges[0].InputTokens != 700 {
		t.Errorf("what was asked of the model is not recorded: %+v", got.Exchanges)
	}
	for _, k := range kinds {
		if k != "rules/" {
			t.Errorf("the gate's input names %s", k)
		}
	}
	if len(kinds) == 0 || f.calls != 1 || w.asked.Load() != 1 {
		t.Errorf("gate asked %d times, model %d, rules %d", len(kinds), f.calls, w.asked.Load())
	}
	requests := gathered(t, f.reg, "setpoint_model_requests_total")
	if requests["endpoint=main result=unreachable"].value != 1 || requests["endpoint=rules result=action"].value != 1 {
		t.Errorf("requests %v", requests)
	}
}

// Where nobody stands in, people get the numbers in time, and the loop goes on:
// it asks again in the next window, and acts on what it hears then.
func TestNobodyStandsIn(t *testing.T) {
	cases := map[string]struct {
		reason  string
		standIn bool
		fault   string
	}{
		"Unreachable": {reason: "No rules are configured.", fault: "unreachable: endpoint main: connection refused"},
		"Resting":     {reason: "Nor where nothing was even sent.", fault: "resting: every endpoint is left alone, the first until 03:00:00Z: main after timeout"},
		"Refusal":     {reason: "A model that declined has answered.", standIn: true, fault: "refusal: endpoint main: I cannot help"},
		"Filtered":    {reason: "So has one whose answer was withheld.", standIn: true, fault: "content-filter: endpoint main: withheld"},
		"Malformed":   {reason: "And one that talks nonsense.", standIn: true, fault: "malformed: endpoint main: prose"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, f := farWorld(t, tc.standIn, fails(tc.fault))
			w.start()
			w.healthy()
			w.breakNow(0.3)
			var page escalate.Page
			began := w.clock()
			limit := w.set.Services[0].Remediation.EscalateWithin + 3*step30
			for len(w.pager.open()) == 0 {
				if res := w.sweep(); res.Err != nil {
					t.Fatal(res.Err)
				}
				if w.clock().Sub(began) > limit+10*time.Minute {
					t.Fatalf("%s\nnobody is told:\n%s", tc.reason, w.dump())
				}
			}
			for _, page = range w.pager.open() {
			}
			var since time.Time
			w.r.View(func(s *ledger.State) { sv, _ := s.Service("checkout"); since = sv.Since })
			if late := w.clock().Sub(since); late > limit {
				t.Errorf("%s\nthe page comes %s after the breach, want within %s", tc.reason, late, limit)
			}
			for _, word := range []string{"30 % errors over 5m", "1 % allowed", propose.Brief(tc.fault)} {
				if !strings.Contains(page.Summary+"\n"+page.Text, word) {
					t.Errorf("%s\nthe page lacks %q:\n%s\n%s", tc.reason, word, page.Summary, page.Text)
				}
			}
			got := w.proposals()[0].Proposal
			if got.Kind != propose.KindMalformed || got.Fault != tc.fault || got.Fallback != "" || w.asked.Load() != 0 {
				t.Errorf("%s\nrecorded %+v, rules asked %d times", tc.reason, got, w.asked.Load())
			}
			before := f.calls
			f.says = func() (propose.Proposal, []propose.Exchange) { return w.propose(propose.Request{}), nil }
			w.until("applied effect", 20*time.Minute, applied)
			if f.calls != before+1 {
				t.Errorf("%s\n%d more questions, want one in the next window", tc.reason, f.calls-before)
			}
		})
	}
}

// A limit that is used up sends nothing. The ledger counts it, so that no
// restart refills it.
func TestLimitIsUsedUp(t *testing.T) {
	for _, standIn := range []bool{true, false} {
		w, f := farWorld(t, standIn, fails("malformed: endpoint main: prose"))
		w.cfg.Proposer.Limits = config.ProposerLimits{CallsPerHour: 2}
		w.start()
		w.healthy()
		w.breakNow(0.3)
		w.until("second proposal", 30*time.Minute, func(reconcile.Result) bool { return len(w.proposals()) == 2 })
		w.restart()
		w.until("third proposal", 30*time.Minute, func(reconcile.Result) bool { return len(w.proposals()) == 3 })
		got := w.proposals()[2]
		const limit = "limit: "
		if f.calls != 2 || len(got.Exchanges) != 0 {
			t.Errorf("stand-in %t: %d calls, third proposal with %d exchanges", standIn, f.calls, len(got.Exchanges))
		}
		requests := gathered(t, f.reg, "setpoint_model_requests_total")
		if standIn {
			if got.Proposal.Kind != propose.KindAction || got.Proposal.Proposer.Kind != "rules" || !strings.HasPrefix(got.Proposal.Fallback, limit) ||
				!strings.Contains(got.Proposal.Fallback, "callsPerHour") {
				t.Errorf("recorded %+v", got.Proposal)
			}
			continue
		}
		if got.Proposal.Fallback != "" {
			t.Errorf("nobody stood in, and a page would say that the rules did: %q", got.Proposal.Fallback)
		}
		if got.Proposal.Kind != propose.KindMalformed || !strings.HasPrefix(got.Proposal.Fault, limit) || !strings.Contains(got.Proposal.Fault, "callsPerHour") {
			t.Errorf("recorded %+v", got.Proposal)
		}
		if requests["endpoint=openai result=limit"].value == 0 {
			t.Errorf("requests %v", requests)
		}
		// An hour later there is room again.
		w.until("third call", 90*time.Minute, func(reconcile.Result) bool { return f.calls > 2 })
	}
}

// The names are those of OpenTelemetry's conventions, in Prometheus's form;
// what an episode cost is observed once, at its end.
func TestModelMetrics(t *testing.T) {
	w, f := farWorld(t, false, nil)
	f.says = func() (propose.Proposal, []propose.Exchange) {
		_, bad := fails("malformed: endpoint main: prose")()
		x := bad[0]
		x.Repair, x.Result, x.Took = true, "ok", time.Second
		return w.propose(propose.Request{}), append(bad, x)
	}
	w.start()
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 20*time.Minute, applied)
	if m := gathered(t, f.reg, "setpoint_episode_model_tokens"); m[""].count != 0 {
		t.Error("an episode is counted before its end")
	}
	w.breakNow(0)
	w.until("end of the episode", time.Hour, func(reconcile.Result) bool { return w.kinds()[ledger.KindRecovered] > 0 })
	for name, want := range map[string]float64{"setpoint_episode_model_tokens": 1460, "setpoint_episode_model_requests": 2} {
		if h := gathered(t, f.reg, name)[""]; h.count != 1 || h.value != want {
			t.Errorf("%s: %d samples, sum %g; want one of %g", name, h.count, h.value, want)
		}
	}
	const same = "gen_ai_operation_name=chat gen_ai_provider_name=openai gen_ai_request_model=some-model"
	usage := gathered(t, f.reg, "gen_ai_client_token_usage")
	wantUsage := map[string]float64{same + " gen_ai_token_type=input": 1400, same + " gen_ai_token_type=output": 60}
	gotUsage := map[string]float64{}
	for k, m := range usage {
		gotUsage[k] = m.value
	}
	if diff := cmp.Diff(wantUsage, gotUsage); diff != "" {
		t.Errorf("gen_ai_client_token_usage: -want, +got:\n%s", diff)
	}
	gotTime := map[string]float64{}
	for k, m := range gathered(t, f.reg, "gen_ai_client_operation_duration_seconds") {
		gotTime[k] = m.value
		if b := m.limits; len(b) != 14 || b[0] != 0.01 || b[13] != 81.92 {
			t.Errorf("buckets %v", b)
		}
	}
	if diff := cmp.Diff(map[string]float64{"error_type= " + same: 1, "error_type=malformed " + same: 3}, gotTime); diff != "" {
		t.Errorf("gen_ai_client_operation_duration_seconds: -want, +got:\n%s", diff)
	}
	for k, want := range map[string]float64{"endpoint=main type=input": 1400, "endpoint=main type=output": 60} {
		if got := gathered(t, f.reg, "setpoint_model_tokens_total")[k].value; got != want {
			t.Errorf("setpoint_model_tokens_total %s = %g, want %g", k, got, want)
		}
	}
}
