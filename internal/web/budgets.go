package web

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Budget is one line of a BudgetList; service and action are empty for the
// global one.
type Budget struct {
	Service       string  `json:"service"`
	Action        string  `json:"action"`
	Period        string  `json:"period"`
	PeriodSeconds float64 `json:"periodSeconds"`
	Capacity      float64 `json:"capacity"`
	Remaining     float64 `json:"remaining"`
	// Spent is what counts now, and PerWeek how fast it was spent.
	Spent   float64 `json:"spent"`
	PerWeek float64 `json:"perWeek"`
	// NextRoom is when the oldest charge leaves, Empty when nothing is left if it
	// goes on like this; null where that is never.
	NextRoom *time.Time `json:"nextRoom"`
	Empty    *time.Time `json:"empty"`
	Charges  []Charge   `json:"charges"`
	// Resets are those in force, newest first.
	Resets []Reset `json:"resets"`
	// Arithmetic is all of it in one sentence.
	Arithmetic string `json:"arithmetic"`
}

// Reset is a named person's fresh start that counts now.
type Reset struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Until is when charges from before it count again; null: never.
	Until *time.Time `json:"until"`
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
	b := balanceOf(v, svc, a.Name)
	out := budgetOf(b, budget.Policy{Period: svc.Remediation.Budget.Period, Capacity: svc.Remediation.Budget.Capacity}, v.Now, f)
	out.Service, out.Action = svc.Name, a.Name
	out.Resets = resets(v, svc.Name, a.Name, svc.Remediation.Budget.Period)
	out.Arithmetic = inFull.arithmetic(v, svc, a)
	return out
}

func globalBudget(v View, f Filter) Budget {
	b := globalBalance(v)
	out := budgetOf(b, v.Global, v.Now, f)
	out.Resets = resets(v, "", "", v.Global.Period)
	out.Arithmetic = fmt.Sprintf("%s of %s left for the whole fleet", figure(b.Remaining), figure(b.Capacity))
	if spent := inFull.spent(b.Charges, true); spent != "" {
		out.Arithmetic += ": " + spent
	}
	return out
}

func budgetOf(b budget.Balance, p budget.Policy, now time.Time, f Filter) Budget {
	o := b.Outlook(p, now)
	return Budget{
		Period: duration(p.Period), PeriodSeconds: p.Period.Seconds(),
		Capacity: b.Capacity, Remaining: b.Remaining, Spent: o.Spent, PerWeek: *rounded(o.PerWeek),
		NextRoom: when(o.NextRoom), Empty: when(o.Empty), Charges: charges(b.Charges, p.Period, f),
	}
}

func globalBalance(v View) budget.Balance {
	return budget.Global(v.Global, v.State.Charges(), v.State.Resets, v.Now)
}

// resets are those of one budget that count now, newest first. One without an
// end says nothing any more once all that it forgave has aged out.
func resets(v View, service, action string, period time.Duration) []Reset {
	out := []Reset{}
	for _, r := range slices.Backward(v.State.Resets) {
		if r.Service != service || r.Action != action || !r.InForce(v.Now) || r.Until.IsZero() && v.Now.Sub(r.At) >= period {
			continue
		}
		out = append(out, Reset{By: r.By, Reason: r.Reason, At: r.At.UTC(), Until: when(r.Until)})
	}
	return out
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
