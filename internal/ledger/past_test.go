package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// deed is one effect of checkout, in a state that was put together by hand.
type deed struct {
	key      gate.Key
	at       time.Duration
	outcome  compare.Outcome
	effect   execute.Effect
	reversal spec.Reversal
	undoes   gate.Key
	target   string
	episode  string
	refused  string
}

var dawn = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func pastOf(episode string, deeds ...deed) *ledger.State {
	s := ledger.NewState()
	sv := &ledger.Service{Name: "checkout", State: compare.Breached, Episode: episode, Documents: "d"}
	for _, d := range deeds {
		if d.effect == "" {
			d.effect = execute.Applied
		}
		if d.target == "" {
			d.target = "t"
		}
		e := &ledger.Effect{
			Service: "checkout", ClaimedAt: dawn.Add(d.at), StartedAt: dawn.Add(d.at), AppliedAt: dawn.Add(d.at), Effect: d.effect,
			OutcomeAt: dawn.Add(d.at), Outcome: d.outcome, UndoRefused: d.refused, Judgement: &compare.Judgement{Outcome: d.outcome},
			Claim: ledger.Claim{
				Key: d.key, Action: spec.Action{Name: "scale", Reversal: d.reversal}, Parameters: propose.Parameters{"replicas": int64(6)},
				Live: propose.Live{"replicas": int64(3)}, Target: d.target, Undo: d.undoes != "", Undoes: d.undoes, Episode: d.episode,
			},
		}
		if d.effect == execute.Void {
			e.StartedAt = time.Time{}
		}
		s.Effects[d.key] = e
		s.EffectOrder = append(s.EffectOrder, d.key)
		sv.Effects = append(sv.Effects, d.key)
	}
	s.Services["checkout"] = sv
	return s
}

