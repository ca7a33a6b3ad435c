package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// finalFloors refuse in a way that time alone does not mend.
func finalFloors(c Case, a spec.Action, digest string) []finding {
	f := c.Facts
	var fs []finding
	deny := func(code, text string) { fs = append(fs, finding{effectDeny, Reason{Code: code, Text: text}}) }
	if !isUndo(c) {
		// An undo takes the action back, so what is held against the action is no reason
		// to leave its harm in place.
		for _, r := range pastFloors(f, a.Name) {
			deny(r.Code, r.Text)
		}
	}
	if err := withinBounds(c, a); err != nil {
		deny(ReasonBounds, "outside the catalogue's bounds: "+err.Error())
	}
	if o := f.Ownership; o != "" && o != Unknown && o != OwnershipNone {
		deny(ReasonOwnership, "the target is controlled by "+o)
	}
	for _, r := range boundFloors(f, digest) {
		deny(r.Code, r.Text)
	}
	return fs
}

// pastFloors are what is held against an action for what became of it before.
func pastFloors(f Facts, action string) []Reason {
	var rs []Reason
	if f.Suspended != "" {
		rs = append(rs, Reason{Code: ReasonSuspended, Text: action + " is suspended until a named budget reset: " + f.Suspended})
	}
	if f.PersonHold != "" {
		rs = append(rs, Reason{Code: ReasonPersonHold, Text: action + " was refused for this episode: " + f.PersonHold})
	}
	if f.Unanswered != "" {
		rs = append(rs, Reason{Code: ReasonUnanswered, Text: fmt.Sprintf(
			"nobody answered %s in time; %s is not asked again in this episode: act by hand, or wait for a new episode", f.Unanswered, action)})
	}
	return rs
}

// withinBounds checks the parameters of the documents' action, not of the
// catalogue's copy: it is the former that is sent. An undo restores what was
// observed, within bounds or not.
func withinBounds(c Case, a spec.Action) error {
	if isUndo(c) {
		return nil
	}
	it := propose.Item{Action: a, Live: c.Facts.Item.Live, LiveKnown: c.Facts.Item.LiveKnown}
	return propose.Check(it, c.Proposal.Parameters)
}

// boundFloors hold a decision to what was claimed or approved before it.
func boundFloors(f Facts, digest string) []Reason {
	var rs []Reason
	if f.PermitDigest != "" && f.PermitDigest != digest {
		rs = append(rs, Reason{Code: ReasonDigest, Text: changedText("claimed", f.PermitDigest, digest)})
	}
	if !f.PermitExpires.IsZero() && !f.Now.Before(f.PermitExpires) {
		rs = append(rs, Reason{Code: ReasonExpired, Text: "the permit expired at " + clock(f.PermitExpires)})
	}
	if f.ApprovedTicket != "" && f.ApprovedDigest != digest {
		rs = append(rs, Reason{Code: ReasonDigest, Text: changedText("approved in ticket "+f.ApprovedTicket, f.ApprovedDigest, digest)})
	}
	return rs
}

func changedText(what, then, now string) string {
	return fmt.Sprintf("the bytes changed: %s %s, now %s", what, short(then), short(now))
}

func short(digest string) string {
	if digest == "" {
		return "(no digest)"
	}
	return digest[:min(12, len(digest))]
}

// actionPassing are all floors that pass: those of PassingFloors, and those
// that depend on the action.
func actionPassing(c Case, a spec.Action) []finding {
	var fs []finding
	for _, r := range PassingFloors(c) {
		fs = append(fs, finding{effectHold, r})
	}
	f := c.Facts
	if f.InFlightTarget != "" {
		fs = append(fs, finding{effectHold, Reason{Code: ReasonInFlightTarget, Text: "not settled yet on the same target: " + f.InFlightTarget}})
	}
	until := f.ActionSent.Add(a.Cooldown)
	if !isUndo(c) && !f.ActionSent.IsZero() && f.Now.Before(until) {
		fs = append(fs, finding{effectHold, Reason{ReasonCooldown,
			fmt.Sprintf("%s was sent %s ago, its cooldown is %s", a.Name, ago(f.Now, f.ActionSent), a.Cooldown), until}})
	}
	return fs
}

