package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// decided records what the gate said so many minutes ago, with its floors.
func (n *night) decided(minutes int, action string, change func(*gate.Facts)) {
	n.t.Helper()
	a, _ := n.svc.Action(action)
	key := gate.KeyOf("checkout", gate.WindowAt(before(minutes), 10*time.Minute))
	f := n.facts
	f.Now, f.Assessment, f.Episode = before(minutes), n.a, n.state.Services["checkout"].Episode
	f.Item = propose.Item{Action: a, Live: propose.Live{"replicas": int64(3)}, LiveKnown: true}
	if change != nil {
		change(&f)
	}
	p := propose.Proposal{Kind: propose.KindAction, Action: action, Proposer: propose.Proposer{Kind: "rules"}}
	if action == "scale" {
		p.Parameters = six
	}
	limits := gate.Limits{MaxMode: n.max, EffectsPerHour: 60, EffectsPerServicePerHour: 20, OpenApproval: 5, PermitTTL: 30 * time.Second}
	floors := gate.Prepare(gate.Case{Service: n.svc, Proposal: p, Key: key, Facts: f, Limits: limits}).Floors
	raw, err := json.Marshal(floors)
	if err != nil {
		n.t.Fatal(err)
	}
	digest := ledger.BlobDigest(raw)
	n.blobs[digest] = raw
	n.add(minutes, ledger.KindDecision, "checkout", ledger.Decided{
		Window: strings.TrimPrefix(string(key), "checkout:"), Episode: f.Episode, Key: key, Step: "hold", Proposal: p,
		Decision: floors.Join(n.rules), State: compare.Breached, Mode: n.svc.Remediation.Mode, Floors: digest,
	})
}

// scored is the score of one action over so many days.
func (n *night) scored(days int, action string) score {
	n.t.Helper()
	c := newChronicle()
	for _, e := range n.entries {
		if err := c.apply(e); err != nil {
			n.t.Fatal(err)
		}
	}
	n.set.Services[0] = n.svc
	s := &scorer{c: c, set: n.set, maxMode: n.max, config: "setpoint.yaml", from: three.Add(-time.Duration(days) * 24 * time.Hour), to: three}
	s.blob = func(_ context.Context, digest string) ([]byte, error) {
		if raw, ok := n.blobs[digest]; ok {
			return raw, nil
		}
		return nil, ledger.ErrNoBlob
	}
	all, err := s.scores(n.t.Context(), "checkout")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, one := range all {
		if one.Action == action {
			return one
		}
	}
	n.t.Fatalf("no score of %s in %+v", action, all)
	return score{}
}

// watching is an agent that only observes.
func watching(t *testing.T) *night {
	n := newNight(t)
	n.svc.Remediation.Mode, n.max = spec.Observe, spec.Observe
	return n
}

// counted is what the tables below look at.
type counted struct {
	Would, Held         int
	Cost                float64
	ByItself, AfterSeen int
	Ran                 int
	Earned              string
}

func (s score) counted() counted {
	ran := 0
	for _, n := range s.Outcomes {
		ran += n
	}
	return counted{s.WouldHaveActed, s.HeldByCooldown, s.WouldHaveCost, s.RecoveredByItself, s.AfterWouldHaveActed, ran, s.Earned}
}

