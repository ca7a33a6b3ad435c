package gate_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// asks is an approval rule, "" with the document's approvers.
func asks(reason string, quorum int, who ...string) gate.Rule {
	return gate.Rule{Reason: reason, Quorum: quorum, Approvers: who}
}

func autos(reason string) gate.Ruling  { return gate.Ruling{Auto: []gate.Rule{{Reason: reason}}} }
func denies(reason string) gate.Ruling { return gate.Ruling{Deny: []gate.Rule{{Reason: reason}}} }
func hands(reason string) gate.Ruling  { return gate.Ruling{Escalate: []gate.Rule{{Reason: reason}}} }

func people(rules ...gate.Rule) gate.Ruling { return gate.Ruling{Approval: rules} }

func TestCompare(t *testing.T) {
	frozen := func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f"}} }
	approved := func(c *gate.Case) {
		c.Facts.ApprovedTicket, c.Facts.ApprovedNeeds = "t1", []gate.Need{{Approvers: []string{"@x"}, Quorum: 1}}
		c.Facts.ApprovedDigest = gate.Decide(granted(), allows()).Digest
	}
	expires := asks("a", 1, "@x")
	expires.Expires = time.Hour
	tests := map[string]struct {
		reason   string
		tighten  func(*gate.Case)
		old, new gate.Ruling
		want     gate.Difference
	}{
		"Same":          {"nothing differs", nil, autos("a"), autos("a"), gate.Difference{}},
		"OtherReason":   {"the verdict is what binds", nil, autos("a"), autos("b"), gate.Difference{Reasons: true}},
		"Asks":          {"a person is asked now", nil, autos("a"), people(asks("a", 1)), gate.Difference{Verdict: true, Tightened: true, Reasons: true}},
		"AsksNoMore":    {"nobody is asked any more", nil, people(asks("a", 1)), autos("a"), gate.Difference{Verdict: true, Loosened: true, Reasons: true}},
		"Refuses":       {"nothing can be done any more", nil, people(asks("a", 1)), denies("a"), gate.Difference{Verdict: true, Tightened: true, Reasons: true}},
		"HandsOver":     {"neither does anything", nil, denies("a"), hands("a"), gate.Difference{Verdict: true, Reasons: true}},
		"Silent":        {"a policy that grants nothing refuses", nil, autos("a"), gate.Ruling{}, gate.Difference{Verdict: true, Tightened: true, Reasons: true}},
		"Fault":         {"a fault holds, and grants nothing when the floors lift", nil, autos("a"), gate.Ruling{Fault: "error: x"}, gate.Difference{Verdict: true, Hold: true, Tightened: true, Reasons: true}},
		"Held":          {"once the freeze is lifted, a person is asked", frozen, autos("a"), people(asks("a", 1)), gate.Difference{Verdict: true, Tightened: true, Reasons: true}},
		"HeldOrRefused": {"it would have been judged again", frozen, autos("a"), denies("a"), gate.Difference{Verdict: true, Hold: true, Tightened: true, Reasons: true}},
		"HeldSilent":    {"behind the freeze nothing is granted either way", frozen, gate.Ruling{}, denies("a"), gate.Difference{Hold: true, Reasons: true}},
		"Hidden":        {"a floor refuses whatever policy says", func(c *gate.Case) { c.Facts.Ownership = "hpa" }, autos("a"), people(asks("a", 1)), gate.Difference{Reasons: true, Hidden: true}},
		"HiddenApproval": {"a floor asks a person anyway", func(c *gate.Case) { action(c).Class = "approval" },
			autos("a"), people(asks("a", 1)), gate.Difference{Reasons: true, Hidden: true}},
		"Quorum":          {"one more must agree", nil, people(asks("a", 1, "@x")), people(asks("a", 2, "@x")), gate.Difference{Needs: true, Tightened: true}},
		"Fewer":           {"two of three may answer", nil, people(asks("a", 1, "@x", "@y", "@z")), people(asks("a", 1, "@z", "@x")), gate.Difference{Needs: true, Tightened: true}},
		"Order":           {"the order of names is nobody's", nil, people(asks("a", 1, "@x", "@y")), people(asks("a", 1, "@y", "@x", "@x")), gate.Difference{}},
		"OtherPeople":     {"who was needed is not asked", nil, people(asks("a", 1, "@x")), people(asks("a", 1, "@y")), gate.Difference{Needs: true, Loosened: true, Tightened: true}},
		"Second":          {"a second group must agree too", nil, people(asks("a", 1, "@x")), people(asks("a", 1, "@x"), asks("b", 1, "@y")), gate.Difference{Needs: true, Tightened: true, Reasons: true}},
		"SamePeople":      {"one answer satisfies both rules", nil, people(asks("a", 1, "@x")), people(asks("a", 1, "@x"), asks("b", 1, "@x")), gate.Difference{Reasons: true}},
		"Expires":         {"the same people, for another time", nil, people(asks("a", 1, "@x")), people(expires), gate.Difference{Needs: true}},
		"TicketsOpen":     {"a hold for other tickets hides who is asked", func(c *gate.Case) { c.Facts.OpenTickets = 5 }, people(asks("a", 2, "@x")), people(asks("a", 1, "@x")), gate.Difference{Needs: true, Loosened: true}},
		"TicketAskedLess": {"the ticket would have asked two people from the start", approved, people(asks("a", 1, "@x")), people(asks("a", 2, "@x")), gate.Difference{Needs: true, Tightened: true, Reasons: true}},
		"TicketHeld": {"the freeze lifts, and the ticket would have asked two", func(c *gate.Case) {
			approved(c)
			frozen(c)
		}, people(asks("a", 1, "@x")), people(asks("a", 2, "@x")), gate.Difference{Needs: true, Tightened: true, Reasons: true}},
		"TicketRefused": {"whoever was asked, it is refused", approved, people(asks("a", 1, "@x")), denies("a"), gate.Difference{Verdict: true, Tightened: true, Reasons: true}},
		"TicketAuto":    {"what was approved stays approved", approved, people(asks("a", 1, "@x")), autos("a"), gate.Difference{Needs: true, Loosened: true, Reasons: true}},
		"BalanceSpent":  {"the balance binds only what would act alone", func(c *gate.Case) { c.Facts.Balance.Remaining = 0 }, autos("a"), people(asks("b", 1)), gate.Difference{Reasons: true, Hidden: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := granted()
			if tt.tighten != nil {
				tt.tighten(&c)
			}
			f := gate.Prepare(c).Floors
			got := gate.Compare(f.Outlook(tt.old), f.Outlook(tt.new))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// What lasts is never held but by a policy that could not say anything, grants no
// less than the present, and is the present where nothing holds.
func TestPropertyOutlook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawCase(t)
		r := drawRuling(t)
		f := gate.Prepare(c).Floors
		o := f.Outlook(r)
		if d := gate.Decide(c, r); plain(d) != plain(o.Now) {
			t.Fatalf("now is not what is decided:\n%s\n%s", plain(d), plain(o.Now))
		}
		if o.Lasting.Hold && r.Fault == "" || o.Lasting.Verdict < o.Now.Verdict {
			t.Fatalf("now %s (hold %v), lasting %s (hold %v)", o.Now.Verdict, o.Now.Hold, o.Lasting.Verdict, o.Lasting.Hold)
		}
		if r.Fault != "" && o.Lasting.Verdict > gate.Escalate {
			t.Fatalf("%s of a policy with a fault", o.Lasting.Verdict)
		}
		if raw, err := json.Marshal(f); err != nil || !slices.Equal(raw, marshal(t, gate.Prepare(c).Floors)) {
			t.Fatalf("the floors were changed by looking at them: %v", err)
		}
	})
}

func marshal(t *rapid.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func drawPeople(t *rapid.T, label string) []gate.Rule {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"@a", "@b", "@c"}), 0, 2, rapid.ID[string])
	var out []gate.Rule
	for i := range rapid.IntRange(0, 2).Draw(t, label) {
		out = append(out, asks(string(rune('a'+i)), rapid.IntRange(0, 2).Draw(t, label+" quorum"), names.Draw(t, label+" people")...))
	}
	return out
}

