package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFoldBehind(t *testing.T) {
	cases := map[string]struct {
		reason  string
		line    string
		columns int
		width   int
		want    string
	}{
		"Short":  {"What fits stays.", "ab  fine", 4, 80, "ab  fine"},
		"Long":   {"The rest stands under itself.", "ab  " + strings.Repeat("word ", 10), 4, 40, "ab  word word word word word word word\n    word word word"},
		"Whole":  {"A path is kept whole.", "ab  see " + strings.Repeat("/x", 20) + " there", 4, 36, "ab  see\n    " + strings.Repeat("/x", 20) + "\n    there"},
		"Narrow": {"A long name has its text below.", "a-long-name-of-all  " + strings.Repeat("word ", 8), 20, 40, "a-long-name-of-all\n    word word word word word word word\n    word"},
		"Colour": {"Colours take no column.", "\x1b[31mfail\x1b[0m  " + strings.Repeat("word ", 8), 6, 40, "\x1b[31mfail\x1b[0m  word word word word word word word\n      word"},
		"None":   {"Nothing to fold.", "ab", 4, 40, "ab"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, foldBehind(tc.line, tc.columns, tc.width)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFold: no word is lost or broken, and no line with two words is too long.
func TestFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-zé/]{1,30}`)).Draw(t, "words")
		width := rapid.IntRange(1, 60).Draw(t, "width")
		lines := fold(strings.Join(words, " "), width)
		if got := strings.Fields(strings.Join(lines, " ")); strings.Join(got, " ") != strings.Join(words, " ") {
			t.Fatalf("got %q of %q", got, words)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width && strings.Contains(l, " ") {
				t.Errorf("%q is wider than %d", l, width)
			}
		}
	})
}

// TestDoctorFolds: on a terminal every line of the report ends in time; a pipe
// gets one line for each check.
func TestDoctorFolds(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("what it says ", 20))
	r := reportOf([]checkItem{
		subject{"sources/clock", "main"}.failed(long, long), subject{"ledger/chain", strings.Repeat("d/", 20)}.warned(long, long), subject{"web", ""}.fine("well"),
	})
	show := func(width int, output string) string {
		var out bytes.Buffer
		if err := (&app{out: &out, colour: width > 0}).showReport(r, output, width); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, width := range []int{72, 80, 200} {
		text := show(width, formatTable)
		for line := range strings.Lines(text) {
			plain := line
			for _, code := range []string{"31", "32", "33", "39", "0"} {
				plain = strings.ReplaceAll(plain, "\x1b["+code+"m", "")
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(plain, "\n")); n > width {
				t.Errorf("%d columns where %d are there: %q", n, width, plain)
			}
		}
		if got := strings.Count(strings.Join(strings.Fields(text), " "), long); got != 4 {
			t.Errorf("width %d: %d of 4 texts are whole:\n%s", width, got, text)
		}
	}
	if n := strings.Count(show(0, formatTable), "\n"); n != 4+5+1 {
		t.Errorf("a pipe gets %d lines", n)
	}
}
