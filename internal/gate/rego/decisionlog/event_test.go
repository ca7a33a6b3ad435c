package decisionlog_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/decisionlog"
)

const grants = `package setpoint.gate

# METADATA
# title: always
# description: always
# custom: {remedy: nothing}
auto contains "always" if input.service.name != ""
`

// policy loads a bundle of grants and what is added.
func policy(t testing.TB, files ...string) *rego.Policy {
	t.Helper()
	fs := fstest.MapFS{"gate.rego": {Data: []byte(grants)}}
	for i := 0; i < len(files); i += 2 {
		fs[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	p, err := rego.Load(fs, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lines is a file in memory.
type lines struct {
	got  [][]byte
	fail error
}

func (l *lines) Follow() error { return l.fail }
func (l *lines) Write(line []byte) error {
	if l.fail == nil {
		l.got = append(l.got, slices.Clone(line))
	}
	return l.fail
}

// logged writes one decision, and gives its line.
func logged(t testing.TB, ctx context.Context, d decisionlog.Decision, masks ...string) string {
	t.Helper()
	var to lines
	l, err := decisionlog.Start(decisionlog.Options{Mask: masks, Labels: map[string]string{"id": "host/1"}}, &to)
	if err != nil {
		t.Fatal(err)
	}
	l.Record(ctx, d)
	if err := l.Close(t.Context()); err != nil || len(to.got) != 1 || l.Lost() != 0 {
		t.Fatalf("%d lines, %d lost, %v", len(to.got), l.Lost(), err)
	}
	return string(to.got[0])
}

var at1 = time.Date(2090, 11, 29, 3, 0, 0, 123456789, time.FixedZone("here", 3600))

// decision is one of each: an approval with reasons that quote a value.
func decision(p decisionlog.Policy) decisionlog.Decision {
	d := decisionlog.Decision{
		ID: "d118", Time: at1, Step: "ask", Policy: p, Input: gate.ExampleInput(), Took: 1500 * time.Microsecond,
		Decision: gate.Decision{
			Verdict: gate.Approval, Key: "checkout:1772366400-600", Digest: "digest", InputDigest: "input-digest",
			Reasons: []gate.Reason{{Code: "policy:ask", Text: "says hunter2"}, {Code: "warming", Text: "hunter2"}},
			Needs:   []gate.Need{{Reason: "policy:ask", Approvers: []string{"@oncall"}, Quorum: 2, Expires: 15 * time.Minute}},
		},
		Shadow: &decisionlog.Shadow{Revision: "next", Verdict: "auto", Reasons: []string{"policy:always"}, Differs: true},
	}
	if p != nil {
		d.Ruling = gate.Ruling{Revision: "revision", Approval: []gate.Rule{{Reason: "ask", Title: "hunter2"}}}
	}
	return d
}

// The event as a pipeline reads it.
func TestEvent(t *testing.T) {
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled,
	}))
	d := decision(policy(t))
	line := logged(t, ctx, d)
	if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		t.Fatalf("not one line: %q", line)
	}
	if strings.Contains(line, "hunter2") {
		t.Errorf("words of a reason are in the event, which may quote what is masked:\n%s", line)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	var input any
	if err := json.Unmarshal(gate.ExampleInput(), &input); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"labels": map[string]any{"id": "host/1"}, "decision_id": "d118", "path": "setpoint/gate",
		"trace_id": "01020000000000000000000000000000", "span_id": "0300000000000000",
		"bundles": map[string]any{"setpoint": map[string]any{"revision": "revision"}},
		"input":   input,
		"result": map[string]any{
			"verdict": "approval", "hold": false, "step": "ask", "reasons": []any{"policy:ask", "warming"},
			"ruling": map[string]any{"auto": []any{}, "approval": []any{"ask"}, "escalate": []any{}, "deny": []any{}},
			"needs":  []any{map[string]any{"reason": "policy:ask", "approvers": []any{"@oncall"}, "quorum": 2.0, "expiresSeconds": 900.0}},
			"key":    "checkout:1772366400-600", "digest": "digest", "inputDigest": "input-digest",
		},
		"timestamp": "2090-11-29T02:00:00.123456789Z",
		"metrics":   map[string]any{"timer_rego_query_eval_ns": 1500000.0},
		"custom": map[string]any{"shadow": map[string]any{
			"revision": "next", "verdict": "auto", "hold": false, "reasons": []any{"policy:always"}, "differs": true,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Decisions of every kind have a line that says as much as there is to say.
func TestEvents(t *testing.T) {
	p := policy(t)
	tests := map[string]struct {
		reason  string
		change  func(*decisionlog.Decision)
		has     []string
		without []string
	}{
		"Nothing": {"where there was nothing to rule on there is no input", func(d *decisionlog.Decision) {
			d.Input, d.Ruling, d.Took, d.Shadow = nil, gate.Ruling{}, 0, nil
		}, []string{`"result":{"digest"`, `"ruling":{"approval":[],"auto":[],"deny":[],"escalate":[]}`}, []string{`"input":`, `"bundles"`, `"metrics"`, `"custom"`, `"trace_id"`, `"erased"`}},
		"Fault": {"a fault is OPA's error, and its words stay in the ledger", func(d *decisionlog.Decision) {
			d.Ruling = gate.Ruling{Revision: "revision", Fault: "timeout: hunter2"}
		}, []string{`"error":{"code":"timeout","message":"policy could not rule; ` + "`setpoint explain d118`" + ` says why"}`, `"input":{`}, []string{"hunter2"}},
		"Shadow": {"so is that of a shadow", func(d *decisionlog.Decision) {
			d.Shadow.Fault = "timeout"
		}, []string{`"fault":"timeout"`}, nil},
		"NoPolicy": {"without a policy nobody knows what it masks", func(d *decisionlog.Decision) {
			d.Policy, d.Ruling = nil, gate.Ruling{Fault: "policy-fault: hunter2"}
		}, []string{`"mask_fault":"no policy is loaded, so that nobody knows what it masks"`, `"erased":["/input","/result"]`, `"error":{"code":"policy-fault"`, `"shadow":`}, []string{`"input":`, `"result":`, "hunter2"}},
		"Markup": {"text is not escaped as for a web page", func(d *decisionlog.Decision) {
			d.Step = "<&>"
		}, []string{`"step":"<&>"`}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := decision(p)
			tt.change(&d)
			line := logged(t, t.Context(), d)
			for _, s := range tt.has {
				if !strings.Contains(line, s) {
					t.Errorf("%s: no %s in\n%s", tt.reason, s, line)
				}
			}
			for _, s := range tt.without {
				if strings.Contains(line, s) {
					t.Errorf("%s: %s in\n%s", tt.reason, s, line)
				}
			}
		})
	}
}

// Numbers stay as they are written, and an input that is no JSON costs a line.
func TestInputIsKept(t *testing.T) {
	d := decision(policy(t))
	d.Input = []byte(`{"n":12345678901234567890,"f":1e-7}`)
	if line := logged(t, t.Context(), d); !strings.Contains(line, `"n":12345678901234567890`) || !strings.Contains(line, `"f":1e-7`) {
		t.Errorf("numbers changed:\n%s", line)
	}
	d.Input = []byte(`{"n":`)
	var to lines
	l, err := decisionlog.Start(decisionlog.Options{}, &to)
	if err != nil {
		t.Fatal(err)
	}
	l.Record(t.Context(), d)
	if err := l.Close(t.Context()); err != nil || l.Lost() != 1 || len(to.got) != 0 {
		t.Errorf("%d lines, %d lost, %v", len(to.got), l.Lost(), err)
	}
}

// field is a field of a Go struct as JSON has it.
type field struct {
	Name  string
	Empty bool // left out where empty
}

// fieldsOf are those of a struct of OPA's source.
func fieldsOf(t *testing.T, file *ast.File, name string) map[string]field {
	t.Helper()
	out := map[string]field{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Tag != nil {
				out[jsonName(reflect.StructTag(strings.Trim(f.Tag.Value, "`"))).Name] = jsonName(reflect.StructTag(strings.Trim(f.Tag.Value, "`")))
			}
		}
		return false
	})
	if len(out) == 0 {
		t.Fatalf("OPA has no %s any more", name)
	}
	return out
}

func jsonName(tag reflect.StructTag) field {
	name, rest, _ := strings.Cut(tag.Get("json"), ",")
	return field{name, rest == "omitempty"}
}

// TestNamesAreOPAs reads the type that OPA logs, whose package is not linked:
// every name here is one there, of the same kind.
func TestNamesAreOPAs(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/opa").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	source := filepath.Join(strings.TrimSpace(string(dir)), "v1", "plugins", "logs", "plugin.go")
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, ours := range map[string]reflect.Type{
		"EventV1": reflect.TypeFor[decisionlog.Event](), "BundleInfoV1": reflect.TypeFor[decisionlog.Bundle](),
	} {
		theirs := fieldsOf(t, file, name)
		for i := range ours.NumField() {
			f := jsonName(ours.Field(i).Tag)
			if want, ok := theirs[f.Name]; !ok || want != f {
				t.Errorf("%s of %s: ours %+v, OPA's %+v", f.Name, name, f, want)
			}
		}
	}
}

// opaEvent is OPA's EventV1 with its own types, as far as a reader decodes them.
type opaEvent struct {
	Labels     map[string]string `json:"labels"`
	DecisionID string            `json:"decision_id"`
	TraceID    string            `json:"trace_id,omitempty"`
	SpanID     string            `json:"span_id,omitempty"`
	Bundles    map[string]struct {
		Revision string `json:"revision,omitempty"`
	} `json:"bundles,omitempty"`
	Path      string         `json:"path,omitempty"`
	Input     *any           `json:"input,omitempty"`
	Result    *any           `json:"result,omitempty"`
	Erased    []string       `json:"erased,omitempty"`
	Masked    []string       `json:"masked,omitempty"`
	Timestamp time.Time      `json:"timestamp"`
	Metrics   map[string]any `json:"metrics,omitempty"`
	Custom    map[string]any `json:"custom,omitempty"`
}

// A reader of OPA's events reads these, and knows every key.
func TestReadersOfOPAReadIt(t *testing.T) {
	dec := json.NewDecoder(strings.NewReader(logged(t, t.Context(), decision(policy(t)), "/input/service/owner")))
	dec.DisallowUnknownFields()
	var e opaEvent
	if err := dec.Decode(&e); err != nil {
		t.Fatal(err)
	}
	if e.DecisionID != "d118" || e.Bundles["setpoint"].Revision != "revision" || e.Input == nil || e.Result == nil || !e.Timestamp.Equal(at1) || len(e.Erased) != 1 {
		t.Errorf("%+v", e)
	}
}

// What masks sees the same names.
func TestMasksSeeEveryName(t *testing.T) {
	for i := range reflect.TypeFor[decisionlog.Event]().NumField() {
		name := jsonName(reflect.TypeFor[decisionlog.Event]().Field(i).Tag).Name
		if name == "erased" || name == "masked" {
			continue // They are what masking gives.
		}
		policy(t, "log.rego", "package system.log\n\nmask contains \"/input\" if input."+name+" != \"\"")
	}
}
