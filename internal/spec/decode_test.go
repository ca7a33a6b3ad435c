package spec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// choice reads itself, as "none" or a mapping.
type choice struct {
	None bool
	Name string
}

func (c *choice) UnmarshalValue(v spec.Value) spec.Faults {
	if s, ok := v.Text(); ok && s == "none" {
		c.None = true
		return nil
	}
	name, ok := v.Child("name")
	if !ok {
		return spec.Faults{v.Fault("want none, or a mapping with a name")}
	}
	return name.Decode(&c.Name)
}

type inner struct {
	Size int           `yaml:"size"`
	Pos  spec.Position `yaml:",pos"`
}

func (i *inner) SetDefaults() { i.Size = 7 }

type shared struct {
	Kind string `yaml:"kind,required"`
}

type everything struct {
	Shared   shared           `yaml:",inline"`
	Text     string           `yaml:"text"`
	Bool     bool             `yaml:"bool"`
	Int      int64            `yaml:"int"`
	Float    float64          `yaml:"float"`
	Duration time.Duration    `yaml:"duration"`
	Zero     time.Duration    `yaml:"zero"`
	Time     time.Time        `yaml:"time"`
	Mode     spec.Mode        `yaml:"mode"`
	List     []inner          `yaml:"list"`
	Map      map[string]inner `yaml:"map"`
	Pointer  *inner           `yaml:"pointer"`
	Absent   *inner           `yaml:"absent"`
	Free     any              `yaml:"free"`
	Choices  []choice         `yaml:"choices"`
	Kept     string           `yaml:"kept"`
	Ignored  string           `yaml:"-"`
}