// Swapping two decisions turns looser into tighter and changes nothing else, and
// no decision differs from itself.
func TestPropertyCompareSwaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawCase(t)
		f := gate.Prepare(c).Floors
		a, b := drawRuling(t), drawRuling(t)
		a.Approval = append(a.Approval, drawPeople(t, "a")...)
		b.Approval = append(b.Approval, drawPeople(t, "b")...)
		there, back := gate.Compare(f.Outlook(a), f.Outlook(b)), gate.Compare(f.Outlook(b), f.Outlook(a))
		back.Loosened, back.Tightened = back.Tightened, back.Loosened
		if there != back {
			t.Fatalf("there %+v, back %+v", there, back)
		}
		if same := gate.Compare(f.Outlook(a), f.Outlook(a)); same != (gate.Difference{}) {
			t.Fatalf("differs from itself: %+v", same)
		}
		if (there.Loosened || there.Tightened) && !there.Binding() {
			t.Fatalf("looser or tighter, and nothing binding differs: %+v", there)
		}
	})
}

// One more rule that refuses, hands over or, where something is granted, asks
// never loosens.
func TestPropertyStricterIsNeverLooser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawCase(t)
		f := gate.Prepare(c).Floors
		r := drawRuling(t)
		r.Approval = append(r.Approval, drawPeople(t, "approval")...)
		more := r
		extra := asks("extra", rapid.IntRange(0, 2).Draw(t, "quorum"), rapid.SampledFrom([]string{"@a", "@b"}).Draw(t, "who"))
		switch what := rapid.SampledFrom([]string{"deny", "escalate", "approval"}).Draw(t, "more"); {
		case what == "deny":
			more.Deny = append(slices.Clone(r.Deny), extra)
		case what == "escalate":
			more.Escalate = append(slices.Clone(r.Escalate), extra)
		case len(r.Auto)+len(r.Approval) > 0:
			more.Approval = append(slices.Clone(r.Approval), extra)
		}
		if d := gate.Compare(f.Outlook(r), f.Outlook(more)); d.Loosened {
			t.Fatalf("a stricter policy is looser: %+v", d)
		}
	})
}
