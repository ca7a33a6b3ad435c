package patience

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// maxMemory bounds what is remembered of single queries. What is forgotten
// costs a query that fails again.
const maxMemory = 8192

// How long something is remembered: a refused query rests, and a group that
// could not be answered as a whole is asked in halves. Each doubles when it
// happens again.
const (
	firstRefusal = 30 * time.Second // the default pass
	maxRefusal   = 5 * time.Minute
	groupRefusal = 15 * time.Minute
	firstHeavy   = 10 * time.Minute
	maxHeavy     = 6 * time.Hour
)

// Verdict is what is remembered of a query.
type Verdict int

const (
	// Refused is a query that the server refuses, or one of the group.
	Refused Verdict = iota + 1
	// Heavy is a query that was too large or took too long.
	Heavy
)

// Key identifies a query from pass to pass: its text, and how far before now
// its instant lies, since what cannot be answered of last week may well be
// answered of today.
type Key [sha256.Size]byte

// KeyOf identifies a query that is asked now.
func KeyOf(expr string, at, now time.Time) Key {
	var ago int64
	if d := now.Sub(at); d >= 150*time.Second {
		ago = int64(d / time.Minute)
	}
	return sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(ago)), expr...))
}

// Memory remembers the queries that failed lately.
type Memory struct {
	mu    sync.Mutex
	known map[Key]*list.Element
	order *list.List // of *memo, the newest first
}

type memo struct {
	key     Key
	verdict Verdict
	text    string // the server's words
	since   time.Time
	rest    time.Duration
}

// NewMemory remembers nothing yet.
func NewMemory() *Memory { return &Memory{known: map[Key]*list.Element{}, order: list.New()} }

// Memo is what is remembered of one query; the zero Memo is nothing.
type Memo struct {
	Verdict Verdict
	// Text is the server's words.
	Text string
	// Holds: the query need not be tried again yet.
	Holds bool
}

// Look returns what is remembered of a query.
func (m *Memory) Look(k Key, now time.Time) Memo {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.known[k]
	if !ok {
		return Memo{}
	}
	found := e.Value.(*memo)
	passed := now.Sub(found.since)
	return Memo{Verdict: found.verdict, Text: found.text, Holds: passed >= 0 && passed < found.rest}
}

// Learn remembers that a query failed, for longer each time.
func (m *Memory) Learn(k Key, v Verdict, text string, now time.Time) {
	first, most := firstRefusal, maxRefusal
	if v == Heavy {
		first, most = firstHeavy, maxHeavy
	}
	m.put(k, v, text, now, func(before time.Duration) time.Duration { return min(max(first, 2*before), most) })
}

// Part remembers that a group has to be asked in halves, because one of its
// members is refused.
func (m *Memory) Part(k Key, now time.Time) {
	m.put(k, Refused, "", now, func(time.Duration) time.Duration { return groupRefusal })
}

func (m *Memory) put(k Key, v Verdict, text string, now time.Time, rest func(before time.Duration) time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.known[k]
	if !ok {
		e = m.order.PushFront(&memo{key: k})
		m.known[k] = e
	}
	m.order.MoveToFront(e)
	found := e.Value.(*memo)
	if found.verdict != v {
		found.rest = 0
	}
	found.verdict, found.text, found.since, found.rest = v, text, now, rest(found.rest)
	if m.order.Len() > maxMemory {
		oldest := m.order.Remove(m.order.Back()).(*memo)
		delete(m.known, oldest.key)
	}
}

// Touch keeps a memo that still proves right.
func (m *Memory) Touch(k Key, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.known[k]; ok {
		m.order.MoveToFront(e)
		e.Value.(*memo).since = now
	}
}

// Forget forgets a query, because it was answered.
func (m *Memory) Forget(k Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.known[k]; ok {
		m.order.Remove(e)
		delete(m.known, k)
	}
}
