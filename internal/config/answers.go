package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// lintNoAnswer is the code of a card that nobody could answer.
const lintNoAnswer = "nobody-in-slack"

// foreign reports a person of Slack in another workspace than this one, whose
// click is refused.
func (s *Slack) foreign(principal string) bool {
	return s != nil && s.Team != "" && strings.HasPrefix(principal, "slack:") && !s.answers(principal)
}

// answers reports a person whose click counts.
func (s *Slack) answers(principal string) bool {
	return strings.HasPrefix(principal, "slack:"+s.Team+"/")
}

// foreignFault is what is wrong with a foreign principal.
func foreignFault(principal, team string) string {
	_, user, _ := strings.Cut(principal, "/")
	return fmt.Sprintf("%s is of another workspace than slack.team, and can never answer: write slack:%s/%s if that is the person, or remove it", principal, team, user)
}

// Unanswered are notes of Remediations whose cards nobody could answer: Slack is
// configured, and none of their approvers is a person of its workspace.
func (c Config) Unanswered(set spec.Set) []spec.Note {
	if c.Slack == nil {
		return nil
	}
	var out []spec.Note
	for _, svc := range set.Services {
		r := svc.Remediation
		if len(r.Approvers) == 0 || slices.ContainsFunc(r.Approvers, c.canClick) {
			continue
		}
		pos := r.Pos
		if path := spec.IndexPath("spec.approvers", 0); r.Where.Has(path) {
			pos = r.Where.At(path)
		}
		out = append(out, spec.Note{Pos: pos, Lint: lintNoAnswer, Text: fmt.Sprintf(
			"nobody can answer the cards of %s in Slack: %s has nobody of workspace %s; add slack:%s/<user> under approvers in setpoint.yaml",
			svc.Name, strings.Join(r.Approvers, ", "), c.Slack.Team, c.Slack.Team)})
	}
	return out
}

// canClick reports whether an approver of a Remediation, a group or a principal by
// itself, is or has somebody of the workspace.
func (c Config) canClick(approver string) bool {
	return c.Slack.answers(approver) || slices.ContainsFunc(c.Approvers[approver], c.Slack.answers)
}
