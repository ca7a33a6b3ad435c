package worst_test

import (
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/worst"
)

// The whole loop lets through what arithmetic says, and not one more. The
// adversaries need less than a week for it; setpoint-lab worst plays all of them
// for the whole period.
func TestTheWorstIsTheBound(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a week of several worlds")
	}
	for _, s := range worst.Setups() {
		t.Run(s.Name, func(t *testing.T) {
			var some []worst.Adversary
			for _, a := range s.Adversaries() {
				if a.Name == "mixture" || a.Name == "one-service" || a.Name == "in-turn" || a.Name == "undo-worse" || a.Name == "lost-answers" || a.Name == "neighbour" {
					some = append(some, a)
				}
			}
			r, err := worst.Try(t.Context(), s, 6, some, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range r.Rows {
				t.Logf("%-12s %d effects, harmful %+v, action %+v, service %+v", row.Adversary, row.Effects, row.Harmful, row.Action, row.Service)
			}
			if r.Exceeded() {
				t.Errorf("more harm than the bound: %+v", r)
			}
			if !r.Reached() {
				t.Errorf("nobody reaches the bound: overall %+v, service %+v, action %+v", r.Overall, r.Service, r.Action)
			}
		})
	}
}
