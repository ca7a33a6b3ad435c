package shop

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Shares of requests or jobs that fail.
const (
	// baseShare fails in the best of times, well within every target of slo/.
	baseShare = 0.002
	// brokenShare fails while checkout is broken, by whichever fault.
	brokenShare = 0.6
	// poisonedShare of all jobs fails while any shard is poisoned: it fails at
	// once and is free for the next job, so it takes what a healthy one would
	// have got. Mending one of two therefore changes nothing.
	poisonedShare = 0.5
)

// Requests and jobs a second.
const (
	checkoutRate   = 27
	catalogRate    = 32
	fulfilmentRate = 40
	// shardRate is what one of the shards can work off.
	shardRate = 12
)

const (
	shards = 4
	// healAfter is how long a fault that heals alone lasts.
	healAfter = 90 * time.Second
	// restartTime is how long something that was restarted is away.
	restartTime = 3 * time.Second

	firstVersion, goodVersion, badVersion = "v40", "v41", "v42"
	catalogVersion                        = "v17"
	firstReplicas                         = 4
)

// pause is a time in which a share of what would succeed is dropped, because
// something healthy was restarted.
type pause struct {
	until time.Duration
	share float64
}

// core is the state of the shop and what follows from it for one request or
// job. Its clock is its own: Tick or Serve moves it.
type core struct {
	mu    sync.Mutex
	clock time.Duration

	version, previous string
	badRelease        bool
	unfixable         bool
	healAt            time.Duration
	replicas          int
	poisoned          [shards]bool
	next              int // the shard that is recycled next
	deadExporter      bool
	pauses            map[string]pause
	harm              int
	queued            int // jobs that wait, in simulated time

	// owed spreads failures evenly, so that the smallest window shows the
	// share, and a verdict about it does not hang on luck.
	owed    map[string]float64
	traffic map[string]*traffic

	registries map[string]*prometheus.Registry
	requests   map[string]*prometheus.CounterVec
	jobs       *prometheus.CounterVec
	depth      prometheus.Gauge
	replicaset prometheus.Gauge
}

// traffic is how much arrives: a rate with a seeded unrest, exact over time.
type traffic struct {
	rate float64
	owed float64
	rand *rand.Rand
}

// arrivals in the next d.
func (t *traffic) arrivals(d time.Duration) int {
	t.owed += t.rate * d.Seconds() * (0.9 + 0.2*t.rand.Float64())
	n := int(t.owed)
	t.owed -= float64(n)
	return n
}

func newCore(seed uint64) *core {
	c := &core{
		version: goodVersion, previous: firstVersion, replicas: firstReplicas,
		pauses: map[string]pause{}, owed: map[string]float64{}, traffic: map[string]*traffic{},
	}
	rates := map[string]float64{Catalog: catalogRate, Checkout: checkoutRate, Fulfilment: fulfilmentRate}
	for i, name := range Names() {
		//nolint:gosec // Simulated traffic has to be repeatable, not secret.
		c.traffic[name] = &traffic{rate: rates[name], rand: rand.New(rand.NewPCG(seed, uint64(i)))}
	}
	c.register()
	return c
}

func (c *core) register() {
	c.registries = map[string]*prometheus.Registry{}
	for _, name := range Names() {
		c.registries[name] = prometheus.NewRegistry()
	}
	c.requests = map[string]*prometheus.CounterVec{}
	for _, name := range []string{Catalog, Checkout} {
		c.requests[name] = prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shop_http_requests_total", Help: "Requests by status code and version.",
			ConstLabels: prometheus.Labels{"service": name},
		}, []string{"code", "version"})
		c.registries[name].MustRegister(c.requests[name])
	}
	own := prometheus.Labels{"service": Fulfilment}
	c.jobs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "shop_jobs_total", Help: "Jobs by result.", ConstLabels: own,
	}, []string{"result"})
	c.depth = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "shop_queue_depth", Help: "Jobs that wait for a worker.", ConstLabels: own,
	})
	c.registries[Fulfilment].MustRegister(c.jobs, c.depth)
	c.replicaset = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "shop_replicas", Help: "Replicas that serve.", ConstLabels: prometheus.Labels{"service": Checkout},
	})
	c.replicaset.Set(firstReplicas)
	c.registries[Checkout].MustRegister(c.replicaset)

	// A series that is born with its first failure hides that failure from
	// increase(), so every series starts at zero.
	c.announce(Catalog, catalogVersion)
	c.announce(Checkout, goodVersion)
	c.jobs.WithLabelValues("done")
	c.jobs.WithLabelValues("failed")
}

func (c *core) announce(service, version string) {
	for _, code := range []int{http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		c.requests[service].WithLabelValues(strconv.Itoa(code), version)
	}
}

// request serves one request and counts it.
func (c *core) request(service string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, share := catalogVersion, baseShare
	if service == Checkout {
		version = c.version
		if c.broken() {
			share = brokenShare
		}
	}
	code := http.StatusOK
	switch {
	case c.owes(service, share):
		code = http.StatusInternalServerError
	case c.paused(service):
		code = http.StatusServiceUnavailable
		c.harm++
	}
	c.requests[service].WithLabelValues(strconv.Itoa(code), version).Inc()
	return code
}

// job works one job off and counts it.
func (c *core) job() {
	c.mu.Lock()
	defer c.mu.Unlock()
	share := baseShare
	for _, p := range c.poisoned {
		if p {
			share = poisonedShare
		}
	}
	result := "done"
	switch {
	case c.owes(Fulfilment, share):
		result = "failed"
	case c.paused(Fulfilment):
		result = "failed"
		c.harm++
	}
	c.jobs.WithLabelValues(result).Inc()
}

// broken tells whether checkout fails most requests.
func (c *core) broken() bool {
	return c.unfixable || c.clock < c.healAt || c.badRelease && c.version != goodVersion
}

// owes is true for a share of its calls, evenly spread.
func (c *core) owes(what string, share float64) bool {
	c.owed[what] += share
	if c.owed[what] < 1 {
		return false
	}
	c.owed[what]--
	return true
}

func (c *core) paused(service string) bool {
	p := c.pauses[service]
	return c.clock < p.until && c.owes(service+" paused", p.share)
}

// advance moves the clock.
func (c *core) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock += d
}

// slice is the longest time in which nothing changes within a tick.
const slice = time.Second

func (c *core) tick(d time.Duration) {
	for ; d > 0; d -= slice {
		c.slice(min(d, slice))
	}
}

func (c *core) slice(d time.Duration) {
	for _, name := range []string{Catalog, Checkout} {
		for range c.traffic[name].arrivals(d) {
			c.request(name)
		}
	}
	done := c.work(d)
	for range done {
		c.job()
	}
	c.advance(d)
}

// work lets the queue grow by what arrives and shrink by what the shards can
// do, and gives how many jobs were worked off.
func (c *core) work(d time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued += c.traffic[Fulfilment].arrivals(d)
	able := shards * shardRate * d.Seconds()
	c.owed["work"] += able
	done := min(c.queued, int(c.owed["work"]))
	// What could not be used is not saved up.
	c.owed["work"] = min(c.owed["work"]-float64(done), 1)
	c.queued -= done
	c.depth.Set(float64(c.queued))
	return done
}

func (c *core) dead(service string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return service == Catalog && c.deadExporter
}

func (c *core) harmed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.harm
}
