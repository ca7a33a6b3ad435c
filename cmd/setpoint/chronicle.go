package main

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// chronicle is a whole past: the state that forgets nothing, and what no state
// keeps, namely the episodes that are over and the time that was watched.
type chronicle struct {
	state *ledger.State
	// episodes are in the order in which they began.
	episodes []*episode
	open     map[string]*episode
	// good are the moments at which the judge window of a service was good again,
	// in order.
	good map[string][]time.Time
	// spells are the times of each service with one state, in order; the last one
	// goes on.
	spells map[string][]spell
	// gaps are the times in which perhaps nobody watched, by service, "" for all.
	gaps map[string][]gap
}

// episode is one unbroken time in which a service was not known to be met.
type episode struct {
	service, id string
	began       time.Time
	// ended is when it was over by measured recovery; zero while it is open, and
	// for ever when its service left the documents.
	ended time.Time
	// breached: it was breached at some time, and not only unknown.
	breached bool
}

// gap ends with an entry which says that nobody watched, and begins at most with
// the entry before it.
type gap struct{ from, to time.Time }

type spell struct {
	from  time.Time
	state compare.State
}

func newChronicle() *chronicle {
	return &chronicle{
		state: ledger.NewHistory(), open: map[string]*episode{}, good: map[string][]time.Time{},
		spells: map[string][]spell{}, gaps: map[string][]gap{},
	}
}

// pager reads a chain page by page.
type pager interface {
	Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error)
}

// chronicleOf folds a whole chain.
func chronicleOf(ctx context.Context, p pager) (*chronicle, error) {
	c := newChronicle()
	_, err := ledger.Walk(ctx, p, ledger.Position{}, func(e ledger.Entry) error {
		if err := c.apply(e); err != nil {
			return fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		return nil
	})
	return c, err
}

func (c *chronicle) apply(e ledger.Entry) error {
	before, _ := c.state.Service(e.Service)
	last := c.state.Time
	if err := c.state.Apply(e); err != nil {
		return err
	}
	switch e.Kind {
	case ledger.KindState:
		after, _ := c.state.Service(e.Service)
		c.changed(before, after, e.Time)
	case ledger.KindRecovered:
		if after, _ := c.state.Service(e.Service); before.Episode != "" && after.Episode == "" {
			c.end(e.Service, e.Time)
		}
	case ledger.KindGap:
		c.gaps[e.Service] = append(c.gaps[e.Service], gap{last, e.Time})
	case ledger.KindDocuments:
		c.leave(e.Time)
	}
	return nil
}

// changed follows one service into another state.
func (c *chronicle) changed(before, after ledger.Service, at time.Time) {
	name := after.Name
	if after.Episode != "" && after.Episode != before.Episode {
		c.open[name] = &episode{service: name, id: after.Episode, began: after.EpisodeSince}
		c.episodes = append(c.episodes, c.open[name])
	}
	if one := c.open[name]; one != nil && after.State == compare.Breached {
		one.breached = true
	}
	if isGood(after) && !isGood(before) {
		c.good[name] = append(c.good[name], at)
	}
	if after.State != before.State {
		c.spells[name] = append(c.spells[name], spell{at, after.State})
	}
}

// isGood: the judge window is within target, whether a burn rate is high still
// or not.
func isGood(sv ledger.Service) bool {
	return sv.State == compare.Met || sv.State == compare.Breached && sv.Reason == compare.Recovering
}

func (c *chronicle) end(service string, at time.Time) {
	if one := c.open[service]; one != nil {
		one.ended = at
		delete(c.open, service)
	}
}

// leave ends the watch of services that no document names any more.
func (c *chronicle) leave(at time.Time) {
	for name, spells := range c.spells {
		if sv, _ := c.state.Service(name); sv.State == "" && spells[len(spells)-1].state != "" {
			c.spells[name] = append(spells, spell{from: at})
			delete(c.open, name)
		}
	}
}

// watched is how long a service was known to be met or breached in a time, and
// whether it was met at all.
func (c *chronicle) watched(service string, from, to time.Time) (length time.Duration, met bool) {
	spells := c.spells[service]
	for i, s := range spells {
		end := to
		if i+1 < len(spells) && spells[i+1].from.Before(to) {
			end = spells[i+1].from
		}
		begin := s.from
		if begin.Before(from) {
			begin = from
		}
		if known := s.state == compare.Met || s.state == compare.Breached; !known || !end.After(begin) {
			continue
		}
		length += end.Sub(begin)
		met = met || s.state == compare.Met
	}
	return length, met
}

// goodWithin reports whether the judge window of a service was good again after
// a time, no later than so much later.
func (c *chronicle) goodWithin(service string, after time.Time, within time.Duration) bool {
	for _, at := range c.good[service] {
		if at.After(after) && at.Sub(after) <= within {
			return true
		}
	}
	return false
}

// gapsOf counts the gaps that end in a time, and adds up what they can be at most.
func (c *chronicle) gapsOf(service string, from, to time.Time) (n int, most time.Duration) {
	for _, of := range [][]gap{c.gaps[""], c.gaps[service]} {
		for _, g := range of {
			if g.to.Before(from) || g.to.After(to) {
				continue
			}
			begin := g.from
			if begin.Before(from) {
				begin = from
			}
			n, most = n+1, most+g.to.Sub(begin)
		}
	}
	return n, min(most, to.Sub(from))
}

// acted holds the episodes in which something of ours may have changed
// something, by service and episode.
func (c *chronicle) acted() map[string]bool {
	out := map[string]bool{}
	for _, key := range c.state.EffectOrder {
		if e := c.state.Effects[key]; mayHaveActed(e) {
			out[e.Service+" "+e.Claim.Episode] = true
		}
	}
	return out
}