// approvalFloors ask for a person whatever policy says; class, reversal and
// mark do so too, in the ceiling.
func approvalFloors(c Case, a spec.Action) []finding {
	f := c.Facts
	var fs []finding
	if f.Assessment.Warming {
		text := "the long window of the burn is not covered by data yet"
		if !f.Assessment.WarmingUntil.IsZero() {
			text += ", warming until " + clock(f.Assessment.WarmingUntil)
		}
		fs = append(fs, finding{effectApproval, Reason{ReasonWarming, text, f.Assessment.WarmingUntil}})
	}
	if o, missed := aimless(c); missed {
		fs = append(fs, finding{effectApproval, Reason{Code: ReasonGrouped, Text: fmt.Sprintf(
			"objective %s is missed by %d of its %d groups, the worst is %s, and %s does not name it in its parameters",
			o.ID, o.GroupsBreached, o.Groups, o.Group, a.Name)}})
	}
	if missing := unseen(c, a); missing != "" {
		fs = append(fs, finding{effectApproval, Reason{Code: ReasonIrreversible, Text: fmt.Sprintf(
			"%s restores what was observed, and %s of the target could not be observed: it could not be taken back", a.Name, missing)}})
	}
	if !f.DocumentsChangedAt.IsZero() {
		fs = append(fs, finding{effectApproval, Reason{Code: ReasonDocumentsChanged,
			Text: fmt.Sprintf("the documents of %s changed at %s; auto again after one holdFor (%s) without an episode",
				c.Service.Name, clock(f.DocumentsChangedAt), c.Service.Remediation.HoldFor)}})
	}
	if f.ApprovedTicket != "" {
		fs = append(fs, finding{effectApproval, Reason{Code: ReasonApproved, Text: a.Name + " runs by the approved ticket " + f.ApprovedTicket + " and charges nothing"}})
	}
	return fs
}

// aimless finds a missed objective whose worst group the proposal does not aim
// at: each label of the group must be a parameter of that name and value. What
// heals one host must not be done to all of them without a person.
func aimless(c Case) (compare.Objective, bool) {
	if isUndo(c) {
		return compare.Objective{}, false
	}
	by := map[string][]string{}
	for _, o := range c.Service.Objectives {
		by[o.ID] = o.GroupBy
	}
	for _, o := range c.Facts.Assessment.Objectives {
		if o.State != compare.Breached || o.Group == "" {
			continue
		}
		named := true
		aimed := measure.GroupName(by[o.ID], func(label string) string {
			value, _ := c.Proposal.Parameters[label].(string)
			named = named && value != "" // The series without the label are nothing that can be named.
			return value
		})
		if !named {
			return o, true
		}
		if aimed != o.Group {
			return o, true
		}
	}
	return compare.Objective{}, false
}

// balanceFloor turns auto into approval when the dearest outcome no longer
// fits both balances. A balance that is no number affords nothing.
func balanceFloor(c Case, a spec.Action, cost float64) []finding {
	b := c.Facts.Balance
	if isUndo(c) || cost >= 0 && b.Affords(cost) {
		return nil
	}
	text := fmt.Sprintf("auto refused: %s of %s spent on %s", number(b.Capacity-b.Remaining), number(b.Capacity), a.Name)
	var spent []string
	for _, ch := range b.Charges {
		spent = append(spent, fmt.Sprintf("%s %s at %s", orUnknown(string(ch.Outcome)), number(ch.Cost), clock(ch.At)))
	}
	if len(spent) > 0 {
		text += ": " + strings.Join(spent, ", ")
	}
	text += fmt.Sprintf("; the dearest outcome costs %s, global balance %s of %s", number(cost), number(b.GlobalRemaining), number(b.GlobalCapacity))
	fs := []finding{{effectApproval, Reason{Code: ReasonBudgetSpent, Text: text}}}
	if p := c.Service.Remediation.Budget.Period; len(b.Charges) > 0 && p > 0 && b.GlobalRemaining >= cost {
		fs[0].Reason.At = b.Charges[0].At.Add(p)
	}
	return fs
}

// number writes a number as a person would.
func number(f float64) string {
	if math.IsNaN(f) {
		return Unknown
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func quote(s string) string { return strconv.Quote(s) }
