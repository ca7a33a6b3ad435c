package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestPagerDownForFiveMinutes: two replicas on a real server, and a pager that
// takes nothing while pages open and end. Once it is up it has all of them, each
// opened before it is ended, and nothing twice.
func TestPagerDownForFiveMinutes(t *testing.T) {
	dsn, err := pgtest.Start(t).Database("pager_down")
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Init(t.Context(), dsn, "os:test"); err != nil {
		t.Fatal(err)
	}
	store := func() ledger.Store {
		s, err := postgres.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	pagerDown(t, store)
}

func TestPagerDownForFiveMinutesInMemory(t *testing.T) { pagerDown(t, nil) }

func pagerDown(t *testing.T, store func() ledger.Store) {
	broken := map[string]float64{}
	w := manyOf(t, 4, broken)
	// The server's clock stamps its entries, so simulated time begins with it.
	w.now = time.Now()
	if store == nil {
		store = inMemory(w)
	}
	j := newJournal(w, "pager")
	rs := replicasOf(w, 2, broken, store, j)
	rs.run(3 * time.Minute)

	broken["s2"] = 0.5
	rs.run(2 * time.Minute)
	before := rs.ids()
	if len(before) != 1 {
		t.Fatalf("pages before: %v", before)
	}
	j.set(down)
	since := w.clock()
	broken["s0"], broken["s1"], broken["s3"] = 0.5, 0.5, 0.5
	rs.run(2 * time.Minute)
	broken["s2"], broken["s0"] = 0, 0
	rs.run(time.Minute)
	broken["s3"] = 0
	rs.run(2 * time.Minute)
	if d := w.clock().Sub(since); d != 5*time.Minute {
		t.Fatalf("it was down for %s", d)
	}
	arrived := len(j.pages)
	if arrived != 1 {
		t.Errorf("%d pages arrived before", arrived)
	}
	j.set(well)
	rs.run(6 * time.Minute)
	broken["s1"] = 0
	rs.run(5 * time.Minute)

	pages, held := rs.agree()
	late := 0
	for id, p := range pages {
		switch got := j.told(id); {
		case p.EndedAt.IsZero():
			t.Errorf("%s of %s is still open", id, p.Service)
		case got == "late end" && (p.Service == "s0" || p.Service == "s3"):
			late++
		case got != "open end":
			t.Errorf("%s of %s: the pager was told %q", id, p.Service, got)
		}
		if d := held[id]["pager"]; !d.Ended || !d.Begun.IsZero() || d.Ref != "ref of "+id {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if len(pages) != 4 || late != 2 || len(j.again) != 0 {
		t.Errorf("%d pages, %d of them late, sent twice: %v; want 4, 2 and none", len(pages), late, j.again)
	}
	// 5 minutes of failures: at 0, 15 s, 45 s, 105 s and 225 s at the most, for
	// each of four pages, rounded up to sweeps.
	if n := j.tries - len(j.pages); n > 4*5 {
		t.Errorf("%d requests failed within 5 minutes", n)
	}
}

// Whatever becomes of requests and of processes, a receiver that is up in the end
// has each page, opened before it was ended, and twice only what a crash or a lost
// answer left in doubt.
func TestReplicasDeliver(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		broken := map[string]float64{}
		w := manyOf(t, 2, broken)
		j := newJournal(w, "pager")
		rs := replicasOf(w, 2, broken, inMemory(w), j)
		rs.run(time.Minute)
		for range rapid.IntRange(4, 16).Draw(rt, "sweeps") {
			name := fmt.Sprintf("s%d", rapid.IntRange(0, 1).Draw(rt, "service"))
			broken[name] = rapid.SampledFrom([]float64{0, 0.5}).Draw(rt, "errors")
			j.set(rapid.SampledFrom([]fortune{well, down, down, lost, dies, unsent}).Draw(rt, "fortune"))
			rs.sweep(rapid.SampledFrom([]time.Duration{step30, time.Minute, 6 * time.Minute}).Draw(rt, "time"))
			if j.hasDied() {
				// Which of the two it was is not known to the journal: both begin anew.
				rs.begin(0)
				rs.begin(1)
			}
		}
		j.set(well)
		clearMap(broken)
		for range 8 {
			rs.sweep(time.Minute)
		}
		pages, held := rs.agree()
		for id, p := range pages {
			if got := j.told(id); p.EndedAt.IsZero() || got != "open end" && got != "late end" && got != "open late end" {
				rt.Errorf("%s of %s was told %v", id, p.Service, j.of(id))
			}
			if d := held[id]["pager"]; !d.Ended || d.Failures != 0 || !d.Begun.IsZero() {
				rt.Errorf("%s: %+v", id, d)
			}
		}
		if len(j.again) > 0 {
			rt.Errorf("%v were sent again", j.again)
		}
	})
}

func clearMap(m map[string]float64) {
	for k := range m {
		m[k] = 0
	}
}

// TestTakesOver: what a process began and never recorded is sent by another after
// 30 s, under the receiver's own name of the page.
func TestTakesOver(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	j := newJournal(w, "pager")
	rs := replicasOf(w, 2, broken, inMemory(w), j)
	rs.run(2 * time.Minute)
	broken["s0"] = 0.5
	rs.run(2 * time.Minute)
	j.set(unsent)
	broken["s0"] = 0
	for !j.hasDied() {
		rs.sweep(5 * time.Second)
	}
	died := w.clock().Add(-5 * time.Second)
	for range 30 {
		rs.sweep(5 * time.Second)
	}
	id := rs.ids()[0]
	if got := j.told(id); got != "open end" || len(j.again) != 0 {
		t.Fatalf("the pager was told %v", j.of(id))
	}
	if wait := j.times[1].Sub(died); wait < escalate.TakeOverAfter || wait > escalate.TakeOverAfter+5*time.Second {
		t.Errorf("it was taken over after %s", wait)
	}
	if j.refs[0] != "" || j.refs[1] != "ref of "+id {
		t.Errorf("the pager's own names were %q", j.refs)
	}
}

// TestBrokenLedgerSends: nobody can say that they begin, so each tells people.
func TestBrokenLedgerSends(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	j := newJournal(w, "pager")
	faulty := &faultyStore{Store: inMemory(w)()}
	rs := replicasOf(w, 2, broken, func() ledger.Store { return faulty }, j)
	rs.run(2 * time.Minute)
	faulty.fill(errors.New("no space left on device"))
	broken["s0"] = 0.5
	rs.run(time.Minute)
	if got := j.of("ledger"); !slices.Equal(got, []string{"open", "open"}) {
		t.Errorf("two processes told people %v", got)
	}
	broken["s0"] = 0
	faulty.fill(nil)
	rs.run(10 * time.Minute)
	if got := j.told("ledger"); got != "open end" {
		t.Errorf("the pager was told %v", j.of("ledger"))
	}
	rs.agree()
}

// expire makes the page of an exception that expired wanted, or not.
func (w *world) expire(is bool) {
	w.t.Helper()
	w.set.Exceptions = nil
	if is {
		w.set.Exceptions = []spec.Exception{{Name: "sale", Service: w.set.Services[0].Name, Effect: spec.Approval, Until: w.now.Add(-time.Hour), Owner: "team-a"}}
	}
	if err := w.r.Reload(w.t.Context(), nil); err != nil {
		w.t.Fatal(err)
	}
}

// TestLoneProcessBeginsNothing: where nobody else could send, a delivery is one
// entry.
func TestLoneProcessBeginsNothing(t *testing.T) {
	w := newWorld(t)
	w.expire(true)
	w.run(2 * time.Minute)
	if n := w.kinds()[ledger.KindDelivery]; n != 1 || len(w.pager.sent) != 1 {
		t.Errorf("%d entries of %d deliveries", n, len(w.pager.sent))
	}
}

// TestSquareWave: what comes and goes is one page with one id, and ends once it has
// stayed away for five minutes.
func TestSquareWave(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.expire(true)
		w.run(time.Minute)
		w.expire(false)
		w.run(5 * time.Minute)
	}
	if n := len(w.pager.sent); n != 1 {
		t.Errorf("%d messages of one fault: %s", n, w.pager.reasons())
	}
	if _, open := w.pager.open()["exception/sale"]; !open {
		t.Error("the page ended within five minutes")
	}
	w.run(time.Minute)
	if n := len(w.pager.sent); n != 2 || len(w.pager.open()) != 0 {
		t.Errorf("%d messages, open: %s", n, w.pager.reasons())
	}
}

