package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the candidate most like the word, or "" when none is close
// enough to be what was meant.
func Nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	best, bestDistance := "", 1+max(1, len(word)/3)
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if fold(c) == fold(word) {
			return c
		}
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// fold makes errorQuery, error_query and error-query one word.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// didYouMean is the end of a sentence about a word that is not one of the
// known ones.
func didYouMean(word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// distance counts the single-letter edits between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
