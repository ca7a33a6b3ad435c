package month

import (
	"math/rand/v2"
	"slices"
	"time"
)

// kind is one way in which a service breaks.
type kind struct {
	name, service string
	// share of requests fails.
	share float64
	// cures are actions, each of which ends it; none: it only ends by itself.
	cures []string
	// tries is how often one of them must run; 0 is once.
	tries int
	// worse are actions that double the share instead.
	worse []string
	// lasts is after how long it ends by itself.
	lasts time.Duration
	// with breaks another service beside it, with half the share.
	with string
	// releases: it comes with a new version.
	releases bool
	// blind: requests go on and are not measured.
	blind bool
}

// kinds are all ways in which the shop of a month breaks.
var kinds = []kind{
	{name: "bad release", service: "checkout", share: 0.5, cures: []string{"rollback"}, lasts: 3 * time.Hour, releases: true},
	{name: "load", service: "checkout", share: 0.1, cures: []string{"scale"}, lasts: 2 * time.Hour},
	{name: "stuck connections", service: "checkout", share: 0.2, cures: []string{"restart"}, lasts: 90 * time.Minute},
	{name: "old schema", service: "checkout", share: 0.15, cures: []string{"restart"}, worse: []string{"rollback"}, lasts: 70 * time.Minute},
	{name: "card network", service: "payments", share: 0.3, lasts: 40 * time.Minute, with: "checkout"},
	{name: "leak", service: "payments", share: 0.15, cures: []string{"restart"}, lasts: 2 * time.Hour, with: "checkout"},
	{name: "bad zone", service: "payments", share: 0.25, cures: []string{"failover"}, lasts: 2 * time.Hour},
	{name: "stale cache", service: "search", share: 0.2, cures: []string{"flush-cache"}, lasts: 2 * time.Hour},
	{name: "crowd", service: "search", share: 0.15, cures: []string{"scale"}, lasts: 2 * time.Hour},
	{name: "bad shard", service: "search", share: 0.12, worse: []string{"scale"}, lasts: 80 * time.Minute},
	{name: "corrupt index", service: "search", share: 0.2, lasts: 70 * time.Minute},
	{name: "cold cache", service: "catalog", share: 0.2, cures: []string{"restart"}, worse: []string{"flush-cache"}, lasts: 70 * time.Minute},
	{name: "bad entries", service: "catalog", share: 0.1, cures: []string{"flush-cache"}, lasts: 2 * time.Hour, with: "search"},
	{name: "exporter", service: "catalog", lasts: 50 * time.Minute, blind: true},
	{name: "poisoned workers", service: "fulfilment", share: 0.4, cures: []string{"recycle-workers"}, tries: 2, lasts: 3 * time.Hour},
	{name: "slow carrier", service: "fulfilment", share: 0.1, lasts: 75 * time.Minute},
	{name: "blip", service: "fulfilment", share: 0.9, lasts: 4 * time.Minute},
}

// fault is one of them at its time.
type fault struct {
	kind
	at time.Time
	// tried is how often a cure ran, doubled whether something made it worse.
	tried   int
	doubled bool
	ended   bool
}

// plan draws the faults of a month: two or three a day, at any hour, one at a time
// on a service. Every sixth day is quiet. Each kind comes up before any comes
// twice.
func plan(days int, random *rand.Rand) []*fault {
	var out []*fault
	until := map[string]time.Time{}
	var deck []int
	for d := range days {
		if d%6 == 5 {
			continue
		}
		var hours []time.Duration
		for range 2 + random.IntN(2) {
			hours = append(hours, time.Duration(random.IntN(22*60))*time.Minute)
		}
		slices.Sort(hours)
		for _, h := range hours {
			if len(deck) == 0 {
				deck = random.Perm(len(kinds))
			}
			k, at := kinds[deck[0]], Start().Add(time.Duration(d)*day+h)
			if at.Before(until[k.service]) || at.Before(until[k.with]) {
				continue
			}
			deck = deck[1:]
			out = append(out, &fault{kind: k, at: at})
			// An hour longer than it lasts, so that the next one is another episode.
			until[k.service] = at.Add(k.lasts + time.Hour)
			if k.with != "" {
				until[k.with] = at.Add(k.lasts + time.Hour)
			}
		}
	}
	return out
}

// active reports whether it breaks anything now.
func (f *fault) active(now time.Time) bool {
	return !f.ended && !now.Before(f.at) && now.Before(f.at.Add(f.lasts))
}

// shareOf is the share of a service's requests that fails by it now.
func (f *fault) shareOf(service string, now time.Time) float64 {
	if !f.active(now) {
		return 0
	}
	share := f.share
	if f.doubled {
		share = min(2*share, 0.95)
	}
	switch service {
	case f.service:
		return share
	case f.with:
		return share / 2
	}
	return 0
}

// mend ends what breaks the service at a time, if it lasts until then.
func (s *shop) mend(service string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.service == service && f.active(s.now()) {
			f.lasts = min(f.lasts, at.Sub(f.at))
		}
	}
}

// acted is told of an action on its service, or that one was taken back.
func (f *fault) acted(action string, undo bool, now time.Time) {
	if !f.active(now) {
		return
	}
	if slices.Contains(f.worse, action) {
		f.doubled = !undo
	}
	if slices.Contains(f.cures, action) && !undo {
		f.tried++
		f.ended = f.tried >= max(1, f.tries)
	}
}
