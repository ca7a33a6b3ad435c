package propose_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/prompts"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (write it with -update): -want, +got:\n%s", path, diff)
	}
}

func shipped(t *testing.T) *propose.Prompts {
	t.Helper()
	p, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRenderGolden(t *testing.T) {
	t.Parallel()
	system, user, err := shipped(t).Render(request())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "propose.system.golden", []byte(system))
	golden(t, "propose.user.golden", []byte(user))
	repair, err := shipped(t).Repair(`action scale: parameter "replicas": 9 is above the maximum 8 (2 times 4)`)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "propose.repair.golden", []byte(repair))
}

func TestSchemaGolden(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]func(propose.Catalogue) ([]byte, error){
		"schema.golden.json": propose.Schema, "wire-schema.golden.json": propose.WireSchema,
	} {
		b, err := schema(catalogue())
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, b, "", " "); err != nil {
			t.Fatal(err)
		}
		golden(t, name, append(out.Bytes(), '\n'))
	}
}

// The prompt holds no word that a user of the monitored service, an exporter
// or the author of a description could have written.
func TestPromptHoldsNoForeignText(t *testing.T) {
	t.Parallel()
	r := request()
	r.Catalogue[3].LiveKnown, r.Catalogue[3].Live = true, propose.Live{poison: poison, "x": poison}
	r.Catalogue[1].Live["version"] = poison
	r.Catalogue[1].Live["previousVersion"] = []string{"v41", poison, "v40\n" + poison, "\u202ev40"}
	r.Tried[0].Parameters = propose.Parameters{"version": poison}
	r.Tried[0].Effect, r.Tried[0].Outcome = poison, compare.Outcome(poison)
	r.Assessment.Reason = compare.Reason(poison)
	system, user, err := shipped(t).Render(r)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := propose.WireSchema(r.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	sent := system + user + string(schema)
	for _, bad := range []string{poison, "hunter2", "\u202e", "password"} {
		if strings.Contains(sent, bad) {
			t.Errorf("the prompt holds %q:\n%s", bad, sent)
		}
	}
	if !strings.Contains(user, `"values":["v41"],"valuesOmitted":3`) {
		t.Errorf("the prompt hides that values were left out:\n%s", user)
	}
}

func TestEvidenceIsStable(t *testing.T) {
	t.Parallel()
	want := propose.Evidence(request())
	if !json.Valid(want) {
		t.Fatalf("not JSON:\n%s", want)
	}
	for range 50 {
		if diff := cmp.Diff(string(want), string(propose.Evidence(request()))); diff != "" {
			t.Fatalf("two renderings differ:\n%s", diff)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	r := request()
	full, err := p.Fit(r, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	size := full.Tokens
	got, err := p.Fit(r, size-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case got.TriedOmitted != 1, !strings.Contains(got.User, `"triedOmitted":1`):
		t.Errorf("the prompt does not say that one attempt was left out:\n%s", got.User)
	case strings.Contains(got.User, `"action":"restart","parameters":{},"secondsAgo"`):
		t.Errorf("the oldest attempt was kept:\n%s", got.User)
	case !strings.Contains(got.User, `"secondsAgo":600`):
		t.Errorf("the newest attempt was left out:\n%s", got.User)
	}
	if exact, err := p.Fit(r, size, 0); err != nil || exact.TriedOmitted != 0 {
		t.Errorf("Fit(exact size) left out %d, error %v", exact.TriedOmitted, err)
	}
	if beside, err := p.Fit(r, size, 4); err != nil || beside.TriedOmitted != 1 {
		t.Errorf("Fit does not count what is sent beside the prompt: left out %d, error %v", beside.TriedOmitted, err)
	}
	if _, err := p.Fit(r, 10, 0); !errors.Is(err, propose.ErrPromptSize) {
		t.Errorf("Fit(10 tokens): %v, want ErrPromptSize: the catalogue is never cut", err)
	}
	if len(r.Tried) != 2 {
		t.Error("Fit changed the caller's request")
	}
}

func TestLoadPromptsFaults(t *testing.T) {
	t.Parallel()
	head := func(id string) string { return "---\nid: " + id + "\nversion: 1\n---\n" }
	good := head("propose.user") + "{{.Evidence}}"
	cases := map[string]struct{ reason, user, err string }{
		"Good":        {reason: "Loads.", user: good},
		"NoHead":      {reason: "A prompt has a version.", user: "text", err: "prompt propose.user.tmpl: starts without front matter: put id and version between two lines ---"},
		"OtherID":     {reason: "A misplaced file.", user: head("other"), err: "prompt propose.user.tmpl: front matter must have id: propose.user and a version"},
		"NoVersion":   {reason: "A prompt has a version.", user: "---\nid: propose.user\n---\n", err: "prompt propose.user.tmpl: front matter must have id: propose.user and a version"},
		"UnknownKey":  {reason: "Strict.", user: "---\nid: propose.user\nmodel: x\n---\n", err: `prompt propose.user.tmpl: front matter has the unknown key "model": id, version and inputs are known`},
		"Twice":       {reason: "Strict.", user: "---\nid: propose.user\nid: propose.user\n---\n", err: `prompt propose.user.tmpl: front matter line "id: propose.user" is not one of id: …, version: … and inputs: …, each once`},
		"Syntax":      {reason: "Found at the start.", user: head("propose.user") + "{{", err: "prompt propose.user.tmpl:5: unclosed action"},
		"UnknownData": {reason: "Found at the start, not in an incident.", user: head("propose.user") + "{{.Logs}}", err: "prompt propose.user.tmpl:5: unknown input Logs; known are Actions, Evidence, MaxRationale"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := propose.LoadPrompts(fstest.MapFS{
				"propose.system.tmpl": {Data: []byte(head("propose.system"))},
				"propose.user.tmpl":   {Data: []byte(tc.user)},
			})
			if diff := cmp.Diff(tc.err, text(err)); diff != "" {
				t.Errorf("%s\nLoadPrompts(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := propose.LoadPrompts(fstest.MapFS{}); err == nil {
		t.Error("an empty folder loads")
	}
}
