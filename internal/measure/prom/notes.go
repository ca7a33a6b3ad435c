package prom

import (
	"regexp"
	"strings"
	"sync"
)

// maxNotes bounds how many remarks of one source are told: they hold names of
// metrics, so a hostile one could make up any number.
const maxNotes = 200

// position is where in the query a remark points to. Queries are rewritten, so
// it means nothing to people, and would make one remark many.
var position = regexp.MustCompile(`\s*\(\d+:\d+\)$`)

// notes are the remarks of a source that were told already.
type notes struct {
	mu   sync.Mutex
	told map[string]bool
}

// maxKey is as much of a remark as tells it from others.
const maxKey = 300

// fresh reports whether a remark was not told before.
func (n *notes) fresh(text string) bool {
	text = position.ReplaceAllString(text[:min(len(text), maxKey)], "")
	n.mu.Lock()
	defer n.mu.Unlock()
	if text == "" || n.told[text] || len(n.told) >= maxNotes {
		return false
	}
	if n.told == nil {
		n.told = map[string]bool{}
	}
	n.told[strings.Clone(text)] = true
	return true
}
