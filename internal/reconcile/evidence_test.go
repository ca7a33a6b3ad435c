package reconcile_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// queried is one question to a source.
type queried struct {
	Source, Expr string
	At           time.Time
}

// asker answers evidence, and keeps what it was asked.
type asker struct {
	mu     sync.Mutex
	asked  []queried
	now    int
	most   int
	answer func(ctx context.Context, expr string) measure.Reading
}

func (a *asker) Ask(ctx context.Context, source, expr string, at time.Time) measure.Reading {
	a.mu.Lock()
	a.asked = append(a.asked, queried{source, expr, at})
	a.now++
	a.most = max(a.most, a.now)
	a.mu.Unlock()
	defer func() { a.mu.Lock(); a.now--; a.mu.Unlock() }()
	return a.answer(ctx, expr)
}

// seen are the questions so far.
func (a *asker) seen() []queried {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]queried(nil), a.asked...)
}

// modelled is a proposer that is a model as far as the loop can tell.
type modelled struct {
	w    *world
	kind string
	got  chan propose.Request
}

func (m modelled) Identity() propose.Proposer {
	if m.kind == "rules" {
		return propose.Proposer{Kind: "rules"}
	}
	return propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}
}

func (m modelled) Propose(_ context.Context, r propose.Request) reconcile.Proposed {
	m.got <- r
	p := m.w.propose(r)
	p.Proposer = m.Identity()
	return reconcile.Proposed{Proposal: p}
}

func perVersion(values map[string]float64) measure.Reading {
	var r measure.Reading
	for version, v := range values {
		r.Series = append(r.Series, measure.Sample{Metric: model.Metric{"version": model.LabelValue(version)}, Value: v})
	}
	return r
}

// evidenceWorld is one whose documents ask for evidence.
func evidenceWorld(t *testing.T, kind string, a *asker, all ...spec.Evidence) (*world, chan propose.Request) {
	t.Helper()
	w := prepare(t)
	w.set.Services[0].Remediation.Evidence = all
	got := make(chan propose.Request, 20)
	w.options = func(o *reconcile.Options) {
		o.Proposer, o.Asker = modelled{w, kind, got}, a
	}
	return w, got
}

func byVersion(name, source, expr string) spec.Evidence {
	return spec.Evidence{Name: name, Query: spec.Query{Expr: expr, Source: source}, Labels: []string{"version"}}
}

// Evidence is asked once, when a model is about to be: never for a service that
// is met, and not for rules, which do not look at it.
func TestEvidenceIsAskedForAModel(t *testing.T) {
	all := []spec.Evidence{byVersion("errors", "", `sum by (version) (e[{{.window}}])`), byVersion("queue", "probe", "queue")}
	for kind, want := range map[string]int{"openai": 2, "rules": 0} {
		t.Run(kind, func(t *testing.T) {
			a := &asker{answer: func(_ context.Context, expr string) measure.Reading {
				if expr == "queue" {
					return measure.Reading{Reason: measure.SourceError, Detail: "no"}
				}
				return perVersion(map[string]float64{"v1": 0.1, "v2": 0.9})
			}}
			w, got := evidenceWorld(t, kind, a, all...)
			w.start()
			w.healthy()
			if n := len(a.seen()); n != 0 {
				t.Fatalf("%d queries for a service that is met", n)
			}
			w.breakNow(0.3)
			w.until("applied effect", 15*time.Minute, applied)
			r := <-got
			asked := a.seen()
			if len(asked) != want {
				t.Fatalf("%d queries, want %d: %v", len(asked), want, asked)
			}
			if want == 0 {
				return
			}
			wanted := []measure.Breakdown{
				{Name: "errors", Labels: []string{"version"}, Rows: []measure.BreakdownRow{{Values: []string{"v2"}, Number: 0.9}, {Values: []string{"v1"}, Number: 0.1}}},
				{Name: "queue", Labels: []string{"version"}, Reason: measure.SourceError},
			}
			if diff := cmp.Diff(wanted, r.Breakdowns); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, q := range asked {
				if !q.At.Equal(measure.Instant(r.Now)) || q.Expr == "queue" && q.Source != "probe" || q.Expr != "queue" && q.Expr != "sum by (version) (e[5m])" {
					t.Errorf("asked %+v at %s", q, r.Now)
				}
			}
		})
	}
}

// Whatever evidence does, the proposal is no later than its deadline, and state
// and effect are what they would be without it.
func TestSlowEvidenceHoldsUpNoProposal(t *testing.T) {
	hang := func(ctx context.Context, expr string) measure.Reading {
		if expr == "fast" {
			return perVersion(map[string]float64{"v1": 1})
		}
		<-ctx.Done()
		return measure.Reading{Reason: measure.SourceError}
	}
	var gone chan struct{}
	deaf := func(_ context.Context, expr string) measure.Reading { // It does not even hear that nobody waits.
		if expr == "fast" {
			return perVersion(map[string]float64{"v1": 1})
		}
		<-gone
		return measure.Reading{}
	}
	for name, answer := range map[string]func(context.Context, string) measure.Reading{"Hangs": hang, "Deaf": deaf} {
		t.Run(name, func(t *testing.T) {
			a := &asker{answer: answer}
			all := []spec.Evidence{byVersion("first", "", "fast")}
			for _, n := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				all = append(all, byVersion(n, "", n))
			}
			w, got := evidenceWorld(t, "openai", a, all...)
			synctest.Test(t, func(t *testing.T) {
				gone = make(chan struct{}) // Of the bubble, where time waits for who waits for it.
				w.t = t
				w.start()
				w.healthy()
				w.breakNow(0.3)
				began := time.Now()
				res := w.until("applied effect", 15*time.Minute, applied)
				if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
					t.Errorf("the proposal came %s after the breach, the deadline of evidence is 5s", took)
				}
				r := <-got
				if len(r.Breakdowns) != 8 || r.Breakdowns[0].Reason != "" || r.Breakdowns[7].Reason != measure.SourceError {
					t.Errorf("breakdowns: %+v", r.Breakdowns)
				}
				if res.Assessment.State != compare.Breached {
					t.Errorf("state %s", res.Assessment.State)
				}
				a.mu.Lock()
				if a.most > 4 {
					t.Errorf("%d queries at once", a.most)
				}
				a.mu.Unlock()
				close(gone)
			})
		})
	}
}

// A question asks evidence too, for a service in any state, and writes nothing.
func TestQuestionAsksEvidence(t *testing.T) {
	a := &asker{answer: func(context.Context, string) measure.Reading { return perVersion(map[string]float64{"v1": 1}) }}
	w, _ := evidenceWorld(t, "rules", a, byVersion("errors", "", "e"))
	w.start()
	w.healthy()
	before := len(w.entries())
	r, err := w.r.Question(t.Context(), "checkout")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Breakdowns) != 1 || len(r.Breakdowns[0].Rows) != 1 {
		t.Errorf("breakdowns: %+v", r.Breakdowns)
	}
	if n := len(w.entries()); n != before {
		t.Errorf("a question wrote %d entries", n-before)
	}
}
