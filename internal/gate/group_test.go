package gate_test

import (
	"slices"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// A missed objective with groups leads to auto only where the proposal names
// the worst group by each of its labels.
func TestGroupedNeedsAnAim(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*gate.Case)
		asks   bool
	}{
		"no groups":      {"one series has nothing to aim at", func(c *gate.Case) { c.Facts.Assessment.Objectives[0].Group = "" }, false},
		"not named":      {"what heals one host must not be done to all", func(*gate.Case) {}, true},
		"the worst":      {"host and zone are the worst group's", aim("a", "eu"), false},
		"another":        {"another host is not the one that is missed", aim("b", "eu"), true},
		"one label only": {"every label counts", aim("a", ""), true},
		"looks like it":  {"a value cannot pretend to be two labels", aim(`a", zone="eu`, ""), true},
		"no such label": {"series without the label cannot be named by leaving it out", func(c *gate.Case) {
			c.Facts.Assessment.Objectives[0].Group = `host="", zone=""`
			a := &c.Service.Remediation.Actions[0]
			a.Parameters = slices.DeleteFunc(a.Parameters, func(p spec.Parameter) bool { return p.Name == "host" || p.Name == "zone" })
			c.Facts.Item.Action = *a
			delete(c.Proposal.Parameters, "host")
			delete(c.Proposal.Parameters, "zone")
		}, true},
		"group is well":     {"an objective that is met needs no aim", func(c *gate.Case) { c.Facts.Assessment.Objectives[0].State = compare.Met }, false},
		"undo":              {"an undo restores what was there", asUndo, false},
		"objective unknown": {"what the documents do not have cannot be aimed at", func(c *gate.Case) { c.Service.Objectives = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := granted()
			c.Service.Objectives = []spec.Objective{{ID: "availability", GroupBy: []string{"host", "zone"}}}
			o := &c.Facts.Assessment.Objectives[0]
			o.Group, o.Groups, o.GroupsBreached = `host="a", zone="eu"`, 3, 1
			for _, label := range []string{"host", "zone"} {
				a := &c.Service.Remediation.Actions[0]
				a.Parameters = append(a.Parameters, spec.Parameter{Name: label, Type: spec.String, Pattern: ".*"})
				c.Proposal.Parameters[label] = "elsewhere"
			}
			slices.SortFunc(c.Service.Remediation.Actions[0].Parameters, func(a, b spec.Parameter) int {
				return slices.Compare([]string{a.Name}, []string{b.Name})
			})
			c.Facts.Item.Action = c.Service.Remediation.Actions[0]
			tc.change(&c)
			d := gate.Decide(c, allows())
			asks := slices.ContainsFunc(d.Reasons, func(r gate.Reason) bool { return r.Code == gate.ReasonGrouped })
			if asks != tc.asks || asks && d.Verdict != gate.Approval {
				t.Errorf("%s: verdict %s, reasons %v", tc.reason, d.Verdict, d.Reasons)
			}
		})
	}
}

func aim(host, zone string) func(*gate.Case) {
	return func(c *gate.Case) {
		c.Proposal.Parameters["host"], c.Proposal.Parameters["zone"] = host, zone
	}
}