func TestDecode(t *testing.T) {
	const text = `
kind: all
text: "1"
bool: true
int: 0x10
float: 2
duration: 1h30m
zero: 0
time: 2026-12-01T01:00:00+01:00
mode: approval
list: [{}, {size: 3}]
map:
  a: {size: 1}
pointer: {}
free: {a: [1, 2.5, "x", true, null], d: 2026-12-01}
choices: [none, {name: x}]
`
	got := everything{Kept: "as it was"}
	if faults := spec.DecodeFile(spec.File{Name: "f", Data: []byte(text)}, &got); len(faults) > 0 {
		t.Fatal(faults)
	}
	want := everything{
		Shared: shared{Kind: "all"}, Text: "1", Bool: true, Int: 16, Float: 2, Duration: 90 * time.Minute,
		Time: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Mode: spec.Approval,
		List: []inner{{7, spec.Position{File: "f", Line: 11}}, {3, spec.Position{File: "f", Line: 11}}},
		Map:  map[string]inner{"a": {1, spec.Position{File: "f", Line: 13}}}, Pointer: &inner{7, spec.Position{File: "f", Line: 14}},
		Free:    map[string]any{"a": []any{int64(1), 2.5, "x", true, nil}, "d": "2026-12-01"},
		Choices: []choice{{None: true}, {Name: "x"}}, Kept: "as it was",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
}

func TestDecodeFaults(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Choice":      {"A type that reads itself reports its own faults.", "kind: a\nchoices: [3]", "f:2: choices[0]: want none, or a mapping with a name"},
		"ChoiceChild": {"And those of its children.", "kind: a\nchoices: [{name: 3}]", "f:2: choices[0].name: want text, got the number 3: put it in quotes"},
		"Inline":      {"An inlined key is required as if it stood there.", "text: a", "f:1: kind: is required"},
		"Ignored":     {"A field without a name is no key.", "kind: a\nIgnored: b", "f:2: Ignored: unknown key, known are absent, bool, choices, duration, float, free, int, kept, kind, list, map, mode, pointer, text, time, zero"},
		"TooLarge":    {"A number that does not fit is not cut.", "kind: a\nint: 99999999999999999999", "f:2: int: want a whole number, got the number 99999999999999999999"},
		"Fraction":    {"Nor rounded.", "kind: a\nint: 1.5", "f:2: int: want a whole number, got the number 1.5"},
		"FreeTag":     {"Free values know no tags of their own.", "kind: a\nfree: !x y", "f:2: free: want text, a number, true or false, got a value tagged !x"},
		"FreeNaN":     {"Nor what is no number.", "kind: a\nfree: .nan", "f:2: free: want text, a number, true or false, got the number .nan"},
		"Negative":    {"A duration has no sign.", "kind: a\nduration: -5m", `f:2: duration: "-5m" is not a duration: write numbers with units, like 90s, 5m or 30d`},
		"OddKey":      {"A key with a dot is quoted in the path.", "kind: a\nmap: {a.b: {size: x}}", `f:2: map["a.b"].size: want a whole number, got text "x"`},
		"Second":      {"One document is one document.", "kind: a\n---\nkind: b", "f:3: a second document: this file holds exactly one"},
		"Null":        {"A key without a value is a slip.", "kind: a\nlist:", "f:2: list: has no value: give it one, or remove the key"},
		"Binary":      {"No other encodings.", "kind: !!binary aGk=", "f:1: kind: want text, got a value tagged !!binary"},
		"NotUTF8":     {"Bytes that are no text.", "kind: \xff\xfe", "f:1: is not valid YAML: byte 0xff is no UTF-8 text: save the file as UTF-8"},
		"Long":        {"A stranger's text is cut.", "kind: a\n" + strings.Repeat("k", 200) + ": b", "f:2: [\"" + strings.Repeat("k", 80) + "…\"]: unknown key, known are absent, bool, choices, duration, float, free, int, kept, kind, list, map, mode, pointer, text, time, zero"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			faults := spec.DecodeFile(spec.File{Name: "f", Data: []byte(tc.text)}, &everything{})
			if diff := cmp.Diff(tc.want, message(faults.Err())); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBounds feeds files that are made to cost time or memory.
func TestBounds(t *testing.T) {
	aliases := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9))
	}
	cases := map[string]struct {
		reason, text, want string
	}{
		"Size":      {"More than a mebibyte is not read.", strings.Repeat("# filler\n", 1<<17), "is 1179648 bytes long, more than the limit of 1048576: split it"},
		"Documents": {"Nor more than a thousand documents.", strings.Repeat("---\na: b\n", 1001), "more than 1000 documents: split the file"},
		"Aliases":   {"Aliases are not expanded.", aliases, "alias *a0 is not supported: write the value out"},
		"Depth":     {"Depth is bounded.", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "is nested deeper than 64 levels"},
		"Faults":    {"So are the faults of one document.", strings.Repeat("a: b\n", 5000), "and more faults: mend these first"},
		"Unknown":   {"Of each kind.", unknownKeys(5000), "and more faults: mend these first"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := spec.File{Name: "f", Data: []byte(tc.text)}
			_, faults := spec.Documents(file)
			faults = append(faults, spec.DecodeFile(file, &everything{})...)
			if !strings.Contains(message(faults.Err()), tc.want) {
				t.Errorf("%s want %q among %d faults", tc.reason, tc.want, len(faults))
			}
			if len(faults) > 500 {
				t.Errorf("%s %d faults, which nobody reads", tc.reason, len(faults))
			}
		})
	}
}

func unknownKeys(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "key%d: a\n", i)
	}
	return b.String()
}

func TestPositions(t *testing.T) {
	doc, faults := spec.OneDocument(spec.File{Name: "f", Data: []byte("a:\n  - b: 1\n    c.d: {e: 2}\n")})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for path, want := range map[string]int{
		"": 1, "a": 1, "a[0]": 2, "a[0].b": 2, `a[0]["c.d"]`: 3, `a[0]["c.d"].e`: 3,
		"a[0].x": 2, "a[7].b": 1, "x.y": 1, `a[0]["c.d`: 2, "a[-1]": 1, "a[": 1, "[0]": 1,
	} {
		if got := doc.Positions().At(path); got != (spec.Position{File: "f", Line: want}) {
			t.Errorf("%q is at %s, want line %d", path, got, want)
		}
	}
	if !doc.Has(`a[0]["c.d"].e`) || doc.Has("a[0].x") || doc.Has("a[1]") {
		t.Error("Has does not tell what is there")
	}
}

func TestNearest(t *testing.T) {
	cases := map[string]struct {
		word, want string
	}{
		"Swap":    {"serivce", "service"},
		"Snake":   {"hold_for", "holdFor"},
		"Case":    {"HOLDFOR", "holdFor"},
		"Far":     {"colour", ""},
		"Empty":   {"", ""},
		"Endless": {strings.Repeat("x", 1<<20), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := spec.Nearest(tc.word, []string{"service", "holdFor", "mode"}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
