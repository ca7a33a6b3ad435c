package openai

import "github.com/setpoint-dev/setpoint/internal/propose"

// What the tests of this package look at from outside.
var (
	NewTransport = transport
	Rules        = rules
)

// Follows says in words what follows a result.
func (r rule) Follows() string {
	s := ""
	for _, w := range []struct {
		is   bool
		word string
	}{{r.repair, "repair "}, {r.longer, "longer "}, {r.next, "next "}, {r.health == well, "well"}, {r.health == ill, "ill"}} {
		if w.is {
			s += w.word
		}
	}
	return s
}

// OpenAfter is from how many failures on one question goes first.
const OpenAfter = openAfter

// Codes are all results.
func Codes() map[string]bool {
	out := map[string]bool{propose.FaultResting: true}
	for code := range rules {
		out[code] = true
	}
	return out
}
