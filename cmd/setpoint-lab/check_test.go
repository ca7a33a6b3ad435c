package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// chain is a store of what a test linked, for ledger.Export.
type chain []ledger.Entry

func (c chain) Read(_ context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	from := min(int(after), len(c))
	return c[from:min(from+limit, len(c))], nil
}

func (c chain) EachBlob(context.Context, func(string, []byte) error) error { return nil }

// exported writes a small ledger's export into a file.
func exported(t *testing.T, drafts ...ledger.Draft) (path string, entries []ledger.Entry) {
	t.Helper()
	drafts = append([]ledger.Draft{{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}}}, drafts...)
	var prev ledger.Position
	for i, d := range drafts {
		e, err := ledger.Link(prev, time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC), d)
		if err != nil {
			t.Fatal(err)
		}
		entries, prev = append(entries, e), e.Position()
	}
	var out bytes.Buffer
	if err := ledger.Export(t.Context(), chain(entries), &out); err != nil {
		t.Fatal(err)
	}
	return written(t, "export.jsonl", out.String()), entries
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lab(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	cmd := rootCommand(strings.NewReader(""), &b, &b)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

const sent = `{"time":"2026-01-01T00:00:00Z","key":"a:0-10","digest":"d","signed":true,"result":"applied","applied":true}` + "\n"

func TestCheckExitCodes(t *testing.T) {
	started := ledger.Draft{Kind: ledger.KindStarted, Service: "a", Body: ledger.Started{Key: "a:0-10"}}
	path, entries := exported(t, ledger.Draft{Kind: ledger.KindGap, Body: ledger.Gap{Why: "a start"}})
	broken, _ := exported(t, started)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := json.Marshal(entries[1].Position())
	if err != nil {
		t.Fatal(err)
	}
	empty, effect := written(t, "empty.jsonl", ""), written(t, "effect.jsonl", sent)
	acks, lost := written(t, "acks.jsonl", string(ack)+"\n"), written(t, "lost.jsonl", `{"seq":9,"hash":"h"}`+"\n")
	tampered := written(t, "tampered.jsonl", strings.Replace(string(whole), "a start", "an end", 1))
	cases := map[string]struct {
		args []string
		code int
		want []string // parts of the output or of the error
	}{
		"Clean":      {[]string{"--ledger", path, "--journal", empty}, 0, []string{"2 entries, 0 keys", "chain-whole                2 "}},
		"Acked":      {[]string{"--ledger", path, "--journal", empty, "--acks", acks}, 0, []string{"0 of 1 acknowledged entries lost"}},
		"LostAck":    {[]string{"--ledger", path, "--journal", empty, "--acks", lost}, 2, []string{"broken: INV-33", "1 of 1"}},
		"NoClaim":    {[]string{"--ledger", path, "--journal", effect}, 2, []string{"broken: INV-2 claimed-and-started-first of a:0-10"}},
		"Two":        {[]string{"--ledger", path, "--journal", effect, "--journal", effect}, 2, []string{"broken: INV-1 ", "1 double effects"}},
		"NoMachine":  {[]string{"--ledger", broken, "--journal", empty}, 2, []string{"broken: state-machine at entry 2 of a:0-10: started, and it was never claimed"}},
		"Tampered":   {[]string{"--ledger", tampered, "--journal", empty}, 2, []string{"broken: INV-34", "was changed after it was written"}},
		"CutOff":     {[]string{"--ledger", written(t, "cut", string(whole[:len(whole)/2])), "--journal", empty}, 1, []string{"--ledger"}},
		"NoFile":     {[]string{"--ledger", path, "--journal", path + "x"}, 1, []string{"--journal", "no such file"}},
		"NoJournal":  {[]string{"--ledger", path}, 1, []string{"--journal is required"}},
		"NoLedger":   {[]string{"--journal", path}, 1, []string{"--ledger is required"}},
		"BadJournal": {[]string{"--ledger", path, "--journal", written(t, "bad", "{\n")}, 1, []string{"line 1"}},
		"BadAcks":    {[]string{"--ledger", path, "--journal", empty, "--acks", written(t, "bad", "{}\n")}, 1, []string{"--acks", "line 1"}},
		"BadBudget":  {[]string{"--ledger", path, "--journal", empty, "--budget", "scale=3"}, 1, []string{"service/action=capacity"}},
		"BadOutput":  {[]string{"--ledger", path, "--journal", empty, "-o", "xml"}, 1, []string{"unknown output"}},
		"BadTime":    {[]string{"--ledger", path, "--journal", empty, "--slack", "soon"}, 1, []string{"--slack"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := lab(t, append([]string{"check"}, tc.args...)...)
			code := 0
			var broken violated
			switch {
			case errors.As(err, &broken):
				code = broken.ExitCode()
			case err != nil:
				code = 1
			}
			if code != tc.code {
				t.Errorf("exit code %d (%v), want %d", code, err, tc.code)
			}
			if err != nil {
				out += err.Error()
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	path, _ := exported(t)
	out, err := lab(t, "check", "--ledger", path, "--journal", written(t, "j", sent), "-o", "json", "--capacity", "3", "--budget", "a/b=1", "--global-capacity", "9")
	if !errors.Is(err, violated(1)) {
		t.Errorf("error %v, want %v", err, violated(1))
	}
	var got struct {
		Kind string `json:"kind"`
		checker.Report
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "CheckReport" || got.Effects != 1 || len(got.Violations) != 1 || got.Violations[0].Invariant != checker.ClaimedFirst {
		t.Errorf("%s", out)
	}
}
