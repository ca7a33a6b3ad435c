package slack

import (
	"context"
	"sync"
	"time"
)

// jobFor bounds one job of a queue.
const jobFor = 10 * time.Second

// queue does jobs one after another, beside everything else. A full one takes no
// more: what waits there is best effort.
type queue struct {
	mu     sync.Mutex
	closed bool
	jobs   chan func(context.Context)
	cut    context.CancelFunc
	ended  chan struct{}
}

func newQueue(size int) *queue {
	ctx, cut := context.WithCancel(context.Background())
	q := &queue{jobs: make(chan func(context.Context), size), cut: cut, ended: make(chan struct{})}
	go func() {
		defer close(q.ended)
		for job := range q.jobs {
			if ctx.Err() == nil {
				run(ctx, job)
			}
		}
	}()
	return q
}

func run(ctx context.Context, job func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, jobFor)
	defer cancel()
	job(ctx)
}

// do reports whether the job was taken.
func (q *queue) do(job func(context.Context)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	select {
	case q.jobs <- job:
		return true
	default:
		return false
	}
}

// close does what waits, for a while, and cuts the rest.
func (q *queue) close(wait time.Duration) {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.jobs)
	}
	q.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-q.ended:
	case <-t.C:
	}
	q.cut()
	<-q.ended
}
