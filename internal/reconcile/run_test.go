package reconcile_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// live is a world in real time with two services, a and b, each with its own
// source, and a sweep every 20 ms.
func live(t *testing.T) *world {
	t.Helper()
	w := prepare(t)
	w.real = true
	w.cfg.Sweep.Interval = 20 * time.Millisecond
	w.cfg.Limits.MinSpacing = time.Millisecond
	a := w.set.Services[0]
	a.Objectives = []spec.Objective{a.Objectives[0]}
	a.Remediation.HoldFor, a.Remediation.EscalateWithin = 40*time.Millisecond, 200*time.Millisecond
	b := a
	a.Name, b.Name = "a", "b"
	b.Objectives = []spec.Objective{a.Objectives[0]}
	second := *a.Objectives[0].Indicator.Total
	second.Source = "second"
	b.Objectives[0].Indicator.Bad, b.Objectives[0].Indicator.Total = &second, &second
	w.set.Services = []spec.Service{a, b}
	return w
}

// run starts the loop after the services were met for a while, and returns how
// to stop it.
func (w *world) loop() (stop func()) {
	w.t.Helper()
	w.start()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.r.Run(ctx) }()
	w.soon("met and held", func(s *ledger.State) bool {
		a, okA := s.Service("a")
		b, okB := s.Service("b")
		return okA && okB && a.EverMet && b.EverMet && time.Since(a.Since) > 300*time.Millisecond
	})
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// soon waits for the ledger to say something.
func (w *world) soon(what string, ok func(s *ledger.State) bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		is := false
		w.r.View(func(s *ledger.State) { is = ok(s) })
		if is {
			return
		}
	}
	w.t.Fatalf("no %s; the ledger says:\n%s", what, w.dump())
}

// broken makes both services fail from now on.
func (w *world) broken() { w.failing.Store(true) }

func paged(w *world, service string) func(*ledger.State) bool {
	return func(*ledger.State) bool {
		for _, p := range w.pager.open() {
			if p.Service == service {
				return true
			}
		}
		return false
	}
}

// A model that hangs for one service holds up neither the page of another nor
// the answer to a person.
func TestHungModelHoldsUpNobodyElse(t *testing.T) {
	w := live(t)
	w.cfg.Sweep.Concurrency = 1
	w.set.Services[1].Remediation.Actions[0].Class = spec.ClassApproval
	release := make(chan struct{})
	w.propose = func(r propose.Request) propose.Proposal {
		if r.Service.Name == "a" {
			<-release
		}
		return propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}}
	}
	stop := w.loop()
	w.broken()
	w.soon("ticket of b while a's model hangs", func(s *ledger.State) bool { _, ok := s.OpenTicket("b"); return ok })
	w.soon("page of b while a's model hangs", paged(w, "b"))
	var id string
	w.r.View(func(s *ledger.State) { ticket, _ := s.OpenTicket("b"); id = ticket.ID })
	if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true}); err != nil {
		t.Fatal(err)
	}
	w.soon("b's approved effect while a's model hangs", func(*ledger.State) bool { return len(w.actuator.Effects()) == 1 })
	close(release)
	stop()
}

// A pager that hangs holds up its own pages alone.
func TestHungPagerHoldsUpNoPass(t *testing.T) {
	w := live(t)
	stop := w.loop()
	hang := make(chan struct{})
	w.pager.mu.Lock()
	w.pager.hang = hang
	w.pager.mu.Unlock()
	w.propose = func(propose.Request) propose.Proposal {
		return propose.Proposal{Kind: propose.KindEscalate, Parameters: propose.Parameters{}}
	}
	w.broken()
	w.soon("both decided", func(s *ledger.State) bool { return len(s.DecisionOrder) >= 2 })
	before := w.r.Last()["a"].Assessment.At
	w.soon("further passes", func(*ledger.State) bool { return w.r.Last()["a"].Assessment.At.Sub(before) > 200*time.Millisecond })
	close(hang)
	stop()
}

// A source that hangs delays what it measures, and nothing else.
func TestHungSourceHoldsUpNoOtherSource(t *testing.T) {
	w := live(t)
	stop := w.loop()
	release := make(chan struct{})
	w.hangs.Store(&release)
	w.broken()
	w.soon("effect of a while b's source hangs", func(s *ledger.State) bool {
		for _, e := range s.Effects {
			if e.Service == "a" {
				return true
			}
		}
		return false
	})
	w.hangs.Store(nil)
	close(release)
	stop()
}