// TestSquareWaveOfAService: an episode goes on through relapses within holdFor, and
// so does its page.
func TestSquareWaveOfAService(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	j := newJournal(w, "pager")
	rs := replicasOf(w, 1, broken, inMemory(w), j)
	w.set.Services[0].Remediation.HoldFor = 5 * time.Minute
	rs.begin(0)
	rs.run(6 * time.Minute)
	for range 10 {
		broken["s0"] = 0.5
		rs.run(2 * time.Minute)
		broken["s0"] = 0
		rs.run(4 * time.Minute)
	}
	ids := rs.ids()
	if len(ids) != 1 || j.told(ids[0]) != "open" {
		t.Fatalf("pages %v; the first: %v", ids, j.of(ids[0]))
	}
	rs.run(3 * time.Minute)
	if j.told(ids[0]) != "open end" || len(rs.ids()) != 1 {
		t.Errorf("pages %v; the first: %v", rs.ids(), j.of(ids[0]))
	}
}

// TestReplicasDoNotFight: one sees a fault that the other does not. The page stands
// for whoever sees it, and is not opened and ended by turns.
func TestReplicasDoNotFight(t *testing.T) {
	w := manyOf(t, 1, nil)
	j := newJournal(w, "pager")
	rs := replicasOf(w, 2, nil, inMemory(w), j)
	rs.loops[0].PolicyFaulted("broken here")
	rs.run(2 * time.Hour)
	opened := 0
	for _, word := range j.of("policy") {
		if word == "open" {
			opened++
		}
	}
	// From the 15th minute on, and anew 5, 15, 35 and 75 minutes after it.
	if opened < 1 || opened > 5 {
		t.Errorf("opened %d times in two hours: %v", opened, j.of("policy"))
	}
	if pages, _ := rs.agree(); !pages["policy"].EndedAt.IsZero() {
		t.Error("the page ended although one of them sees the fault")
	}
}

