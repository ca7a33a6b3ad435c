package shipped_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/policies"
)

// A change feed is written by whoever may post to it or append to a file. Nothing
// that they write makes an action more permitted than it is without it.
func TestNoChangePermitsMore(t *testing.T) {
	p := load(t, policies.FS)
	seen := map[gate.Verdict]int{}
	tighter := 0
	rapid.Check(t, func(t *rapid.T) {
		c := granted()
		a := &c.Service.Remediation.Actions[0]
		a.Name = mostly(t, "action", "scale", "rollback-flag", "restart")
		a.Uses = mostly(t, "uses", "webhook.post", "command.run")
		a.Class = mostly(t, "class", spec.ClassAuto, spec.ClassApproval, spec.ClassEscalate)
		a.Reversal = mostly(t, "reversal", spec.Restore, spec.Transient, spec.Irreversible)
		c.Proposal.Action, c.Facts.Item.Action = a.Name, *a
		c.Proposal.Parameters = propose.Parameters{"replicas": mostly(t, "replicas", int64(6), 1, 12)}
		c.Service.Remediation.Mode = mostly(t, "mode", spec.Auto, spec.Observe, spec.Suggest, spec.Approval)
		c.Facts.Balance.Remaining = mostly(t, "balance", 3.0, 0)
		if mostly(t, "documents", false, true) {
			c.Facts.DocumentsChangedAt = now.Add(-time.Minute)
		}
		if mostly(t, "dependency", false, true) {
			c.Facts.Dependencies = map[string]compare.State{"db": rapid.SampledFrom([]compare.State{compare.Met, compare.Breached, compare.Unknown}).Draw(t, "db")}
		}
		before := drawChanges(t, "before")
		after := slices.Concat(before, drawChanges(t, "more"))
		verdict := func(changes []measure.Change) gate.Verdict {
			c.Facts.Changes = measure.RecentChanges(now, changes, nil)
			return gate.Decide(c, p.Evaluate(t.Context(), input(t, c))).Verdict
		}
		was, is := verdict(before), verdict(after)
		seen[was]++
		if is < was {
			tighter++
		}
		if is > was {
			t.Fatalf("%s with the changes %v, %s with %v", was, before, is, after)
		}
	})
	if len(seen) < 3 || tighter == 0 {
		t.Errorf("verdicts %v, %d of them lower with a change: the property would hold for nothing", seen, tighter)
	}
}

func drawChanges(t *rapid.T, label string) []measure.Change {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) measure.Change {
		word := rapid.SampledFrom([]string{"deploy", "rollback", "auto", "approved", "", "\u00fc"})
		return measure.Change{
			At:      now.Add(-time.Duration(rapid.IntRange(-10, 90).Draw(t, "minutes")) * time.Minute),
			Service: "checkout", What: word.Draw(t, "what"), Version: word.Draw(t, "version"),
		}
	}), 0, 25).Draw(t, label)
}

// mostly draws what is usual, and now and then one of the others.
func mostly[T any](t *rapid.T, label string, usual T, others ...T) T {
	if rapid.IntRange(0, 5).Draw(t, label+" is usual") > 0 {
		return usual
	}
	return rapid.SampledFrom(others).Draw(t, label)
}
