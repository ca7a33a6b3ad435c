package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Reconciler makes passes. It is safe for concurrent use.
type Reconciler struct {
	*Desk

	o   Options
	log *slog.Logger
	tel *telemetry

	reads   reads
	watch   watch
	clocks  clocks
	sending sending
	outbox  outbox
	// born is when this process began.
	born  time.Time
	cards cards

	mu sync.Mutex
	// set and rule are the loaded documents and policies.
	set  spec.Set
	rule rules
	// last is the newest result of each service, errors how many passes of it
	// failed in a row, and again when it may be tried next.
	last   map[string]Result
	errors map[string]int
	again  map[string]time.Time
	// assessed is what was last seen of each service, looked when that look
	// ended, and sightings since when it holds.
	assessed  map[string]compare.Assessment
	looked    map[string]time.Time
	sightings map[string]sighting
	// ages are those of open tickets.
	ages ages
	// swept is when people were last told, passed when a pass last ended.
	swept, passed time.Time
	hints         map[string]time.Time
	// revised is what the targets of each service last listed as rolled out.
	revised map[string][]measure.Change
	// conflicts are the keys that were found held with other bytes, by service.
	conflicts map[string]gate.Key
	// checkpoint is where the fold of the ledger began.
	checkpoint ledger.Checkpoint
	// strays are evaluations of the shadow policy that were left behind.
	strays atomic.Int32
	// slots are those of Run; nil without it.
	slots chan struct{}

	wake chan string
	// soon asks for people to be told before the next sweep.
	soon chan struct{}
	// running is the context of Run; nil without it.
	running atomic.Pointer[context.Context]
	// quit is closed then: a model that is still thinking is not waited for.
	quit chan struct{}
	// deliveries are pages on their way.
	deliveries sync.WaitGroup
}

