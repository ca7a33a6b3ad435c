package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The site is small and quick, so that 200 steps see several windows, tickets
// that expire and budgets that run empty.
const (
	maxServices  = 3
	actionWindow = 2 * time.Minute
	holdFor      = time.Minute
	unknownFor   = 2 * time.Minute
	judgeWindow  = 20 * time.Second
	sweep        = 15 * time.Second
	askDeadline  = 40 * time.Second
	// apartBy is how far clocks may differ (DESIGN section 7).
	apartBy = 5 * time.Second

	capacity, globalCapacity = 3.0, 5.0
	period                   = 15 * time.Minute
	costNoChange             = 1.0
	costWorsened             = 2.0
	costUnknown              = 1.0

	docsRevisions = 4
)

func limits() gate.Limits {
	return gate.Limits{
		MaxMode: spec.Auto, EffectsPerHour: 4, EffectsPerServicePerHour: 3, OpenApproval: 2,
		MinSpacing: time.Minute, PermitTTL: 30 * time.Second,
	}
}

func globalBudget() budget.Policy { return budget.Policy{Period: period, Capacity: globalCapacity} }

// groups name the people; mallory is in none.
func groups() approve.Groups { return approve.Groups{"@oncall": {"os:alice", "os:bob"}} }

func serviceName(i int) string { return "s" + strconv.Itoa(i) }

// documents are the services as revision rev of the documents has them. The
// revisions differ where a change can hurt: another target, a lower mode, a
// removed action.
func documents(services, rev int) []spec.Service {
	out := make([]spec.Service, services)
	for i := range out {
		out[i] = service(i, rev)
	}
	return out
}

func service(i, rev int) spec.Service {
	name := serviceName(i)
	r := spec.DefaultRemediation(name)
	r.Name, r.Owner, r.Mode = name, "team", spec.Auto
	r.ActionWindow, r.HoldFor, r.UnknownFor = actionWindow, holdFor, unknownFor
	r.EscalateWithin, r.ApprovalFor = 4*time.Minute, 3*time.Minute
	r.Approvers = []string{"@oncall"}
	r.Budget = spec.Budget{Period: period, Capacity: capacity, Costs: costs()}
	r.Actions = actions(name, rev)
	if i == 2 {
		r.DependsOn = []string{serviceName(0)}
	}
	if rev == 2 {
		r.Mode = spec.Approval
	}
	return spec.Service{Name: name, Remediation: r, Digest: fmt.Sprintf("%s-%d", name, rev)}
}

func costs() spec.Costs {
	return spec.Costs{NoChange: costNoChange, Worsened: costWorsened, Unknown: costUnknown}
}

func actions(name string, rev int) []spec.Action {
	one, ten := 1.0, 10.0
	host := "http://" + name
	if rev == 1 {
		host = "http://new-" + name
	}
	as := []spec.Action{
		action("restart", host+"/restart", spec.ClassAuto, spec.Transient),
		action("shared", "http://all/shared", spec.ClassAuto, spec.Transient),
		action("flush", host+"/flush", spec.ClassApproval, spec.Irreversible),
		action("blind", host+"/blind", spec.ClassAuto, spec.Transient),
		action("doom", host+"/doom", spec.ClassEscalate, spec.Irreversible),
		action("scale", host+"/scale", spec.ClassAuto, spec.Restore),
	}
	as[3].Target.StatusURL = ""
	as[5].Parameters = []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &one, Maximum: &ten}}
	if rev == 3 {
		return as[:5]
	}
	return as
}

func action(name, url string, class spec.Class, reversal spec.Reversal) spec.Action {
	return spec.Action{
		Name: name, Uses: "webhook.post", Class: class, Reversal: reversal,
		Target: spec.Target{URL: url, StatusURL: url}, Settle: 20 * time.Second, Cooldown: time.Minute,
		Timeout: 5 * time.Second, MaxLateness: 10 * time.Second,
	}
}

// live is what every target shows.
func live() propose.Live { return propose.Live{"replicas": int64(3)} }

// The policies that a reload can bring. The first is the usual one.
const (
	policyAuto = iota
	policyApproval
	policyTwo
	policyEscalate
	policyDeny
	policySilent
	policyFault
	policies
)

func ruling(policy int) gate.Ruling {
	r := gate.Ruling{Revision: "p" + strconv.Itoa(policy)}
	rule := func(reason string) []gate.Rule { return []gate.Rule{{Reason: reason, Package: "setpoint.gate"}} }
	switch policy {
	case policyAuto:
		r.Auto = rule("daytime")
	case policyApproval:
		r.Approval = rule("second-try")
	case policyTwo:
		r.Approval = rule("four-eyes")
		r.Approval[0].Approvers, r.Approval[0].Quorum = []string{"os:alice", "os:bob"}, 2
	case policyEscalate:
		r.Escalate = rule("dependency-down")
	case policyDeny:
		r.Auto, r.Deny = rule("daytime"), rule("migration")
	case policyFault:
		r.Fault = gate.FaultTimeout + ": the evaluation took too long"
	}
	return r
}

// setting is what all seeds share, made once and never changed.
type setting struct {
	// sites are the documents, by number of services and revision.
	sites [maxServices + 1][docsRevisions][]spec.Service
	// begun are chains in which everything is met and the documents settled.
	begun [maxServices + 1]chain
}

// dawn is when the chains of a setting begin; the worlds begin later.
func dawn() time.Time { return time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC) }

func newSetting() (*setting, error) {
	s := &setting{}
	for n := 1; n <= maxServices; n++ {
		for rev := range docsRevisions {
			s.sites[n][rev] = documents(n, rev)
		}
		c := chain{head: ledger.NewState()}
		ds := []ledger.Draft{
			{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:alice"}},
			documentsDraft(s.sites[n][0]),
		}
		for _, svc := range s.sites[n][0] {
			ds = append(ds, ledger.Draft{Kind: ledger.KindState, Service: svc.Name, Body: ledger.StateChange{To: compare.Met}})
		}
		for _, d := range ds {
			if err := c.link(dawn(), d); err != nil {
				return nil, fmt.Errorf("begin a chain: %w", err)
			}
		}
		s.begun[n] = c
	}
	return s, nil
}

func documentsDraft(svcs []spec.Service) ledger.Draft {
	b := ledger.Documents{Services: map[string]string{}}
	for _, svc := range svcs {
		b.Set = svc.Digest
		b.Services[svc.Name] = svc.Digest
	}
	return ledger.Draft{Kind: ledger.KindDocuments, Body: b}
}
