package regotest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/inputfile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Table is a file of cases, read and checked.
type Table struct {
	File  string
	Cases []Case
}

// Case is one input with what policy alone must say of it.
type Case struct {
	Name string
	Pos  spec.Position
	// Input is a complete gate input.
	Input []byte
	// Want has null reasons where the case names none.
	Want Outcome
}

// tableDoc is the file as people write it.
type tableDoc struct {
	Base  spec.Value `yaml:"base"`
	Cases []caseDoc  `yaml:"cases,required"`
}

type caseDoc struct {
	Pos     spec.Position `yaml:",pos"`
	Name    named         `yaml:"name,required"`
	Base    spec.Value    `yaml:"base"`
	Changes spec.Value    `yaml:"changes"`
	Expect  expectDoc     `yaml:"expect,required"`
}

type expectDoc struct {
	Verdict verdictWord `yaml:"verdict,required"`
	Reasons *[]string   `yaml:"reasons"`
}

// named is a name with its place.
type named struct {
	text string
	at   spec.Value
}

// UnmarshalValue takes text that is not empty.
func (n *named) UnmarshalValue(v spec.Value) spec.Faults {
	n.at = v
	faults := v.Decode(&n.text)
	if len(faults) == 0 && n.text == "" {
		faults = spec.Faults{v.Fault("is empty: say what the case shows")}
	}
	return faults
}

// verdictWord is one of the four verdicts. Unlike a gate.Verdict, a word that
// is none is an error: a misspelt one must not become deny.
type verdictWord gate.Verdict

var verdicts = []gate.Verdict{gate.Auto, gate.Approval, gate.Escalate, gate.Deny}

// UnmarshalText reads one of the words.
func (w *verdictWord) UnmarshalText(b []byte) error {
	var known []string
	for _, v := range verdicts {
		if v.String() == string(b) {
			*w = verdictWord(v)
			return nil
		}
		known = append(known, v.String())
	}
	if near := spec.Nearest(string(b), known); near != "" {
		return fmt.Errorf("%.40q is no verdict, did you mean %q?", b, near)
	}
	return fmt.Errorf("%.40q is no verdict: want auto, approval, escalate or deny", b)
}

// ReadTable reads a file of cases strictly. The function reads the file of a
// base, whose path is made one beside the table. The error is spec.Faults with
// everything that is wrong, each with its line.
func ReadTable(f spec.File, read func(name string) ([]byte, error)) (Table, error) {
	doc, faults := spec.OneDocument(f)
	var d tableDoc
	faults = append(faults, doc.Decode(&d)...)
	if len(faults) > 0 {
		return Table{}, faults.Err()
	}
	if len(d.Cases) == 0 {
		return Table{}, spec.Faults{doc.Fault("cases", "holds no case")}
	}
	example, err := object(gate.ExampleInput())
	if err != nil {
		return Table{}, fmt.Errorf("the example input: %w", err)
	}
	r := &tableReader{read: read, doc: doc}
	t := Table{File: f.Name}
	first := map[string]int{}
	standard := r.base(d.Base, example)
	for _, c := range d.Cases {
		if line, twice := first[c.Name.text]; twice {
			r.fault(c.Name.at, "is the name of the case in line %d too: each has its own", line)
			continue
		}
		first[c.Name.text] = c.Name.at.Pos().Line
		if got, ok := r.one(c, standard); ok {
			t.Cases = append(t.Cases, got)
		}
	}
	if err := r.faults.Err(); err != nil {
		return Table{}, err
	}
	return t, nil
}

// tableReader makes inputs of bases and changes.
type tableReader struct {
	read   func(string) ([]byte, error)
	doc    spec.Document
	faults spec.Faults
}

func (r *tableReader) fault(v spec.Value, format string, args ...any) {
	r.add(v.Fault(format, args...))
}

// add leaves out what was told of another case: they share a base.
func (r *tableReader) add(f spec.Fault) {
	if !slices.Contains(r.faults, f) {
		r.faults = append(r.faults, f)
	}
}

