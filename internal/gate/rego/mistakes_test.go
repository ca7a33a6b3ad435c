package rego_test

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// patience is the most that any mistake may take to be answered.
const patience = 5 * time.Second

// doubtful is the case of granted with everything unknown that may be.
func doubtful() gate.Case {
	c := granted()
	nan := math.NaN()
	c.Facts.Balance = budget.Balance{Remaining: nan, Capacity: nan, GlobalRemaining: nan, GlobalCapacity: nan}
	c.Facts.Since, c.Facts.Episode = time.Time{}, ""
	c.Facts.Item.Live, c.Facts.Item.LiveKnown = nil, false
	c.Facts.Tried = []propose.Tried{{Action: "scale", ThisEpisode: true}}
	return c
}

// Each folder is one mistake that an author may make. Its file want says, a line
// each, how it ends:
//
//	load: <words of the finding>     it does not load
//	check: <words of the finding>    it loads, and fails the check
//	deny: <code of the fault>        it is a fault at run time
//	deny: undefined                  nothing is granted at run time
//
// None may grant, whether everything is known or nothing is.
func TestMistakes(t *testing.T) {
	dirs, err := filepath.Glob("testdata/mistakes/*")
	if err != nil || len(dirs) < 100 {
		t.Fatalf("%d mistakes: %v", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(dir, "want"))
			if err != nil {
				t.Fatal(err)
			}
			m := tried(t, os.DirFS(dir))
			for _, line := range strings.Split(strings.TrimRight(string(raw), "\n"), "\n") {
				m.ends(t, line)
			}
		})
	}
}

// mistake is what a bundle leads to.
type mistake struct {
	loadError error
	findings  rego.Findings
	ruling    gate.Ruling
	decision  gate.Decision
}

// tried loads, checks and asks a bundle, which must grant nothing.
func tried(t *testing.T, fsys fs.FS) mistake {
	t.Helper()
	began := time.Now()
	m := mistake{findings: regolint.Check(context.Background(), fsys, regolint.Options{})}
	var p *rego.Policy
	if p, m.loadError = rego.Load(fsys, rego.Options{Deadline: 300 * time.Millisecond}); m.loadError == nil {
		for _, c := range []gate.Case{doubtful(), granted()} {
			m.ruling = p.Evaluate(context.Background(), input(t, c))
			m.decision = gate.Decide(c, m.ruling)
			if _, ok := m.decision.Permit(); ok || m.decision.Verdict == gate.Auto {
				t.Errorf("the mistake gives %s: %+v", m.decision.Verdict, m.ruling)
			}
		}
	}
	if took := time.Since(began); took > patience {
		t.Errorf("took %s", took)
	}
	if m.loadError == nil && len(m.findings.Failing()) == 0 && m.decision.Verdict != gate.Deny {
		t.Errorf("nobody notices the mistake: %s", m.decision.Verdict)
	}
	return m
}

// ends compares with one line of a file want.
func (m mistake) ends(t *testing.T, line string) {
	t.Helper()
	kind, want, _ := strings.Cut(line, ": ")
	switch {
	case kind == "load" && (m.loadError == nil || !strings.Contains(m.loadError.Error(), want)):
		t.Errorf("error %v, want one that holds %q", m.loadError, want)
	case kind == "load":
		m.finds(t, rego.SeverityError, want)
	case m.loadError != nil:
		t.Errorf("does not load: %v", m.loadError)
	case kind == "check":
		m.finds(t, rego.SeverityLint, want)
	case kind != "deny":
		t.Errorf("no word %q", kind)
	case m.decision.Verdict != gate.Deny:
		t.Errorf("the mistake gives %s: %+v", m.decision.Verdict, m.ruling)
	case want == "undefined" && (m.ruling.Fault != "" || m.decision.Reasons[0].Code != gate.ReasonUndefined):
		t.Errorf("fault %q, reasons %+v", m.ruling.Fault, m.decision.Reasons)
	case want != "undefined" && !strings.HasPrefix(m.ruling.Fault, want+": "):
		t.Errorf("fault %q, want %s", m.ruling.Fault, want)
	}
}

// finds wants a finding that names the line, where the mistake is in one.
func (m mistake) finds(t *testing.T, s rego.Severity, want string) {
	t.Helper()
	for _, f := range m.findings {
		if f.Severity != s || !strings.Contains(f.String(), want) {
			continue
		}
		if f.File == "" && want == "no .rego file" {
			return // of a folder without a file
		}
		if f.File == "" || f.Line == 0 {
			t.Errorf("finding %q names no line", f)
		}
		return
	}
	t.Errorf("findings:\n%s\nwant %s that holds %q", m.findings.Error(), s, want)
}

// What is too large for a file of its own is refused before anybody works on it.
func TestHugeMistakes(t *testing.T) {
	rule := gatePackage + "auto contains \"x\" if data.labels.checkout.canary\n"
	var keys strings.Builder
	for keys.Len() < rego.MaxBundle/2 {
		fmt.Fprintf(&keys, "  svc-%d: {canary: true}\n", keys.Len())
	}
	short := keys.String()[:strings.LastIndexByte(keys.String()[:3<<19], '\n')+1]
	large := strings.Repeat("  checkout-and-more: {canary: true}\n", rego.MaxBundle/32)
	cases := map[string]struct {
		reason string
		fsys   fstest.MapFS
		want   string
	}{
		"Data":  {"more data than is read", bundle("p.rego", rule, "data.yaml", "labels:\n"+large), "load: data.yaml: the bundle has more than"},
		"YAML":  {"more YAML than is read in time", bundle("p.rego", rule, "data.yaml", "labels:\n"+keys.String()), "load: data.yaml:1: "},
		"Keys":  {"more keys", bundle("p.rego", rule, "data.yaml", "labels:\n"+short), "load: data.yaml:2: an object with"},
		"Rules": {"more rules than are read", bundle("p.rego", rule+strings.Repeat("helper if input.proposal.undo\n", rego.MaxBundle/16)), "load: p.rego: the bundle has more than"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := tried(t, tc.fsys)
			if kind, want, _ := strings.Cut(tc.want, ": "); kind != "load" || m.loadError == nil || !strings.Contains(m.loadError.Error(), want) {
				t.Errorf("%s: %v, want %s", tc.reason, m.loadError, want)
			}
			if len(m.findings.Errors()) != 1 {
				t.Errorf("%s: findings %v", tc.reason, m.findings)
			}
		})
	}
}

// Rules that use each other in very many ways are answered in time too.
func TestTangledRules(t *testing.T) {
	var b strings.Builder
	b.WriteString(gatePackage + "auto contains \"x\" if not h00(input.action.class, input.action.name)\n\n")
	const deep = 40
	for i := range deep {
		for range 2 {
			b.WriteString(strings.ReplaceAll(strings.ReplaceAll("hN(a, b) if {\n\thM(a, b)\n\tnot hM(b, a)\n}\n\n", "N", number(i)), "M", number(i+1)))
		}
	}
	b.WriteString("h" + number(deep) + "(a, b) if a == b\n")
	m := tried(t, bundle("p.rego", b.String()))
	if !strings.Contains(m.findings.Error(), "use each other in too many ways") {
		t.Errorf("got %v", m.findings)
	}
}

func number(i int) string { return string(rune('0'+i/10)) + string(rune('0'+i%10)) }
