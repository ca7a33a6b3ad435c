// Package step chooses. It takes what is known (State, Assessment, Balance,
// now) and gives the one next Step for a service, and the Notices: the pages
// that should exist. Both are pure.
package step

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Kind is what a pass does for one service.
type Kind string

// The kinds. Ask and Escalate are what the gate's verdict makes of Propose.
const (
	Idle     Kind = "idle"
	Hold     Kind = "hold"
	Settle   Kind = "settle"
	Propose  Kind = "propose"
	Execute  Kind = "execute"
	Ask      Kind = "ask"
	Escalate Kind = "escalate"
)

// Step is the next step of one service, with every reason for it.
type Step struct {
	Kind    Kind
	Reasons []gate.Reason
	// Key is that of the window in which the step would act.
	Key gate.Key
	// Recorded is the proposal that is judged again without asking; nil means
	// a proposer is asked.
	Recorded *propose.Proposal
	// Ticket is the approved ticket to execute, or the open one that is waited
	// for.
	Ticket string
	// Again is when the pass should look next, if earlier than the sweep.
	Again time.Time
}
