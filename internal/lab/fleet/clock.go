package fleet

import (
	"sync/atomic"
	"time"
)

// Clock is time that goes by only when it is told. The server and the agent of
// a fleet share one. It is safe for concurrent use.
type Clock struct{ now atomic.Int64 }

// Now is the time.
func (c *Clock) Now() time.Time { return time.Unix(0, c.now.Load()).UTC() }

// Pass lets time go by.
func (c *Clock) Pass(d time.Duration) { c.now.Add(int64(d)) }

// Set is for the time before anything was measured.
func (c *Clock) Set(t time.Time) { c.now.Store(t.UnixNano()) }
