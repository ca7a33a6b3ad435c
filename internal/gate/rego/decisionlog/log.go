package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
)

// What may wait to be written. Decisions are recorded only when they are news,
// so that this much is a file system that hangs.
const (
	maxWaiting      = 512
	maxWaitingBytes = 32 << 20
)

// Options are what Open needs.
type Options struct {
	// Path is the file; it is created with mode 0600.
	Path string
	// Mask are pointers that are removed from each event, beside what the bundle
	// says.
	Mask []string
	// Labels are those of each event: which agent it is.
	Labels map[string]string
	// Logger hears of the first fault in a row; nil hears nothing.
	Logger *slog.Logger
}

// Log writes decisions in the order in which they came.
type Log struct {
	o     Options
	masks []mask
	to    writer

	// mu orders Record before Close: what was taken is written or counted.
	mu     sync.RWMutex
	closed bool
	queue  chan waiting
	stop   chan struct{}
	done   chan struct{}

	// bytes and pending are what was taken and not written yet.
	bytes, pending atomic.Int64
	lost           atomic.Uint64
	// failing is set from the first fault to the next line that is written.
	failing atomic.Bool

	// bundle are the masks of the newest policy; only the writer uses them.
	bundle masks
}

// writer is a file of lines. Only one goroutine uses it, which may hang in it.
type writer interface {
	follow() error
	write(line []byte) error
}

// waiting is a decision on its way, with the trace that made it.
type waiting struct {
	Decision
	span trace.SpanContext
}

// Open begins to write. A file that cannot be opened is no error: people hear
// of it at once, and it is tried again with each decision. A mask that is no
// pointer is one.
func Open(o Options) (*Log, error) { return start(o, &file{path: o.Path}) }

func start(o Options, to writer) (*Log, error) {
	l := &Log{o: o, to: to, queue: make(chan waiting, maxWaiting), stop: make(chan struct{}), done: make(chan struct{})}
	if l.o.Logger == nil {
		l.o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, path := range o.Mask {
		m, err := parsePointer(path)
		if err != nil {
			return nil, fmt.Errorf("decision log: %q: %w", path, err)
		}
		l.masks = append(l.masks, m)
	}
	go l.run()
	return l, nil
}

// Lost is how many decisions were not written.
func (l *Log) Lost() uint64 { return l.lost.Load() }

// errFull is a file system that hangs.
var errFull = errors.New("too much waits to be written")

// Record takes a decision to be written. It never waits: where too much waits
// already, the decision is lost and counted. It is not to be changed any more.
func (l *Log) Record(ctx context.Context, d Decision) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	size := int64(len(d.Input))
	if l.closed || l.bytes.Load()+size > maxWaitingBytes {
		l.lose(errFull)
		return
	}
	l.bytes.Add(size)
	l.pending.Add(1)
	select {
	case l.queue <- waiting{Decision: d, span: trace.SpanContextFromContext(ctx)}:
	default:
		l.settle(d)
		l.lose(errFull)
	}
}

// settle takes a decision out of what waits.
func (l *Log) settle(d Decision) {
	l.bytes.Add(-int64(len(d.Input)))
	l.pending.Add(-1)
}

// Close writes what was taken, as long as ctx lasts; the error says how many
// decisions are lost.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
	}
	left := max(0, l.pending.Swap(0))
	l.lost.Add(uint64(left))
	return fmt.Errorf("decision log: %d decisions were not written to %s: %w", left, l.o.Path, ctx.Err())
}

func (l *Log) run() {
	defer close(l.done)
	if err := l.to.follow(); err != nil {
		l.complain(err)
	}
	for {
		select {
		case w := <-l.queue:
			l.one(w)
		case <-l.stop:
			l.rest()
			return
		}
	}
}

func (l *Log) rest() {
	for {
		select {
		case w := <-l.queue:
			l.one(w)
		default:
			return
		}
	}
}

// one writes a decision or counts it. A panic costs one line.
func (l *Log) one(w waiting) {
	defer l.settle(w.Decision)
	defer func() {
		if caught := recover(); caught != nil {
			l.lose(fmt.Errorf("panic: %v", caught))
		}
	}()
	line, err := l.line(w)
	if err == nil {
		err = l.to.write(line)
	}
	switch {
	case err != nil:
		l.lose(err)
	case l.failing.Swap(false):
		l.o.Logger.Info("the decision log is written again", "file", l.o.Path, "lost", l.Lost())
	}
}

func (l *Log) lose(err error) {
	l.lost.Add(1)
	l.complain(err)
}

// complain tells the first fault in a row.
func (l *Log) complain(err error) {
	if !l.failing.Swap(true) {
		l.o.Logger.Error("the decision log cannot be written; decisions go on without it, and are counted", "file", l.o.Path, "err", err)
	}
}

// line is the event of a decision with what is to be masked taken out.
func (l *Log) line(w waiting) ([]byte, error) {
	e, err := eventOf(w.Decision, l.o.Labels)
	if err != nil {
		return nil, err
	}
	if w.span.IsValid() {
		e.TraceID, e.SpanID = w.span.TraceID().String(), w.span.SpanID().String()
	}
	if w.Policy == nil {
		e.withhold("no policy is loaded, so that nobody knows what it masks")
		return e.line()
	}
	all, err := l.masksOf(w.Policy).of(context.Background(), e)
	if err != nil {
		e.withhold(words(err))
		l.warn(err)
		return e.line()
	}
	apply(&e, append(all, l.masks...))
	return e.line()
}

// masksOf are the masks of a policy, compiled once for each.
func (l *Log) masksOf(p Policy) *masks {
	if revision := p.Revision(); l.bundle.revision != revision {
		l.bundle = masksOf(p)
	}
	return &l.bundle
}

// warn tells once for each policy that it cannot say what it masks.
func (l *Log) warn(err error) {
	if !l.bundle.warned {
		l.bundle.warned = true
		l.o.Logger.Error("the policy cannot say what is to be masked; events have neither input nor result", "policy", l.bundle.revision, "err", words(err))
	}
}
