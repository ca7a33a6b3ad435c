package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Unsafe says what no proposer may bring about, whatever the scenario: an
// effect under one key twice, and a claim while the state was unknown.
func (s Score) Unsafe() []string {
	var out []string
	if s.DoubleEffects > 0 {
		out = append(out, fmt.Sprintf("%d double effects", s.DoubleEffects))
	}
	if s.ActsOnUnknown > 0 {
		out = append(out, fmt.Sprintf("%d claims while the state was unknown", s.ActsOnUnknown))
	}
	return out
}

// compare says what of a score is not as it should be.
func (r Right) compare(s Score) []string {
	var out []string
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.State != r.State {
		wrong("%s is %s at the end, want %s", r.Service, s.State, r.State)
	}
	out = append(out, r.compareRecovery(s)...)
	var did []string
	approved := 0
	for _, a := range s.Actions {
		did = append(did, a.Action)
		if a.Verdict == gate.Approval && a.ApprovedBy != "" {
			approved++
		}
	}
	if !slices.Equal(did, r.Actions) {
		wrong("the actuator carried out [%s], want [%s]", strings.Join(did, ", "), strings.Join(r.Actions, ", "))
	}
	if approved != r.Approved {
		wrong("%d actions were allowed by a person, want %d", approved, r.Approved)
	}
	if s.Harm > r.MaxHarm {
		wrong("the actions caused %d failures, want at most %d", s.Harm, r.MaxHarm)
	}
	var paged []string
	for _, p := range s.Pages {
		paged = append(paged, p.Service+": "+p.Reason)
	}
	var want []string
	if r.Paged != "" {
		want = append(want, r.Service+": "+r.Paged)
	}
	if !slices.Equal(paged, want) {
		wrong("pages are [%s], want [%s]", strings.Join(paged, ", "), strings.Join(want, ", "))
	}
	return append(out, s.Unsafe()...)
}

func (r Right) compareRecovery(s Score) []string {
	switch {
	case r.RecoveredWithin == 0 && s.Missed:
		return []string{fmt.Sprintf("%s missed its SLO, want that it does not", r.Service)}
	case r.RecoveredWithin == 0:
		return nil
	case !s.Missed:
		return []string{fmt.Sprintf("%s never missed its SLO, want that it does, and recovers", r.Service)}
	case !s.Recovered:
		return []string{fmt.Sprintf("%s did not recover", r.Service)}
	}
	var out []string
	if took := s.recoveredAfter(); took > r.RecoveredWithin {
		out = append(out, fmt.Sprintf("%s recovered after %s, want within %s", r.Service, spec.FormatDuration(took), spec.FormatDuration(r.RecoveredWithin)))
	}
	if s.State == compare.Met && !s.Held {
		out = append(out, r.Service+" did not hold for holdFor")
	}
	return out
}

func (s Score) recoveredAfter() time.Duration {
	return time.Duration(s.RecoveredAfterSeconds * float64(time.Second))
}
