package approve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Refusal says why an answer changes nothing. Code is stable.
type Refusal struct {
	Code, Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// The codes of refusals.
const (
	RefusedNotOpen     = "not-open"
	RefusedExpired     = "expired"
	RefusedNotApprover = "not-approver"
	RefusedRepeated    = "already-answered"
	// RefusedOtherTicket: the answer names another ticket than the one that it
	// was held against, so a click on one question cannot answer another.
	RefusedOtherTicket = "other-ticket"
	// RefusedStarted: the effect was sent, a deny comes too late.
	RefusedStarted = "started"
	// RefusedStorm: nothing is approved while the storm brake is on. A deny is
	// taken, because it can only stop something.
	RefusedStorm = "storm"
	// RefusedAcked: somebody else acknowledged the page before.
	RefusedAcked = "acknowledged"
)

// Groups resolves approver groups: "@group" to principals.
type Groups map[string][]string

// Record checks an answer against the ticket as it stands at a.At and returns
// it with Satisfies filled, ready to be appended; or a *Refusal.
//
// The first answer of a principal is final, with one exception that is safe: a
// deny is taken from anybody listed, also from one who approved, until the
// effect was started. The proposer is no principal, so it can never approve.
func Record(t Ticket, a Answer, groups Groups) (Answer, error) {
	if err := CheckPrincipal(a.By); err != nil {
		return Answer{}, &Refusal{RefusedNotApprover, err.Error()}
	}
	if r := standing(t, a); r != nil {
		return Answer{}, r
	}
	a.Satisfies = listed(t.Needs, a.By, groups)
	if len(a.Satisfies) == 0 {
		return Answer{}, &Refusal{RefusedNotApprover, fmt.Sprintf(
			"%s is not an approver of ticket %s; approvers are %s. Who may approve stands in setpoint.yaml, under approvers: somebody who may change it adds %s to a group",
			a.By, t.ID, approvers(t.Needs, groups), a.By)}
	}
	return a, nil
}

// standing is the part of Record that needs no groups: whether this ticket
// still takes this answer from this principal.
func standing(t Ticket, a Answer) *Refusal {
	if a.Ticket != t.ID {
		return &Refusal{RefusedOtherTicket, fmt.Sprintf("the answer is to ticket %q, not to %q", a.Ticket, t.ID)}
	}
	if a.Digest != "" && a.Digest != t.Digest {
		return &Refusal{RefusedOtherTicket, fmt.Sprintf("the answer is to other bytes than those of ticket %s", t.ID)}
	}
	if old, ok := repeated(t, a); ok {
		return &Refusal{RefusedRepeated, fmt.Sprintf("%s answered ticket %s already, at %s: %s%s",
			a.By, t.ID, stamp(old.At), word(old.Approve), since(t, old))}
	}
	switch {
	case t.State == Expired, t.State == Open && !a.At.Before(t.Expires):
		return &Refusal{RefusedExpired, fmt.Sprintf("ticket %s expired at %s", t.ID, stamp(t.Expires))}
	case t.State == Approved && !t.StartedAt.IsZero():
		return &Refusal{RefusedStarted, fmt.Sprintf("ticket %s was executed at %s", t.ID, stamp(t.StartedAt))}
	case t.State == Open, t.State == Approved && !a.Approve:
		return nil
	}
	return &Refusal{RefusedNotOpen, fmt.Sprintf("ticket %s %s", t.ID, fate(t))}
}

// fate says how a ticket stands, and who decided it: whoever comes second asks
// that first.
func fate(t Ticket) string {
	if n := len(t.Answers); n > 0 && (t.State == Approved || t.State == Denied) {
		last := t.Answers[n-1]
		return fmt.Sprintf("was already decided by %s at %s: %s", last.By, stamp(last.At), t.State)
	}
	if t.State == Expired {
		return "has expired"
	}
	return fmt.Sprintf("is %s", t.State)
}

// since says what has become of a ticket after an answer; "" where that very
// answer decided it, which need not be said twice.
func since(t Ticket, old Answer) string {
	decided := t.State == Approved || t.State == Denied
	if n := len(t.Answers); n > 0 && decided && t.Answers[n-1].By == old.By && t.Answers[n-1].At.Equal(old.At) {
		return ""
	}
	if t.State == Open {
		return "; the ticket is open and waits for others"
	}
	return "; the ticket " + fate(t)
}

// repeated finds the earlier answer of the same principal that stands. An
// approval does not stand against the same person's deny.
func repeated(t Ticket, a Answer) (Answer, bool) {
	for _, old := range t.Answers {
		if old.By == a.By && (!old.Approve || a.Approve) {
			return old, true
		}
	}
	return Answer{}, false
}

// listed returns the needs for which the principal may approve: named itself,
// or a member of a group named.
func listed(needs []gate.Need, by string, groups Groups) []int {
	var is []int
	for i, n := range needs {
		for _, name := range n.Approvers {
			if name == by || strings.HasPrefix(name, "@") && slices.Contains(groups[name], by) {
				is = append(is, i)
				break
			}
		}
	}
	return is
}

// CheckPrincipal reports whether a string has the form of an authenticated
// principal: slack:<team>/<user>, token:<name> or os:<user>. Display names and
// groups have none.
func CheckPrincipal(s string) error {
	kind, name, _ := strings.Cut(s, ":")
	ok := false
	switch kind {
	case "slack":
		team, user, found := strings.Cut(name, "/")
		ok = found && made(team, slackID) && made(user, slackID)
	case "token", "os":
		ok = made(name, accountName)
	}
	if !ok {
		return fmt.Errorf("%q is no principal, want slack:<team>/<user>, token:<name> or os:<user>", s)
	}
	return nil
}

func made(s string, of func(byte) bool) bool {
	for i := range len(s) {
		if !of(s[i]) {
			return false
		}
	}
	return s != ""
}

func slackID(b byte) bool { return b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' }

// accountName takes what Unix, LDAP and Windows domains put into user names
// and nothing that could end, separate or split one.
func accountName(b byte) bool {
	return slackID(b) || b >= 'a' && b <= 'z' || strings.IndexByte("._-+@$\\", b) >= 0
}

// fewPeople is how many of a group are named: who is refused has to find one of
// them at night, and a long list finds nobody.
const fewPeople = 5

// approvers names who may approve, and the people of a group where they are few.
func approvers(needs []gate.Need, groups Groups) string {
	var names []string
	for _, n := range needs {
		names = append(names, n.Approvers...)
	}
	if len(names) == 0 {
		return "nobody"
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		switch people := groups[name]; {
		case !strings.HasPrefix(name, "@"):
		case len(people) == 0:
			names[i] += " (nobody)"
		case len(people) <= fewPeople:
			names[i] += " (" + strings.Join(people, ", ") + ")"
		default:
			names[i] += fmt.Sprintf(" (%d people)", len(people))
		}
	}
	return strings.Join(names, ", ")
}

func word(approve bool) string {
	if approve {
		return "approved"
	}
	return "denied"
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
