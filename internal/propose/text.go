package propose

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanText makes words of a stranger fit to be shown: valid UTF-8 on one
// line, without control, bidirectional, zero-width or private characters, and
// at most limit characters long; a cut is marked by an ellipsis within the
// limit.
func CleanText(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case invisible(r), r == utf8.RuneError:
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	if limit < 1 {
		return ""
	}
	return strings.TrimRight(string([]rune(s)[:limit-1]), " ") + "…"
}

// invisible reports characters that show nothing or change how others show:
// controls, the format characters (zero-width, bidirectional, tags), line and
// paragraph separators, fillers, variation selectors and private use.
func invisible(r rune) bool {
	switch r {
	case '\u034F', '\u115F', '\u1160', '\u17B4', '\u17B5', '\u3164', '\uFFA0', '\u2800':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Variation_Selector)
}

// quoted shows a stranger's word in a message, short and harmless.
func quoted(s string) string { return strconv.QuoteToASCII(CleanText(s, 60)) }

// hasInvisible reports whether a value holds anything that a person who
// approves it could not see.
func hasInvisible(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return invisible(r) || r == utf8.RuneError || unicode.IsSpace(r) && r != ' '
	})
}

// A plain word may stand in a prompt although the world wrote it: a version,
// an image, a flag. Without spaces it makes no sentence.
var plainWordShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}$`)

func plainWord(s string) bool { return plainWordShape.MatchString(s) }
