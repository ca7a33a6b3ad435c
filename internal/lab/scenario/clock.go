package scenario

import (
	"sync"
	"time"
)

// epoch is where simulated time begins. It is later than any real clock: the
// first entry of a ledger bears the real time, and stamps never go back.
var epoch = time.Date(2100, time.January, 4, 0, 0, 0, 0, time.UTC)

// clock is simulated time. It stands still but for advance.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
