package decisionlog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/decisionlog"
)

func value(t testing.TB, text string) any {
	t.Helper()
	var v any
	if text != "" {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func text(t testing.TB, v any) string {
	t.Helper()
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func upsert(path string, v any) map[string]any {
	return map[string]any{"op": "upsert", "path": path, "value": v}
}

func TestMask(t *testing.T) {
	const doc = `{"a":{"token":"s","b":1},"list":[{"token":"s","n":0},{"n":1},{"token":"s","n":2}],"s":"x"}`
	tests := map[string]struct {
		reason         string
		input          string
		masks          []any
		want           string
		erased, masked []string
	}{
		"Key":        {"a key is removed", doc, []any{"/input/a/token"}, `{"a":{"b":1},"list":[{"n":0,"token":"s"},{"n":1},{"n":2,"token":"s"}],"s":"x"}`, []string{"/input/a/token"}, nil},
		"Object":     {"with all below it", doc, []any{"/input/a"}, `{"list":[{"n":0,"token":"s"},{"n":1},{"n":2,"token":"s"}],"s":"x"}`, []string{"/input/a"}, nil},
		"Whole":      {"the input as a whole", doc, []any{"/input"}, ``, []string{"/input"}, nil},
		"Op":         {"an object removes too", doc, []any{map[string]any{"op": "remove", "path": "/input/s"}, "/input/list"}, `{"a":{"b":1,"token":"s"}}`, []string{"/input/s", "/input/list"}, nil},
		"Index":      {"one element of a list", doc, []any{"/input/list/1", "/input/a", "/input/s"}, `{"list":[{"n":0,"token":"s"},{"n":2,"token":"s"}]}`, []string{"/input/list/1", "/input/a", "/input/s"}, nil},
		"Indices":    {"elements are counted as they were", doc, []any{"/input/list/0", "/input/list/1", "/input/a", "/input/s"}, `{"list":[{"n":2,"token":"s"}]}`, []string{"/input/list/0", "/input/list/1", "/input/a", "/input/s"}, nil},
		"InRemoved":  {"nothing is in an element that is gone", doc, []any{"/input/list/0", "/input/list/0/token", "/input/a", "/input/s"}, `{"list":[{"n":1},{"n":2,"token":"s"}]}`, []string{"/input/list/0", "/input/a", "/input/s"}, nil},
		"All":        {"every element of a list", doc, []any{"/input/list/*/token"}, `{"a":{"b":1,"token":"s"},"list":[{"n":0},{"n":1},{"n":2}],"s":"x"}`, []string{"/input/list/*/token"}, nil},
		"AllKeys":    {"every key of an object", doc, []any{"/input/a/*", "/input/list"}, `{"a":{},"s":"x"}`, []string{"/input/a/*", "/input/list"}, nil},
		"AllGone":    {"every element itself", doc, []any{"/input/list/*", "/input/a"}, `{"list":[],"s":"x"}`, []string{"/input/list/*", "/input/a"}, nil},
		"Absent":     {"what is not there is not named as erased", `{"s":"x"}`, []any{"/input/a/token", "/input/s/t", "/input/list/0", "/result/x"}, `{"s":"x"}`, nil, nil},
		"Ranges":     {"only indices count in a list", doc, []any{"/input/list/9", "/input/list/-1", "/input/list/token", "/input/a", "/input/s"}, `{"list":[{"n":0,"token":"s"},{"n":1},{"n":2,"token":"s"}]}`, []string{"/input/a", "/input/s"}, nil},
		"Twice":      {"a mask that is said twice is named once", `{"s":"x"}`, []any{"/input/s", "/input/s"}, `{}`, []string{"/input/s"}, nil},
		"Escaped":    {"a slash and a tilde in a key", `{"a/b":1,"c~d":2,"e":3}`, []any{"/input/a~1b", "/input/c~0d"}, `{"e":3}`, []string{"/input/a~1b", "/input/c~0d"}, nil},
		"Percent":    {"a percent-encoded key, and one that holds a percent sign", `{"a b":1,"a%20b":2,"100%":3,"e":3}`, []any{"/input/a%20b", "/input/100%"}, `{"e":3}`, []string{"/input/a%20b", "/input/100%"}, nil},
		"Ambiguous":  {"both readings of a segment are masked", `{"a~1b":1,"a/b":2}`, []any{"/input/a~1b"}, `{}`, []string{"/input/a~1b"}, nil},
		"EmptyKey":   {"an empty segment is the empty key", `{"":1,"e":3}`, []any{"/input/"}, `{"e":3}`, []string{"/input/"}, nil},
		"Upsert":     {"a value is replaced", `{"s":"x"}`, []any{upsert("/input/s", "(s)")}, `{"s":"(s)"}`, nil, []string{"/input/s"}},
		"UpsertNew":  {"or made, with what is above it", `{}`, []any{upsert("/input/a/b", 1.5)}, `{"a":{"b":1.5}}`, nil, []string{"/input/a/b"}},
		"UpsertList": {"an element is replaced, and none is made", `{"l":[1,2]}`, []any{upsert("/input/l/1", "x"), upsert("/input/l/2", "y"), upsert("/input/l/*/z", 0)}, `{"l":[1,"x"]}`, nil, []string{"/input/l/1"}},
		"UpsertAll":  {"every element is replaced", `{"l":[1,2]}`, []any{upsert("/input/l/*", nil)}, `{"l":[null,null]}`, nil, []string{"/input/l/*"}},
		"UpsertRoot": {"the input as a whole is replaced", doc, []any{upsert("/input", "gone")}, `"gone"`, nil, []string{"/input"}},
		"NoInput":    {"where there is no input none is made", ``, []any{"/input/s", upsert("/input/s", 1), upsert("/input", 1)}, ``, nil, nil},
		"Foreign":    {"OPA's cache of functions is no part of an event here", `{"s":"x"}`, []any{"/nd_builtin_cache/http.send"}, `{"s":"x"}`, nil, nil},
		"RootArray":  {"a list may be the root", `[1,2,3]`, []any{"/input/0", "/input/2"}, `[2]`, []string{"/input/0", "/input/2"}, nil},
		"Nested":     {"lists in lists", `[[1,2],[3,4]]`, []any{"/input/*/0", "/input/1/1"}, `[[2],[]]`, []string{"/input/*/0", "/input/1/1"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decisionlog.Masked(value(t, tt.input), nil, tt.masks...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, text(t, got.Input)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff([][]string{tt.erased, tt.masked}, [][]string{got.Erased, got.Masked}); diff != "" {
				t.Errorf("%s, erased and masked (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestMaskOfTheResult(t *testing.T) {
	got, err := decisionlog.Masked(value(t, `{"digest":"i"}`), value(t, `{"digest":"r","verdict":"auto"}`), "/result/digest")
	if err != nil || text(t, got.Input) != `{"digest":"i"}` || text(t, got.Result) != `{"verdict":"auto"}` {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is no mask is refused whole: half of what was to be masked is not masked.
func TestBadMasks(t *testing.T) {
	for name, element := range map[string]any{
		"Empty": "", "Relative": "input/a", "Root": "/", "Labels": "/labels/id", "Near": "/inputs/a", "Number": 3.0, "Null": nil, "List": []any{"/input/a"},
		"NoOp": map[string]any{"path": "/input/a"}, "NoPath": map[string]any{"op": "remove"}, "OtherOp": map[string]any{"op": "hash", "path": "/input/a"},
		"PathIsNumber": map[string]any{"op": "remove", "path": 1.0}, "OpIsNumber": map[string]any{"op": 1.0, "path": "/input/a"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decisionlog.Masked(nil, nil, "/input/b", element); err == nil {
				t.Errorf("%v is a mask", element)
			} else if strings.Contains(err.Error(), "/input/a") {
				t.Errorf("the error quotes the pointer: %v", err)
			}
		})
	}
}

// pointer is the JSON pointer of a path of keys and indices.
func pointer(path []any) string {
	s := "/input"
	for _, p := range path {
		s += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(p))
	}
	return s
}

// leaves are the paths of all plain values.
func leaves(v any, at []any) (out [][]any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			out = append(out, leaves(child, append(slices.Clone(at), key))...)
		}
	case []any:
		for i, child := range v {
			out = append(out, leaves(child, append(slices.Clone(at), i))...)
		}
	default:
		out = append(out, at)
	}
	return out
}

// documents are objects and lists in which every plain value is another one.
func documents(t *rapid.T) (doc any, count int) {
	var grow func(depth int) any
	grow = func(depth int) any {
		switch rapid.IntRange(0, min(depth, 2)).Draw(t, "kind") {
		case 1:
			o := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "keys") {
				o[rapid.SampledFrom([]string{"a", "b", "a/b", "~", "~1", "%20", " ", "*", "0", ""}).Draw(t, "key")] = grow(depth - 1)
			}
			return o
		case 2:
			l := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "elements") {
				l = append(l, grow(depth-1))
			}
			return l
		}
		count++
		return fmt.Sprintf("secret-%d-", count)
	}
	return grow(4), count
}

// Whatever is masked by its pointer is not in the line, in whatever order, and
// where no key is ambiguous everything else is.
func TestMaskedIsGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, _ := documents(t)
		all := leaves(doc, nil)
		if len(all) == 0 {
			return
		}
		chosen := rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 4).Draw(t, "chosen")
		var masks []any
		gone := map[string]bool{}
		for _, i := range chosen {
			masks = append(masks, pointer(all[i]))
			gone[at(doc, all[i])] = true
		}
		plain := !slices.ContainsFunc(chosen, func(i int) bool {
			return slices.ContainsFunc(all[i], func(p any) bool { s, _ := p.(string); return strings.ContainsAny(s, "*~%/ ") })
		})
		before := jsonOf(doc)
		got, err := decisionlog.Masked(doc, nil, masks...)
		if err != nil {
			t.Fatal(err)
		}
		after := jsonOf(got.Input)
		for _, path := range all {
			secret := valueAt(before, path)
			switch left := strings.Contains(after, secret); {
			case left && gone[secret]:
				t.Fatalf("%s is still in %s; masks %v on %s", secret, after, masks, before)
			case !left && !gone[secret] && plain:
				t.Fatalf("%s is gone from %s too; masks %v on %s", secret, after, masks, before)
			}
		}
	})
}

func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func valueAt(doc string, path []any) string {
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		return err.Error()
	}
	return at(v, path)
}

