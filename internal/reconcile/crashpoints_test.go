package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// scenario is one episode that is run again for each place where a process can
// die.
type scenario struct {
	class    spec.Class
	replicas int
	// verdict is the one that the action gets.
	verdict gate.Verdict
	// every is the step from one append to the next that is tried.
	every int
	// useless: the action does not help, so that its charge stays.
	useless bool
	// harmful: the action makes it worse, until it is taken back or, where it is
	// transient, for as long as the episode lasts.
	harmful  bool
	reversal spec.Reversal
}

// stations are the moments of a send.
var stations = []moment{beforeExecute, atLastLook, afterReady, beforeReceipt}

// Whatever moment a process dies at, and whatever the next one finds: an effect
// per key at most, each claimed and started before, what it costs is what the
// ledger says, and nothing stays open.
func TestCrashPoints(t *testing.T) {
	h := healthyLedger(t)
	tests := map[string]scenario{
		"auto":     {class: spec.ClassAuto, replicas: 1, verdict: gate.Auto, every: 1},
		"approval": {class: spec.ClassApproval, replicas: 1, verdict: gate.Approval, every: 1},
		"useless":  {class: spec.ClassAuto, replicas: 1, verdict: gate.Auto, every: 4, useless: true},
		"replicas": {class: spec.ClassAuto, replicas: 2, verdict: gate.Auto, every: 2},
		"undo":     {class: spec.ClassAuto, replicas: 1, verdict: gate.Auto, every: 2, harmful: true},
		"undoes":   {class: spec.ClassAuto, replicas: 2, verdict: gate.Auto, every: 4, harmful: true},
		"demoted":  {class: spec.ClassAuto, replicas: 1, verdict: gate.Auto, every: 4, harmful: true, reversal: spec.Transient},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			whole := breaking(t, h, s)
			whole.live()
			whole.judge(s)
			n := whole.fate.appends
			if t.Failed() {
				return
			}
			t.Logf("%d appends in the episode", n)
			for _, faults := range points(n, s.every) {
				t.Run(fmt.Sprint(faults), func(t *testing.T) {
					t.Parallel()
					c := breaking(t, h, s, faults...)
					c.live()
					c.judge(s)
					if left := c.fate.left(); len(left) == len(faults) {
						t.Errorf("never came to %v", left)
					}
				})
			}
		})
	}
}

// points are all places of an episode with n appends: each append, before and
// after, each station of a send, and twice in a row.
func points(n, every int) [][]fault {
	var out [][]fault
	if testing.Short() {
		every = 5
	}
	// The next one dies at its first append, too, or soon after it.
	again := []fault{{beforeAppend, 1}, {afterAppend, 1}, {afterAppend, 2}}
	for i := 1; i <= n; i += every {
		out = append(out, []fault{{beforeAppend, i}}, []fault{{afterAppend, i}})
		if i%2 == 0 {
			out = append(out, []fault{{afterAppend, i}, again[i/2%3]})
		}
	}
	for _, m := range stations {
		out = append(out, []fault{{m, 1}}, []fault{{m, 1}, {afterAppend, 1}})
	}
	// The send of the window after one that never left.
	return append(out, []fault{{beforeExecute, 1}, {beforeReceipt, 1}}, []fault{{afterReady, 1}, {afterReady, 1}})
}

// live runs the world until its episode is over and nothing is open, replacing
// whoever dies.
func (c *crashWorld) live() {
	c.t.Helper()
	for end := c.clock().Add(2 * time.Hour); c.clock().Before(end); c.pass(step30) {
		c.heed()
		c.round()
		c.bury()
		if c.over() {
			return
		}
	}
	c.t.Fatalf("the episode is not over after two hours; the ledger says:\n%s", c.dump())
}

// round is one pass of every process. Several make theirs at the same time, and
// append by turns.
func (c *crashWorld) round() {
	work := func(p *process) func() {
		return func() {
			c.person(p.r)
			p.r.Sweep(context.Background())
		}
	}
	if len(c.lives) == 1 {
		c.lives[0].do(work(c.lives[0]))
		return
	}
	done := make([]<-chan struct{}, len(c.lives))
	waits := make([]bool, len(c.lives))
	for i, p := range c.lives {
		p.turns.Store(true)
		done[i] = p.begin(work(p))
	}
	busy := func(i int) bool {
		p := c.lives[i]
		if waits[i] {
			return true
		}
		select {
		case <-p.asks:
			waits[i] = true
		case <-done[i]:
			return false
		case <-p.dead:
			return false
		}
		return true
	}
	// Nobody appends before all are at an append or at the end.
	for next := 0; ; next++ {
		var ready []int
		for i := range c.lives {
			if busy(i) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			break
		}
		i := ready[next%len(ready)]
		waits[i] = false
		c.lives[i].may <- struct{}{}
	}
	for _, p := range c.lives {
		p.turns.Store(false)
	}
}

