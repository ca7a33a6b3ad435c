package execute

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanText makes a stranger's text fit for a line that people read: control,
// format and bidirectional characters and bad UTF-8 become spaces, runs of
// spaces one, and at most limit characters remain.
func CleanText(s string, limit int) string {
	var b strings.Builder
	n, space := 0, false // characters written, a space is due
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			space = n > 0
			continue
		}
		word := string(r)
		if space {
			word = " " + word
		}
		if n += utf8.RuneCountInString(word); n > limit {
			b.WriteString("…")
			break
		}
		b.WriteString(word)
		space = false
	}
	return b.String()
}
