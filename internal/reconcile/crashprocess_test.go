package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// moment is a place at which a process can die.
type moment string

const (
	beforeAppend  moment = "before append"
	afterAppend   moment = "after append"
	beforeExecute moment = "before execute"
	atLastLook    moment = "at the last look"
	afterReady    moment = "after ready"
	beforeReceipt moment = "before the receipt"
)

// fault is the death of whoever comes to a moment as the n-th since the fault
// before it.
type fault struct {
	at moment
	n  int
}

func (f fault) String() string { return fmt.Sprintf("%s %d", f.at, f.n) }

// fate is what is to happen to a world's processes. Nothing does until it is
// armed.
type fate struct {
	mu     sync.Mutex
	armed  bool
	faults []fault
	came   map[moment]int
	// appends is how many were begun since fate was armed.
	appends int
}

func (f *fate) arm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.came = true, map[moment]int{}
}

// strikes counts an arrival, and reports whether the next fault is there.
func (f *fate) strikes(at moment) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return false
	}
	f.came[at]++
	if at == beforeAppend {
		f.appends++
	}
	if len(f.faults) == 0 || f.faults[0].at != at || f.faults[0].n != f.came[at] {
		return false
	}
	f.faults, f.came = f.faults[1:], map[moment]int{}
	return true
}

// left are the faults that never came.
func (f *fate) left() []fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// errDead is what a dead process gets when its test is over.
var errDead = errors.New("this process is dead")

// process is one agent that can die. From then on nothing of it goes on: every
// way out, to the ledger, the actuator and people, is one from which it does not
// come back.
type process struct {
	c           *crashWorld
	r           *reconcile.Reconciler
	name        string
	dead, grave chan struct{}
	once        sync.Once
	work        sync.WaitGroup
	// In turns, an append begins when the other processes let it.
	turns     atomic.Bool
	asks, may chan struct{}
}

// at is called at a moment. A dead process stays there until its test is over.
func (p *process) at(m moment) error {
	if p.c.fate.strikes(m) {
		p.once.Do(func() { close(p.dead) })
	}
	return p.alive()
}

func (p *process) alive() error {
	select {
	case <-p.dead:
		<-p.grave
		return errDead
	default:
		return nil
	}
}

// do lets the process work until it is done or dead, and says whether it lives.
func (p *process) do(f func()) bool {
	select {
	case <-p.begin(f):
	case <-p.dead:
	}
	return !p.died()
}

func (p *process) begin(f func()) <-chan struct{} {
	done := make(chan struct{})
	p.work.Go(func() {
		defer close(done)
		f()
	})
	return done
}

func (p *process) died() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// mortalStore is a process's way to its ledger.
type mortalStore struct {
	ledger.Store
	p *process
}

func (s mortalStore) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	if s.p.turns.Load() {
		s.p.asks <- struct{}{}
		<-s.p.may
	}
	if err := s.p.at(beforeAppend); err != nil {
		return nil, err
	}
	entries, err := s.Store.Append(ctx, after, plan)
	if dead := s.p.at(afterAppend); dead != nil {
		return nil, dead
	}
	if err == nil {
		s.p.c.acknowledge(entries)
	}
	return entries, err
}

func (s mortalStore) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	if err := s.p.alive(); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx, after, limit)
}

// mortalExecutor is a process's way to its actuator.
type mortalExecutor struct {
	execute.Executor
	p *process
}

func (x mortalExecutor) Execute(ctx context.Context, permit gate.Permit, ready func() error) (execute.Receipt, error) {
	if err := x.p.at(beforeExecute); err != nil {
		return execute.Receipt{}, err
	}
	receipt, err := x.Executor.Execute(ctx, permit, func() error {
		if err := x.p.at(atLastLook); err != nil {
			return err
		}
		if err := ready(); err != nil {
			return err
		}
		return x.p.at(afterReady)
	})
	if dead := x.p.at(beforeReceipt); dead != nil {
		return execute.Receipt{}, dead
	}
	return receipt, err
}

// mortalPager is a process's way to people.
type mortalPager struct {
	escalate.Receiver
	p *process
}

func (m mortalPager) Send(ctx context.Context, page escalate.Page, ref string) (string, error) {
	if err := m.p.alive(); err != nil {
		return "", err
	}
	return m.Receiver.Send(ctx, page, ref)
}

// crashWorld is a world whose processes die.
type crashWorld struct {
	*world
	fate fate
	// broken and healed are when the service failed, UnixNano.
	broken, healed atomic.Int64
	// harmful: each effect makes it worse, and with undo the next one mends that.
	harmful, undo bool
	lives         []*process
	deaths        int
	shared        bool

	ackMu sync.Mutex
	acked []ledger.Position
}

// health is a ledger of a service that was met for long enough, and the time at
// which it ends.
type health struct {
	bytes []byte
	now   time.Time
}

func healthyLedger(t *testing.T) health {
	t.Helper()
	w := newWorld(t)
	w.healthy()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	return health{bytes: b, now: w.now}
}

