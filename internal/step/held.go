package step

import (
	"cmp"
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Stopped are the reasons for which nothing is done: those of the pass that held,
// or those of the last decision where the pass only waits for the next window.
func Stopped(n NoticeFacts) []gate.Reason {
	for _, r := range n.Holding {
		if r.Code != ReasonWindowSpent && r.Code != ReasonAsked && r.Code != ReasonWaitApproval {
			return n.Holding
		}
	}
	if n.Decision != nil && len(n.Decision.Reasons) > 0 {
		return n.Decision.Reasons
	}
	return n.Holding
}

// heldBy names what holds in words, so that whoever is woken need not look for it.
func heldBy(n NoticeFacts) string {
	rs := Stopped(n)
	if len(rs) == 0 {
		return ""
	}
	s := ": " + cmp.Or(rs[0].Text, rs[0].Code)
	if more := len(rs) - 1; more > 0 {
		s += fmt.Sprintf(", and %d more below", more)
	}
	return s
}
