package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Phase is where the storm brake stands.
type Phase string

// The phases. Easing still holds: the storm is over once it has eased for as
// long as the cooldown.
const (
	StormOff    Phase = "off"
	StormOn     Phase = "on"
	StormEasing Phase = "easing"
)

// Storm is a change of the storm brake, with what was counted for it. It is an
// entry, so that replicas and restarts agree on it.
type Storm struct {
	Phase Phase `json:"phase"`
	// Loaded are the services that were counted, those in maintenance left out;
	// Breached and Unknown how many of them were so, the latter by fault of one of
	// the Sources.
	Loaded   int      `json:"loaded"`
	Breached int      `json:"breached"`
	Unknown  int      `json:"unknown"`
	Sources  []string `json:"sources,omitempty"`
}

// String says what was counted, for people.
func (b Storm) String() string {
	text := fmt.Sprintf("%d of %d services are breached", b.Breached, b.Loaded)
	if b.Unknown > 0 {
		text += fmt.Sprintf(", %d unknown by fault of their source", b.Unknown)
	}
	return text
}

// StormAt is the brake as it was last recorded; the zero value is off.
type StormAt struct {
	Storm
	// Since is the begin of the storm, At the time of the last change, and Seq
	// the entry that began it.
	Since, At time.Time
	Seq       uint64
}

// Holds reports whether the brake is on.
func (s StormAt) Holds() bool { return s.Phase == StormOn || s.Phase == StormEasing }

func checkStorm(_ string, b Storm) error {
	switch b.Phase {
	case StormOn, StormEasing, StormOff:
	default:
		return fmt.Errorf("%q is no phase of a storm", b.Phase)
	}
	if b.Loaded < 0 || b.Breached < 0 || b.Unknown < 0 {
		return errors.New("negative count")
	}
	return nil
}

// follows says why a phase cannot come next; "" when it can. A storm eases
// before it is over, or a moment between two bad readings would end it.
func (s StormAt) follows(next Phase) string {
	ok := next == StormOn && s.Phase != StormOn ||
		next == StormEasing && s.Phase == StormOn ||
		next == StormOff && s.Phase == StormEasing
	if ok {
		return ""
	}
	return fmt.Sprintf("the storm brake is %q, it cannot become %q", s.Phase, next)
}

func foldStorm(s *State, e Entry, b Storm) string {
	if why := s.Storm.follows(b.Phase); why != "" {
		return why
	}
	next := StormAt{Storm: b, At: e.Time, Since: s.Storm.Since, Seq: s.Storm.Seq}
	if !s.Storm.Holds() {
		next.Since, next.Seq = e.Time, e.Seq
	}
	s.Storm, s.ClaimsMoved = next, e.Seq
	return ""
}

// StormDraft records a change of the brake.
func StormDraft(s *State, b Storm) (Draft, error) {
	if why := s.Storm.follows(b.Phase); why != "" {
		return Draft{}, lost("%s", why)
	}
	return Draft{Kind: KindStorm, Body: b}, nil
}
