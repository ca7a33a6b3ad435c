package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// needs are the approvals that all must be given, where the findings leave an
// approval: one for each approval rule, and one with the document's approvers
// for all floors together. An approval that nobody can give is handed over; one
// more than may be open waits; one that an approved ticket did not ask for is
// refused.
func (f Floors) needs(r Ruling, fs []finding) ([]finding, []Need) {
	if lowest(fs) != Approval || slices.ContainsFunc(fs, faulted) {
		return fs, nil
	}
	doc := f.Document
	var ns []Need
	for _, rule := range sortedRules(r.Approval) {
		ns = append(ns, ruleNeed(rule, doc))
	}
	for _, x := range fs {
		if x.Effect == effectApproval && x.Reason.Code != ReasonApproved && !strings.HasPrefix(x.Reason.Code, PolicyPrefix) {
			doc.Reason = x.Reason.Code
			ns = append(ns, doc)
			break
		}
	}
	for _, n := range ns {
		fs = append(fs, f.needFloors(n)...)
	}
	if f.Ticket == "" && f.OpenTickets >= f.OpenApprovals {
		fs = append(fs, finding{effectHold, Reason{Code: ReasonOpenApprovals,
			Text: fmt.Sprintf("%d approvals are open, openApprovals is %d", f.OpenTickets, f.OpenApprovals)}})
	}
	return fs, ns
}

// faulted: policy said nothing that counts, so nobody is asked and nothing that
// people said is thrown away.
func faulted(f finding) bool { return f.Reason.Code == ReasonPolicyFault }

func (f Floors) needFloors(n Need) []finding {
	if f.Ticket != "" {
		if given(n, f.TicketNeeds) {
			return nil
		}
		return []finding{{effectDeny, Reason{Code: ReasonNeedsChanged,
			Text: fmt.Sprintf("%s now asks for %d of %s, which ticket %s did not", n.Reason, n.Quorum, strings.Join(n.Approvers, ", "), f.Ticket)}}}
	}
	if why := ungivable(n); why != "" {
		return []finding{{effectEscalate, Reason{Code: ReasonNoApprovers,
			Text: fmt.Sprintf("handed over: %s asks for an approval that nobody can give, %s", n.Reason, why)}}}
	}
	return nil
}

// documentNeed is the approval that the Remediation asks for by default.
func documentNeed(svc spec.Service) Need {
	return Need{Approvers: slices.Clone(svc.Remediation.Approvers), Quorum: 1, Expires: svc.Remediation.ApprovalFor}
}

func ruleNeed(r Rule, doc Need) Need {
	n := Need{Reason: PolicyPrefix + r.Reason, Approvers: slices.Clone(r.Approvers), Quorum: r.Quorum, Expires: r.Expires}
	if len(n.Approvers) == 0 {
		n.Approvers = doc.Approvers
	}
	if n.Quorum < 1 {
		n.Quorum = doc.Quorum
	}
	if n.Expires <= 0 {
		n.Expires = doc.Expires
	}
	return n
}

// ungivable says why a need can never be met; empty when it can. The size of a
// group ("@…") is not known here.
func ungivable(n Need) string {
	people := map[string]bool{}
	for _, a := range n.Approvers {
		if strings.HasPrefix(a, "@") {
			return ""
		}
		people[a] = true
	}
	switch {
	case len(people) == 0:
		return "because no approvers are named; add approvers to the Remediation or the rule"
	case len(people) < n.Quorum:
		return fmt.Sprintf("because %d must agree and only %d are named", n.Quorum, len(people))
	}
	return ""
}

// given reports whether the ticket asked for at least that need.
func given(n Need, asked []Need) bool {
	want := slices.Sorted(slices.Values(n.Approvers))
	return slices.ContainsFunc(asked, func(a Need) bool {
		return a.Quorum >= n.Quorum && slices.Equal(slices.Sorted(slices.Values(a.Approvers)), want)
	})
}

// sortedRules are rules in the order of their reasons.
func sortedRules(rules []Rule) []Rule {
	out := slices.Clone(rules)
	slices.SortStableFunc(out, func(a, b Rule) int {
		if c := strings.Compare(a.Reason, b.Reason); c != 0 {
			return c
		}
		return strings.Compare(a.Package, b.Package)
	})
	return out
}

func has(fs []finding, e effect) bool {
	return slices.ContainsFunc(fs, func(f finding) bool { return f.Effect == e })
}

func without(fs []finding, e effect) []finding {
	return slices.DeleteFunc(slices.Clone(fs), func(f finding) bool { return f.Effect == e })
}
