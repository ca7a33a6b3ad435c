package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/policies"
)

// eachBlob makes a source of an export that was never written.
type eachBlob struct{ replay.Export }

// EachBlob calls f with every blob.
func (x eachBlob) EachBlob(_ context.Context, f func(digest string, blob []byte) error) error {
	for d, b := range x.Blobs {
		if err := f(d, b); err != nil {
			return err
		}
	}
	return nil
}

// exportedOne writes a ledger of one decision on the example input by the built-in
// policy (d2), and its ticket (t3), after a change.
func exportedOne(t *testing.T, change func(*ledger.Decided, map[string][]byte)) string {
	t.Helper()
	policy, err := rego.Load(policies.FS, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := gate.CaseOf(gate.ExampleInput())
	if err != nil {
		t.Fatal(err)
	}
	p := gate.Prepare(c)
	floors, err := json.Marshal(p.Floors)
	if err != nil {
		t.Fatal(err)
	}
	d := ledger.Decided{
		Window: strings.TrimPrefix(string(c.Key), "checkout:"), Key: c.Key, Step: "execute", Proposal: c.Proposal, Decision: p.Decide(policy.Evaluate(context.Background(), p.Input)),
		State: "breached", Reason: "burning", Mode: c.Service.Remediation.Mode, Floors: ledger.BlobDigest(floors),
	}
	blobs := map[string][]byte{}
	for _, b := range [][]byte{p.Input, floors, policy.Pack()} {
		blobs[ledger.BlobDigest(b)] = b
	}
	if change != nil {
		change(&d, blobs)
	}
	x := eachBlob{replay.Export{Exported: ledger.Exported{Blobs: blobs}}}
	var at ledger.Position
	for _, draft := range []ledger.Draft{
		{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}},
		{Kind: ledger.KindDecision, Service: "checkout", Body: d},
		{Kind: ledger.KindTicket, Service: "checkout", Body: approve.Ticket{
			Service: "checkout", Decision: "d2", Key: c.Key, Digest: "x", Expires: c.Facts.Now.Add(time.Minute),
		}},
	} {
		e, err := ledger.Link(at, c.Facts.Now, draft)
		if err != nil {
			t.Fatal(err)
		}
		x.Entries, at = append(x.Entries, e), e.Position()
	}
	var out bytes.Buffer
	if err := ledger.Export(context.Background(), x, &out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// explainedBy runs the command without any configuration.
func explainedBy(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: func(string) string { return "" }, now: time.Now,
		configPath: filepath.Join(t.TempDir(), "none.yaml"),
	}
	code = a.run(append([]string{"policy", "explain"}, args...))
	return code, stdout.String(), stderr.String()
}

func TestPolicyExplainRecords(t *testing.T) {
	without := func(digest func(*ledger.Decided) string) func(*ledger.Decided, map[string][]byte) {
		return func(d *ledger.Decided, blobs map[string][]byte) { delete(blobs, digest(d)) }
	}
	revision := func(d *ledger.Decided) string { return d.Decision.Ruling.Revision }
	tests := map[string]struct {
		reason    string
		change    func(*ledger.Decided, map[string][]byte)
		id        string
		code      int
		out, errs []string
	}{
		"Whole": {
			"the record and its policy agree", nil, "d2", exitFine,
			[]string{
				"d2: scale replicas=6 on checkout, 2026-11-25 10:12:00Z\n", "; files and lines are of that bundle\n",
				"it comes out alike\n", "verdict: auto, step execute, by what is marked *\n* auto reversible: ",
			}, nil,
		},
		"Ticket": {"a ticket stands for its decision", nil, "t3", exitFine, []string{"d2: scale replicas=6 on checkout"}, nil},
		"Changed": {
			"the record says another verdict than its policy", func(d *ledger.Decided, _ map[string][]byte) { d.Decision.Verdict = gate.Deny }, "d2", exitError,
			[]string{`it comes out otherwise: verdict: recorded "deny", its policy leads to "auto"`, "verdict: deny"},
			[]string{`setpoint: d2 does not reproduce: verdict: recorded "deny"`},
		},
		"NoBundle": {
			"an older ledger kept no bundle", without(revision), "d2", exitFine,
			[]string{"it was not evaluated again: its policy bundle (blob ", "* auto reversible: A reversible action"}, nil,
		},
		"NoInput": {
			"the input is gone", without(func(d *ledger.Decided) string { return d.Decision.InputDigest }), "d2", exitError,
			[]string{"it comes out otherwise: its input (blob "}, []string{"does not reproduce"},
		},
		"NoFloors": {
			"an older ledger kept no floors", func(d *ledger.Decided, _ map[string][]byte) {
				d.Floors, d.Decision.Verdict = "", gate.Approval
				d.Decision.Reasons = append([]gate.Reason{{Code: gate.ReasonWarming, Text: "warming"}}, d.Decision.Reasons...)
			}, "d2", exitFine,
			[]string{"it was not evaluated again: an older version wrote it", "\n  warming: warming\n", "\n  auto reversible: "}, nil,
		},
		"OtherBundle": {
			"a bundle that this version does not load", func(d *ledger.Decided, blobs map[string][]byte) {
				b := []byte("\x00")
				d.Decision.Ruling.Revision = ledger.BlobDigest(b)
				blobs[ledger.BlobDigest(b)] = b
			}, "d2", exitFine,
			[]string{"it was not evaluated again: the recorded policy does not load with this version: not a packed policy bundle"}, nil,
		},
		"Shadow": {
			"what the shadow would have said, in one line", func(d *ledger.Decided, _ map[string][]byte) {
				d.Shadow = &ledger.Shadow{Revision: strings.Repeat("a", 64), Verdict: gate.Deny, Reasons: []string{"policy:never"}, Differs: true}
			}, "d2", exitFine,
			[]string{"shadow policy aaaaaaaaaaaa would have said deny"}, nil,
		},
		"Missing": {"no such entry", nil, "d9", exitError, nil, []string{`no decision "d9" in `}},
		"Kind":    {"a ticket is no decision", nil, "d3", exitError, nil, []string{`no decision "d3" in `}},
		"NoTicket": {
			"nor is a decision a ticket", nil, "t2", exitError, nil, []string{`no decision "t2" in `},
		},
		"Huge": {"a number that no ledger reaches", nil, "d9999999999999999999", exitError, nil, []string{"no decision"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errs := explainedBy(t, tc.id, "--ledger", exportedOne(t, tc.change))
			if code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, tc.reason)
			}
			for _, want := range tc.out {
				if !strings.Contains(out, want) {
					t.Errorf("%s: no %q in\n%s", tc.reason, want, out)
				}
			}
			for _, want := range tc.errs {
				if !strings.Contains(errs, want) {
					t.Errorf("%s: no %q in\n%s", tc.reason, want, errs)
				}
			}
			if len(tc.errs) == 0 && errs != "" {
				t.Errorf("%s: %s", tc.reason, errs)
			}
		})
	}
}

// What --input prints is the input, and evaluates to what was recorded.
func TestPolicyExplainInput(t *testing.T) {
	code, out, errs := explainedBy(t, "d2", "--input", "--ledger", exportedOne(t, nil))
	if code != exitFine {
		t.Fatal(errs)
	}
	if out != string(gate.ExampleInput()) {
		t.Errorf("another input:\n%s", out)
	}
	code, _, errs = explainedBy(t, "d2", "--trace", "--ledger", exportedOne(t, func(d *ledger.Decided, blobs map[string][]byte) {
		delete(blobs, d.Decision.Ruling.Revision)
	}))
	if code != exitError || !strings.Contains(errs, "--trace: d2 cannot be evaluated again: its policy bundle") {
		t.Errorf("%d %s", code, errs)
	}
}
