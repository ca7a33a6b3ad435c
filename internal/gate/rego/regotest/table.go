package regotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
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

// ReadTable reads a file of cases strictly. The function reads a file that a
// base names, as it is written there. The error is spec.Faults with everything
// that is wrong, each with its line.
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
	r, err := newTableReader(read)
	if err != nil {
		return Table{}, err
	}
	t := Table{File: f.Name}
	first := map[string]int{}
	standard := r.base(d.Base, r.example)
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
	if len(r.faults) > 0 {
		return Table{}, r.faults.Err()
	}
	return t, nil
}

// tableReader makes inputs of bases and changes.
type tableReader struct {
	read    func(string) ([]byte, error)
	fields  fields
	example map[string]any
	faults  spec.Faults
}

func newTableReader(read func(string) ([]byte, error)) (*tableReader, error) {
	schema, err := inputFields()
	if err != nil {
		return nil, err
	}
	example, err := object(gate.ExampleInput())
	if err != nil {
		return nil, fmt.Errorf("the example input: %w", err)
	}
	return &tableReader{read: read, fields: schema, example: example}, nil
}

func (r *tableReader) fault(v spec.Value, format string, args ...any) {
	r.faults = append(r.faults, v.Fault(format, args...))
}

// one makes the input of a case. What is wrong with its base or its changes is
// told there; what no line is to blame for, at the case.
func (r *tableReader) one(c caseDoc, standard map[string]any) (Case, bool) {
	before := len(r.faults)
	doc := r.base(c.Base, standard)
	changes, _ := r.mapping(c.Changes, "changes to the base by field, such as {service: {owner: team-payments}}")
	if len(r.faults) > before || doc == nil {
		return Case{}, false
	}
	input, err := complete(merge(doc, changes))
	if err != nil {
		r.fault(c.Name.at, "makes no complete input: %s", err)
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

// base is the object that a base is or names, or the fallback when there is
// none. It is nil after a fault.
func (r *tableReader) base(v spec.Value, fallback map[string]any) map[string]any {
	if !given(v) {
		return fallback
	}
	name, file := v.Text()
	if !file {
		doc, ok := r.mapping(v, "a file of JSON or an object")
		if !ok {
			return nil
		}
		return doc
	}
	data, err := r.read(name)
	var doc map[string]any
	if err == nil {
		doc, err = object(data)
	}
	if err != nil {
		r.fault(v, "%s: %s", name, err)
	}
	return doc
}

// mapping reads an object whose fields are those of the input.
func (r *tableReader) mapping(v spec.Value, want string) (doc map[string]any, ok bool) {
	if !given(v) {
		return nil, true
	}
	if !v.IsMapping() {
		r.fault(v, "want %s", want)
		return nil, false
	}
	faults := v.Decode(&doc)
	if len(faults) == 0 {
		faults = r.fields.check(v)
	}
	r.faults = append(r.faults, faults...)
	return doc, len(faults) == 0
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

// complete is an input that the gate takes, with a time that it can read.
func complete(doc map[string]any) ([]byte, error) {
	input, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if err := gate.ValidateInput(input); err != nil {
		return nil, err
	}
	now, _ := doc["now"].(string)
	if _, err := time.Parse(time.RFC3339Nano, now); err != nil {
		return nil, fmt.Errorf("now: %.40q is no time such as 2026-11-29T03:00:00Z", now)
	}
	return input, nil
}

// object reads one JSON object.
func object(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%sno object in JSON: %w", lineOf(data, err), err)
	}
	if doc == nil {
		return nil, errors.New("no object in JSON, but null")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value in JSON")
	}
	return doc, nil
}

// lineOf is the line of a fault of syntax.
func lineOf(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	return fmt.Sprintf("line %d: ", 1+bytes.Count(data[:min(syntax.Offset, int64(len(data)))], []byte("\n")))
}
