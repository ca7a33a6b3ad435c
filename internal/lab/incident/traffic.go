package incident

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

// How often the counters are read, in simulated time: as most do, and more
// rarely in the healthy hours before, which decide nothing but must be there.
const (
	scrape = 15 * time.Second
	coarse = time.Minute
	// fine is the step in which a course is followed.
	fine = time.Second
)

// traffic is the counters of all SLIs. It is safe for concurrent use.
type traffic struct {
	bulk *prom.Bulk

	mu      sync.Mutex
	effects []Effect
	// seen counts effects that fitted, as effects.
	seen    []int
	streams []*stream
}

// stream is the counter of one service and SLI.
type stream struct {
	service, sli string
	good, bad    float64
	// courses are what it follows, each from its time on; the latest begun one
	// counts.
	courses []begun
	// absent: the series have ended.
	absent bool
}

type begun struct {
	SLI
	at time.Time
}

func newTraffic(in Incident, engine *prom.Engine, start time.Time) *traffic {
	t := &traffic{effects: in.Effects, seen: make([]int, len(in.Effects))}
	var series []labels.Labels
	for _, s := range in.SLIs {
		for _, service := range s.services() {
			t.streams = append(t.streams, &stream{service: service, sli: s.SLI, courses: []begun{{s, start}}})
			for _, code := range []string{"200", "500"} {
				series = append(series, labels.FromStrings(
					"__name__", "requests_total", "code", code, "service", service, "sli", s.SLI))
			}
		}
	}
	t.bulk = engine.Bulk(series)
	return t
}

// scrape lets the time from one instant to another pass and stores what the
// counters then show.
func (t *traffic) scrape(from, to time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	values := make([]float64, 0, 2*len(t.streams))
	for _, s := range t.streams {
		good, bad := s.follow(from, to)
		values = append(values, good, bad)
	}
	return t.bulk.Scrape(to, values)
}

// follow counts, and gives what a scrape finds.
func (s *stream) follow(from, to time.Time) (good, bad float64) {
	step := fine
	if to.Sub(from) > scrape {
		step = to.Sub(from) // The healthy hours, in which nothing changes.
	}
	absent := false
	for at := from; at.Before(to); at = at.Add(step) {
		c := s.course(at)
		rate, share := c.Requests.at(at.Sub(c.at), c.Every), c.share(at.Sub(c.at))
		n := rate.Value * min(step, to.Sub(at)).Seconds()
		if absent = rate.Gone || share.Gone; !absent {
			s.good, s.bad = s.good+n*(1-share.Value), s.bad+n*share.Value
		}
	}
	was := s.absent
	s.absent = absent
	switch {
	case absent && was:
		return math.NaN(), math.NaN()
	case absent:
		return prom.Ended(), prom.Ended()
	}
	return s.good, s.bad
}

func (s *stream) course(at time.Time) begun {
	out := s.courses[0]
	for _, c := range s.courses[1:] {
		if !c.at.After(at) && !c.at.Before(out.at) {
			out = c
		}
	}
	return out
}

// applied is told of what an actuator carried out, and gives what somebody
// writes to its target after it.
func (t *traffic) applied(e execute.Envelope, now time.Time) (set []map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, ef := range t.effects {
		if ef.Service != e.Service || ef.Action != e.Action || !fits(ef.With, e.Parameters) {
			continue
		}
		t.seen[i]++
		if ef.Nth > 0 && ef.Nth != t.seen[i] {
			continue
		}
		for _, then := range ef.Then {
			t.begin(then, now.Add(ef.After))
		}
		if ef.Set != nil {
			set = append(set, ef.Set)
		}
	}
	return set
}

func (t *traffic) begin(then SLI, at time.Time) {
	for _, s := range t.streams {
		for _, name := range then.services() {
			if s.service == name && s.sli == then.SLI {
				s.courses = append(s.courses, begun{then, at})
			}
		}
	}
}

// fits reports whether an effect has the parameters.
func fits[M ~map[string]any](want M, got map[string]any) bool {
	for name, v := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(v) {
			return false
		}
	}
	return true
}
