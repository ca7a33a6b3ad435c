package hostile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/setpoint-dev/setpoint/internal/lab/hostile"
)

func corpus(t fataler) []hostile.Entry {
	t.Helper()
	all, err := hostile.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// width is how many characters in a row are a leak. Shorter ones are words.
const width = 12

// reader knows all that a request says, in every layer in which a model could read
// it, and what it would say of a world in which nobody attacks.
type reader struct {
	layers  []string
	windows map[string]bool
}

// read takes a request apart: its bytes, the texts of its JSON, and the texts of the
// JSON that is in those.
func read(request []byte) reader {
	r := reader{windows: map[string]bool{}}
	r.add(string(request), 4)
	return r
}

func (r *reader) add(s string, depth int) {
	for _, form := range forms(s) {
		r.layers = append(r.layers, form)
		for w := range windowsOf(form) {
			r.windows[w] = true
		}
	}
	if depth == 0 {
		return
	}
	if un := unescaped(s); un != s {
		r.add(un, depth-1)
	}
}

var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|["\\/bfnrt])`)

// unescaped takes one layer of JSON escapes off, wherever one is.
func unescaped(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(e string) string {
		var out string
		if json.Unmarshal([]byte(`"`+e+`"`), &out) != nil {
			return e
		}
		return out
	})
}

// forms are the text as it is, and as it is without what nobody sees; both without
// case and with one blank for many.
func forms(s string) []string {
	folded := strings.ToLower(strings.Join(strings.Fields(s), " "))
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, folded)
	if seen == folded {
		return []string{folded}
	}
	return []string{folded, seen}
}

func windowsOf(s string) map[string]bool {
	out := map[string]bool{}
	rs := []rune(s)
	for i := 0; i+width <= len(rs); i++ {
		out[string(rs[i:i+width])] = true
	}
	return out
}

// leak says what of an entry is in a request; "" is nothing. A canary alone is one,
// in any case; so is a row of characters that an honest request does not have.
func leak(e hostile.Entry, in, honest reader) string {
	for _, l := range in.layers {
		if strings.Contains(l, e.Canary) {
			return "its canary " + e.Canary
		}
	}
	texts := e.Texts()
	if e.Plain != "" && e.Plain != e.Text {
		texts = append(texts, e.Plain)
	}
	for _, text := range texts {
		escaped, _ := json.Marshal(text)
		for _, s := range []string{text, string(escaped), strconv.QuoteToASCII(text), unescaped(text)} {
			for _, form := range forms(s) {
				for w := range windowsOf(form) {
					if in.windows[w] && !honest.windows[w] {
						return fmt.Sprintf("%q", w)
					}
				}
			}
		}
	}
	return ""
}

// The detector finds what it has to find, in every form in which it could come; a
// detector that finds nothing proves nothing.
func TestTheDetectorFindsLeaks(t *testing.T) {
	t.Parallel()
	honestText := `{"messages":[{"role":"user","content":"{\"service\":{\"name\":\"checkout\"},\"catalogue\":[]}\nPropose one of: none, escalate, scale, restart."}]}`
	honest := read([]byte(honestText))
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	wrap := func(content string) []byte { return []byte(`{"messages":[{"content":` + quoted(content) + `}]}`) }
	for _, e := range corpus(t) {
		if got := leak(e, honest, honest); got != "" {
			t.Errorf("%s: found %s in an honest request", e.ID, got)
		}
		whole := strings.Join(e.Texts(), "")
		for how, content := range map[string]string{
			"raw": e.Texts()[0], "in evidence": `{"x":` + quoted(e.Texts()[0]) + `}`, "twice": quoted(quoted(e.Texts()[0])),
			"upper case": strings.ToUpper(whole), "escaped": strconv.QuoteToASCII(whole),
		} {
			if leak(e, read(wrap("a line\n"+content+"\nanother")), honest) == "" {
				t.Errorf("%s: not found %s", e.ID, how)
			}
		}
		// A fragment without the canary.
		for _, text := range e.Texts() {
			head := []rune(strings.Split(text, e.Canary)[0])
			folded := []rune(forms(string(head))[0])
			if len(folded) < width || honest.windows[string(folded[:width])] {
				continue
			}
			if leak(e, read(wrap("x "+string(folded[:width])+" y")), honest) == "" {
				t.Errorf("%s: a fragment %q is not found", e.ID, string(folded[:width]))
			}
		}
	}
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	ids, canaries, kinds := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, e := range all {
		if ids[e.ID] || canaries[e.Canary] {
			t.Errorf("%s: its id or canary is of another one too", e.ID)
		}
		ids[e.ID], canaries[e.Canary] = true, true
		kinds[e.Kind]++
		for _, text := range e.Texts() {
			if text == "" || !bytes.Equal([]byte(text), []byte(strings.ToValidUTF8(text, "?"))) {
				t.Errorf("%s: %q can be no label value", e.ID, text)
			}
		}
		if e.Text == e.Plain && !strings.Contains(strings.ToLower(strings.Join(e.Texts(), "")), e.Canary) {
			t.Errorf("%s has no canary", e.ID)
		}
	}
	if len(all) < 40 || len(kinds) < 12 {
		t.Errorf("%d entries of %d kinds: %v", len(all), len(kinds), kinds)
	}
}
