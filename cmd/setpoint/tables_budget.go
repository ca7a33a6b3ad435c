package main

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/web"
)

func budgetsTable(l *lister, items []web.Budget) (*table, []string) {
	t := columns(l, []string{"SERVICE", "ACTION", "REMAINING", "CAPACITY", "SPENT", "PER WEEK", "PERIOD", "NEXT ROOM", "EMPTY", "RESET"},
		"CHARGES", "NEWEST CHARGE", "ARITHMETIC")
	var names []string
	now := l.app.now()
	for _, b := range items {
		service, action, name := b.Service, b.Action, "budget/"+b.Service+"/"+b.Action
		if service == "" {
			service, action, name = "(all)", "(global)", "budget/global"
		}
		names = append(names, name)
		newest, empty := "", left(b.Empty, now)
		if n := len(b.Charges); n > 0 {
			c := b.Charges[n-1]
			newest = fmt.Sprintf("%s %.4g (%s)", c.Decision, c.Cost, c.Outcome)
		}
		if b.Empty != nil && b.Remaining <= 0 {
			empty = "now"
		}
		t.row(l, []string{
			service, action, fmt.Sprintf("%.4g", b.Remaining), fmt.Sprintf("%.4g", b.Capacity), fmt.Sprintf("%.4g", b.Spent),
			fmt.Sprintf("%.3g", b.PerWeek), b.Period, left(b.NextRoom, now), empty, resetCell(t, service+"/"+action, b.Resets),
		}, fmt.Sprint(len(b.Charges)), newest, b.Arithmetic)
	}
	return t, names
}

// resetCell names who gave a fresh start that counts now; why stands beside the
// table.
func resetCell(t *table, what string, resets []web.Reset) string {
	if len(resets) == 0 {
		return ""
	}
	r := resets[0]
	t.hint("%s was reset %s by %s%s%s", what, clock(r.At), r.By, until(r.Until), because(r.Reason))
	if r.Until == nil {
		return "by " + r.By
	}
	return "by " + r.By + " until " + clock(*r.Until)
}
