package gate

import "slices"

// FloorsVersion is the version of Floors as JSON.
const FloorsVersion = "setpoint.dev/floors/v1"

// Floors are all that binds a decision beside policy, worked out of one Case.
// They are kept with the decision: joined with the ruling of another policy
// they give what that policy would have led to.
type Floors struct {
	Version     string `json:"version"`
	Key         Key    `json:"key"`
	Digest      string `json:"digest"`
	InputDigest string `json:"inputDigest"`
	// Cost is what a claim by verdict auto would be charged.
	Cost float64 `json:"cost"`
	// Undecidable: there was nothing to rule on, and Bound is all.
	Undecidable bool `json:"undecidable"`
	// Bound are the floors that hold whatever policy says.
	Bound []finding `json:"bound"`
	// Balance binds only where policy and the other floors leave an action:
	// elsewhere nobody needs to read of it.
	Balance []finding `json:"balance"`
	// Document is the approval that the Remediation asks for by default.
	Document Need `json:"document"`
	// Ticket is the approved ticket that is executed, with what it asked for.
	Ticket      string `json:"ticket"`
	TicketNeeds []Need `json:"ticketNeeds"`
	// OpenTickets and OpenApprovals are how many are and may be open.
	OpenTickets   int `json:"openTickets"`
	OpenApprovals int `json:"openApprovals"`
}

// Join gives the decision of these floors and a ruling. No permit can be minted
// from it: that takes the Case itself, in Prepared.Decide.
func (f Floors) Join(r Ruling) Decision {
	d := Decision{Key: f.Key, Ruling: r, Reasons: []Reason{}, Digest: f.Digest, InputDigest: f.InputDigest, Cost: f.Cost}
	fs, needs := f.findings(r)
	d.Needs = needs
	return conclude(d, fs)
}

// findings are all that decides, floors before rules.
func (f Floors) findings(r Ruling) ([]finding, []Need) {
	if f.Undecidable {
		return f.Bound, nil
	}
	ruled := rulingFloors(r, f.InputDigest)
	fs := slices.Concat(f.Bound, ruled)
	// A rule that asks for a person does not hide an empty balance: people see
	// every reason.
	if lowest(fs) >= Approval {
		fs = slices.Concat(f.Bound, f.Balance, ruled)
	}
	return f.needs(r, fs)
}