func TestScore(t *testing.T) {
	cases := map[string]struct {
		reason string
		past   func(n *night)
		want   counted
	}{
		"nothing": {"watched, and nothing happened", func(*night) {}, counted{Earned: "suggest"}},
		"by itself at once": {
			"well again before an outcome could have been measured: free",
			func(n *night) { n.breached(500); n.decided(499, "scale", nil); n.metAt(495); n.over(490) },
			counted{Would: 1, ByItself: 1, AfterSeen: 1, Earned: "suggest"},
		},
		"late by itself": {
			"well again, too late for settle and judge window: no-change, had it not helped",
			func(n *night) { n.breached(500); n.decided(499, "scale", nil); n.metAt(480); n.over(475) },
			counted{Would: 1, Cost: 1, ByItself: 1, AfterSeen: 1, Earned: "suggest"},
		},
		"recovering counts": {
			"the judge window was good again, which is what an outcome is measured by",
			func(n *night) {
				n.breached(500)
				n.decided(499, "scale", nil)
				n.add(495, ledger.KindState, "checkout", ledger.StateChange{From: compare.Breached, To: compare.Breached, Reason: compare.Recovering, By: "me"})
				n.metAt(400)
				n.over(395)
			},
			counted{Would: 1, ByItself: 1, AfterSeen: 1, Earned: "suggest"},
		},
		"cooldown": {
			"two windows in its cooldown are not two more times",
			func(n *night) {
				n.breached(600)
				for _, minutes := range []int{599, 589, 580, 559} {
					n.decided(minutes, "scale", nil)
				}
				n.metAt(500)
				n.over(495)
			},
			counted{Would: 2, Held: 2, Cost: 2, ByItself: 1, AfterSeen: 1, Earned: "suggest"},
		},
		"one window": {
			"a window counts once, however often it was judged",
			func(n *night) { n.breached(600); n.decided(599, "scale", nil); n.decided(598, "scale", nil) },
			counted{Would: 1, Cost: 1, Earned: "suggest"},
		},
		"held": {
			"a floor that passes held it: it would not have acted",
			func(n *night) {
				n.breached(600)
				n.decided(599, "scale", func(f *gate.Facts) { f.FreshReads = 1 })
				n.decided(589, "scale", func(f *gate.Facts) { f.Storm = "12 of 20" })
			},
			counted{Earned: "suggest"},
		},
		"refused": {
			"policy or a floor refused: it would not have acted in any mode",
			func(n *night) {
				n.breached(600)
				n.decided(599, "scale", func(f *gate.Facts) { f.Suspended = "worsened" })
				n.rules = gate.Ruling{Deny: []gate.Rule{{Reason: "never"}}}
				n.decided(589, "scale", nil)
				n.rules = gate.Ruling{}
				n.decided(579, "scale", nil)
			},
			counted{Earned: "suggest"},
		},
		"another action": {"is another score", func(n *night) { n.breached(600); n.decided(599, "restart", nil) }, counted{Earned: "suggest"}},
		"class approval": {
			"would have asked a person, which is acting too",
			func(n *night) { n.breached(600); n.decided(599, "rollback", nil) }, counted{Earned: "suggest"},
		},
		"three": {
			"three times, and cheap: approval is earned",
			func(n *night) {
				for i := range 3 {
					at := 900 - 100*i
					n.breached(at)
					n.decided(at-1, "scale", nil)
					n.metAt(at - 5)
					n.over(at - 10)
				}
			},
			counted{Would: 3, ByItself: 3, AfterSeen: 3, Earned: "approval"},
		},
		"before the period": {
			"what is older says nothing of it",
			func(n *night) { n.breached(8000); n.decided(7999, "scale", nil); n.metAt(7990); n.over(7985) },
			counted{Earned: "suggest"},
		},
		"only unknown": {
			"an episode that was only unknown is no breach that recovered",
			func(n *night) {
				n.add(500, ledger.KindState, "checkout", ledger.StateChange{From: compare.Met, To: compare.Unknown, Reason: "no-data", By: "me"})
				n.add(490, ledger.KindState, "checkout", ledger.StateChange{From: compare.Unknown, To: compare.Met, By: "me"})
				n.over(485)
			},
			counted{Earned: "suggest"},
		},
		"ran": {
			"what ran is paid by its measured outcome, and is no recovery by itself",
			func(n *night) {
				n.breached(600)
				n.tried(590, "scale", six, compare.OutcomeWorsened, 2)
				n.tried(550, "scale", propose.Parameters{"replicas": int64(9)}, compare.OutcomeRecovered, 0)
				n.metAt(540)
				n.over(535)
			},
			counted{Would: 2, Cost: 2, Ran: 2, Earned: "suggest"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := watching(t)
			tc.past(n)
			if diff := cmp.Diff(tc.want, n.scored(5, "scale").counted()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// trustworthy is an action with a record that earns auto.
func trustworthy(t *testing.T) *night {
	n := newNight(t)
	n.svc.Remediation.Mode = spec.Approval
	for i := range 6 {
		at := 9000 - 600*i
		n.breached(at)
		n.tried(at-5, "scale", six, compare.OutcomeRecovered, 0)
		n.metAt(at - 20)
		n.over(at - 30)
	}
	return n
}

func TestScoreEdits(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(n *night)
		earned string
		capped []string
		edits  []string
	}{
		"raise": {
			"the mode holds for all actions, so those that have earned less are capped in the same commit",
			func(*night) {}, "auto", nil,
			[]string{"spec.mode approval auto", "spec.actions[1].class auto approval"},
		},
		"maxMode": {
			"the configuration caps every service", func(n *night) { n.max = spec.Approval }, "auto", nil,
			[]string{"spec.mode approval auto", "spec.actions[1].class auto approval", "limits.maxMode approval auto"},
		},
		"class": {
			"a class that a person chose is said, and lifted by a person",
			func(n *night) { n.svc.Remediation.Actions[0].Class = spec.ClassApproval }, "auto", []string{"class approval"},
			[]string{"spec.actions[0].class approval auto"},
		},
		"reversal": {
			"what cannot be taken back stays with people",
			func(n *night) { n.svc.Remediation.Actions[0].Reversal = spec.Irreversible }, "auto", []string{"reversal irreversible"}, nil,
		},
		"granted": {"what it has is what it earned", func(n *night) { n.svc.Remediation.Mode = spec.Auto }, "auto", nil, nil},
		"harm": {
			"an action that did harm and has auto is taken down",
			func(n *night) {
				n.svc.Remediation.Mode = spec.Auto
				n.breached(600)
				n.tried(590, "scale", six, compare.OutcomeWorsened, 2)
			}, "approval", nil, []string{"spec.actions[0].class auto approval"},
		},
		"demoted": {
			"a lowered ceiling is not edited away",
			func(n *night) {
				n.add(100, ledger.KindCeiling, "checkout", ledger.Ceiling{Action: "scale", To: gate.Approval, By: "setpoint", Reason: "worsened twice"})
			}, "approval", nil, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := trustworthy(t)
			tc.change(n)
			s := n.scored(14, "scale")
			var edits []string
			for _, e := range s.Edits {
				edits = append(edits, fmt.Sprintf("%s %s %s", e.Key, e.From, e.To))
			}
			if s.Earned != tc.earned || !cmp.Equal(s.CappedBy, tc.capped) || !cmp.Equal(edits, tc.edits) {
				t.Errorf("%s: earned %s, capped by %q, edits %q; want %s, %q, %q; why %q, next %q", tc.reason, s.Earned, s.CappedBy, edits, tc.earned, tc.capped, tc.edits, s.Why, s.Next)
			}
		})
	}
}

// TestTooLittleIsNoReasonToLower: an action that a person let act, and that
// hardly ever ran, keeps what it was given.
func TestTooLittleIsNoReasonToLower(t *testing.T) {
	n := newNight(t)
	n.breached(600)
	n.tried(590, "scale", six, compare.OutcomeNoChange, 1)
	if s := n.scored(14, "scale"); s.Earned != "suggest" || len(s.Edits) != 0 {
		t.Errorf("earned %s, edits %+v", s.Earned, s.Edits)
	}
}

// TestWatched: what is watched is no longer than the period, and time in which
// nothing was known is no part of it.
func TestWatched(t *testing.T) {
	n := newNight(t)
	n.add(600, ledger.KindState, "checkout", ledger.StateChange{From: compare.Met, To: compare.Unknown, Reason: "no-data", By: "me"})
	n.add(540, ledger.KindState, "checkout", ledger.StateChange{From: compare.Unknown, To: compare.Met, By: "me"})
	n.add(500, ledger.KindGap, "", ledger.Gap{Why: "start"})
	s := n.scored(1, "scale")
	if want := (23 * time.Hour).Seconds(); s.WatchedSeconds != want || s.Gaps != 1 || s.GapsSeconds != (40*time.Minute).Seconds() {
		t.Errorf("watched %v s with %d gaps of %v s, want %v s and 1 of 40m at most", s.WatchedSeconds, s.Gaps, s.GapsSeconds, want)
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := newChronicle()
		at := before(10000)
		for range rapid.IntRange(0, 20).Draw(rt, "spells") {
			at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(rt, "minutes")) * time.Minute)
			state := rapid.SampledFrom([]compare.State{compare.Met, compare.Breached, compare.Unknown, ""}).Draw(rt, "state")
			c.spells["checkout"] = append(c.spells["checkout"], spell{at, state})
		}
		from := before(rapid.IntRange(0, 12000).Draw(rt, "from"))
		length, _ := c.watched("checkout", from, three)
		first, _ := c.watched("checkout", from, from.Add(three.Sub(from)/2))
		if length < 0 || length > three.Sub(from) || first > length {
			rt.Fatalf("watched %s (%s of it in the first half) of %s", length, first, three.Sub(from))
		}
	})
}