func at(v any, path []any) string {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return fmt.Sprint(v)
}

// FuzzMask: no document and no pointer does harm, and what is left is JSON.
func FuzzMask(f *testing.F) {
	f.Add(`{"a":[{"b":1}]}`, "/input/a/0/b", "/input/a/*", `"x"`)
	f.Add(`[[1],[2]]`, "/input/*/0", "/input/1", `{}`)
	f.Add(`{"~1":{"/":1}}`, "/input/~1", "/input/~01/~1", `null`)
	f.Add(`"s"`, "/input", "/input/%2", `[]`)
	f.Add(`{"":{"":1}}`, "/input//", "/result", `1`)
	f.Fuzz(func(t *testing.T, doc, path, other, replacement string) {
		var input, with any
		if json.Unmarshal([]byte(doc), &input) != nil || json.Unmarshal([]byte(replacement), &with) != nil {
			return
		}
		got, err := decisionlog.Masked(input, nil, path, upsert(other, with))
		if err != nil {
			return
		}
		if _, err := json.Marshal(got.Input); err != nil {
			t.Errorf("%q %q on %s: %v", path, other, doc, err)
		}
		again, err := decisionlog.Masked(got.Input, nil, path)
		if err != nil || !strings.Contains(path, "*") && strings.ContainsAny(path, "0123456789") {
			return // A list that lost an element has another one there.
		}
		if len(got.Masked) == 0 && len(again.Erased) > 0 {
			t.Errorf("%q removed from %s still leaves something to remove", path, doc)
		}
	})
}
