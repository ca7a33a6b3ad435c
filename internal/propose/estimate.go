package propose

import (
	"unicode"
	"unicode/utf8"
)

// EstimateTokens is a rough count of tokens where only the number of characters
// is known: one for each three. Texts of ours have between three and four and a
// half, so it seldom says too little.
func EstimateTokens(characters int) int { return (characters + 2) / 3 }

// EstimateText is a count of the tokens of a text, in the manner of the
// tokenizers of the day: a word of one case is one token, a long one several,
// digits go by threes, and punctuation by twos. It is meant to say too much
// rather than too little; models differ, and the provider's own count is in its
// usage.
func EstimateText(s string) int {
	n := 0
	for len(s) > 0 {
		kind, size := run(s)
		n += cost(kind, s[:size], s[size:])
		s = s[size:]
	}
	return n
}

type runeKind int

const (
	runeLetter runeKind = iota
	runeDigit
	runeSpace
	runeMark
	runeOther
)

func kindOf(r rune) runeKind {
	switch {
	case r >= utf8.RuneSelf:
		return runeOther
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return runeLetter
	case r >= '0' && r <= '9':
		return runeDigit
	case r == ' ', r == '\n', r == '\t', r == '\r':
		return runeSpace
	}
	return runeMark
}

// run is the length of the longest beginning of one kind. A capital after a
// small letter begins another one.
func run(s string) (kind runeKind, size int) {
	first, size := utf8.DecodeRuneInString(s)
	kind = kindOf(first)
	for size < len(s) {
		r, width := utf8.DecodeRuneInString(s[size:])
		if kindOf(r) != kind || kind == runeLetter && r < 'a' && s[size-1] >= 'a' {
			break
		}
		size += width
	}
	return kind, size
}

// cost is what a run adds; rest is what follows it.
func cost(kind runeKind, s, rest string) int {
	switch kind {
	case runeLetter:
		const word = 9
		return (len(s) + word - 1) / word
	case runeDigit:
		return (len(s) + 2) / 3
	case runeMark:
		return (len(s) + 1) / 2
	case runeSpace:
		if next, _ := utf8.DecodeRuneInString(rest); s == " " && kindOf(next) != runeDigit {
			return 0 // It belongs to the word after it.
		}
		return 1
	}
	n := 0
	for _, r := range s {
		n++
		if !unicode.IsLetter(r) {
			n++
		}
	}
	return n
}
