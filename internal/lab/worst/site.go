package worst

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"text/template"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

//go:embed site
var site embed.FS

// Setup is a configuration that is tried.
type Setup struct {
	Name string
	// Capacity and Costs are of each action, Global of the fleet.
	Capacity float64
	Costs    spec.Costs
	Global   float64
	// Services have two actions each, both of class auto: one that is restored by
	// an undo, and one that is transient.
	Services int
}

// Setups are the defaults, the same with twice the fleet, of which no more harm
// comes, and one where the best mixture is another: harm in plain sight as often as
// the demotion lets it through.
func Setups() []Setup {
	return []Setup{
		{Name: "defaults", Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}, Global: 10, Services: 6},
		{Name: "twice the fleet", Capacity: 3, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}, Global: 10, Services: 12},
		{Name: "other", Capacity: 7, Costs: spec.Costs{NoChange: 1, Worsened: 3, Unknown: 2}, Global: 21, Services: 3},
	}
}

// String says what is tried.
func (s Setup) String() string {
	return fmt.Sprintf("%d services with 2 actions each, capacity %g, costs {noChange %g, worsened %g, unknown %g}, global capacity %g, period %s",
		s.Services, s.Capacity, s.Costs.NoChange, s.Costs.Worsened, s.Costs.Unknown, s.Global, spec.FormatDuration(period))
}

const (
	sweep        = 10 * time.Minute
	actionWindow = 20 * time.Minute
	period       = 28 * day
	day          = 24 * time.Hour
)

// The actions of each service: the first has an undo.
const (
	tune    = "tune"
	restart = "restart"
)

// serviceName is the n-th, clientName one that depends on it.
func serviceName(n int) string { return fmt.Sprintf("s%02d", n) }
func clientName(n int) string  { return fmt.Sprintf("s%02d-client", n) }

// documents are real ones, read as the agent reads them.
func (s Setup) documents(clients bool) (spec.Set, error) {
	text, err := site.ReadFile("site/documents/service.yaml.tmpl")
	if err != nil {
		return spec.Set{}, err
	}
	page, err := template.New("service").Parse(string(text))
	if err != nil {
		return spec.Set{}, err
	}
	var files []spec.File
	write := func(name, dependsOn string, acts bool) error {
		var b bytes.Buffer
		err := page.Execute(&b, map[string]any{
			"Name": name, "DependsOn": dependsOn, "Acts": acts, "Period": spec.FormatDuration(period), "Capacity": s.Capacity,
			"NoChange": s.Costs.NoChange, "Worsened": s.Costs.Worsened, "Unknown": s.Costs.Unknown,
		})
		files = append(files, spec.File{Name: name + ".yaml", Data: b.Bytes()})
		return err
	}
	for n := range s.Services {
		if err := write(serviceName(n), "", true); err != nil {
			return spec.Set{}, err
		}
		if !clients {
			continue
		}
		if err := write(clientName(n), serviceName(n), false); err != nil {
			return spec.Set{}, err
		}
	}
	return spec.Load(files, []spec.Reader{openslo.Reader{}})
}

// config is the defaults, and auto everywhere.
func (s Setup) config() config.Config {
	cfg := config.Default()
	cfg.Limits.MaxMode = spec.Auto
	// One service after another, so that two runs are equal.
	cfg.Sweep = config.Sweep{Interval: sweep, Concurrency: 1}
	cfg.Sources = []config.Source{{Name: source, MaxSampleAge: 90 * time.Second}}
	cfg.Executors.Webhook.Allow = []string{"http://actuator.internal/"}
	cfg.Receivers = []config.Receiver{{Name: oncall}}
	cfg.Approvers = map[string][]string{"@oncall": {"os:nobody"}}
	cfg.Budget = config.Budget{Period: period, Capacity: s.Global}
	return cfg
}

// allow is a policy that allows everything, through the real evaluator.
func allow() (*rego.Policy, error) {
	sub, err := fs.Sub(site, "site/policy")
	if err != nil {
		return nil, err
	}
	return rego.Load(sub, rego.Options{})
}

// Bound is what follows from the configuration that is tried.
func (s Setup) Bound(days int) (budget.WorstCase, error) {
	set, err := s.documents(false)
	if err != nil {
		return budget.WorstCase{}, err
	}
	cfg := s.config()
	var actors []budget.Actor
	for _, svc := range set.Services {
		for _, a := range svc.Remediation.Actions {
			actors = append(actors, actorOf(svc, a, cfg.Limits.MinSpacing))
		}
	}
	return budget.Worst(actors, budget.Policy{Period: cfg.Budget.Period, Capacity: cfg.Budget.Capacity}, budget.Pace{
		PerHour: cfg.Limits.EffectsPerHour, PerServicePerHour: cfg.Limits.EffectsPerServicePerHour, Over: time.Duration(days) * day,
	}), nil
}

func actorOf(svc spec.Service, a spec.Action, spacing time.Duration) budget.Actor {
	b := svc.Remediation.Budget
	wait := a.Settle
	for i, o := range svc.Objectives {
		if i == 0 || a.Settle+o.JudgeWindow < wait {
			wait = a.Settle + o.JudgeWindow
		}
	}
	return budget.Actor{
		Service: svc.Name, Action: a.Name, Budget: budget.Policy{Period: b.Period, Capacity: b.Capacity}, Costs: b.Costs,
		Restore: a.Reversal == spec.Restore && len(a.Parameters) > 0, Every: max(spacing, a.Cooldown, wait),
	}
}
