package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// TestSecondCardTellsTheFirst: who is asked once more is told what came of it the
// last time.
func TestSecondCardTellsTheFirst(t *testing.T) {
	w, ch := boarded(t)
	w.set.Services[0].Remediation.Budget.Capacity = 10
	first := w.asks()
	w.said(first, true)
	w.sweep()
	w.until("second question", 40*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	second := w.openTicket("checkout")
	if second.ID == first.ID {
		t.Fatal("nothing is tried")
	}
	bills := ch.of(second.ID)
	if len(bills) != 1 {
		t.Fatalf("%d messages of %s", len(bills), second.ID)
	}
	if got := section(bills[0].card, "Tried in this episode"); !strings.Contains(got, "no-change") {
		t.Errorf("the card of %s tells of what was tried: %q\n%s\n%s", second.ID, got, bills[0].card.Text(), w.dump())
	}
}

func section(c approve.Card, heading string) string {
	for _, s := range c.Sections {
		if s.Heading == heading {
			return strings.Join(s.Lines, "\n")
		}
	}
	return ""
}

// TestSecondEpisodeTellsTheFirst: an effect of an episode that ended is judged in
// the next one, and the question of that one tells of it.
func TestSecondEpisodeTellsTheFirst(t *testing.T) {
	w, ch := boarded(t)
	w.set.Services[0].Remediation.Budget.Capacity = 10
	w.set.Services[0].Remediation.HoldFor = time.Minute
	first := w.asks()
	w.said(first, true)
	w.sweep()
	w.heal()
	w.until("end of the episode", 30*time.Minute, func(reconcile.Result) (over bool) {
		w.r.View(func(s *ledger.State) {
			known, _ := s.Service("checkout")
			over = known.Episode == ""
		})
		return over
	})
	w.breakNow(0.3)
	w.until("second question", 60*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	second := w.openTicket("checkout")
	if second.Episode == first.Episode {
		t.Fatal("nothing is tried")
	}
	card := ch.of(second.ID)[0].card
	if got := section(card, "Tried in the day before this episode"); !strings.Contains(got, "did: ") || !strings.Contains(got, "measured: ") {
		t.Errorf("the card of %s tells of the day before: %q\n%s", second.ID, got, card.Text())
	}
	if got := section(card, "Tried in this episode"); got != "" {
		t.Errorf("nothing was tried in this episode: %q", got)
	}
}

// TestSilenceIsNoDenial: what nobody answered is held for that, by its own name.
func TestSilenceIsNoDenial(t *testing.T) {
	for name, tc := range map[string]struct {
		answer bool
		want   gate.Reason
	}{
		"Denied":  {true, gate.Reason{Code: gate.ReasonPersonHold, Text: "was denied by os:alice"}},
		"Silence": {false, gate.Reason{Code: gate.ReasonUnanswered, Text: "nobody answered "}},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := boarded(t)
			asked := w.asks()
			if tc.answer {
				w.said(asked, false)
			}
			var d gate.Decision
			w.until("refusal", 60*time.Minute, func(r reconcile.Result) bool {
				if r.Decision == nil || r.Decision.Verdict != gate.Deny || r.Decision.Hold {
					return false
				}
				d = *r.Decision
				return true
			})
			for _, r := range d.Reasons {
				held := r.Code == gate.ReasonPersonHold || r.Code == gate.ReasonUnanswered
				if held && (r.Code != tc.want.Code || !strings.Contains(r.Text, tc.want.Text) || !strings.Contains(r.Text, asked.ID+" (")) {
					t.Errorf("held for %+v, want %+v", r, tc.want)
				}
			}
			if d.Reasons[0].Code != tc.want.Code {
				t.Errorf("refused for %+v", d.Reasons)
			}
		})
	}
}
