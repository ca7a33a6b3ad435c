package propose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// versionLabel is the name under which the version of a change stands.
const versionLabel = "version"

// breakdownFacts are the answer to one evidence query. A row has the values of
// the labels in their order, and then the number.
type breakdownFacts struct {
	Name    phrase `json:"name"`
	Reason  word   `json:"reason,omitempty"`
	Labels  []word `json:"labels"`
	Rows    []row  `json:"rows"`
	Omitted int    `json:"omitted"`
}

// otherQuery stands, with its number, for a name that is more than a few words.
const otherQuery = "query "

func factsOfBreakdown(n *register, r Request, i int) breakdownFacts {
	b := r.Breakdowns[i]
	f := breakdownFacts{
		Name: phrase(b.Name), Reason: word(b.Reason), Labels: labelsOf(b.Labels), Rows: []row{},
		Omitted: b.Omitted + max(0, len(b.Rows)-maxRows),
	}
	if !phraseShape.MatchString(b.Name) {
		f.Name = phrase(otherQuery + strconv.Itoa(i+1))
	}
	show := showValues(r.Service, b.Name)
	for _, from := range b.Rows[:min(len(b.Rows), maxRows)] {
		to := row{number: number(from.Number)}
		for j, v := range from.Values[:min(len(from.Values), len(b.Labels))] {
			to.values = append(to.values, n.of(b.Labels[j], v, slices.Contains(show, b.Labels[j])))
		}
		f.Rows = append(f.Rows, to)
	}
	return f
}

// showValues are the labels that the document lets one query show.
func showValues(s spec.Service, name string) []string {
	for _, e := range s.Remediation.Evidence {
		if e.Name == name {
			return e.ShowValues
		}
	}
	return nil
}

type changeFacts struct {
	What word `json:"what"`
	// Service is set for a change of a dependency.
	Service    word   `json:"service,omitempty"`
	Version    alias  `json:"version"`
	SecondsAgo number `json:"secondsAgo"`
	// SecondsBeforeBreach is negative for a change that came after it.
	SecondsBeforeBreach number `json:"secondsBeforeBreach"`
}

// kinds are the words that a change may be called; what a reporter calls
// otherwise is "other".
var kinds = map[string]bool{
	"deploy": true, "release": true, "rollback": true, "config": true, "flag": true, "scale": true, "restart": true,
	"migration": true, "schema": true, "certificate": true, "secret": true, "infrastructure": true, "network": true,
	"dns": true, "traffic": true, "experiment": true, "maintenance": true, "other": true,
}

// factsOfChanges are the newest changes of the service and of what it depends
// on. Those of other services are none of its matter.
func factsOfChanges(n *register, r Request) (out []changeFacts, omitted int) {
	for _, c := range r.Changes {
		_, dependency := r.Dependencies[c.Service]
		switch own := c.Service == r.Service.Name; {
		case !own && !dependency:
		case len(out) == maxChanges:
			omitted++
		default:
			out = append(out, factsOfChange(n, r, c, own))
		}
	}
	return out, omitted
}

func factsOfChange(n *register, r Request, c measure.Change, own bool) changeFacts {
	f := changeFacts{
		What: "other", Version: n.anywhere(versionLabel, c.Version), SecondsAgo: before(r.Now, c.At), SecondsBeforeBreach: notKnown,
	}
	if what := strings.ToLower(c.What); kinds[what] {
		f.What = word(what)
	}
	if !own {
		f.Service = word(c.Service)
	}
	if r.Assessment.State == compare.Breached {
		f.SecondsBeforeBreach = before(r.Since, c.At)
	}
	return f
}
