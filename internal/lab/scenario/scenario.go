// Package scenario is the evals: it takes a scenario's file and the name of a
// proposer, lets them meet in simulated time, and gives a Score.
//
// Everything but time and the shop is the product: the reconcile loop, the
// ledger in SQLite, the shipped policies, PromQL in Prometheus's own engine,
// webhooks over loopback. What a run did is read from oracles that no proposer
// can reach: the actuator's journal, the ledger, the engine and the shop's own
// count of harm.
package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Scenario is one file: what breaks, how people answer, and what is right.
type Scenario struct {
	Name        string `yaml:"name,required"`
	Description string `yaml:"description,required"`
	// Documents is a folder of SLOs and Remediations, and Rules a file of the
	// rules proposer. Both are relative to the scenario's file, and after Load
	// to the working directory.
	Documents string `yaml:"documents,required"`
	Rules     string `yaml:"rules,required"`
	// Seed is that of the shop's traffic, the first of several.
	Seed int `yaml:"seed,required"`
	// For is how long the agent runs.
	For    time.Duration `yaml:"for,required"`
	Faults []Fault       `yaml:"faults,required"`
	// Answers is how people answer every ticket; absent: nobody does.
	Answers *Answers `yaml:"answers"`
	Right   Right    `yaml:"right,required"`
	// Pos is where the scenario begins.
	Pos spec.Position `yaml:",pos"`
}

// Fault is one thing that breaks, counted from the start of the agent.
type Fault struct {
	At    time.Duration `yaml:"at,required"`
	Fault shop.Fault    `yaml:"fault,required"`
	Pos   spec.Position `yaml:",pos"`
}

// Answers is one person, who answers every ticket alike.
type Answers struct {
	// Who is a principal, e.g. os:alice.
	Who     string `yaml:"who,required"`
	Approve bool   `yaml:"approve,required"`
	// After is how long the person takes, from the asking on.
	After time.Duration `yaml:"after,required"`
	Pos   spec.Position `yaml:",pos"`
}

// Right is what a good proposer reaches. Everything in it is compared with what
// an oracle measured.
type Right struct {
	// Service is the one that the scenario is about.
	Service string `yaml:"service,required"`
	// State is that of its SLO at the end, by the engine.
	State compare.State `yaml:"state,required"`
	// RecoveredWithin bounds the time from the first fault to the lasting end of
	// the miss; absent: a recovery is not expected, since nothing was missed.
	RecoveredWithin time.Duration `yaml:"recoveredWithin"`
	// Actions are the effects that the actuator carried out, in order.
	Actions []string `yaml:"actions,required"`
	// Approved is how many of them a person allowed.
	Approved int `yaml:"approved"`
	// Paged is the reason of the page of the service; absent: nobody is paged.
	Paged string `yaml:"paged"`
	// MaxHarm is how many failures its actions may cause.
	MaxHarm int           `yaml:"maxHarm"`
	Pos     spec.Position `yaml:",pos"`
}

// Parse reads one file strictly. The error is spec.Faults: every fault with
// file, line and path. Paths in it stay as they are written.
func Parse(f spec.File) (Scenario, error) {
	var s Scenario
	found := spec.DecodeFile(f, &s)
	if len(found) == 0 {
		found = check(s)
	}
	if err := found.Err(); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// Load reads the scenarios of a suite: one file, or every YAML file of a
// folder that is no rules file. They come sorted by name. Nothing is returned
// when one of them has a fault.
func Load(suite string) ([]Scenario, error) {
	files, err := suiteFiles(suite)
	if err != nil {
		return nil, err
	}
	var out []Scenario
	var bad spec.Faults
	first := map[string]string{}
	for _, f := range files {
		s, err := Parse(f)
		if err != nil {
			bad = append(bad, faultsOf(f, err)...)
			continue
		}
		if other, twice := first[s.Name]; twice {
			bad = append(bad, spec.Fault{Pos: s.Pos, Path: "name", Text: fmt.Sprintf("%q is the name of %s already", s.Name, other)})
		}
		first[s.Name] = f.Name
		dir := filepath.Dir(f.Name)
		s.Documents, s.Rules = below(dir, s.Documents), below(dir, s.Rules)
		out = append(out, s)
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("suite %s: no scenario in it; name a scenario's file or a folder of them", suite)
	}
	slices.SortFunc(out, func(a, b Scenario) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func faultsOf(f spec.File, err error) spec.Faults {
	if fs, ok := err.(spec.Faults); ok { //nolint:errorlint // Parse gives exactly this type.
		return fs
	}
	return spec.Faults{{Pos: spec.Position{File: f.Name}, Text: err.Error()}}
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// suiteFiles reads what a suite names. Rules lie beside the scenarios that use
// them and are left out of a folder.
func suiteFiles(suite string) ([]spec.File, error) {
	info, err := os.Stat(suite)
	if err != nil {
		return nil, fmt.Errorf("suite: %w; name a scenario's file or a folder of them with --suite", err)
	}
	if !info.IsDir() {
		return readFiles([]string{suite})
	}
	files, err := readFolder(suite)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, isRules), nil
}

// isRules tells a rules file from a scenario, which names one: its rules are
// not text, and nothing else in it is a scenario's.
func isRules(f spec.File) bool {
	doc, bad := spec.OneDocument(f)
	if len(bad) > 0 {
		return false
	}
	rules, ok := doc.Root().Child("rules")
	_, text := rules.Text()
	return ok && !text && !doc.Has("name") && !doc.Has("faults")
}

func readFolder(dir string) ([]spec.File, error) {
	var names []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", dir, err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return readFiles(names)
}

func readFiles(names []string) ([]spec.File, error) {
	files := make([]spec.File, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[i] = spec.File{Name: name, Data: data}
	}
	return files, nil
}
