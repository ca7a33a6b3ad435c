package demo

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/cut"
	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// site is the folder that the agent runs in.
type site struct {
	dir    string
	secret []byte
	// set is what the cut documents say.
	set spec.Set
}

// The files of a site.
const (
	configFile = "setpoint.yaml"
	ledgerFile = "setpoint.db"
	socketFile = "setpoint.sock"
	secretFile = "actuator.key"
	logFile    = "setpoint.log"
	journalDir = "journal"
	engineDir  = "tsdb"
	// rulesFile is the brain behind the endpoint, below the root.
	rulesFile = "evals/rules.yaml"
)

// newSite makes the folder; remove it with os.RemoveAll.
func newSite() (*site, error) {
	dir, err := os.MkdirTemp("", "setpoint-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // It never fails.
	s := &site{dir: dir, secret: []byte(hex.EncodeToString(secret))}
	for _, sub := range []string{"slo", journalDir, engineDir} {
		if err := os.Mkdir(s.path(sub), 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("make the demo's folder: %w", err), os.RemoveAll(dir))
		}
	}
	return s, nil
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// places are the loopback URLs that the agent is told.
type places struct {
	source, model, pager, actuator string
}

// fill writes configuration, secret and the cut documents.
func (s *site) fill(root string, at places, you string) error {
	files, err := documents(filepath.Join(root, "slo"))
	if err != nil {
		return err
	}
	short, err := cut.Files(files, cut.Options{Factor: factor, BurnRate: pagePair, Targets: at.actuator})
	if err != nil {
		return fmt.Errorf("cut slo/: %w", err)
	}
	if s.set, err = spec.Load(short, []spec.Reader{openslo.Reader{}}); err != nil {
		return fmt.Errorf("slo/ after the cut: %w", err)
	}
	for _, f := range short {
		if err := s.write(filepath.Join("slo", filepath.Base(f.Name)), f.Data); err != nil {
			return err
		}
	}
	if err := s.write(secretFile, s.secret); err != nil {
		return err
	}
	return s.write(configFile, []byte(configText(at, you)))
}

func (s *site) write(name string, data []byte) error {
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		return fmt.Errorf("write the demo's files: %w", err)
	}
	return nil
}

// documents reads the YAML files of slo/, sorted by name.
func documents(dir string) ([]spec.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("documents: no *.yaml in %s", dir)
	}
	slices.Sort(names)
	var files []spec.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
		files = append(files, spec.File{Name: name, Data: data})
	}
	return files, nil
}

// loadRules reads the rules file of the endpoint.
func loadRules(root string) (*rules.Rules, error) {
	name := filepath.Join(root, filepath.FromSlash(rulesFile))
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the rules file behind the endpoint: %w", err)
	}
	return rules.Load(spec.File{Name: name, Data: data})
}

// holdFor is the longest of the services: as long as every one must have been
// met before the first fault.
func (s *site) holdFor() time.Duration {
	var longest time.Duration
	for _, svc := range s.set.Services {
		longest = max(longest, svc.Remediation.HoldFor)
	}
	return longest
}

// configText is the agent's setpoint.yaml. Policies and prompts are not named:
// it runs with the ones that it ships with.
func configText(at places, you string) string {
	quote := func(text string) string { return fmt.Sprintf("%q", text) }
	return strings.NewReplacer(
		"SOURCE", quote(at.source), "ENDPOINT", quote(at.model+"/v1"), "MODEL", quote(model.Name),
		"PAGER", quote(at.pager+"/page"), "ACTUATOR", quote(at.actuator+"/"), "YOU", quote(you),
	).Replace(configTemplate)
}

const configTemplate = `# The agent of the demo: seconds instead of minutes, everything on loopback.
documents: [slo/]
sweep: {interval: 1s, jitter: 0.1}
sources:
  - {name: main, url: SOURCE, timeout: 5s, maxSampleAge: 5s, queriesPerSecond: 200, maxConcurrency: 4}
proposer:
  provider: openai
  endpoints: [{name: loopback, baseURL: ENDPOINT, model: MODEL, timeout: 5s}]
ledger: {sqlite: {path: ` + ledgerFile + `}, freezeDir: setpoint.freeze}
limits: {maxMode: auto, minSpacing: 4s, effectsPerServicePerHour: 6}
receivers: [{name: shop-oncall, webhook: {url: PAGER}}]
approvers: {"@shop-oncall": [YOU]}
executors: {webhook: {allow: [ACTUATOR]}}
secrets: {actuator: ` + secretFile + `}
web: {listen: "127.0.0.1:0", socket: ` + socketFile + `}
`
