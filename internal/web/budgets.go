package web

import (
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Budget is one line of a BudgetList; service and action are empty for the
// global one.
type Budget struct {
	Service       string   `json:"service"`
	Action        string   `json:"action"`
	Period        string   `json:"period"`
	PeriodSeconds float64  `json:"periodSeconds"`
	Capacity      float64  `json:"capacity"`
	Remaining     float64  `json:"remaining"`
	Charges       []Charge `json:"charges"`
}

// Charge is one decision that was paid for.
type Charge struct {
	Time     time.Time `json:"time"`
	Service  string    `json:"service"`
	Action   string    `json:"action"`
	Decision string    `json:"decision"`
	Cost     float64   `json:"cost"`
	Outcome  string    `json:"outcome"`
	// Leaves is when the charge has aged out.
	Leaves time.Time `json:"leaves"`
}

// Budgets lists the global budget first, then each service and action.
func Budgets(v View, f Filter) List[Budget] {
	var items []Budget
	if f.Service == "" {
		items = append(items, globalBudget(v, f))
	}
	for _, svc := range v.Set.Services {
		if !f.service(svc.Name) {
			continue
		}
		for _, a := range svc.Remediation.Actions {
			items = append(items, actionBudget(v, svc, a, f))
		}
	}
	return listOf("BudgetList", items)
}

func actionBudget(v View, svc spec.Service, a spec.Action, f Filter) Budget {
	period := svc.Remediation.Budget.Period
	b := balanceOf(v, svc, a.Name)
	return Budget{
		Service: svc.Name, Action: a.Name,
		Period: duration(period), PeriodSeconds: period.Seconds(),
		Capacity: b.Capacity, Remaining: b.Remaining,
		Charges: charges(b.Charges, period, f),
	}
}

func globalBudget(v View, f Filter) Budget {
	b := budget.Of("", "", v.Global, v.Global, v.State.Charges(), v.State.Resets, v.Now)
	var counted []budget.Charge
	for _, c := range v.State.Charges() {
		if v.Now.Sub(c.At) < v.Global.Period && !resetSince(v.State.Resets, c) {
			counted = append(counted, c)
		}
	}
	return Budget{
		Period: duration(v.Global.Period), PeriodSeconds: v.Global.Period.Seconds(),
		Capacity: b.GlobalCapacity, Remaining: b.GlobalRemaining,
		Charges: charges(counted, v.Global.Period, f),
	}
}

// resetSince reports whether a reset of the global budget wiped the charge.
func resetSince(resets []budget.Reset, c budget.Charge) bool {
	for _, r := range resets {
		if r.Service == "" && r.Action == "" && !c.At.After(r.At) {
			return true
		}
	}
	return false
}

func charges(cs []budget.Charge, period time.Duration, f Filter) []Charge {
	out := make([]Charge, 0, len(cs))
	for _, c := range cs {
		if !f.since(c.At) {
			continue
		}
		out = append(out, Charge{
			Time: c.At.UTC(), Service: c.Service, Action: c.Action, Decision: c.Decision,
			Cost: c.Cost, Outcome: string(c.Outcome), Leaves: c.At.Add(period).UTC(),
		})
	}
	return out
}

func balanceOf(v View, svc spec.Service, action string) budget.Balance {
	own := budget.Policy{Period: svc.Remediation.Budget.Period, Capacity: svc.Remediation.Budget.Capacity}
	return budget.Of(svc.Name, action, own, v.Global, v.State.Charges(), v.State.Resets, v.Now)
}

// duration is a duration as documents write it: whole days stay days, since
// nobody calls 28d four weeks.
func duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return spec.FormatDuration(d)
}
