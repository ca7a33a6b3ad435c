package patience

import (
	"maps"
	"sync"
	"time"
)

// How carefully groups grow again after they were found too large.
const (
	firstGood = 5
	mostGood  = 64
	maxSizes  = 4096
)

// Sizes remember how many services may share a query of one shape and window,
// where that is fewer than the source's chunk. One group that fails among many
// is taken apart by itself; here most of them failed.
type Sizes struct {
	chunk int

	mu    sync.Mutex
	known map[SizeKey]*size
}

// SizeKey is what groups of one kind have in common.
type SizeKey struct {
	Shape  string
	Window time.Duration
}

type size struct {
	members    int
	good, need int // calls that went well, and how many let it grow
}

// Tally is how the groups of one shape and window did in one call of Measure.
type Tally struct {
	// Sent counts groups, Failed those that were too large or too slow.
	Sent, Failed int
	// Members is how many the largest had that failed.
	Members int
	// Blamed: one of them failed although the source worked.
	Blamed bool
}

// NewSizes starts with groups of chunk members.
func NewSizes(chunk int) *Sizes {
	return &Sizes{chunk: chunk, known: map[SizeKey]*size{}}
}

// Of is how many members a group may have.
func (s *Sizes) Of(shape string, window time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if z, ok := s.known[SizeKey{shape, window}]; ok {
		return z.members
	}
	return s.chunk
}

// Learn takes the tallies of one call.
func (s *Sizes) Learn(ts map[SizeKey]*Tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, t := range ts {
		z := s.known[k]
		if t.tooLarge() {
			if z == nil && s.room() {
				z = &size{}
				s.known[k] = z
			}
			z.shrink(t.Members / 2)
		} else if 2*t.Failed < t.Sent {
			z.grow(s.chunk)
		}
	}
}

// tooLarge: most of several groups failed, and not because the source is down.
func (t *Tally) tooLarge() bool {
	return t.Sent > 1 && 2*t.Failed > t.Sent && t.Blamed && t.Members > 1
}

// Both take nil for a kind of groups that is not remembered.
func (z *size) shrink(members int) {
	if z != nil {
		z.members, z.good, z.need = members, 0, min(max(firstGood, 2*z.need), mostGood)
	}
}

func (z *size) grow(chunk int) {
	if z == nil {
		return
	}
	if z.good++; z.good >= z.need {
		z.good, z.members = 0, min(2*z.members, chunk)
	}
}

// room makes room for one more, of those that are whole again.
func (s *Sizes) room() bool {
	if len(s.known) >= maxSizes {
		maps.DeleteFunc(s.known, func(_ SizeKey, z *size) bool { return z.members >= s.chunk })
	}
	return len(s.known) < maxSizes
}
