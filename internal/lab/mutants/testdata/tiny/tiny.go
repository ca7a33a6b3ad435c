// Package tiny is what the runner's own test breaks.
package tiny

// Less reports whether a is less than b.
func Less(a, b int) bool { return a < b }

// Most is a limit that no test looks at.
const Most = 10

// Down counts down and returns 0.
func Down(n int) int {
	for n > 0 {
		n--
	}
	return n
}