// New checks the options, loads the documents and folds the ledger. It makes
// no pass.
func New(ctx context.Context, o Options) (*Reconciler, error) {
	switch {
	case o.Documents == nil, o.Measurer == nil, o.Proposer == nil, o.Now == nil, o.Freezes == nil:
		return nil, errors.New("reconcile: Documents, Measurer, Proposer, Freezes and Now are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	tel, err := newTelemetry(o.Registerer)
	if err != nil {
		return nil, err
	}
	if err := tel.decisionLog(o.Registerer, o.DecisionLog); err != nil {
		return nil, err
	}
	if who := o.Proposer.Identity(); who.Endpoint != "" {
		tel.model.expect(who.Kind, o.Config.Proposer.Endpoints)
	}
	desk := NewDesk(o.Store, approve.Groups(o.Config.Approvers), o.Now)
	r := &Reconciler{
		Desk: desk, o: o, log: o.Logger, tel: tel, rule: rules{policy: o.Policy, since: o.Now(), shadow: o.Shadow, fault: o.PolicyFault},
		last: map[string]Result{}, errors: map[string]int{}, again: map[string]time.Time{},
		assessed: map[string]compare.Assessment{}, looked: map[string]time.Time{}, sightings: map[string]sighting{}, hints: map[string]time.Time{}, conflicts: map[string]gate.Key{},
		revised: map[string][]measure.Change{},
		wake:    make(chan string, 64), soon: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	r.outbox, r.born = newOutbox(), o.Now()
	r.cards = cards{busy: map[string]bool{}, looked: map[string]time.Time{}, begun: map[string]time.Time{}}
	r.woken, r.answered, r.seenAnew, r.Desk.lived = r.nudge, r.tel.answered, r.tellSoon, r.lived
	if o.Policy == nil && r.rule.fault == "" {
		r.rule.fault = "no policy was given"
	}
	// A policy that was swapped is not kept in memory for ever.
	r.o.Policy, r.o.Shadow = nil, nil
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	set, err := o.Documents()
	if err != nil {
		return nil, err
	}
	r.set = withoutPlaces(set)
	r.watch.load(r.set)
	r.foundLoose()
	r.tel.policyLoaded(r.rules())
	return r, nil
}

// open folds the ledger. One that the caller found unusable is shown as far as
// it can be read, and never written.
func (r *Reconciler) open(ctx context.Context) error {
	var err error
	if r.checkpoint, err = r.book.load(ctx); err == nil {
		err = r.book.catchUp(ctx)
	}
	if r.o.LedgerFault == nil {
		return err
	}
	r.book.fault(errors.Join(r.o.LedgerFault, err))
	return nil
}

// Reload reads the documents again and, when one is given, swaps the policy.
// The last good ones stay on a fault.
func (r *Reconciler) Reload(ctx context.Context, policy Policy) error {
	set, err := r.o.Documents()
	if err != nil {
		return fmt.Errorf("reload, the last good documents stay: %w", err)
	}
	// Recorded first: documents that act before the ledger knows of their change
	// would act without the caution that a change asks for.
	if err := r.recordDocuments(ctx, set); err != nil {
		return fmt.Errorf("reload, the last good documents stay: %w", err)
	}
	if policy != nil {
		if err := r.recordPolicy(ctx, policy, false); err != nil {
			return fmt.Errorf("reload, the last good policy stays: %w", err)
		}
	}
	set = withoutPlaces(set)
	r.watch.load(set)
	r.mu.Lock()
	r.set = set
	if policy != nil {
		r.rule.take(policy, r.o.Now())
	}
	r.mu.Unlock()
	r.tel.policyLoaded(r.rules())
	return nil
}

// withoutPlaces is the set without the places of its values, which are for
// faults in documents: a fleet's would fill the memory with parsed YAML.
func withoutPlaces(set spec.Set) spec.Set {
	set.Services = slices.Clone(set.Services)
	for i := range set.Services {
		set.Services[i].Remediation.Where = spec.Positions{}
	}
	return set
}

// recordDocuments appends the digests when they differ from the last ones: a
// service whose documents changed acts by approval at most for a while.
func (r *Reconciler) recordDocuments(ctx context.Context, set spec.Set) error {
	body := ledger.Documents{Set: set.Digest, Services: map[string]string{}}
	for _, svc := range set.Services {
		body.Services[svc.Name] = svc.Digest
	}
	err := r.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		if s.Set == set.Digest {
			return nil, nil
		}
		return []ledger.Draft{{Kind: ledger.KindDocuments, Body: body}}, nil
	})
	return err
}

// Ready says why the agent is not ready; empty when it is.
func (r *Reconciler) Ready() string {
	if err := r.book.broken(); err != nil {
		return "ledger: " + err.Error()
	}
	if fault := r.policyFault(); fault != "" {
		return "policy: " + fault
	}
	if _, err := r.o.Freezes.Frozen(""); err != nil {
		return "freezes: they cannot be read, which holds everything: " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.swept.IsZero() {
		return "no sweep has completed yet"
	}
	return ""
}

// View runs f with the folded ledger; f keeps nothing of it.
func (r *Reconciler) View(f func(s *ledger.State)) { r.book.view(f) }

// Set is the loaded desired state.
func (r *Reconciler) Set() spec.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set
}

// Last is the newest result of each service, by name.
func (r *Reconciler) Last() map[string]Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.last)
}

func (r *Reconciler) limits() gate.Limits {
	l := r.o.Config.Limits
	return gate.Limits{
		MaxMode: l.MaxMode, EffectsPerHour: l.EffectsPerHour, EffectsPerServicePerHour: l.EffectsPerServicePerHour,
		OpenApproval: l.OpenApprovals, MinSpacing: l.MinSpacing, PermitTTL: l.PermitTTL,
	}
}

