package month

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// services are those of the shop, with their requests a second at noon.
var services = []struct {
	name string
	rate float64
}{{"catalog", 40}, {"checkout", 25}, {"fulfilment", 15}, {"payments", 25}, {"search", 60}}

// actuatorURL is where the documents say that actions go. Nothing is sent there.
const actuatorURL = "http://actuator.internal/"

// baseShare fails in the best of times, well within every target.
const baseShare = 0.0002

// shop is the services with their actuator. It is safe for concurrent use.
type shop struct {
	now    func() time.Time
	random *rand.Rand
	bulk   *prom.Bulk

	mu     sync.Mutex
	faults []*fault
	totals []float64 // good and failed in turn, as services
	// done are the keys that were carried out, and state what each target
	// reports.
	done    map[gate.Key]bool
	state   map[string]propose.Live // by the URL of the target
	release int
}

func newShop(engine *prom.Engine, faults []*fault, random *rand.Rand, now func() time.Time) *shop {
	s := &shop{
		now: now, random: random, faults: faults, totals: make([]float64, 2*len(services)),
		done: map[gate.Key]bool{}, release: 41,
		state: map[string]propose.Live{},
	}
	s.deploy(41, 40)
	s.unscale()
	var series []labels.Labels
	for _, svc := range services {
		for _, code := range []string{"200", "500"} {
			series = append(series, labels.FromStrings("__name__", "http_requests_total", "service", svc.name, "code", code))
		}
	}
	s.bulk = engine.Bulk(series)
	return s
}

func (s *shop) deploy(version, previous int) {
	s.state[actuatorURL+"checkout/release"] = propose.Live{
		"version": fmt.Sprintf("v%d", version), "previousVersion": fmt.Sprintf("v%d", previous),
	}
}

func (s *shop) unscale() {
	for _, service := range []string{"checkout", "search"} {
		s.state[actuatorURL+service+"/scale"] = propose.Live{"replicas": int64(4)}
	}
}

// scrape lets d pass and stores what the counters then show.
func (s *shop) scrape(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	values := make([]float64, 2*len(services))
	for i, svc := range services {
		// A day has a noon and a night.
		hour := now.Sub(now.Truncate(day)).Hours()
		load := 0.6 - 0.4*math.Cos((hour-1)/24*2*math.Pi)
		n := svc.rate * d.Seconds() * load * (0.9 + 0.2*s.random.Float64())
		share, blind := baseShare, false
		for _, f := range s.faults {
			share = max(share, f.shareOf(svc.name, now))
			blind = blind || f.blind && f.service == svc.name && f.active(now)
		}
		s.totals[2*i] += n * (1 - share)
		s.totals[2*i+1] += n * share
		values[2*i], values[2*i+1] = math.Floor(s.totals[2*i]), math.Floor(s.totals[2*i+1])
		if blind {
			values[2*i], values[2*i+1] = math.NaN(), math.NaN()
		}
	}
	s.begin(now, d)
	return s.bulk.Scrape(now, values)
}

// begin brings what comes with the faults of the last d, and what follows when
// they are over.
func (s *shop) begin(now time.Time, d time.Duration) {
	for _, f := range s.faults {
		if f.releases && !f.at.After(now) && f.at.After(now.Add(-d)) {
			s.release++
			s.deploy(s.release, s.release-1)
		}
		// Whoever looks after it sets the replicas back.
		if over := f.at.Add(f.lasts); !over.After(now) && over.After(now.Add(-d)) {
			s.unscale()
		}
	}
}

// actuator carries out what is permitted, at once and in this process.
type actuator struct{ *shop }

// Execute does one action. Each eleventh time the target is busy.
func (a actuator) Execute(_ context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	if err := execute.LastLook(p, a.now, ready); err != nil {
		return execute.Refused(a.now(), err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.done[p.Key()] {
		return execute.Receipt{Effect: execute.NoOp, At: now, Detail: "409 done already"}, nil
	}
	a.done[p.Key()] = true
	if len(a.done)%11 == 0 {
		return execute.Receipt{Effect: execute.NotNow, At: now, Detail: "429 busy"}, nil
	}
	a.apply(p.Action(), p.Parameters())
	for _, f := range a.faults {
		if f.service == p.Service() {
			f.acted(p.Action().Name, p.Undo(), now)
		}
	}
	return execute.Receipt{Effect: execute.Applied, At: now, AppliedAt: now, Detail: "200 applied"}, nil
}

// apply writes the state that the target then reports.
func (a actuator) apply(act spec.Action, ps propose.Parameters) {
	switch url := act.Target.URL; act.Name {
	case "scale":
		a.state[url] = propose.Live{"replicas": ps["replicas"]}
	case "rollback":
		a.state[url] = propose.Live{"version": ps["version"], "previousVersion": a.state[url]["version"]}
	}
}

// Observe gives what a target reports.
func (a actuator) Observe(_ context.Context, act spec.Action, key gate.Key) execute.Observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if act.Target.StatusURL == "" {
		return execute.Observation{Detail: "the action has no statusURL"}
	}
	o := execute.Observation{Known: true, KeyKnown: a.done[key], State: maps.Clone(a.state[act.Target.StatusURL])}
	if o.KeyKnown {
		o.Result = execute.Applied
	}
	return o
}