func TestUndoable(t *testing.T) {
	harm := deed{key: "checkout:600-600", outcome: compare.OutcomeWorsened, reversal: spec.Restore, episode: "e1"}
	with := func(change func(*deed)) deed { d := harm; change(&d); return d }
	undo := func(effect execute.Effect, at time.Duration, key gate.Key) deed {
		return deed{key: key, at: at, effect: effect, undoes: harm.key, reversal: spec.Restore, episode: "e1"}
	}
	cases := map[string]struct {
		reason  string
		episode string
		deeds   []deed
		at      time.Duration
		want    gate.Key
	}{
		"worsened":        {"it is taken back", "e1", []deed{harm}, time.Hour, harm.key},
		"improved":        {"only what made things worse", "e1", []deed{with(func(d *deed) { d.outcome = compare.OutcomeImproved })}, time.Hour, ""},
		"not judged":      {"only by measurement", "e1", []deed{with(func(d *deed) { d.outcome = compare.OutcomePending })}, time.Hour, ""},
		"transient":       {"there is nothing to put back", "e1", []deed{with(func(d *deed) { d.reversal = spec.Transient })}, time.Hour, ""},
		"irreversible":    {"it cannot be", "e1", []deed{with(func(d *deed) { d.reversal = spec.Irreversible })}, time.Hour, ""},
		"refused":         {"and was not refused for good", "e1", []deed{with(func(d *deed) { d.refused = "t12 was denied" })}, time.Hour, ""},
		"undone":          {"once", "e1", []deed{harm, undo(execute.Applied, time.Minute, "checkout:1200-600")}, time.Hour, ""},
		"undone in doubt": {"once, whatever came of it", "e1", []deed{harm, undo(execute.NotLanded, time.Minute, "checkout:1200-600")}, time.Hour, ""},
		"void":            {"one that was never sent is none", "e1", []deed{harm, undo(execute.Void, time.Minute, "checkout:1200-600")}, time.Hour, harm.key},
		"void thrice": {"but not for ever", "e1", []deed{
			harm, undo(execute.Void, 1*time.Minute, "checkout:1200-600"), undo(execute.Void, 2*time.Minute, "checkout:1800-600"), undo(execute.Void, 3*time.Minute, "checkout:2400-600"),
		}, time.Hour, ""},
		"episode over":    {"what is over is left alone", "", []deed{harm}, 20 * time.Minute, ""},
		"just over":       {"but a neighbour's miss has no episode here", "", []deed{harm}, 19 * time.Minute, harm.key},
		"another episode": {"what is over is left alone", "e9", []deed{harm}, time.Hour, ""},
		"sent since":      {"then it is no longer what is there", "e1", []deed{harm, {key: "checkout:1200-600", at: time.Minute, outcome: compare.OutcomeNoChange, reversal: spec.Restore, episode: "e1"}}, time.Hour, ""},
		"nothing since":   {"what did nothing changed nothing", "e1", []deed{harm, {key: "checkout:1200-600", at: time.Minute, effect: execute.Failed, reversal: spec.Restore, episode: "e1"}}, time.Hour, harm.key},
		"no undo of undo": {"an undo has none", "e1", []deed{with(func(d *deed) { d.outcome = compare.OutcomeNoChange }), with(func(d *deed) { d.key, d.at, d.undoes = "checkout:1200-600", time.Minute, harm.key })}, time.Hour, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got gate.Key
			if e := pastOf(tc.episode, tc.deeds...).Undoable("checkout", dawn.Add(tc.at), 20*time.Minute); e != nil {
				got = e.Claim.Key
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestUndoableElsewhere: another service that writes to the same target has
// taken what was written.
func TestUndoableElsewhere(t *testing.T) {
	s := pastOf("e1", deed{key: "checkout:600-600", outcome: compare.OutcomeWorsened, reversal: spec.Restore, episode: "e1"})
	other := *s.Effects["checkout:600-600"]
	other.Service, other.ClaimedAt, other.Claim.Key = "cart", dawn.Add(time.Minute), "cart:600-600"
	s.Effects["cart:600-600"] = &other
	s.EffectOrder = append(s.EffectOrder, "cart:600-600")
	if e := s.Undoable("checkout", dawn.Add(time.Hour), time.Minute); e != nil {
		t.Errorf("%s would be taken back over another service's write", e.Claim.Key)
	}
}

func TestSentSince(t *testing.T) {
	s := pastOf("e1",
		deed{key: "checkout:600-600", at: 0},
		deed{key: "checkout:1200-600", at: time.Hour, effect: execute.Failed},
		deed{key: "checkout:1800-600", at: 2 * time.Hour, outcome: compare.OutcomeRecovered, target: "u"},
		deed{key: "checkout:2400-600", at: 3 * time.Hour},
	)
	cart := *s.Effects["checkout:2400-600"]
	cart.Service, cart.Claim.Key, cart.Claim.Action.Name = "cart", "cart:600-600", "drain"
	s.Effects["cart:600-600"] = &cart
	s.EffectOrder = append(s.EffectOrder, "cart:600-600")
	var got []string
	for _, x := range s.SentSince("checkout", "t", dawn.Add(time.Minute), "checkout:2400-600") {
		got = append(got, x.Service+" "+x.Action+" "+x.Target)
	}
	if diff := cmp.Diff([]string{"checkout scale u", "cart drain t"}, got); diff != "" {
		t.Errorf("what may have changed something, since, of the service or on the target, without the key (-want +got):\n%s", diff)
	}
}

func TestFreeKey(t *testing.T) {
	s := pastOf("e1", deed{key: "checkout:600-600"})
	s.Services["checkout"].Spent = gate.WindowID{Start: 600, Length: 600}
	if got := s.FreeKey("checkout", gate.WindowID{Start: 600, Length: 600}); got != "checkout:1200-600" {
		t.Errorf("after a spent window comes %s", got)
	}
	s.Tickets["t9"] = &approve.Ticket{ID: "t9", Service: "checkout", Key: "checkout:1200-600", State: approve.Open}
	s.Services["checkout"].Tickets = []string{"t9"}
	if got := s.FreeKey("checkout", gate.WindowID{Start: 600, Length: 600}); got != "checkout:1800-600" {
		t.Errorf("a ticket reserves its key, and yet %s", got)
	}
}

func TestStormEntries(t *testing.T) {
	cases := map[string]struct {
		was  ledger.Phase
		next ledger.Phase
		ok   bool
	}{
		"begins":        {"", ledger.StormOn, true},
		"begins again":  {ledger.StormOff, ledger.StormOn, true},
		"eases":         {ledger.StormOn, ledger.StormEasing, true},
		"comes back":    {ledger.StormEasing, ledger.StormOn, true},
		"is over":       {ledger.StormEasing, ledger.StormOff, true},
		"twice":         {ledger.StormOn, ledger.StormOn, false},
		"over at once":  {ledger.StormOn, ledger.StormOff, false},
		"eases nothing": {"", ledger.StormEasing, false},
		"ends nothing":  {"", ledger.StormOff, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ledger.NewState()
			s.Storm.Phase = tc.was
			if _, err := ledger.StormDraft(s, ledger.Storm{Phase: tc.next}); (err == nil) != tc.ok {
				t.Errorf("from %q to %q: %v", tc.was, tc.next, err)
			}
		})
	}
}

func TestDemotion(t *testing.T) {
	s := pastOf("e1")
	demoted := func(period time.Duration, rung gate.Verdict) gate.Verdict {
		c, ok := s.Demotion("checkout", "scale", period, rung)
		if !ok {
			return rung
		}
		return c.To
	}
	if got := demoted(24*time.Hour, gate.Auto); got != gate.Auto {
		t.Errorf("without a record of harm: %s", got)
	}
	s.Services["checkout"].Actions = map[string]ledger.Record{"scale": {Harmed: []time.Time{dawn, dawn.Add(time.Hour)}}}
	for rung, want := range map[gate.Verdict]gate.Verdict{gate.Auto: gate.Approval, gate.Approval: gate.Escalate, gate.Escalate: gate.Deny, gate.Deny: gate.Deny} {
		if got := demoted(24*time.Hour, rung); got != want {
			t.Errorf("from %s to %s, want %s", rung, got, want)
		}
	}
	if got := demoted(time.Hour, gate.Auto); got != gate.Auto {
		t.Errorf("the first has aged out: %s", got)
	}
}

// TestFreshStart: a reset, or a ceiling that was set, by whomever, forgets what
// the action did before: one harm costs one rung, once.
func TestFreshStart(t *testing.T) {
	for name, body := range map[string]ledger.Draft{
		"reset":        {Kind: ledger.KindReset, Service: "checkout", Body: ledger.Reset{Action: "scale", By: "os:alice", Reason: "mended"}},
		"reset of all": {Kind: ledger.KindReset, Service: "checkout", Body: ledger.Reset{By: "os:alice", Reason: "mended"}},
		"ceiling":      {Kind: ledger.KindCeiling, Service: "checkout", Body: ledger.Ceiling{Action: "scale", To: gate.Approval, By: ledger.DemotedBy, Reason: "worsened"}},
		"another's":    {Kind: ledger.KindReset, Service: "checkout", Body: ledger.Reset{Action: "drain", By: "os:alice", Reason: "mended"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := pastOf("e1")
			s.Services["checkout"].Actions = map[string]ledger.Record{"scale": {Harmed: []time.Time{dawn, dawn}}}
			first, err := ledger.Link(ledger.Position{}, dawn, ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}})
			if err == nil {
				err = s.Apply(first)
			}
			if err != nil {
				t.Fatal(err)
			}
			e, err := ledger.Link(s.Head, dawn, body)
			if err == nil {
				err = s.Apply(e)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, still := s.Demotion("checkout", "scale", time.Hour, gate.Auto); still != (name == "another's") {
				t.Errorf("a demotion is due: %t", still)
			}
		})
	}
}
