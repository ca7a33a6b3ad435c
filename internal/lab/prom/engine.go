// Package prom is Prometheus's own engine in this process: storage, query
// engine and scrape manager, behind the part of the HTTP API that a client
// needs. It takes samples, scraped, simulated or loaded in bulk, and gives what
// a real server would answer, and exact counts of what it was asked.
package prom

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// What a server has by default.
const (
	queryTimeout  = 2 * time.Minute
	maxSamples    = 50_000_000
	lookbackDelta = 5 * time.Minute
)

// retention holds two of the longest windows that slo/ asks for.
const retention = 62 * 24 * time.Hour

// Options are what an engine is made of.
type Options struct {
	// Dir holds the storage; it is the caller's to remove.
	Dir string
	// Now is the time of a query that names none; nil is the real clock.
	Now func() time.Time
	// Retention is how long samples are kept, and what the server says of it;
	// zero holds two of the longest windows that slo/ asks for. Like a server,
	// it removes whole blocks, so that a little more than it may be found.
	Retention time.Duration
	// MaxSamples is how many samples one query may hold at once; zero is what a
	// server has by default.
	MaxSamples int
	// Block is how much time one block holds at first; zero is what a server
	// has. A longer one keeps a long history in one piece, loaded faster.
	Block time.Duration
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Retention <= 0 {
		o.Retention = retention
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = maxSamples
	}
	return o
}

// Engine stores and queries. It is safe for concurrent use.
type Engine struct {
	opts   Options
	start  time.Time
	db     *tsdb.DB
	engine *promql.Engine
	parser parser.Parser
	counts counter

	// ctx ends with Close, and every running Scrape with it.
	ctx      context.Context
	cancel   context.CancelFunc
	mu       sync.Mutex // guards closed, jobs and every simulated scrape
	closed   bool
	scraping sync.WaitGroup
	jobs     map[string]series
}

// New opens an engine over an empty storage.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	opts := tsdb.DefaultOptions()
	opts.RetentionDuration = o.Retention.Milliseconds()
	if o.Block > 0 {
		opts.MinBlockDuration = o.Block.Milliseconds()
		opts.MaxBlockDuration = max(opts.MaxBlockDuration, opts.MinBlockDuration)
	}
	// A storage that nobody opens a second time needs no log to recover from.
	opts.WALSegmentSize = -1
	opts.NoLockfile = true
	db, err := tsdb.Open(o.Dir, promslog.NewNopLogger(), nil, opts, nil)
	if err != nil {
		return nil, fmt.Errorf("open the storage in %s: %w", o.Dir, err)
	}
	e := &Engine{
		opts: o, start: o.Now(), db: db, jobs: map[string]series{},
		parser: parser.NewParser(parser.Options{}),
	}
	e.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples:           o.MaxSamples,
		Timeout:              queryTimeout,
		LookbackDelta:        lookbackDelta,
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
		EnablePerStepStats:   true,
		Parser:               e.parser,
	})
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Close ends scraping and closes the storage. Calling it again does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.cancel()
	e.scraping.Wait()
	return errors.Join(e.engine.Close(), e.db.Close())
}

// Value asks for one number at one instant; ok is false for an empty answer.
func (e *Engine) Value(ctx context.Context, expr string, at time.Time) (v float64, ok bool, err error) {
	q, err := e.engine.NewInstantQuery(ctx, e.db, nil, expr, at)
	if err != nil {
		return 0, false, fmt.Errorf("query %q: %w", expr, err)
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return 0, false, fmt.Errorf("query %q: %w", expr, r.Err)
	}
	switch v := r.Value.(type) {
	case promql.Scalar:
		return v.V, true, nil
	case promql.Vector:
		if len(v) == 0 {
			return 0, false, nil
		}
		if len(v) == 1 && v[0].H == nil {
			return v[0].F, true, nil
		}
		return 0, false, fmt.Errorf("query %q: %d series instead of one number; sum them", expr, len(v))
	}
	return 0, false, fmt.Errorf("query %q: a %s instead of one number", expr, r.Value.Type())
}
