package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/crash"
	"github.com/setpoint-dev/setpoint/internal/lab/mutants"
	"github.com/setpoint-dev/setpoint/internal/lab/sim"
)

// The long simulation.
const (
	proofSeeds = 10_000
	proofSteps = 200
)

// orders are the small worlds of which every order is played.
var orders = []struct {
	says  string
	scope sim.Scope
}{
	{"every order: 2 replicas, 2 windows, 1 fault", sim.Scope{Ticks: []time.Duration{130 * time.Second}, Passes: 1}},
	{"every order: a person approves, one denies", sim.Scope{Passes: 2, Ask: true}},
	{"every order: a freeze at any moment", sim.Scope{Passes: 2, Freeze: true}},
}

// beside adds to the table what needs no processes: the simulation, every order
// of small worlds, and the mutants.
func beside(cmd *cobra.Command, t *crash.Table) error {
	began := time.Now()
	if err := besideSim(cmd, t); err != nil {
		return err
	}
	for _, o := range orders {
		x, err := sim.Explore(o.scope)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, crash.Row{
			Class: "orders", Says: o.says, Points: x.States, Requests: x.Sends, Effects: x.Sends,
			DoubleEffects: doubles(x.Violations), Invariants: sim.Invariants, Violations: len(x.Violations),
		})
		for _, v := range x.Violations {
			t.Beside = append(t.Beside, fmt.Sprintf("%s: %s: %s", o.says, v.Invariant, v.Text))
		}
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	m, err := mutants.Run(cmd.Context(), mutants.List(), mutants.Options{Root: root, Parallel: runtime.GOMAXPROCS(0), Progress: mutantProgress(cmd.ErrOrStderr())})
	if err != nil {
		return err
	}
	t.Mutants, t.MutantsCaught = t.Mutants+len(m.Items), t.MutantsCaught+m.Caught
	for _, r := range m.Items {
		if r.Verdict != mutants.Caught {
			t.Beside = append(t.Beside, fmt.Sprintf("mutant %s: %s", r.Name, r.Verdict))
		}
	}
	t.Seconds += time.Since(began).Seconds()
	return nil
}

func besideSim(cmd *cobra.Command, t *crash.Table) error {
	f := simFlags{seeds: proofSeeds, steps: proofSteps, parallel: runtime.GOMAXPROCS(0)}
	r, err := sim.Run(cmd.Context(), f.options(cmd.OutOrStdout(), cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	t.Rows = append(t.Rows, crash.Row{
		Class: "simulation", Says: fmt.Sprintf("simulation: seeds of %d steps", proofSteps), Points: r.Seeds,
		Requests: int(r.Sends), Effects: int(r.Effects), DoubleEffects: doubles(r.Violations),
		Invariants: sim.Invariants, Checks: int(r.Checked), Violations: len(r.Violations),
	})
	if !r.OK() {
		t.Beside = append(t.Beside, "simulation: "+simFailure(r, proofSteps))
	}
	return nil
}

func doubles(vs []sim.Violation) int {
	n := 0
	for _, v := range vs {
		if v.Invariant == sim.OneEffectPerKey {
			n++
		}
	}
	return n
}
