package fleet_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/fleet"
)

// rounds is how many pairs of an A and a B are measured.
const rounds = 7

// BenchmarkPass is B1: A is a whole sweep over healthy services, B the same
// queries sent by a client that only reads the answers.
//
//	due     sweeps one after another: the judge window, and what is due of the hour
//	look    the same without ledger, steps and telemetry: measured and compared
//	whole   the first sweep of a new agent: every window
func BenchmarkPass(b *testing.B) {
	const services = 10_000
	r := newRig(b, hourly(services))
	send := bare(b, r.url)
	pairs := func(b *testing.B, sweep func() cost) {
		var pass, raw []cost
		var queries int
		for range rounds {
			calls := r.recorded(func() { pass = append(pass, sweep()) })
			raw = append(raw, timed(func() { send(calls) }))
			queries = len(calls)
		}
		against(b, services, pass, raw)
		b.ReportMetric(float64(queries), "queries")
	}
	b.Run("due", func(b *testing.B) {
		a := r.agent(b, nil)
		healthy(b, a, services)
		pairs(b, func() cost {
			r.Clock.Pass(sweepEvery)
			return timed(func() { healthy(b, a, services) })
		})
	})
	b.Run("look", func(b *testing.B) {
		look := r.looker(b)
		look()
		pairs(b, func() cost {
			r.Clock.Pass(sweepEvery)
			return timed(look)
		})
	})
	b.Run("whole", func(b *testing.B) {
		dir := b.TempDir()
		known := r.start(b, func(o *fleet.AgentOptions) { o.Dir = dir })
		healthy(b, known, services)
		_ = known.Close()
		pairs(b, func() cost {
			r.Clock.Pass(sweepEvery)
			a := r.start(b, func(o *fleet.AgentOptions) { o.Dir = dir })
			defer func() { _ = a.Close() }()
			return timed(func() { healthy(b, a, services) })
		})
	})
}

// BenchmarkOneByOne is B2: A asks for every service by itself, B is our sweep
// over the same services and the same window of five minutes.
//
//	serial     A asks all that B asks, one service per query and one query at a time
//	parallel   the same, two at a time as B does
//	ratio      A asks one ratio per service, two at a time, and reads no answer
func BenchmarkOneByOne(b *testing.B) {
	const services = 1000
	r := newRig(b, hourly(services))
	send := bare(b, r.url)
	ours := r.agent(b, nil)
	healthy(b, ours, services)
	pairs := func(b *testing.B, oneByOne func()) {
		var alone, together []cost
		for range rounds {
			together = append(together, timed(func() { healthy(b, ours, services) }))
			alone = append(alone, timed(oneByOne))
		}
		against(b, services, alone, together)
	}
	// The time stands still, so that only the judge window is due.
	for concurrency, name := range []string{1: "serial", 2: "parallel"} {
		if name == "" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			single := r.agent(b, func(o *fleet.AgentOptions) { o.Chunk, o.Concurrency = 1, concurrency })
			healthy(b, single, services)
			pairs(b, func() { healthy(b, single, services) })
		})
	}
	b.Run("ratio", func(b *testing.B) {
		var calls []fleet.Call
		for i := range services {
			const expr = `sum(rate(http_requests_total{service=%[1]q,code=~"5.."}[5m])) / sum(rate(http_requests_total{service=%[1]q}[5m]))`
			form := url.Values{"query": {fmt.Sprintf(expr, fleet.Name(i))}, "time": {strconv.FormatInt(r.Clock.Now().Unix(), 10)}}
			calls = append(calls, fleet.Call{Path: "/api/v1/query", Form: form.Encode()})
		}
		pairs(b, func() { send(calls) })
	})
}

