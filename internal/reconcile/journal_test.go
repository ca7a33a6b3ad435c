package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// fortune is what becomes of the next requests to a receiver.
type fortune string

const (
	well fortune = "well"
	// down: nothing arrives. lost: it arrives, and its answer does not.
	down, lost fortune = "down", "lost"
	// dies: the process ends once it arrived; unsent: before it was sent.
	dies, unsent fortune = "dies", "unsent"
)

// journal is a receiver that writes down all that arrives, in order.
type journal struct {
	name string
	now  func() time.Time

	mu      sync.Mutex
	fortune fortune
	pages   []escalate.Page
	times   []time.Time
	refs    []string
	// tries counts requests, arrived or not.
	tries int
	// last is the content that arrived last of each page, and unsure says that
	// whoever sent it, or something after it, may not know that.
	last   map[string]string
	unsure map[string]bool
	// again are requests that brought nothing and that nobody had to make.
	again []string
	// died is set when a process ended.
	died bool
}

func (j *journal) Name() string { return j.name }

func newJournal(w *world, name string) *journal {
	return &journal{name: name, now: w.clock, fortune: well, last: map[string]string{}, unsure: map[string]bool{}}
}

func (j *journal) Send(_ context.Context, p escalate.Page, ref string) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.fortune
	j.tries++
	if w == dies || w == unsent {
		j.fortune, j.died = well, true
	}
	if w != down && w != unsent {
		j.arrives(p, ref)
	}
	j.unsure[p.ID] = w != well
	switch w {
	case well:
		return "ref of " + p.ID, nil
	case down, lost:
		return "", errors.New("the connection is " + string(w))
	}
	panic("the process " + string(w))
}

func (j *journal) arrives(p escalate.Page, ref string) {
	j.pages, j.times, j.refs = append(j.pages, p), append(j.times, j.now()), append(j.refs, ref)
	content := p.ContentDigest() + p.EndedAt.String()
	if j.last[p.ID] == content && !j.unsure[p.ID] {
		j.again = append(j.again, p.ID)
	}
	j.last[p.ID] = content
}

func (j *journal) set(w fortune) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fortune = w
}

// hasDied reports, once, that the process that sent ended.
func (j *journal) hasDied() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.died
	j.died = false
	return d
}

// of is what arrived of one page, in a word each: open, late, end, and news for an
// open page that says something else than before.
func (j *journal) of(id string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	last := ""
	for _, p := range j.pages {
		if p.ID != id {
			continue
		}
		switch content := p.ContentDigest(); {
		case !p.EndedAt.IsZero():
			out, last = append(out, "end"), ""
		case strings.Contains(p.Text, "over already"):
			out, last = append(out, "late"), content
		case last != "" && last != content:
			out, last = append(out, "news"), content
		default:
			out, last = append(out, "open"), content
		}
	}
	return out
}

// told is what arrived of one page, without news and repetitions.
func (j *journal) told(id string) string {
	words := slices.DeleteFunc(j.of(id), func(w string) bool { return w == "news" })
	return strings.Join(slices.Compact(words), " ")
}

// replicas are processes on one ledger, with the same receivers.
type replicas struct {
	*world
	store     func() ledger.Store
	receivers []escalate.Receiver
	loops     []*reconcile.Reconciler
	born      int
}

// replicasOf are n processes that watch services whose breach is handed to people
// at once, and that recover in a minute.
func replicasOf(w *world, n int, broken map[string]float64, store func() ledger.Store, receivers ...escalate.Receiver) *replicas {
	w.t.Helper()
	w.truth = func(service string, _ time.Time) float64 { return broken[service] }
	w.rule = func([]byte) gate.Ruling {
		return gate.Ruling{Revision: "test", Escalate: []gate.Rule{{Reason: "people-have-it", Package: "setpoint.gate"}}}
	}
	for i := range w.set.Services {
		r := &w.set.Services[i].Remediation
		r.HoldFor, r.Escalation.Receivers = time.Minute, nil
		for _, rec := range receivers {
			r.Escalation.Receivers = append(r.Escalation.Receivers, rec.Name())
		}
	}
	w.cfg.Limits.StormMin = 1000
	rs := &replicas{world: w, store: store, receivers: receivers}
	for range n {
		rs.loops = append(rs.loops, nil)
		rs.begin(len(rs.loops) - 1)
	}
	return rs
}

// inMemory is a ledger in memory for all of them.
func inMemory(w *world) func() ledger.Store {
	w.t.Helper()
	chain, err := month.NewChain("os:test", w.clock)
	if err != nil {
		w.t.Fatal(err)
	}
	return func() ledger.Store { return chain }
}

// begin starts a process in the place of another, which is gone with all it knew.
func (rs *replicas) begin(i int) {
	rs.t.Helper()
	rs.born++
	rs.loops[i] = rs.made(func(o *reconcile.Options) {
		o.Store, o.Receivers, o.Silencers = rs.store(), rs.receivers, nil
		o.Shared, o.Process = true, fmt.Sprintf("p%d", rs.born)
	})
	if err := rs.loops[i].Start(rs.t.Context()); err != nil {
		rs.t.Fatal(err)
	}
}

// pass lets all of them sweep at the same time, and then time go by.
func (rs *replicas) sweep(d time.Duration) {
	var all sync.WaitGroup
	for _, r := range rs.loops {
		all.Go(func() { r.Sweep(rs.t.Context()) })
	}
	all.Wait()
	rs.pass(d)
}

func (rs *replicas) run(d time.Duration) {
	for end := rs.clock().Add(d); rs.clock().Before(end); {
		rs.sweep(step30)
	}
}

// agree fails unless all know the same of pages and deliveries, and gives that.
func (rs *replicas) agree() (pages map[string]escalate.Page, held map[string]map[string]escalate.Delivery) {
	rs.t.Helper()
	for i, r := range rs.loops {
		p, h := map[string]escalate.Page{}, map[string]map[string]escalate.Delivery{}
		r.View(func(s *ledger.State) {
			for id := range s.Pages {
				p[id], h[id] = *s.Pages[id], s.Deliveries[id]
			}
		})
		if i > 0 {
			if diff := cmp.Diff(pages, p) + cmp.Diff(held, h); diff != "" {
				rs.t.Errorf("replicas differ:\n%s", diff)
			}
		}
		pages, held = p, h
	}
	return pages, held
}

// ids are the pages that were ever recorded.
func (rs *replicas) ids() (ids []string) {
	rs.loops[0].View(func(s *ledger.State) {
		for id := range s.Pages {
			ids = append(ids, id)
		}
	})
	slices.Sort(ids)
	return ids
}