// TestSilencedUntilItWasOver: what people silenced while it was open does not reach
// them when the silence is over.
func TestSilencedUntilItWasOver(t *testing.T) {
	w := newWorld(t)
	silence := true
	w.silences = func(string) ([]gate.Hold, error) {
		if silence {
			return []gate.Hold{{ID: "s1", By: "alice"}}, nil
		}
		return nil, nil
	}
	w.expire(true)
	w.run(5 * time.Minute)
	w.expire(false)
	w.run(7 * time.Minute)
	silence = false
	w.run(7 * time.Minute)
	if len(w.pager.sent) != 0 {
		t.Errorf("told of what they had silenced: %v", w.pager.sent)
	}
}

// TestChainOfThree: the second is told when the first fails, the third when the
// second does not answer; an acknowledgement ends the chain, and neither changes nor
// the end stay away from who has the page.
func TestChainOfThree(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	js := []*journal{newJournal(w, "first"), newJournal(w, "second"), newJournal(w, "third")}
	w.cfg.Receivers = nil
	var receivers []escalate.Receiver
	for _, j := range js {
		w.cfg.Receivers = append(w.cfg.Receivers, config.Receiver{Name: j.name, EscalateAfter: 10 * time.Minute})
		receivers = append(receivers, j)
	}
	rs := replicasOf(w, 2, broken, inMemory(w), receivers...)
	rs.run(3 * time.Minute)
	js[0].set(down)
	broken["s0"] = 0.5
	rs.run(4 * time.Minute)
	id := ""
	for _, known := range rs.ids() {
		if strings.HasPrefix(known, "e") {
			id = known
		}
	}
	if got := fmt.Sprint(js[0].of(id), js[1].of(id), js[2].of(id)); got != "[] [open] []" {
		t.Fatalf("the first is down: %s", got)
	}
	rs.run(5 * time.Minute)
	if len(js[2].of(id)) != 0 {
		t.Error("the third is told before the second had its time")
	}
	rs.run(7 * time.Minute)
	if got := fmt.Sprint(js[1].of(id)[:1], js[2].of(id)[:1]); got != "[open] [open]" {
		t.Fatalf("the second does not answer: %s", got)
	}
	js[0].set(well)
	rs.run(6 * time.Minute)
	if err := rs.loops[1].Ack(t.Context(), id, "slack:T0123456789/U0123456789", "slack"); err != nil {
		t.Fatal(err)
	}
	at := w.clock()
	rs.run(20 * time.Minute)
	pages, _ := rs.agree()
	if p := pages[id]; p.AckedBy != "slack:T0123456789/U0123456789" || p.AckedVia != "slack" || !p.AckedAt.Equal(at) {
		t.Errorf("acknowledged by %q via %q at %s", p.AckedBy, p.AckedVia, p.AckedAt)
	}
	broken["s0"] = 0
	rs.run(4 * time.Minute)
	for _, j := range js {
		if j.told(id) != "open end" {
			t.Errorf("%s was told %v", j.name, j.of(id))
		}
	}
}

// TestAckEndsTheChain: nobody further is told, and the acknowledgement outlives a
// change of what the page says.
func TestAckEndsTheChain(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	first, second := newJournal(w, "first"), newJournal(w, "second")
	w.cfg.Receivers = []config.Receiver{{Name: "first"}, {Name: "second", EscalateAfter: 5 * time.Minute}}
	rs := replicasOf(w, 1, broken, inMemory(w), first, second)
	rs.run(3 * time.Minute)
	broken["s0"] = 0.5
	rs.run(2 * time.Minute)
	id := rs.ids()[0]
	if err := rs.loops[0].Ack(t.Context(), id, "os:alice", "cli"); err != nil {
		t.Fatal(err)
	}
	w.dark = func(string, time.Time) measure.Reason { return measure.NoData }
	rs.run(40 * time.Minute)
	if told := first.of(id); len(told) < 2 {
		t.Errorf("the content did not change: %v", told)
	}
	if told := second.of(id); len(told) != 0 {
		t.Errorf("the second was told %v", told)
	}
	if pages, _ := rs.agree(); pages[id].AckedBy != "os:alice" || pages[id].AckedVia != "cli" || pages[id].AckedAt.IsZero() {
		t.Errorf("after a change: %+v", pages[id])
	}
}