// person answers an open question, twice, as people do who see no change.
func (c *crashWorld) person(r *reconcile.Reconciler) {
	var id string
	r.View(func(s *ledger.State) {
		if t, open := s.OpenTicket("checkout"); open && t.State == approve.Open {
			id = t.ID
		}
	})
	for range 2 {
		if id != "" {
			_, _ = r.Answer(context.Background(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true})
		}
	}
}

// bury replaces the dead.
func (c *crashWorld) bury() {
	c.t.Helper()
	were := c.lives
	c.lives = nil
	var names []string
	for _, p := range were {
		if p.died() {
			c.deaths++
			names = append(names, p.name)
			continue
		}
		c.lives = append(c.lives, p)
	}
	for _, name := range names {
		c.revive()
		p := c.start(name)
		c.sameCharges(p)
	}
}

// over: the episode ended, nothing is open, and people were told.
func (c *crashWorld) over() bool {
	is := false
	c.lives[0].r.View(func(s *ledger.State) {
		sv, _ := s.Service("checkout")
		_, open := s.OpenTicket("checkout")
		is = sv.Episode == "" && len(sv.Effects) > 0 && len(s.Unsettled) == 0 && !open && sv.State == compare.Met && len(c.pager.open()) == 0
	})
	return is && c.clock().Sub(time.Unix(0, c.broken.Load())) > 10*time.Minute
}

// judge holds the ledger against the actuator's journal.
func (c *crashWorld) judge(s scenario) {
	c.t.Helper()
	c.sameCharges(c.lives[0])
	entries := c.entries()
	claims := map[gate.Key]ledger.Claim{}
	starts := map[gate.Key]time.Time{}
	asked := 0
	for _, e := range entries {
		switch e.Kind {
		case ledger.KindClaim:
			b := body[ledger.Claim](c, e)
			claims[b.Key] = b
			// A death before the breach is a gap, after which people are asked.
			if c.deaths == 0 && b.Verdict != s.verdict {
				c.t.Errorf("%s was claimed by verdict %s, want %s", b.Key, b.Verdict, s.verdict)
			}
		case ledger.KindStarted:
			starts[body[ledger.Started](c, e).Key] = e.Time
		case ledger.KindAsked:
			asked++
		}
	}
	if n := int(c.asked.Load()); n > asked {
		c.t.Errorf("a proposer was asked %d times, %d are recorded", n, asked)
	}
	seen := map[gate.Key]bool{}
	for _, rec := range c.actuator.Effects() {
		key := gate.Key(rec.Key)
		if seen[key] {
			c.t.Errorf("%s took effect twice", key)
		}
		seen[key] = true
		started, ok := starts[key]
		if !ok || started.After(rec.Time) || claims[key].Digest != rec.Digest {
			c.t.Errorf("%s took effect at %s with digest %.8s; started %s, claimed with %.8s", key, rec.Time, rec.Digest, started, claims[key].Digest)
		}
	}
	if n := len(seen); n != 1 && !s.useless && !s.harmful {
		c.t.Errorf("%d effects of an action that helps", n)
	}
	if s.harmful {
		c.tookBack(s)
	}
	c.nothingInDoubt()
	c.named(entries)
	c.check()
	if c.t.Failed() {
		c.t.Logf("the ledger says:\n%s", c.dump())
	}
}

// tookBack: what made it worse was put back, once, and two of what cannot be cost
// the action a rung, wherever the process died.
func (c *crashWorld) tookBack(s scenario) {
	c.t.Helper()
	var sent, tried []any
	for _, rec := range c.actuator.Effects() {
		sent = append(sent, rec.Parameters["replicas"])
	}
	worsened, ceiling := 0, gate.Auto
	c.lives[0].r.View(func(state *ledger.State) {
		for _, key := range state.EffectOrder {
			e := state.Effects[key]
			if e.Claim.Undo {
				tried = append(tried, e.Effect)
			} else if e.Outcome == compare.OutcomeWorsened {
				worsened++
			}
		}
		ceiling = state.Ceiling("checkout", "scale", c.clock())
	})
	switch {
	case s.reversal == spec.Transient:
		if worsened >= 2 && ceiling != gate.Approval {
			c.t.Errorf("worsened %d times, and the ceiling is %s", worsened, ceiling)
		}
		if c.deaths == 0 && worsened != 2 {
			c.t.Errorf("worsened %d times, want 2", worsened)
		}
	case len(sent) > 2 || len(sent) == 2 && fmt.Sprint(sent) != "[6 4]":
		c.t.Errorf("sent %v", sent)
	case len(sent) == 1 && worsened == 1 && (len(tried) == 0 || c.deaths == 0):
		c.t.Errorf("it was not taken back; tries of the undo: %v", tried)
	}
}

