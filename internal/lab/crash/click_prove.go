package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/lab/mutants"
)

// proof is one mutant of the agent, where it shows, and what is said of it.
type proof struct {
	mutant string
	points []string
	says   string
}

// proofs are mutants of the agent that the judge of clicks must notice, where, and
// by which words. A judge that cannot fail says nothing.
var proofs = []proof{
	{"ack-before-record", []string{
		"click/http/ok/kill at before answer#1", "click/http/drop-reply/kill at before answer#1",
		"click/http/ok/kill before pwrite64 1 of the record", "click/http/ok/kill before fsync 1 of the record",
	}, "the ledger has no answer"},
	{"posted-without-looking", []string{"click/http/ok/kill at before card#2, clicked late"}, "cards in the channel"},
}

// ProveClicks breaks the agent in each of these ways and reports into the table
// whether the suite noticed. root is the folder of the sources.
func ProveClicks(ctx context.Context, o Options, root string, t *Table) error {
	for _, p := range proofs {
		list, err := mutants.Select(mutants.List(), []string{p.mutant})
		if err != nil {
			return err
		}
		caught, why, err := p.run(ctx, o, root, list[0])
		if err != nil {
			return fmt.Errorf("the agent with %s: %w", p.mutant, err)
		}
		if t.Mutants++; caught {
			t.MutantsCaught++
			continue
		}
		t.Beside = append(t.Beside, fmt.Sprintf("mutant %s: the judge of clicks did not say %q, only %q", p.mutant, p.says, why))
	}
	return nil
}

func (p proof) run(ctx context.Context, o Options, root string, m mutants.Mutant) (caught bool, why []string, err error) {
	dir, err := os.MkdirTemp("", "sp-prove-")
	if err != nil {
		return false, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := m.Overlay(root, dir)
	if err != nil {
		return false, nil, err
	}
	o.Agent = filepath.Join(dir, "agent")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "crashtest", "-overlay", overlay, "-o", o.Agent, "./cmd/setpoint")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return false, nil, fmt.Errorf("build it: %w\n%s", err, out)
	}
	o.Only, o.Points, o.Keep, o.KeepAll = []string{"click"}, p.points, filepath.Join(dir, "histories"), false
	o.Progress = nil
	table, err := Run(ctx, o)
	if err != nil {
		return false, nil, err
	}
	for _, f := range table.Failed {
		why = append(why, f.Violations...)
	}
	return slices.ContainsFunc(why, func(v string) bool { return strings.Contains(v, p.says) }), why, nil
}