// Told to stop while a model thinks, the loop lets it finish and claims
// nothing.
func TestStopClaimsNothing(t *testing.T) {
	w := live(t)
	asked, release := make(chan struct{}, 2), make(chan struct{})
	w.propose = func(propose.Request) propose.Proposal {
		asked <- struct{}{}
		<-release
		return propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}}
	}
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.r.Run(ctx) }()
	w.soon("met and held", func(s *ledger.State) bool {
		a, ok := s.Service("a")
		return ok && a.EverMet && time.Since(a.Since) > 300*time.Millisecond
	})
	w.broken()
	<-asked
	cancel()
	close(release)
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if n := w.kinds()[ledger.KindClaim]; n != 0 || len(w.actuator.Journal()) != 0 {
		t.Errorf("%d claims and %d sends after the stop", n, len(w.actuator.Journal()))
	}
}

// The effect in doubt of a removed service is asked about without taking a
// slot from the others, and without holding up the end.
func TestOrphansHoldUpNobody(t *testing.T) {
	w := live(t)
	w.cfg.Sweep.Concurrency = 1
	w.actuator.SetMode(executetest.ModeDropReply)
	for i := range w.set.Services {
		w.set.Services[i].Remediation.Actions = slices.Clone(w.set.Services[i].Remediation.Actions)
		w.set.Services[i].Remediation.Actions[0].MaxLateness = time.Millisecond
		w.set.Services[i].Remediation.Actions[0].Timeout = 100 * time.Millisecond
	}
	stop := w.loop()
	w.broken()
	w.soon("an effect in doubt", func(s *ledger.State) bool {
		for _, e := range s.Effects {
			if e.InDoubt() {
				return true
			}
		}
		return false
	})
	w.set = spec.Set{Digest: "set-2", Services: nil}
	if err := w.r.Reload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w.soon("the orphans' marks asked for", func(s *ledger.State) bool {
		for _, e := range s.Effects {
			if e.InDoubt() {
				return false
			}
		}
		return true
	})
	stop()
}

// A model that never answers is not waited for at the end.
func TestStopDoesNotWaitForAModel(t *testing.T) {
	w := live(t)
	asked := make(chan struct{}, 2)
	w.asking = func(ctx context.Context) {
		asked <- struct{}{}
		<-ctx.Done()
	}
	stop := w.loop()
	w.broken()
	<-asked
	stop()
}

// A page that is on its way when the process is stopped arrives.
func TestStopLetsAPageArrive(t *testing.T) {
	w := live(t)
	w.propose = func(propose.Request) propose.Proposal {
		return propose.Proposal{Kind: propose.KindEscalate, Parameters: propose.Parameters{}}
	}
	hang := make(chan struct{})
	w.pager.mu.Lock()
	w.pager.hang = hang
	w.pager.mu.Unlock()
	stop := w.loop()
	w.broken()
	w.soon("a page on its way", func(*ledger.State) bool { return w.pager.entered.Load() > 0 })
	time.AfterFunc(200*time.Millisecond, func() { close(hang) })
	stop()
	if len(w.pager.open()) == 0 {
		t.Error("the page was cut off by the stop")
	}
}

// An Alertmanager that hangs when it is asked for silences holds up only what
// asks it.
func TestHungSilencesHoldUpNobodyElse(t *testing.T) {
	w := live(t)
	w.cfg.Sweep.Concurrency = 1
	release := make(chan struct{})
	w.silences = func(service string) ([]gate.Hold, error) {
		if service == "a" {
			<-release
		}
		return nil, nil
	}
	stop := w.loop()
	w.broken()
	w.soon("effect of b while a's silences hang", func(s *ledger.State) bool {
		for _, e := range s.Effects {
			if e.Service == "b" {
				return true
			}
		}
		return false
	})
	close(release)
	stop()
}

// A dependency that fails between the claim and the send voids the claim: the
// second gate sees the fleet as it is, not as it was when the pass began.
func TestDependencyFailsBeforeTheSend(t *testing.T) {
	w := live(t)
	w.set.Services[0].Remediation.DependsOn = []string{"b"}
	a := "a"
	var once sync.Once
	w.measuring = func(service string) {
		if service != a || w.kinds()[ledger.KindClaim] == 0 {
			return
		}
		once.Do(func() {
			w.failing.Store(true)
			w.soon("b breached", func(*ledger.State) bool { return w.r.Last()["b"].Assessment.State == compare.Breached })
		})
	}
	// b itself proposes nothing.
	w.propose = func(r propose.Request) propose.Proposal {
		if r.Service.Name == "b" {
			return propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}}
		}
		return propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}}
	}
	stop := w.loop()
	w.failingOnly.Store(&a)
	w.soon("the claim void", func(s *ledger.State) bool {
		for _, e := range s.Effects {
			if e.Effect == execute.Void && strings.Contains(e.VoidedFor, gate.ReasonDependency) {
				return true
			}
		}
		return false
	})
	stop()
	if n := len(w.actuator.Journal()); n != 0 {
		t.Errorf("%d sends although the dependency had failed", n)
	}
}
