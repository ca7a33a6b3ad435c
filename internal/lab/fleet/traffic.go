package fleet

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// Spiky traffic: burstShare of the time has burstLoad of the requests.
const (
	burstShare = 0.01
	burstLoad  = 0.99
	// burst is how long each is.
	burst = 10 * time.Minute
	// calmErrors is the share of failed requests outside of bursts.
	calmErrors = 0.05
)

// brokenFor is how long before the end a broken service fails, and brokenErrors
// the share of its requests that do.
const (
	brokenFor    = time.Hour
	brokenErrors = 0.2
)

// bounds are the buckets of the histogram, in seconds, and shares the part of
// the requests that is at most that slow.
var (
	bounds = [...]float64{0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, math.Inf(1)}
	shares = [...]float64{0.1, 0.4, 0.8, 0.95, 0.99, 0.998, 0.9995, 1}
)

// instance is the true state of one exporter: fractions of requests included,
// which its counters do not show.
type instance struct {
	service   int
	rate      float64
	ok, fails float64
}

// page is what a scrape of the whole fleet finds.
type page struct {
	o         Options
	series    []labels.Labels
	instances []instance
	random    *rand.Rand
	bursts    []bool // by the index of a burst's length of time
}

func newPage(o Options) *page {
	p := &page{o: o, random: rand.New(rand.NewPCG(o.Seed, uint64(o.Services)))}
	for i := range o.Services {
		for k := range o.Instances {
			p.instances = append(p.instances, instance{service: i, rate: o.Rate * (0.5 + p.random.Float64())})
			p.series = append(p.series, o.counters(i, k)...)
		}
	}
	if o.Spiky {
		slots := int(o.Span/burst) + 1
		p.bursts = make([]bool, slots)
		for _, slot := range p.random.Perm(slots)[:max(1, int(math.Round(float64(slots)*burstShare)))] {
			p.bursts[slot] = true
		}
	}
	return p
}

// counters are the series of one instance, in the order in which values gives
// them.
func (o Options) counters(service, k int) []labels.Labels {
	name, at := Name(service), "i"+strconv.Itoa(k)
	out := []labels.Labels{
		labels.FromStrings("__name__", o.Metric(service), "service", name, "instance", at, "code", "200"),
		labels.FromStrings("__name__", o.Metric(service), "service", name, "instance", at, "code", "500"),
	}
	if !o.Histogram {
		return out
	}
	const seconds = "http_request_duration_seconds"
	for _, le := range bounds {
		out = append(out, labels.FromStrings("__name__", seconds+"_bucket", "service", name, "instance", at, "le", bound(le)))
	}
	return append(out,
		labels.FromStrings("__name__", seconds+"_count", "service", name, "instance", at),
		labels.FromStrings("__name__", seconds+"_sum", "service", name, "instance", at))
}

func bound(le float64) string {
	if math.IsInf(le, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(le, 'f', -1, 64)
}

// scrape moves the fleet one interval on, and fills in what its counters show.
func (p *page) scrape(at time.Time, values []float64) {
	step := p.o.Interval.Seconds()
	load, errors := p.weather(at)
	to := values[:0]
	for i := range p.instances {
		in := &p.instances[i]
		n := in.rate * step * load * (0.9 + 0.2*p.random.Float64())
		share := errors
		if in.service < p.o.Broken && at.After(p.o.End.Add(-brokenFor)) {
			share = brokenErrors
		}
		in.ok += n * (1 - share)
		in.fails += n * share
		to = in.show(to, p.o.Histogram)
	}
}

// weather is how busy the fleet is, as a factor, and which share of requests
// fails.
func (p *page) weather(at time.Time) (load, errors float64) {
	if p.bursts == nil {
		return 1, p.o.Errors
	}
	if p.bursts[int(p.o.Span/burst)-int(p.o.End.Sub(at)/burst)] {
		return burstLoad / burstShare, p.o.Errors
	}
	return (1 - burstLoad) / (1 - burstShare), calmErrors
}

// show appends what the counters of the instance have come to.
func (in *instance) show(to []float64, histogram bool) []float64 {
	ok, fails := math.Floor(in.ok), math.Floor(in.fails)
	to = append(to, ok, fails)
	if !histogram {
		return to
	}
	n := ok + fails
	for _, share := range shares {
		to = append(to, math.Floor(n*share))
	}
	return append(to, n, n*0.05)
}