// nothingInDoubt: every effect ended, and was judged.
func (c *crashWorld) nothingInDoubt() {
	c.t.Helper()
	c.lives[0].r.View(func(s *ledger.State) {
		for key, e := range s.Effects {
			if !e.Effect.Final() || e.Effect.Judged() && e.Judgement == nil {
				c.t.Errorf("%s is %s with outcome %s at the end", key, e.Effect, e.Outcome)
			}
		}
	})
}

// named: what may be there once has a name, which the store gives once, so that
// even a process that checks nothing cannot write it twice; and the two ends of
// a claim share one.
func (c *crashWorld) named(entries []ledger.Entry) {
	c.t.Helper()
	once := map[ledger.Kind]string{
		ledger.KindAsked: "asked", ledger.KindProposal: "proposal", ledger.KindClaim: "claim", ledger.KindStarted: "begun", ledger.KindVoid: "begun",
		ledger.KindReceipt: "receipt", ledger.KindSettled: "settled", ledger.KindOutcome: "outcome",
	}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Unique, "/")
		want, bound := once[e.Kind]
		if e.Kind == ledger.KindProposal && body[ledger.Proposed](c, e).Proposal.Undo {
			want = "undo" // beside a proposal of the same window
		}
		if bound && name != want {
			c.t.Errorf("entry %d, %s, is named %q, want %s/…", e.Seq, e.Kind, e.Unique, want)
		}
	}
}

// check asks the independent checker.
func (c *crashWorld) check() {
	c.t.Helper()
	r, err := sqlite.OpenReader(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var out bytes.Buffer
	if err := ledger.Export(c.t.Context(), r, &out); err != nil {
		c.t.Fatal(err)
	}
	x, err := ledger.ReadExport(&out)
	if err != nil {
		c.t.Fatal(err)
	}
	l, b := c.cfg.Limits, c.set.Services[0].Remediation.Budget
	report := checker.Check(x, c.actuator.Journal(), checker.Options{
		Slack: time.Second, MinSpacing: l.MinSpacing, Sweep: c.cfg.Sweep.Interval, Acknowledged: c.acked,
		EffectsPerHour: l.EffectsPerHour, EffectsPerServicePerHour: l.EffectsPerServicePerHour,
		Budget: checker.Budget{Period: b.Period, Capacity: b.Capacity},
		Global: checker.Budget{Period: c.cfg.Budget.Period, Capacity: c.cfg.Budget.Capacity},
	})
	for _, v := range report.Violations {
		c.t.Error(v)
	}
}

// sameCharges: what a process believes to be spent is what the entries say,
// added up here without its fold.
func (c *crashWorld) sameCharges(p *process) {
	c.t.Helper()
	got := map[string]float64{}
	p.r.View(func(s *ledger.State) {
		for _, ch := range s.Charges() {
			got[ch.Decision] += ch.Cost
		}
	})
	want := map[string]float64{}
	decisions, undo := map[gate.Key]string{}, map[gate.Key]bool{}
	for _, e := range c.entries() {
		switch e.Kind {
		case ledger.KindClaim:
			if b := body[ledger.Claim](c, e); b.Verdict == gate.Auto {
				decisions[b.Key], undo[b.Key], want[b.Decision] = b.Decision, b.Undo, b.Charge
			}
		case ledger.KindVoid:
			want[decisions[body[ledger.Void](c, e).Key]] = 0
		case ledger.KindReceipt:
			if b := body[ledger.Receipt](c, e); free(b.Receipt.Effect) {
				want[decisions[b.Key]] = 0
			}
		case ledger.KindSettled:
			if b := body[ledger.Settled](c, e); free(b.Effect) {
				want[decisions[b.Key]] = 0
			}
		case ledger.KindOutcome:
			b := body[ledger.Outcome](c, e)
			want[decisions[b.Key]] = b.Cost
			if undo[b.Key] && b.Judgement.Outcome != compare.OutcomeWorsened {
				want[decisions[b.Key]] = 0
			}
		}
	}
	delete(want, "") // of approved ones, which cost nothing
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("charges (-entries +process %s):\n%s", p.name, diff)
	}
}

func free(e execute.Effect) bool {
	return e == execute.NoOp || e == execute.Failed || e == execute.NotNow || e == execute.NotLanded
}

func body[T any](c *crashWorld, e ledger.Entry) T {
	c.t.Helper()
	var b T
	if err := json.Unmarshal(e.Body, &b); err != nil {
		c.t.Fatal(err)
	}
	return b
}