// BenchmarkGrowth is B5: the exponent with which a sweep over the judge window
// grows from 100 to 10,000 services, end to end and with a server that answers
// from memory, which leaves the client's part.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{100, 1000, 10_000}
	r := newRig(b, hourly(sizes[len(sizes)-1]))
	grow := func(b *testing.B, url string) {
		agents := map[int]*fleet.Agent{}
		costs := map[int][]cost{}
		for _, n := range sizes {
			agents[n] = r.agent(b, func(o *fleet.AgentOptions) { o.Set, o.URL = r.some(n), url })
			healthy(b, agents[n], n)
			healthy(b, agents[n], n)
		}
		for range rounds {
			for _, n := range sizes {
				// Small ones are repeated, so that all take a while.
				times := max(1, sizes[len(sizes)-1]/n/10)
				c := timed(func() {
					for range times {
						healthy(b, agents[n], n)
					}
				})
				costs[n] = append(costs[n], cost{c.wall / time.Duration(times), c.cpu / time.Duration(times)})
			}
		}
		few, many := median(costs[100]), median(costs[10_000])
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(growth(100, 10_000, few.wall, many.wall), "exponent")
		b.ReportMetric(growth(100, 10_000, few.cpu, many.cpu), "cpu-exponent")
		for _, n := range sizes {
			b.ReportMetric(millis(median(costs[n]).wall), fmt.Sprintf("ms@%d", n))
		}
	}
	b.Run("whole", func(b *testing.B) { grow(b, r.url) })
	b.Run("client", func(b *testing.B) {
		grow(b, serve(b, &remembering{next: r.recorder, answers: map[string]*httptest.ResponseRecorder{}}))
	})
}

// BenchmarkHeap is B14: what an agent keeps between two sweeps, documents,
// compiled queries, held values, assessments and ledger included.
func BenchmarkHeap(b *testing.B) {
	const services = 10_000
	r := newRig(b, hourly(services))
	r.set.Services = nil
	empty := heap()
	set, err := r.Options.Set()
	if err != nil {
		b.Fatal(err)
	}
	r.set = set
	documents := heap()
	a := r.agent(b, nil)
	started := heap()
	for range 3 {
		healthy(b, a, services)
		r.Clock.Pass(sweepEvery)
	}
	idle := heap()
	mb := func(from, to uint64) float64 { return (float64(to) - float64(from)) / (1 << 20) / (services / 1000) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mb(empty, idle), "MB/1000-services")
	b.ReportMetric(mb(empty, documents), "MB-documents")
	b.ReportMetric(mb(documents, started), "MB-compiled")
	b.ReportMetric(mb(started, idle), "MB-measured")
	b.ReportMetric(services, "N")
	runtime.KeepAlive(a)
}

// heap is what is in use after everything else was freed.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools held is free only now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRestart is B16. A is from the start of an agent with a ledger that
// knows every service, and with the documents in memory, to the end of its
// first sweep, in which every window is asked. B is the mean of the four sweeps
// of a minute in steady state, in which each window of an hour is asked once.
// What reading the documents takes besides is reported beside it.
func BenchmarkRestart(b *testing.B) {
	const services = 10_000
	r := newRig(b, hourly(services))
	dir := b.TempDir()
	restart := func() *fleet.Agent { return r.start(b, func(o *fleet.AgentOptions) { o.Dir = dir }) }
	a := restart()
	healthy(b, a, services)
	var first, normal, read []cost
	for range rounds {
		if err := a.Close(); err != nil {
			b.Fatal(err)
		}
		a = nil
		r.Clock.Pass(sweepEvery)
		first = append(first, timed(func() {
			a = restart()
			healthy(b, a, services)
		}))
		c := timed(func() {
			for range 4 {
				r.Clock.Pass(sweepEvery)
				healthy(b, a, services)
			}
		})
		normal = append(normal, cost{c.wall / 4, c.cpu / 4})
		read = append(read, timed(func() {
			if _, err := r.Options.Set(); err != nil {
				b.Fatal(err)
			}
		}))
	}
	_ = a.Close()
	against(b, services, first, normal)
	b.ReportMetric(millis(median(read).wall), "documents-ms")
}
