package gate

import (
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// permitFields are filled by Decide, and only for a decision that allows
// sending, so that no change of an exported field makes a permit appear.
type permitFields struct {
	service    string
	key        Key
	action     spec.Action
	parameters propose.Parameters
	digest     string
	ticket     string
	undo       bool
	at         time.Time
	ttl        time.Duration
}

// Permit says that these exact bytes may be sent once, until it expires. Only
// this package can fill one; the zero Permit is refused by every executor.
type Permit struct {
	f       permitFields
	expires time.Time
}

// Permit mints the permit of a decision that allows sending: verdict auto, or
// verdict approval with an approved ticket, and nothing holding. ok is false
// otherwise.
func (d Decision) Permit() (p Permit, ok bool) {
	f := d.permit
	if d.Hold || f.digest == "" || f.digest != d.Digest || f.key != d.Key || f.ttl <= 0 {
		return Permit{}, false
	}
	if d.Verdict != Auto && (d.Verdict != Approval || f.ticket == "") {
		return Permit{}, false
	}
	return Permit{f: f, expires: f.at.Add(f.ttl)}, true
}

// Valid reports whether the permit was minted and has not expired at now, by the
// clock and by the time that went by: a clock that is set back prolongs nothing,
// and neither does a machine that slept, whose monotonic time stood still.
func (p Permit) Valid(now time.Time) bool {
	return p.f.digest != "" && now.Before(p.expires) && now.Round(0).Before(p.expires.Round(0))
}

// Service returns the service that the permit is for.
func (p Permit) Service() string { return p.f.service }

// Key returns the idempotency key.
func (p Permit) Key() Key { return p.f.key }

// Action returns the action as it stood in the documents at the decision.
func (p Permit) Action() spec.Action {
	a := p.f.action
	a.Parameters = slices.Clone(a.Parameters)
	a.Target.Argv, a.Target.StatusArgv = slices.Clone(a.Target.Argv), slices.Clone(a.Target.StatusArgv)
	return a
}

// Parameters returns a copy of the arguments that were gated.
func (p Permit) Parameters() propose.Parameters { return maps.Clone(p.f.parameters) }

// Digest returns the digest over the bytes that may be sent.
func (p Permit) Digest() string { return p.f.digest }

// Ticket returns the approved ticket's id, or "".
func (p Permit) Ticket() string { return p.f.ticket }

// Undo reports whether the action takes an earlier one back.
func (p Permit) Undo() bool { return p.f.undo }

// Expires returns the end of the permit.
func (p Permit) Expires() time.Time { return p.expires }