// modelLimits bound what is asked of models, by all replicas together.
func (r *Reconciler) modelLimits() propose.Limits {
	l := r.o.Config.Proposer.Limits
	return propose.Limits{CallsPerHour: l.CallsPerHour, CallsPerServicePerHour: l.CallsPerServicePerHour, TokensPerDay: l.TokensPerDay}
}

func (r *Reconciler) globalBudget() budget.Policy {
	b := r.o.Config.Budget
	return budget.Policy{Period: b.Period, Capacity: b.Capacity}
}

func (r *Reconciler) compareLimits() compare.Limits {
	out := compare.Limits{MaxSampleAge: map[string]time.Duration{}, Sweep: r.o.Config.Sweep.Interval}
	for i, s := range r.o.Config.Sources {
		if i == 0 {
			out.MaxSampleAge[""] = s.MaxSampleAge
		}
		out.MaxSampleAge[s.Name] = s.MaxSampleAge
	}
	return out
}

func (r *Reconciler) receiverRules() []escalate.Rule {
	var out []escalate.Rule
	for _, c := range r.o.Config.Receivers {
		_, down := r.outbox.isDown(c.Name)
		rule := escalate.Rule{Name: c.Name, EscalateAfter: c.EscalateAfter, Heartbeat: c.Heartbeat, ShowsAck: c.Slack != nil, Down: down}
		if c.Alertmanager != nil {
			rule.Repost = r.o.Config.Sweep.Interval
		}
		out = append(out, rule)
	}
	return out
}

func (r *Reconciler) receiver(name string) escalate.Receiver {
	for _, rec := range r.o.Receivers {
		if rec.Name() == name {
			return rec
		}
	}
	return nil
}

// freezes are those of the files. When nobody can read them, that is a freeze
// too: the stop must work when the rest does not.
func (r *Reconciler) freezes(service string, now time.Time) []gate.Hold {
	holds, err := r.o.Freezes.Frozen(service)
	if err != nil {
		return []gate.Hold{{ID: "unreadable", By: "setpoint", Text: "the freeze folder cannot be read: " + err.Error()}}
	}
	return slices.DeleteFunc(holds, func(h gate.Hold) bool { return !h.Until.IsZero() && !now.Before(h.Until) })
}

// recordedFreezes are those of the ledger that bind the service.
func recordedFreezes(s *ledger.State, service string, now time.Time) []gate.Hold {
	var out []gate.Hold
	for _, f := range s.Frozen(service, now) {
		out = append(out, gate.Hold{ID: f.ID, By: f.By, Text: f.Reason, Until: f.Until})
	}
	return out
}

// silences are those at every Alertmanager, and why one could not be asked.
func (r *Reconciler) silences(ctx context.Context, service string) (out []gate.Hold, unreadable string) {
	for _, s := range r.o.Silencers {
		found, err := s.Silences(ctx, service)
		if err != nil {
			unreadable = err.Error()
			r.log.Warn("silences cannot be read, which holds every action", "service", service, "error", err)
			continue
		}
		out = append(out, found...)
	}
	return out, unreadable
}

func (p *pass) maintenances() []gate.Hold {
	var out []gate.Hold
	for _, m := range p.fleet.set.Maintenances {
		if !m.Active(p.svc.Name, p.now) {
			continue
		}
		_, until := m.Schedule.Active(p.now)
		out = append(out, gate.Hold{ID: m.Name, By: m.Owner, Text: m.Reason, Until: until, Effect: m.Effect})
	}
	return out
}

func (p *pass) exceptions() []spec.Exception {
	var out []spec.Exception
	for _, e := range p.fleet.set.Exceptions {
		if e.Service == p.svc.Name && e.Active(p.now) {
			out = append(out, e)
		}
	}
	return out
}

// span starts one of the five spans of a pass.
func (p *pass) span(ctx context.Context, name string) (context.Context, func()) {
	ctx, span := p.r.o.Tracer.Start(ctx, name, trace.WithAttributes(serviceAttribute(p.svc.Name)))
	return ctx, func() { span.End() }
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
