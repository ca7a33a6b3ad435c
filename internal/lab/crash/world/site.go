package world

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// The files of a site.
const (
	ConfigFile  = "setpoint.yaml"
	LedgerFile  = "setpoint.db"
	JournalFile = "journal.jsonl"
	AcksFile    = "acks.jsonl"
	PointsFile  = "points.jsonl"
	ClockFile   = "clock"
	LogFile     = "setpoint.log"
	PagesFile   = "pages.json"
	ExportFile  = "ledger.jsonl"
)

// Service and Action are the only ones of a site. Fixed is the parameter with
// which the action mends the service.
const (
	Service = "checkout"
	Action  = "fix"
	Fixed   = "5"
)

// The durations of a site, which the classes wait for.
const (
	Sweep          = 100 * time.Millisecond
	Window         = 2 * time.Second
	HoldFor        = time.Second
	UnknownFor     = 2 * time.Second
	EscalateWithin = 2 * time.Second
	PermitTTL      = time.Second
	Timeout        = 500 * time.Millisecond
	MaxLateness    = time.Second
)

// secret signs what is sent.
const secret = "crash-suite-0123456789"

// configText is setpoint.yaml. The policy is two rules, so that a start takes
// a fraction of a second.
const configText = `documents: [checkout.yaml]
policies: {path: policies}
sweep: {interval: 100ms, jitter: 0.1}
sources: [{name: main, url: "SOURCE", timeout: 2s, maxSampleAge: 1s, queriesPerSecond: 10000, maxConcurrency: 8}]
proposer: {provider: rules, rules: rules.yaml}
ledger: {LEDGER, freezeDir: setpoint.freeze}
limits: {maxMode: auto, minSpacing: 1s, effectsPerHour: 50, effectsPerServicePerHour: 50, permitTTL: 1s}
budget: {period: 1h, capacity: 1000}
receivers: [{name: oncall, webhook: {url: "PAGER"}}]
approvers: {"@oncall": ["os:YOU"]}
executors: {webhook: {allow: ["ACTUATOR/"]}}
secrets: {actuator: actuator.key}
web: {listen: "127.0.0.1:0", socket: setpoint.sock}
`

const documentText = `apiVersion: openslo/v1
kind: SLO
metadata: {name: availability}
spec:
  service: checkout
  indicator:
    metadata: {name: availability}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: ` + goodCounter + `}}}
        total: {metricSource: {type: Prometheus, spec: {query: ` + totalCounter + `}}}
  timeWindow: [{duration: 1h, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: checkout}
spec:
  service: checkout
  owner: team-shop
  mode: auto
  actionWindow: 2s
  holdFor: 1s
  unknownFor: 2s
  escalateWithin: 2s
  approvalFor: 1m
  approvers: ["@oncall"]
  objectives:
    availability: {judgeWindow: 1s, minEvents: 10, burnRates: [{short: 1s, long: 2s, factor: 5, page: true}]}
  actions:
    - name: fix
      uses: webhook.post
      target: {url: "ACTUATOR/checkout", statusURL: "ACTUATOR/checkout", secret: actuator}
      class: CLASS
      reversal: restore
      settle: 0s
      cooldown: 0s
      timeout: 500ms
      maxLateness: 1s
      parameters:
        level: {type: integer, minimum: 0, maximum: 10}
  budget: {period: 1h, capacity: 1000}
  escalation: {receivers: [oncall]}
`

const rulesText = `rules:
  - {service: checkout, propose: {action: fix, parameters: {level: 5}}}
`

const policyText = `package setpoint.gate

auto contains "crash-suite" if input.action.class == "auto"

approval contains "crash-suite-asks" if input.action.class == "approval"
`

const policyTestText = `package setpoint.gate_test

import data.setpoint.gate

test_auto if "crash-suite" in gate.auto with input as {"action": {"class": "auto"}}

test_asks if "crash-suite-asks" in gate.approval with input as {"action": {"class": "approval"}}
`

// places are where a site's agent finds the world.
type places struct{ source, pager, actuator, slack string }

// writeSite fills a folder. ledger is the YAML of the store.
func writeSite(dir string, at places, class, ledger string) error {
	you, err := user.Current()
	if err != nil {
		return fmt.Errorf("who answers: %w", err)
	}
	fill := strings.NewReplacer("YOU", you.Username, "SOURCE", at.source, "PAGER", at.pager, "ACTUATOR", at.actuator, "CLASS", class, "LEDGER", ledger)
	files := map[string]string{
		ConfigFile: fill.Replace(configText), "checkout.yaml": fill.Replace(documentText), "rules.yaml": rulesText,
		"policies/crash.rego": policyText, "policies/crash_test.rego": policyTestText,
		"actuator.key": secret,
	}
	if err := os.MkdirAll(filepath.Join(dir, "policies"), 0o700); err != nil {
		return fmt.Errorf("make a site: %w", err)
	}
	var errs []error
	for name, text := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}