// one makes the input of a case.
func (r *tableReader) one(c caseDoc, standard map[string]any) (Case, bool) {
	before := len(r.faults)
	doc := r.base(c.Base, standard)
	changes := r.mapping(c.Changes, "changes to the base by field, such as {service: {owner: team-payments}}")
	if len(r.faults) > before || doc == nil {
		return Case{}, false
	}
	input, err := json.Marshal(merge(doc, changes))
	if err != nil {
		r.fault(c.Name.at, "makes no input: %s", err)
		return Case{}, false
	}
	if err := inputfile.Check(spec.File{Name: c.Name.text, Data: input}); err != nil {
		r.blame(c, err)
		return Case{}, false
	}
	out := Case{Name: c.Name.text, Pos: c.Pos, Input: input, Want: Outcome{Verdict: gate.Verdict(c.Expect.Verdict)}}
	if c.Expect.Reasons != nil {
		// Not nil, which stands for any.
		out.Want.Reasons = append([]string{}, *c.Expect.Reasons...)
		slices.Sort(out.Want.Reasons)
		out.Want.Reasons = slices.Compact(out.Want.Reasons)
	}
	return out, true
}

// blame tells what is wrong with an input where the table says it: in the
// changes, in the base of the case, in that of the table, else at the case.
func (r *tableReader) blame(c caseDoc, err error) {
	var faults spec.Faults
	if !errors.As(err, &faults) {
		r.fault(c.Name.at, "makes no input: %s", err)
		return
	}
	for _, f := range faults {
		at := r.place(f.Path, c.Changes, c.Base)
		if at == "" {
			at, f.Text = c.Name.at.Path(), fmt.Sprintf("makes no input: %s %s", f.Path, f.Text)
		}
		r.add(r.doc.Fault(at, "%s", f.Text))
	}
}

// place is where the table says what stands at a path of the input, or "". What
// is missing at the top is missing in the base.
func (r *tableReader) place(path string, changes, base spec.Value) string {
	roots := []string{changes.Path(), base.Path(), "base"}
	if path == "" {
		roots = roots[1:]
	}
	for _, root := range roots {
		if at := below(root, path); root != "" && r.doc.Has(at) {
			return at
		}
	}
	return ""
}

// below puts a path of the input below one of the table.
func below(root, path string) string {
	if path == "" || strings.HasPrefix(path, "[") {
		return root + path
	}
	return root + "." + path
}

// base is the object that a base is or names, or the fallback when there is
// none. It is nil after a fault.
func (r *tableReader) base(v spec.Value, fallback map[string]any) map[string]any {
	if !given(v) {
		return fallback
	}
	name, isFile := v.Text()
	if !isFile {
		return r.mapping(v, "a file of JSON or an object")
	}
	file := spec.File{Name: name}
	if !filepath.IsAbs(name) {
		file.Name = filepath.Join(filepath.Dir(r.doc.Pos.File), name)
	}
	var err error
	if file.Data, err = r.read(file.Name); err != nil {
		r.fault(v, "%s", err)
		return nil
	}
	// A base in a file is a whole input, such as a recorded one.
	var faults spec.Faults
	switch err := inputfile.Check(file); {
	case errors.As(err, &faults):
		for _, f := range faults {
			r.add(f)
		}
		return nil
	case err != nil:
		r.fault(v, "%s: %s", name, err)
		return nil
	}
	doc, err := object(file.Data)
	if err != nil {
		r.fault(v, "%s: %s", name, err)
	}
	return doc
}

// mapping reads an object; it is nil after a fault and when there is none.
func (r *tableReader) mapping(v spec.Value, want string) (doc map[string]any) {
	if !given(v) {
		return nil
	}
	if !v.IsMapping() {
		r.fault(v, "want %s", want)
		return nil
	}
	faults := v.Decode(&doc)
	for _, f := range faults {
		r.add(f)
	}
	if len(faults) > 0 {
		return nil
	}
	return doc
}

// given reports whether the document holds the value.
func given(v spec.Value) bool { return v.Path() != "" }

// merge puts changes into a base: objects by key, lists and scalars as a whole.
// The base is left as it is.
func merge(base, changes map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(changes))
	for key, v := range base {
		out[key] = v
	}
	for key, v := range changes {
		was, isObject := out[key].(map[string]any)
		if now, both := v.(map[string]any); both && isObject {
			v = merge(was, now)
		}
		out[key] = v
	}
	return out
}

func object(data []byte) (doc map[string]any, err error) {
	err = json.Unmarshal(data, &doc)
	return doc, err
}