// breaking is a world in which the service has just failed, and two reads were
// made before.
func breaking(t *testing.T, h health, s scenario, faults ...fault) *crashWorld {
	t.Helper()
	c := &crashWorld{world: prepare(t), fate: fate{faults: faults}, shared: s.replicas > 1}
	c.now = h.now
	a := &c.set.Services[0].Remediation.Actions[0]
	a.Class = s.class
	c.harmful, c.undo = s.harmful, s.reversal == ""
	if s.reversal != "" {
		a.Reversal, a.Parameters[0].MaximumFactor = s.reversal, 0
		c.cfg.Budget.Capacity, c.set.Services[0].Remediation.Budget.Capacity = 100, 100
		c.cfg.Limits.EffectsPerServicePerHour = 10
	}
	if err := os.WriteFile(c.path, h.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	c.open()
	for i := range s.replicas {
		c.start(fmt.Sprintf("replica-%d", i))
	}
	for range 11 { // A start is a gap: holdFor begins again.
		for _, p := range c.lives {
			p.do(func() { p.r.Sweep(context.Background()) })
		}
		c.pass(step30)
	}
	c.broken.Store(c.clock().UnixNano())
	if s.useless {
		c.healed.Store(c.clock().Add(25 * time.Minute).UnixNano())
	}
	c.fate.arm()
	return c
}

// Measure gives the mean over the window: 30 % errors while the service fails,
// with ten events a second.
func (c *crashWorld) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		to := q.ID.At.UnixNano()
		from := to - q.ID.Window.Nanoseconds()
		m := measure.Measurement{ID: q.ID, Source: q.Source, HasEvents: true, Total: 10 * q.ID.Window.Seconds(), SampleAt: q.ID.At.Add(-5 * time.Second)}
		if broken, healed := c.broken.Load(), c.healed.Load(); broken != 0 {
			if healed != 0 {
				to = min(to, healed)
			}
			failed := max(0, to-max(from, broken))
			m.ErrorRatio = (0.3*float64(failed) + c.harm(from, to)) / float64(q.ID.Window.Nanoseconds())
		}
		m.Good = m.Total * (1 - m.ErrorRatio)
		out[i] = m
	}
	return out
}

// harm is how much worse the effects have made it between two instants.
func (c *crashWorld) harm(from, to int64) float64 {
	if !c.harmful {
		return 0
	}
	sum := 0.0
	effects := c.actuator.Effects()
	for i, e := range effects {
		begin, end := e.Time.UnixNano(), to
		if i+1 < len(effects) {
			end = min(to, effects[i+1].Time.UnixNano())
		}
		worse := 0.25 * float64(i+1)
		if c.undo {
			worse = 0.6 * float64((i+1)%2)
		}
		sum += min(worse, 0.65) * float64(max(0, end-max(from, begin)))
	}
	return sum
}

func (c *crashWorld) open() {
	c.t.Helper()
	if c.store != nil {
		if err := c.store.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	var err error
	if c.store, err = sqlite.Open(c.path, sqlite.Options{Now: c.clock}); err != nil {
		c.t.Fatal(err)
	}
	opened := c.store
	c.t.Cleanup(func() { _ = opened.Close() })
}

// start begins a process, and another one if that dies at once.
func (c *crashWorld) start(name string) *process {
	c.t.Helper()
	hook, err := webhook.New(webhook.Options{Allow: c.cfg.Executors.Webhook.Allow, Now: c.clock})
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		p := &process{
			c: c, name: name, dead: make(chan struct{}), grave: make(chan struct{}), asks: make(chan struct{}), may: make(chan struct{}),
		}
		c.t.Cleanup(func() {
			p.once.Do(func() { close(p.dead) })
			close(p.grave)
			p.work.Wait()
		})
		o := reconcile.Options{
			Config: c.cfg, Documents: c.documents, Measurer: c, Proposer: scripted{c.world}, Policy: ruled{c.world},
			Executors: map[string]execute.Executor{"webhook": mortalExecutor{hook, p}},
			Receivers: []escalate.Receiver{mortalPager{c.pager, p}}, Silencers: []reconcile.Silencer{c.world},
			Store: mortalStore{c.store, p}, Freezes: c.freezer, Now: c.clock, Shared: c.shared,
		}
		if c.shared {
			o.Process = name
		}
		var failed error
		if p.do(func() {
			if p.r, failed = reconcile.New(context.Background(), o); failed == nil {
				failed = p.r.Start(context.Background())
			}
		}) {
			if failed != nil {
				c.t.Fatal(failed)
			}
			c.lives = append(c.lives, p)
			return p
		}
		c.deaths++
		c.revive()
	}
}

// revive lets the moment go by that a supervisor takes, and opens the ledger
// again where it was the dead process's own.
func (c *crashWorld) revive() {
	c.pass(10 * time.Second)
	if !c.shared {
		c.open()
	}
}

func (c *crashWorld) acknowledge(entries []ledger.Entry) {
	c.ackMu.Lock()
	defer c.ackMu.Unlock()
	for _, e := range entries {
		c.acked = append(c.acked, e.Position())
	}
}

// heed heals the service once something took effect, if it is to help: at once,
// or where it harms some time after all that may come.
func (c *crashWorld) heed() {
	effects := c.actuator.Effects()
	if c.healed.Load() != 0 || len(effects) == 0 {
		return
	}
	last := effects[len(effects)-1].Time
	switch {
	case !c.harmful, c.undo && len(effects) == 2:
		c.healed.Store(last.UnixNano())
	case c.clock().Sub(last) > 35*time.Minute:
		c.healed.Store(c.clock().UnixNano())
	}
}
