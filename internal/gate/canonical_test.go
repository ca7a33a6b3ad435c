package gate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"
)

// Only sorted fields make encoding/json write the canonical form.
func TestFieldsAreSorted(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || typ.Implements(reflect.TypeFor[json.Marshaler]()) {
			return
		}
		seen[typ] = true
		var names []string
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
			look(f.Type)
		}
		if !slices.IsSorted(names) {
			t.Errorf("the fields of %s are in the order %v", typ, names)
		}
	}
	look(reflect.TypeFor[document]())
	look(reflect.TypeFor[digestBody]())
	if len(seen) < 15 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}

// What is written without the library is what the library would write.
func TestCanonicalJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "a", "<&>", "\u2028", "\u2029", "\x00\x1f\x7f", "\"\\/", "é", "\U0001F600", "\uFFFD", `\u2028`, "-0", "\b\f\n\r\t",
	}))
	value := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Float64Range(-1e22, 1e22), func(f float64) any { return f }),
		rapid.Map(rapid.Float64Range(-1e-5, 1e-5), func(f float64) any { return f }),
		rapid.Map(rapid.Int64Range(-maxExact, maxExact), func(i int64) any { return i }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SliceOf(text), func(s []string) any { return s }),
		rapid.SampledFrom([]any{0.0, 6.0, 1e20, 1e21, 1e-6, 1e-7, 0.1, -1.5, []string{}}),
	)
	rapid.Check(t, func(t *rapid.T) {
		n := numberIn{Value: rapid.OneOf(rapid.Float64Range(-1e22, 1e22), rapid.SampledFrom([]float64{0, 1, -1, maxExact, maxExact + 1, 1e21})).Draw(t, "number"), Known: rapid.Bool().Draw(t, "known")}
		doc := document{
			Now: text.Draw(t, "text"), Tried: []triedIn{{Before: n, Action: text.Draw(t, "action")}},
			Proposal: proposalIn{Parameters: parametersIn(rapid.MapOf(text, value).Draw(t, "parameters"))},
			Live:     liveIn{Known: true, Values: rapid.MapOf(text, value).Draw(t, "live")},
		}
		got, err := canonicalJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(raw)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
