package measure

import (
	"strings"
	"time"
)

// Change is one entry of the change feed: somebody changed a service. It is
// context for a proposal and for policy, and never evidence of a state.
type Change struct {
	// At is when it took effect, by the clock of whoever reports it.
	At      time.Time `json:"at"`
	Service string    `json:"service"`
	// What and Version are words of the reporter, e.g. deploy and v42.
	What    string `json:"what"`
	Version string `json:"version"`
}

// Newest orders two changes, the newer first; equal times by their words, so
// that one feed always reads alike.
func (c Change) Newest(other Change) int {
	if n := other.At.Compare(c.At); n != 0 {
		return n
	}
	return strings.Compare(c.Service+"\x00"+c.What+"\x00"+c.Version, other.Service+"\x00"+other.What+"\x00"+other.Version)
}
