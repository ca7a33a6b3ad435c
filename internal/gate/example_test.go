package gate_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

func TestExampleInput(t *testing.T) {
	raw := gate.ExampleInput()
	if err := gate.ValidateInput(raw); err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(raw), "", "  "); err != nil || indented.String()+"\n" != string(raw) {
		t.Errorf("the example is not indented by two spaces: %v", err)
	}
	raw[0] = 'x'
	if gate.ExampleInput()[0] != '{' {
		t.Error("who changes the example changes it for everybody")
	}
}

// The example has every field, so an author never learns of one from an error.
func TestExampleInputLacksNothing(t *testing.T) {
	fields := func() (doc map[string]any) {
		if err := json.Unmarshal(gate.ExampleInput(), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	names := slices.Sorted(maps.Keys(fields()))
	if len(names) < 17 {
		t.Errorf("only the fields %v", names)
	}
	for _, name := range names {
		doc := fields()
		delete(doc, name)
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if gate.ValidateInput(raw) == nil {
			t.Errorf("an input without %s is taken for one", name)
		}
	}
}

// Key, window and time of the example agree, as in an input of a real pass.
func TestExampleInputAgreesWithItself(t *testing.T) {
	var doc struct {
		Now     time.Time
		Service struct{ Name string }
		Window  struct{ ID, Key string }
		Action  struct{ Name string }

		Proposal struct{ Action string }
	}
	if err := json.Unmarshal(gate.ExampleInput(), &doc); err != nil {
		t.Fatal(err)
	}
	w, err := gate.Key(doc.Window.Key).Window(doc.Service.Name)
	if err != nil || w.String() != doc.Window.ID {
		t.Fatalf("key %s, window %s: %v", doc.Window.Key, doc.Window.ID, err)
	}
	if at := gate.WindowAt(doc.Now, time.Duration(w.Length)*time.Second); at != w {
		t.Errorf("%s is in the window %s, not in %s", doc.Now, at, w)
	}
	if doc.Action.Name != doc.Proposal.Action {
		t.Errorf("the action %s is not the proposed %s", doc.Action.Name, doc.Proposal.Action)
	}
}
