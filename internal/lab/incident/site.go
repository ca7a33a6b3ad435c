package incident

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// source is the one place to measure.
const source = "main"

// oncall gets every page whose document names nobody else.
const oncall = "oncall"

// nobody approves where an incident says that nobody answers.
const nobody = "os:nobody"

// documents reads those of the incident as the agent does.
func documents(in Incident) (spec.Set, error) {
	var files []spec.File
	for _, t := range in.Documents {
		files = append(files, t.files()...)
	}
	return spec.Load(files, []spec.Reader{openslo.Reader{}})
}

// targets are the URLs to which actions go.
func targets(set spec.Set) []*url.URL {
	var out []*url.URL
	for _, svc := range set.Services {
		for _, a := range svc.Remediation.Actions {
			if u, err := url.Parse(a.Target.URL); err == nil && u.Host != "" {
				out = append(out, u)
			}
		}
	}
	return out
}

func targetPaths(set spec.Set) []string {
	var out []string
	for _, u := range targets(set) {
		out = append(out, u.Path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// configure is setpoint.yaml: the defaults, what the incident says, and
// whatever the documents name.
func configure(in Incident, set spec.Set, sweep time.Duration) config.Config {
	cfg := config.Default()
	cfg.Limits, cfg.Budget = in.Limits, in.Budget
	// One service after another, so that two runs are equal.
	cfg.Sweep = config.Sweep{Interval: sweep, Concurrency: 1}
	cfg.Sources = []config.Source{{Name: source, MaxSampleAge: 90 * time.Second}}
	for _, u := range targets(set) {
		cfg.Executors.Webhook.Allow = append(cfg.Executors.Webhook.Allow, u.Scheme+"://"+u.Host+"/")
	}
	who := []string{}
	for _, a := range in.Answers {
		who = append(who, a.Who)
	}
	if len(who) == 0 {
		who = []string{nobody}
	}
	slices.Sort(who)
	cfg.Approvers = map[string][]string{}
	names := []string{oncall}
	for _, svc := range set.Services {
		r := svc.Remediation
		for _, group := range r.Approvers {
			if strings.HasPrefix(group, "@") {
				cfg.Approvers[group] = slices.Compact(who)
			}
		}
		names = append(append(names, r.Escalation.Receivers...), r.Escalation.OwnerReceivers...)
	}
	for _, name := range names {
		if _, known := cfg.Receiver(name); !known {
			cfg.Receivers = append(cfg.Receivers, config.Receiver{Name: name})
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
				if b.Page {
					longest = max(longest, b.Long+o.JudgeWindow)
				}
			}
		}
	}
	return longest.Truncate(coarse) + coarse
}
