package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReason is the longest reason that a person can give, in characters. It
// stands in the ledger for ever, in every list and in pages.
const MaxReason = 2000

// Reason makes one line of text of the reason that a person gave, so that it
// can neither break a table nor steer a terminal. One that is too long is
// refused: half a reason may say the opposite.
func Reason(text string) (string, error) {
	clean := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
	if n := utf8.RuneCountInString(clean); n > MaxReason {
		return "", fmt.Errorf("%d characters are too long: give %d at most, and a link to the rest", n, MaxReason)
	}
	return clean, nil
}

// cleanReason cleans the reason of a request, which may be empty.
func cleanReason(text *string) error {
	clean, err := Reason(*text)
	if err != nil {
		return bad("reason: %s", err)
	}
	*text = clean
	return nil
}

// needReason also wants one.
func needReason(text *string, missing string) error {
	if err := cleanReason(text); err != nil {
		return err
	}
	if *text == "" {
		return bad("reason: %s", missing)
	}
	return nil
}
