package scenario

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// source is the one place to measure.
const source = "engine"

// nobody approves where a scenario says that nobody answers.
const nobody = "os:nobody"

// loadDocuments reads the folder as the agent does, and changes two things: the
// actions go to the shop's actuator, and every mode is auto, since a scenario
// is about what may be done alone.
func loadDocuments(dir, actuator string) (spec.Set, error) {
	files, err := readFolder(dir)
	if err != nil {
		return spec.Set{}, err
	}
	set, err := spec.Load(files, []spec.Reader{openslo.Reader{}})
	if err != nil {
		return spec.Set{}, err
	}
	base, err := url.Parse(actuator)
	if err != nil {
		return spec.Set{}, fmt.Errorf("the actuator's address: %w", err)
	}
	for i := range set.Services {
		r := &set.Services[i].Remediation
		r.Mode = spec.Auto
		r.Actions = slices.Clone(r.Actions)
		for j := range r.Actions {
			t := &r.Actions[j].Target
			t.URL, t.StatusURL = moved(t.URL, base), moved(t.StatusURL, base)
		}
	}
	return set, nil
}

// moved is the same path at another host.
func moved(raw string, to *url.URL) string {
	u, err := url.Parse(raw)
	if raw == "" || err != nil {
		return raw
	}
	u.Scheme, u.Host = to.Scheme, to.Host
	return u.String()
}

// configure is the agent's configuration: the defaults, as they ship, with
// maxMode auto, and whatever the documents name.
func configure(set spec.Set, s Scenario, actuator string) config.Config {
	cfg := config.Default()
	cfg.Limits.MaxMode = spec.Auto
	// One service after another, so that two runs with one seed are equal.
	cfg.Sweep.Concurrency = 1
	cfg.Sources = []config.Source{{Name: source, MaxSampleAge: 90 * time.Second}}
	cfg.Executors.Webhook.Allow = []string{actuator + "/"}
	cfg.Approvers = map[string][]string{}
	who := nobody
	if s.Answers != nil {
		who = s.Answers.Who
	}
	for _, svc := range set.Services {
		for _, group := range svc.Remediation.Approvers {
			cfg.Approvers[group] = []string{who}
		}
		for _, name := range svc.Remediation.Escalation.Receivers {
			if _, known := cfg.Receiver(name); !known {
				cfg.Receivers = append(cfg.Receivers, config.Receiver{Name: name})
			}
		}
	}
	return cfg
}

// history is how much the engine must hold before the agent starts, so that
// every long window is covered and nothing is decided by warming.
func history(set spec.Set) time.Duration {
	var longest time.Duration
	for _, svc := range set.Services {
		for _, o := range svc.Objectives {
			for _, b := range o.BurnRates {
				longest = max(longest, b.Long+o.JudgeWindow)
			}
		}
	}
	return longest
}
