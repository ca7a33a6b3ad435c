package prom

import (
	"maps"
	"net/http"
	"sync"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/stats"
)

// Counts are what clients asked of the handler, and what it cost, by the
// engine's own statistics. They are exact, so a test may demand them.
type Counts struct {
	// Requests are by endpoint, e.g. "query" or "label/{name}/values".
	Requests map[string]int64
	// Samples is totalQueryableSamples over all queries: the samples that they
	// went through, whether they held them at once or not.
	Samples int64
	// Series are the series that selectors touched; one that two selectors
	// touch counts twice.
	Series int64
	// Returned are the series in the answers.
	Returned int64
	// Failed are the queries that ended in an error.
	Failed int64
}

// Queries are the instant and the range queries.
func (c Counts) Queries() int64 { return c.Requests["query"] + c.Requests["query_range"] }

// Since is what came on top of an earlier reading.
func (c Counts) Since(earlier Counts) Counts {
	out := Counts{
		Requests: maps.Clone(c.Requests), Samples: c.Samples - earlier.Samples, Series: c.Series - earlier.Series,
		Returned: c.Returned - earlier.Returned, Failed: c.Failed - earlier.Failed,
	}
	for name, n := range earlier.Requests {
		if out.Requests[name] -= n; out.Requests[name] == 0 {
			delete(out.Requests, name)
		}
	}
	return out
}

// Counts reads the counts since the engine began. What the engine is asked past
// its handler is not in them.
func (e *Engine) Counts() Counts {
	e.counts.mu.Lock()
	defer e.counts.mu.Unlock()
	c := e.counts.Counts
	c.Requests = maps.Clone(c.Requests)
	return c
}

type counter struct {
	Counts

	mu sync.Mutex
}

// asked counts the requests of one endpoint.
func (c *counter) asked(endpoint string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		if c.Requests == nil {
			c.Requests = map[string]int64{}
		}
		c.Requests[endpoint]++
		c.mu.Unlock()
		h(w, r)
	}
}

// ran counts what one query cost, to whatever end it came.
func (c *counter) ran(s *stats.Statistics, res *promql.Result) {
	n := 0
	switch v := res.Value.(type) {
	case promql.Vector:
		n = len(v)
	case promql.Matrix:
		n = len(v)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Samples += s.Samples.TotalSamples
	c.Series += s.Samples.TotalSeries
	c.Returned += int64(n)
	if res.Err != nil {
		c.Failed++
	}
}
