package rego_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

var update = flag.Bool("update", false, "rewrite builtins.txt")

const gatePackage = "package setpoint.gate\n\n"

const four = gatePackage + `# METADATA
# title: Scaling runs by itself
# custom:
#   remedy: set class approval
auto contains "scale" if input.proposal.action == "scale"

approval contains {"reason": "big", "approvers": {"@dba", "@payments"}, "quorum": 2, "expires": "10m"} if {
	input.proposal.parameters.replicas > 5
}

approval contains "old" if input.state.sinceSeconds > 1e6

# METADATA
# title: Never on a frozen day
escalate contains "named" if input.service.name == "cart"

deny contains "no-more" if input.proposal.parameters.replicas > 100
`

const team = `package setpoint.team["team-payments"]

# METADATA
# title: Payments wants to know
escalate contains "ask-payments" if input.proposal.parameters.replicas > 50

approval contains "payments-agrees" if input.proposal.parameters.replicas == 7
`

func load(t testing.TB, fsys fs.FS) *rego.Policy {
	t.Helper()
	p, err := rego.Load(fsys, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEvaluate(t *testing.T) {
	p := load(t, bundle("four.rego", four, "team/payments.rego", team, "other.rego", "package setpoint.team.other\n\ndeny contains \"other\" if true\n"))
	scale := gate.Rule{Reason: "scale", Package: "setpoint.gate", Title: "Scaling runs by itself", Remedy: "set class approval", File: "four.rego", Line: 7}
	big := gate.Rule{Reason: "big", Package: "setpoint.gate", File: "four.rego", Line: 9, Approvers: []string{"@dba", "@payments"}, Quorum: 2, Expires: 10 * time.Minute}
	agrees := gate.Rule{Reason: "payments-agrees", Package: "setpoint.team.team-payments", File: "team/payments.rego", Line: 7}
	cases := map[string]struct {
		reason   string
		owner    string
		replicas int64
		want     gate.Ruling
	}{
		"Auto":     {"title, remedy, file and line", "team-payments", 4, gate.Ruling{Auto: []gate.Rule{scale}}},
		"Approval": {"an object with all fields", "team-payments", 6, gate.Ruling{Auto: []gate.Rule{scale}, Approval: []gate.Rule{big}}},
		"Team":     {"the owner's package counts", "team-payments", 7, gate.Ruling{Auto: []gate.Rule{scale}, Approval: []gate.Rule{big, agrees}}},
		"NoTeam":   {"another owner's does not", "team-cart", 7, gate.Ruling{Auto: []gate.Rule{scale}, Approval: []gate.Rule{big}}},
		"Other": {"each owner has its own", "other", 4, gate.Ruling{Auto: []gate.Rule{scale},
			Deny: []gate.Rule{{Reason: "other", Package: "setpoint.team.other", File: "other.rego", Line: 3}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := granted()
			c.Service.Remediation.Owner = tc.owner
			c.Proposal.Parameters["replicas"] = tc.replicas
			in := input(t, c)
			got := p.Evaluate(context.Background(), in)
			if got.Revision != p.Revision() || got.DataDigest != p.DataDigest() || len(got.InputDigest) != 64 {
				t.Errorf("revision %q, input digest %q", got.Revision, got.InputDigest)
			}
			got.Revision, got.DataDigest, got.InputDigest = "", "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRulingIsOfThisInput(t *testing.T) {
	p := load(t, bundle("p.rego", four))
	c := granted()
	if d := gate.Decide(c, p.Evaluate(context.Background(), input(t, c))); d.Verdict != gate.Approval {
		t.Errorf("its own ruling gives %s %+v", d.Verdict, d.Reasons)
	}
	c.Proposal.Parameters = map[string]any{"replicas": int64(4)}
	other := p.Evaluate(context.Background(), input(t, c))
	if d := gate.Decide(granted(), other); d.Verdict != gate.Deny || !d.Hold {
		t.Errorf("the ruling on another input gives %s %+v", d.Verdict, d.Reasons)
	}
}

func TestFaults(t *testing.T) {
	good := string(input(t, granted()))
	endless := gatePackage + "auto contains \"x\" if count([1 | some i in numbers.range(1, 9000); some j in numbers.range(1, 9000); i == j]) > 0\n"
	stopped, stop := context.WithCancel(context.Background())
	stop()
	cases := map[string]struct {
		reason string
		ctx    context.Context
		policy string
		input  string
		want   string
	}{
		"Empty":     {"no input", context.Background(), four, "", gate.FaultInputInvalid},
		"Null":      {"null sorts below every number", context.Background(), four, strings.Replace(good, `"remaining":3`, `"remaining":null`, 1), gate.FaultInputInvalid},
		"Missing":   {"a missing field is undefined", context.Background(), four, strings.Replace(good, `"ownership":"unknown",`, "", 1), gate.FaultInputInvalid},
		"BadTime":   {"the time is the input's", context.Background(), four, strings.Replace(good, "2026-11-29T03:12:00Z", "yesterday", 1), gate.FaultInputInvalid},
		"Large":     {"over the cap is denied, not cut", context.Background(), four, strings.Repeat("x", gate.MaxInput+1), gate.FaultInputTooLarge},
		"Timeout":   {"the deadline works", context.Background(), endless, good, gate.FaultTimeout},
		"Cancelled": {"so does the caller", stopped, endless, good, gate.FaultCancelled},
		"Builtin":   {"an error is no undefined", context.Background(), gatePackage + "auto contains \"x\" if regex.match(\"(\", input.service.name)\n", good, gate.FaultError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := rego.Load(bundle("p.rego", tc.policy), rego.Options{Deadline: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			r := p.Evaluate(tc.ctx, []byte(tc.input))
			if !strings.HasPrefix(r.Fault, tc.want+": ") || len(r.Auto)+len(r.Approval) > 0 {
				t.Fatalf("%s: %+v, want fault %s", tc.reason, r, tc.want)
			}
			if d := gate.Decide(granted(), r); d.Verdict != gate.Deny {
				t.Errorf("%s: %s", tc.reason, d.Verdict)
			}
		})
	}
}

func TestPanicIsAFault(t *testing.T) {
	r := (&rego.Policy{}).Evaluate(context.Background(), input(t, granted()))
	if r.Fault == "" || len(r.Auto) > 0 {
		t.Errorf("a policy that was never loaded rules %+v", r)
	}
}

// The list of functions is looked at by a person when OPA changes.
func TestCapabilities(t *testing.T) {
	var want []string
	all := ast.CapabilitiesForThisVersion().Builtins
	for _, b := range all {
		if !rego.Impure(b) {
			want = append(want, b.Name)
		}
	}
	slices.Sort(want)
	text := strings.Join(want, "\n") + "\n"
	if *update {
		if err := os.WriteFile("builtins.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("builtins.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(got)); diff != "" {
		t.Errorf("OPA's functions changed; look at each, then -update (-OPA without the impure +ours):\n%s", diff)
	}
	for _, name := range []string{"http.send", "net.lookup_ip_addr", "net.cidr_contains", "opa.runtime", "rand.intn", "uuid.rfc4122", "time.now_ns",
		"io.jwt.decode_verify", "io.jwt.encode_sign", "json.match_schema", "json.verify_schema", "crypto.x509.parse_and_verify_certificates", "providers.aws.sign_req", "trace"} {
		if slices.Contains(strings.Fields(text), name) {
			t.Errorf("%s is allowed", name)
		}
	}
}

// Every impure function is refused when the policy is compiled, by name and
// under another name.
func TestImpureFunctionsDoNotCompile(t *testing.T) {
	n := 0
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		if !rego.Impure(b) {
			continue
		}
		n++
		args := strings.TrimSuffix(strings.Repeat("input.now, ", b.Decl.Arity()), ", ")
		src := gatePackage + "auto contains \"x\" if " + b.Name + "(" + args + ")\n"
		if _, err := rego.Load(bundle("p.rego", src), rego.Options{}); err == nil || !strings.Contains(err.Error(), "undefined function "+b.Name) {
			t.Errorf("%s: %v", b.Name, err)
		}
		src = gatePackage + "auto contains \"x\" if count(input.tried) == 0 with count as " + b.Name + "\n"
		if _, err := rego.Load(bundle("p.rego", src), rego.Options{}); err == nil {
			t.Errorf("%s is taken in place of another function", b.Name)
		}
	}
	if n < 20 {
		t.Errorf("only %d functions are impure", n)
	}
}

func TestRevision(t *testing.T) {
	base := load(t, bundle("p.rego", four)).Revision()
	cases := map[string]struct {
		reason string
		fsys   fstest.MapFS
		same   bool
	}{
		"Same":     {"the same files", bundle("p.rego", four), true},
		"Other":    {"what is no policy does not count", bundle("p.rego", four, "README.md", "x", ".hidden/p.rego", "x", ".manifest", "{}"), true},
		"Content":  {"a byte", bundle("p.rego", four+"\n"), false},
		"Path":     {"a name", bundle("q.rego", four), false},
		"Data":     {"data is part of it", bundle("p.rego", four, "data.yaml", "a: 1\n"), false},
		"Tests":    {"so are tests", bundle("p.rego", four, "p_test.rego", "package x_test\n"), false},
		"DataName": {"below its folder", bundle("p.rego", four, "a/data.yaml", "a: 1\n"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := load(t, tc.fsys).Revision(); (got == base) != tc.same || len(got) != 64 {
				t.Errorf("%s: %s, base %s", tc.reason, got, base)
			}
		})
	}
}

// changing gives another text at each read, like a folder that is being
// written.
type changing struct {
	fstest.MapFS
	reads int
}

func (c *changing) ReadFile(name string) ([]byte, error) {
	c.reads++
	return []byte(four + strings.Repeat("\n", c.reads)), nil
}

func TestLoadRefusesAMovingFolder(t *testing.T) {
	if _, err := rego.Load(&changing{MapFS: bundle("p.rego", four)}, rego.Options{}); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("got %v", err)
	}
}

// unreadable fails at one file.
type unreadable struct{ fstest.MapFS }

var errDisk = errors.New("input/output error")

func (u unreadable) ReadFile(string) ([]byte, error) { return nil, errDisk }

func TestLoadRefusesHalf(t *testing.T) {
	if _, err := rego.Load(unreadable{bundle("p.rego", four)}, rego.Options{}); !errors.Is(err, errDisk) {
		t.Errorf("got %v", err)
	}
	if _, err := rego.Load(os.DirFS(filepath.Join(t.TempDir(), "missing")), rego.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := rego.Load(bundle("p.rego", four, "data.json", strings.Repeat(" ", rego.MaxBundle)), rego.Options{}); err == nil {
		t.Error("a bundle above the limit loads")
	}
	if fs := rego.Check(unreadable{bundle("p.rego", four)}); len(fs) != 1 || fs[0].Code != rego.CodeRead {
		t.Errorf("got %v", fs)
	}
}

// A mounted ConfigMap is a folder of links into a hidden one.
func TestLoadFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..2026"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..2026", "p.rego"), []byte(four), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"..data": "..2026", "p.rego": "..data/p.rego"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := load(t, os.DirFS(dir)); got.Revision() != load(t, bundle("p.rego", four)).Revision() || len(got.Bundle().Files()) != 1 {
		t.Errorf("files %v", got.Bundle().Files())
	}
}

func TestDataBelowItsFolder(t *testing.T) {
	p := load(t, bundle("p.rego", gatePackage+"auto contains \"x\" if {\n\tdata.a.b.n == 1\n\tdata.a.m == 2\n}\n",
		"a/b/data.json", `{"n": 1}`, "a/data.yaml", "m: 2\n"))
	if r := p.Evaluate(context.Background(), input(t, granted())); len(r.Auto) != 1 {
		t.Errorf("got %+v", r)
	}
	if _, err := rego.Load(bundle("p.rego", four, "a/data.json", `{"b": 1}`, "data.json", `{"a": {"b": 2}}`), rego.Options{}); err == nil {
		t.Error("one value twice")
	}
}

func TestCheckWarns(t *testing.T) {
	fs := rego.Check(bundle("p.rego", gatePackage+"deny contains \"never\" if input.proposal.undo\n", "limits.yaml", "a: 1\n"))
	var codes []string
	for _, f := range fs {
		if f.Severity != rego.SeverityWarning {
			t.Errorf("%s is of severity %s", f, f.Severity)
		}
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	if diff := cmp.Diff([]string{rego.CodeIgnored, rego.CodeRule}, codes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConcurrentEvaluation(t *testing.T) {
	p := load(t, bundle("p.rego", four))
	in := input(t, granted())
	want := p.Evaluate(context.Background(), in)
	done := make(chan gate.Ruling)
	for range 8 {
		go func() { done <- p.Evaluate(context.Background(), in) }()
	}
	for range 8 {
		if diff := cmp.Diff(want, <-done); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
