// Package execute sends. It takes a gate.Permit, which only the gate can
// mint, and gives a Receipt: what the actuator answered, which is never
// evidence that it helped. The technologies are in the packages below it; what
// they share about the wire (the envelope, the signature, the reading of an
// answer) is here and pure.
package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Effect is where an effect stands (CONTRACTS: effect).
type Effect string

// The effects. Claimed, Void and Started are the ledger's; the executor gives
// Applied to InDoubt; the last three settle an in-doubt one.
const (
	None             Effect = "none"
	Claimed          Effect = "claimed"
	Void             Effect = "void"
	Started          Effect = "started"
	Applied          Effect = "applied"
	AppliedWithError Effect = "applied-with-error"
	NoOp             Effect = "no-op"
	Failed           Effect = "failed"
	NotNow           Effect = "not-now"
	InDoubt          Effect = "in-doubt"
	Landed           Effect = "landed"
	NotLanded        Effect = "not-landed"
	Unknown          Effect = "unknown"
)

// Judged reports whether measurement judges the effect.
func (e Effect) Judged() bool { return e == Applied || e == AppliedWithError || e == Landed }

// Final reports whether the effect can no longer change.
func (e Effect) Final() bool {
	switch e {
	case Void, Applied, AppliedWithError, NoOp, Failed, NotNow, Landed, NotLanded:
		return true
	}
	return false
}

// follows is the life of an effect (CONTRACTS: effect): what may come after
// what. There is no way back, so that nothing is ever sent twice.
var follows = map[Effect][]Effect{
	None:    {Claimed},
	Claimed: {Started, Void},
	// A crash before the receipt leaves Started, which is settled like InDoubt.
	Started: {
		Applied, AppliedWithError, NoOp, Failed, NotNow, InDoubt,
		Landed, NotLanded, Unknown,
	},
	InDoubt: {Landed, NotLanded, NoOp, Failed, NotNow, Unknown},
	// Only a named person ends this one, who found out.
	Unknown: {Landed, NotLanded},
}

// Follows reports whether an effect may become next.
func (e Effect) Follows(next Effect) bool { return slices.Contains(follows[e], next) }

// Receipt is what the actuator answered to one send.
type Receipt struct {
	Effect Effect `json:"effect"`
	// At is when the answer came, or the deadline passed.
	At time.Time `json:"at"`
	// AppliedAt is from when the effect counts as applied (202: + maxLateness);
	// zero unless Effect is Applied or AppliedWithError.
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	// Held: nothing was sent because something held at the last moment, a freeze
	// or a clock. That says nothing of the action.
	Held bool `json:"held,omitempty"`
	// Detail is for people: status and a shortened, cleaned body.
	Detail string `json:"detail"`
}

// Observation is what Observe saw. Known is false when there was no answer.
type Observation struct {
	Known bool
	// Result of the key asked for: "" (no such key), applied, no-op, failed or
	// not-now.
	Result Effect
	// KeyKnown: the actuator answered {"known": true} for the key.
	KeyKnown bool
	// State is the target's present state by parameter name.
	State propose.Live
	// Revisions are what the target says was rolled out when, newest first, at
	// most MaxRevisions; without a service, which the caller knows. They are
	// context, and say nothing of the key.
	Revisions []measure.Change
	Detail    string
}

// ErrNoPermit is returned for a zero, expired or foreign permit, and for one
// that was withdrawn at the last moment (Executor's ready).
var ErrNoPermit = errors.New("no valid permit")

// Executor sends permitted actions of one technology. Execute sends at most
// once and never retries; whatever it cannot prove is InDoubt. It does not
// remember keys: that one permit is sent once is the ledger's claim.
//
// Reaching a target takes time, in which a permit expires or a freeze is
// acknowledged. So ready is asked at the last moment, on the caller's
// goroutine, when nothing but the first byte is left to do, and the expiry is
// looked at after it (LastLook); nil is always ready. Waiting for the target
// ends at the permit's expiry at the latest.
//
// The error is ErrNoPermit or another refusal before anything was sent; the
// receipt beside an error is Failed and says the same. Observe changes nothing.
type Executor interface {
	Execute(ctx context.Context, p gate.Permit, ready func() error) (Receipt, error)
	Observe(ctx context.Context, a spec.Action, key gate.Key) Observation
}

// LastLook says whether the permit may still be sent: it asks ready and then,
// because the answer may have taken its time, looks at the expiry. An executor
// calls it right before the first byte.
func LastLook(p gate.Permit, now func() time.Time, ready func() error) error {
	if ready != nil {
		if err := ready(); err != nil {
			return fmt.Errorf("%w: withdrawn at the last moment: %w", ErrNoPermit, err)
		}
	}
	if !p.Valid(now()) {
		return fmt.Errorf("%w: it was never minted, or expired at %s", ErrNoPermit, p.Expires().UTC().Format(time.RFC3339))
	}
	return nil
}

// Refused is the receipt beside an error: nothing was sent.
func Refused(at time.Time, err error) (Receipt, error) {
	return Receipt{Effect: Failed, At: at, Detail: CleanText("not sent: "+err.Error(), MaxDetail)}, err
}
