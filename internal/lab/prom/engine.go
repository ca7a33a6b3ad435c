// Package prom is Prometheus's own engine in this process: storage, query
// engine and scrape manager, behind the part of the HTTP API that a client
// needs. It takes samples, scraped or simulated, and gives what a real server
// would answer.
package prom

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are what an engine is made of.
type Options struct {
	// Dir holds the storage; it is the caller's to remove.
	Dir string
	// Now is the time of a query that names none; nil is the real clock.
	Now func() time.Time
}

// Engine stores and queries. It is safe for concurrent use.
type Engine struct{}

// New opens an engine over an empty storage.
func New(o Options) (*Engine, error) { panic("lab") }

// Close ends scraping and closes the storage.
func (e *Engine) Close() error { panic("lab") }

// Handler answers /api/v1/query and /api/v1/query_range, GET and POST, and
// /-/ready, as Prometheus does.
func (e *Engine) Handler() http.Handler { panic("lab") }

// Target is one exporter to scrape.
type Target struct {
	Job string
	// URL is of the metrics page.
	URL string
}

// Scrape scrapes the targets with Prometheus's own manager until ctx ends.
func (e *Engine) Scrape(ctx context.Context, targets []Target, interval time.Duration) error {
	panic("lab")
}

// Ingest stores what a registry holds at a simulated instant, as one scrape of
// a job. A nil gatherer is a scrape that failed: the series of the job end
// there, as the scrape manager ends them.
func (e *Engine) Ingest(at time.Time, job string, g prometheus.Gatherer) error { panic("lab") }

// Value asks for one number at one instant; ok is false for an empty answer.
func (e *Engine) Value(ctx context.Context, expr string, at time.Time) (v float64, ok bool, err error) {
	panic("lab")
}
