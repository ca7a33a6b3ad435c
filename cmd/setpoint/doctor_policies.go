package main

import (
	"context"
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// policySeen is what a bundle showed.
type policySeen struct {
	folder string
	// binding: it rules; otherwise it is the shadow, which binds nobody.
	binding bool
	// bad keeps it from loading, failing are its own tests that fail, lints what
	// loads and most often is a mistake.
	bad, failing spec.Faults
	lints        int
	revision     string
}

// policyChecks compile the policies and run their tests.
func (e *examination) policyChecks() []examine {
	type one struct {
		key, folder string
		binding     bool
	}
	all := []one{{"policies.path", e.site.cfg.Policies.Path, true}}
	if e.site.cfg.Policies.Shadow != "" {
		all = append(all, one{"policies.shadow", e.site.cfg.Policies.Shadow, false})
	}
	var out []examine
	for _, p := range all {
		out = append(out, examine{group: aboutPolicies, subject: bundleName(p.folder), limit: testsLimit, run: func(ctx context.Context) []checkItem {
			return []checkItem{e.policyItem(ctx, p.key, p.folder, p.binding)}
		}})
	}
	return out
}

func (e *examination) policyItem(ctx context.Context, key, folder string, binding bool) checkItem {
	p := policySeen{folder: folder, binding: binding}
	p.bad, p.failing = e.site.bundleFaults(ctx, key, folder)
	if fsys, _, err := bundleAt(folder); err == nil && len(p.bad) == 0 {
		for _, f := range regolint.Check(ctx, fsys, regolint.Options{}).Failing() {
			if f.Severity == rego.SeverityLint {
				p.lints++
			}
		}
		if b, err := rego.Read(fsys); err == nil {
			p.revision = b.Revision()
		}
	}
	return p.verdict()
}

// verdict judges a bundle.
func (p policySeen) verdict() checkItem {
	check, otherwise := "policies/binding", "an agent that starts with it only observes"
	if !p.binding {
		check, otherwise = "policies/shadow", "it binds nobody, and compares nothing"
	}
	s := subject{check, bundleName(p.folder)}
	arg := ""
	if p.folder != "" {
		arg = " " + p.folder
	}
	switch {
	case len(p.bad) > 0:
		return s.failed("it does not load: "+faultCount(p.bad, "fault"), fmt.Sprintf("correct it; `setpoint policy check%s` shows every fault; %s", arg, otherwise))
	case len(p.failing) > 0 && p.binding:
		return s.failed(faultCount(p.failing, "failing test"), fmt.Sprintf("correct the policy or its tests; `setpoint policy test%s` shows them; %s", arg, otherwise))
	case len(p.failing) > 0:
		return s.warned(faultCount(p.failing, "failing test"), fmt.Sprintf("correct the policy or its tests; `setpoint policy test%s` shows them", arg))
	case p.lints > 0:
		return s.warned(fmt.Sprintf("it loads and its tests pass, with %s", count(p.lints, "lint")), fmt.Sprintf("`setpoint policy check%s` shows them; what they say most often is a mistake", arg))
	}
	return s.fine("revision %s loads, and its tests pass", short(p.revision))
}

// faultCount is e.g. "3 faults, the first: …".
func faultCount(fs spec.Faults, what string) string {
	return fmt.Sprintf("%s, the first: %s", count(len(fs), what), fs[0].Error())
}
