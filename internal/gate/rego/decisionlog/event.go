// Package decisionlog writes each recorded decision as one line of JSON, in the
// shape of the events that OPA logs, so that what reads those reads these.
//
// It takes a decision with the bytes that policy saw, takes out of them what is
// to be masked, and appends a line to a file. Nothing waits for it: a decision
// that cannot be written is counted.
package decisionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Path is what was asked of policy, as OPA writes it.
const Path = "setpoint/gate"

// evaluation is OPA's name for the time that a ruling took.
const evaluation = "timer_rego_query_eval_ns"

// Decision is what was recorded.
type Decision struct {
	// ID is that of the ledger's entry, e.g. d118.
	ID   string
	Time time.Time
	Step string
	gate.Decision
	// Input are the bytes that policy saw; nil where there was nothing to rule
	// on.
	Input []byte
	// Policy is the one of that moment. Without one nobody knows what is to be
	// masked, and neither input nor result is written.
	Policy Policy
	// Took is how long the ruling took; zero: it was not measured.
	Took time.Duration
	// Shadow is what the shadow policy would have led to; nil without one.
	Shadow *Shadow
}

// Policy is a bundle that rules.
type Policy interface {
	Revision() string
	Built() rego.Built
}

// Shadow is a decision that bound nobody.
type Shadow struct {
	Revision string   `json:"revision"`
	Verdict  string   `json:"verdict"`
	Hold     bool     `json:"hold"`
	Reasons  []string `json:"reasons"`
	Differs  bool     `json:"differs"`
	// Fault is the code of what kept it from ruling.
	Fault string `json:"fault,omitempty"`
}

// Event is one line. Its names are those of OPA's EventV1; what a mask may take
// away is in Input and Result alone.
type Event struct {
	Labels     map[string]string `json:"labels"`
	DecisionID string            `json:"decision_id"`
	TraceID    string            `json:"trace_id,omitempty"`
	SpanID     string            `json:"span_id,omitempty"`
	Bundles    map[string]Bundle `json:"bundles,omitempty"`
	Path       string            `json:"path,omitempty"`
	Input      any               `json:"input,omitempty"`
	Result     any               `json:"result,omitempty"`
	Erased     []string          `json:"erased,omitempty"`
	Masked     []string          `json:"masked,omitempty"`
	Error      *Error            `json:"error,omitempty"`
	Timestamp  time.Time         `json:"timestamp"`
	Metrics    map[string]any    `json:"metrics,omitempty"`
	Custom     *Custom           `json:"custom,omitempty"`
}

// Bundle names the policy that ruled.
type Bundle struct {
	Revision string `json:"revision,omitempty"`
}

// Error is why policy could not rule.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Custom is what OPA has no name for.
type Custom struct {
	Shadow *Shadow `json:"shadow,omitempty"`
	// MaskFault is why neither input nor result is written.
	MaskFault string `json:"mask_fault,omitempty"`
}

// Result is the decision. It holds codes and no words: words may quote a value
// that is masked in the input.
type Result struct {
	Verdict     string   `json:"verdict"`
	Hold        bool     `json:"hold"`
	Step        string   `json:"step"`
	Reasons     []string `json:"reasons"`
	Ruling      Ruling   `json:"ruling"`
	Needs       []Need   `json:"needs"`
	Key         string   `json:"key"`
	Digest      string   `json:"digest"`
	InputDigest string   `json:"inputDigest"`
}

// Ruling are the reasons of the rules that fired, by set.
type Ruling struct {
	Auto     []string `json:"auto"`
	Approval []string `json:"approval"`
	Escalate []string `json:"escalate"`
	Deny     []string `json:"deny"`
}

// Need is one group of people that must approve.
type Need struct {
	Reason         string   `json:"reason"`
	Approvers      []string `json:"approvers"`
	Quorum         int      `json:"quorum"`
	ExpiresSeconds float64  `json:"expiresSeconds"`
}

// eventOf is the event of a decision, before anything is masked.
func eventOf(d Decision, labels map[string]string) (Event, error) {
	e := Event{Labels: labels, DecisionID: d.ID, Path: Path, Timestamp: d.Time.UTC()}
	if d.Ruling.Revision != "" {
		e.Bundles = map[string]Bundle{"setpoint": {Revision: d.Ruling.Revision}}
	}
	if d.Took > 0 {
		e.Metrics = map[string]any{evaluation: d.Took.Nanoseconds()}
	}
	if code := FaultCode(d.Ruling.Fault); code != "" {
		e.Error = &Error{Code: code, Message: "policy could not rule; `setpoint explain " + d.ID + "` says why"}
	}
	if d.Shadow != nil {
		e.Custom = &Custom{Shadow: d.Shadow}
	}
	var err error
	if d.Input != nil {
		if e.Input, err = decoded(d.Input); err != nil {
			return Event{}, fmt.Errorf("input of %s: %w", d.ID, err)
		}
	}
	if e.Result, err = generic(resultOf(d)); err != nil {
		return Event{}, fmt.Errorf("result of %s: %w", d.ID, err)
	}
	return e, nil
}

// FaultCode is the code that a ruling's fault starts with, without its words.
func FaultCode(fault string) string {
	code, _, _ := strings.Cut(fault, ":")
	return code
}

func resultOf(d Decision) Result {
	r := Result{
		Verdict: d.Verdict.String(), Hold: d.Hold, Step: d.Step, Reasons: []string{}, Needs: []Need{},
		Ruling: Ruling{
			Auto: reasons(d.Ruling.Auto), Approval: reasons(d.Ruling.Approval),
			Escalate: reasons(d.Ruling.Escalate), Deny: reasons(d.Ruling.Deny),
		},
		Key: string(d.Key), Digest: d.Digest, InputDigest: d.InputDigest,
	}
	for _, reason := range d.Reasons {
		r.Reasons = append(r.Reasons, reason.Code)
	}
	for _, n := range d.Needs {
		r.Needs = append(r.Needs, Need{Reason: n.Reason, Approvers: n.Approvers, Quorum: n.Quorum, ExpiresSeconds: n.Expires.Seconds()})
	}
	return r
}

func reasons(rules []gate.Rule) []string {
	out := make([]string, 0, len(rules))
	for _, r := range rules {
		out = append(out, r.Reason)
	}
	return out
}

// withhold takes input and result away, and says why.
func (e *Event) withhold(why string) {
	e.Input, e.Result, e.Erased, e.Masked = nil, nil, []string{"/input", "/result"}, nil
	custom := Custom{MaskFault: why}
	if e.Custom != nil {
		custom.Shadow = e.Custom.Shadow
	}
	e.Custom = &custom
}

// line is the event as one line.
func (e Event) line() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// decoded keeps numbers as they are written.
func decoded(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// generic is a value as JSON has it.
func generic(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decoded(raw)
}
