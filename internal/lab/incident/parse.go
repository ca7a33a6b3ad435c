package incident

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Parse reads one file strictly. The error is spec.Faults: every fault with
// file, line and path.
func Parse(f spec.File) (Incident, error) {
	in := newIncident()
	found := spec.DecodeFile(f, &in)
	if len(found) == 0 {
		found = check(in)
	}
	if err := found.Err(); err != nil {
		return Incident{}, err
	}
	return in, nil
}

// Holds reports whether a suite, a file or a folder, is one of incidents: they
// begin with their name under the key incident.
func Holds(suite string) bool {
	names, err := filesOf(suite)
	if err != nil || len(names) == 0 {
		return false
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		return false
	}
	doc, bad := spec.OneDocument(spec.File{Name: names[0], Data: data})
	return len(bad) == 0 && doc.Has("incident")
}

// Load reads a file or each YAML file of a folder, sorted by name. Nothing is
// returned when one of them has a fault.
func Load(suite string) ([]Incident, error) {
	names, err := filesOf(suite)
	if err != nil {
		return nil, err
	}
	var out []Incident
	var bad spec.Faults
	first := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		in, err := Parse(spec.File{Name: name, Data: data})
		if err != nil {
			bad = append(bad, faultsOf(name, err)...)
			continue
		}
		if other, twice := first[in.Name]; twice {
			bad = append(bad, spec.Fault{Pos: in.Pos, Path: "incident", Text: fmt.Sprintf("%q is the name of %s already", in.Name, other)})
		}
		first[in.Name] = name
		out = append(out, in)
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("suite %s: no incident in it; name an incident's file or a folder of them", suite)
	}
	slices.SortFunc(out, func(a, b Incident) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func faultsOf(name string, err error) spec.Faults {
	if fs, ok := err.(spec.Faults); ok { //nolint:errorlint // Parse gives exactly this type.
		return fs
	}
	return spec.Faults{{Pos: spec.Position{File: name}, Text: err.Error()}}
}

func filesOf(suite string) ([]string, error) {
	info, err := os.Stat(suite)
	if err != nil {
		return nil, fmt.Errorf("suite: %w; name an incident's file or a folder of them with --suite", err)
	}
	if !info.IsDir() {
		return []string{suite}, nil
	}
	var names []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(suite, pattern))
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", suite, err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return names, nil
}

// UnmarshalValue reads a block of text, or a mapping with for and text.
func (t *Text) UnmarshalValue(v spec.Value) spec.Faults {
	if s, ok := v.Text(); ok {
		t.Text, t.Pos = s, v.Pos()
		return nil
	}
	if !v.IsMapping() {
		return spec.Faults{v.Fault("want a block of text, or a mapping with for and text")}
	}
	var m struct {
		For  []string `yaml:"for,required"`
		Text string   `yaml:"text,required"`
	}
	faults := v.Decode(&m)
	t.For, t.Text = m.For, m.Text
	at, _ := v.Child("text")
	t.Pos = at.Pos()
	return faults
}

// files gives what is read: one file, or one for each service. What comes before
// the text is as long as in the file, so that a fault has the right line.
func (t Text) files() []spec.File {
	before := strings.Repeat("\n", max(0, t.Pos.Line))
	if len(t.For) == 0 {
		return []spec.File{{Name: t.Pos.File, Data: []byte(before + t.Text)}}
	}
	var out []spec.File
	for _, service := range t.For {
		text := strings.ReplaceAll(t.Text, "${service}", service)
		out = append(out, spec.File{Name: t.Pos.File, Data: []byte(before + text)})
	}
	return out
}

// UnmarshalValue reads none, escalate, or a mapping with an action.
func (p *Proposal) UnmarshalValue(v spec.Value) spec.Faults {
	if !v.IsMapping() {
		word, _ := v.Text()
		switch k := propose.Kind(word); k {
		case propose.KindNone, propose.KindEscalate:
			p.Kind = k
			return nil
		}
		return spec.Faults{v.Fault("want none, escalate, or an action with its parameters")}
	}
	var m struct {
		Action     string         `yaml:"action,required"`
		Parameters map[string]any `yaml:"parameters"`
	}
	faults := v.Decode(&m)
	for _, name := range slices.Sorted(maps.Keys(m.Parameters)) {
		switch m.Parameters[name].(type) {
		case int64, float64, string, bool:
		default:
			faults = append(faults, v.Fault("parameter %s: want a number, text, true or false", name))
		}
	}
	p.Kind, p.Action, p.Parameters = propose.KindAction, m.Action, m.Parameters
	if p.Parameters == nil {
		p.Parameters = propose.Parameters{}
	}
	return faults
}
