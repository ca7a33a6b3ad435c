package propose_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// How it compares with a public tokenizer is a test in internal/lab/tokens.
func TestEstimateText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, in string
		want       int
	}{
		"Nothing": {"No text, no tokens.", "", 0},
		"Words":   {"A space belongs to the word after it.", "wait and see", 3},
		"Long":    {"A long word is several.", "internationalisation", 3},
		"Camel":   {"A capital begins another one.", "secondsBeforeBreach", 3},
		"Digits":  {"By threes, and a space before them is one.", "in 12345", 4},
		"JSON":    {"Punctuation by twos.", `{"a":1},`, 5},
		"Lines":   {"A break is one.", "a\n\nb", 3},
		"Letters": {"Other letters are one each.", "häß", 3},
		"Signs":   {"And other signs two.", "🔥", 2},
		"Invalid": {"So is what is no text.", "\xff", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := propose.EstimateText(tc.in); got != tc.want {
				t.Errorf("%s\nEstimateText(%q) = %d, want %d", tc.reason, tc.in, got, tc.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		both := propose.EstimateText(a + b)
		if both > propose.EstimateText(a)+propose.EstimateText(b)+1 || both < propose.EstimateText(a) {
			t.Fatalf("%q: %d, %q: %d, together %d", a, propose.EstimateText(a), b, propose.EstimateText(b), both)
		}
	})
}
