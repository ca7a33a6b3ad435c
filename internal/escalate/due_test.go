package escalate_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

var t0 = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func page() escalate.Page {
	return escalate.Page{
		ID: "e12", Service: "checkout", Episode: "e12", Reason: escalate.CannotAct, Now: escalate.CannotAct,
		Severity: escalate.SeverityCritical, Summary: "checkout misses availability", Text: "…", Gist: "g1",
		Receivers: []string{"oncall", "backup", "boss"}, Since: at(-time.Hour),
	}
}

var rules = []escalate.Rule{
	{Name: "oncall", Repost: time.Minute},
	{Name: "backup", EscalateAfter: 10 * time.Minute},
	{Name: "boss", EscalateAfter: 20 * time.Minute},
	{Name: "chat", EscalateAfter: 20 * time.Minute, ShowsAck: true},
}

// sent is a delivery of p that succeeded at that time, and first then too.
func sent(p escalate.Page, receiver string, when time.Duration) escalate.Delivery {
	return escalate.Delivery{}.After(p, receiver, "", nil, at(when))
}

func failed(d escalate.Delivery, receiver string, times int, last time.Duration) escalate.Delivery {
	for range times {
		d = d.After(page(), receiver, "", errors.New("503 from the receiver"), at(last))
	}
	return d
}

// showing is the page with a receiver that shows who acknowledged it.
func showing(p escalate.Page) escalate.Page {
	p.Receivers = []string{"oncall", "chat"}
	return p
}

func TestDue(t *testing.T) {
	const m, s = time.Minute, time.Second
	type held = []escalate.Delivery
	open, acked, ended, changed := page(), page(), page(), page()
	acked.AckedBy = "os:alice"
	ended.EndedAt, ended.EndReason = at(30*m), "recovered"
	changed.Gist = "g2"
	numbers := page()
	numbers.Summary, numbers.Text = "other numbers", "other numbers"
	none := failed(escalate.Delivery{}, "oncall", 1, 0)

	cases := map[string]struct {
		reason string
		page   escalate.Page
		held   held
		now    time.Duration
		want   []string
	}{
		"New":              {"the first receiver first", open, nil, 0, []string{"oncall"}},
		"Held":             {"a held page is not sent again before its repost", open, held{sent(open, "oncall", 0)}, m - 1, nil},
		"Repost":           {"Alertmanager would forget it", open, held{sent(open, "oncall", 0)}, m, []string{"oncall"}},
		"ClockSetBack":     {"a send in the future is repeated, not waited for", open, held{sent(open, "oncall", m)}, 0, []string{"oncall"}},
		"Unacknowledged":   {"nobody answered for escalateAfter", open, held{sent(open, "oncall", 0)}, 10 * m, []string{"oncall", "backup"}},
		"NotYet":           {"a moment before it", open, held{sent(open, "oncall", 0)}, 10*m - 1, []string{"oncall"}},
		"RepostsDoNotWait": {"the wait counts from the first time, whatever was sent later", open, held{sent(open, "oncall", 0).After(open, "oncall", "", nil, at(9*m+30*s))}, 10 * m, []string{"backup"}},
		"TurnInFuture":     {"of a clock that was set back a day: the next one does not wait until tomorrow", open, held{sent(open, "oncall", 24*60*m)}, 0, []string{"oncall", "backup"}},
		"TurnSoon":         {"of another replica, whose clock is a little ahead", open, held{sent(open, "oncall", m)}, 0, []string{"oncall"}},
		"Third":            {"each predecessor has its own wait", open, held{sent(open, "oncall", 0), sent(open, "backup", 10*m)}, 30 * m, []string{"oncall", "boss"}},
		"ThirdNotYet":      {"the third waits for the second", open, held{sent(open, "oncall", 0), sent(open, "backup", 10*m)}, 30*m - 1, []string{"oncall"}},
		"Acked":            {"somebody took it: the chain stops, the repost goes on", acked, held{sent(open, "oncall", 0)}, 20 * m, []string{"oncall"}},
		"AckedNew":         {"an acknowledgement elsewhere does not silence the first receiver", acked, nil, 0, []string{"oncall"}},
		"AckedShown":       {"who shows an acknowledgement is told of it, and nobody else", showing(acked), held{sent(open, "oncall", 0), sent(open, "chat", 0)}, s, []string{"chat"}},
		"AckedShownOnce":   {"once", showing(acked), held{sent(open, "oncall", 0), sent(acked, "chat", 0)}, s, nil},
		"AckedChange":      {"who holds it learns what changed", func() escalate.Page { c := changed; c.AckedBy = "os:alice"; return c }(), held{sent(open, "oncall", 0), sent(open, "backup", 0)}, s, []string{"oncall", "backup"}},
		"OneFailure":       {"one failure rests, and is not the next one's turn", open, held{none}, 15*s - 1, nil},
		"AfterBackoff":     {"then it is tried again", open, held{none}, 15 * s, []string{"oncall"}},
		"ThreeFailures":    {"three in a row make it the next one's turn at once", open, held{failed(escalate.Delivery{}, "oncall", 3, 0)}, s, []string{"backup"}},
		"FailsLater":       {"also when it held the page before", open, held{failed(sent(open, "oncall", 0), "oncall", 3, m)}, 2 * m, []string{"oncall", "backup"}},
		"AllFail":          {"the chain goes to its end", open, held{failed(escalate.Delivery{}, "oncall", 3, 0), failed(escalate.Delivery{}, "backup", 3, 0)}, s, []string{"boss"}},
		"Changed":          {"changed content goes to who holds it", changed, held{sent(open, "oncall", 0), sent(open, "backup", 0)}, s, []string{"oncall", "backup"}},
		"NumbersMoved":     {"numbers alone are no news", numbers, held{sent(open, "oncall", 0), sent(open, "backup", 0)}, s, nil},
		"OtherPage":        {"what is held of another page does not count", open, held{{Page: "e11", Receiver: "oncall", Sent: t0, First: t0, Digest: open.ContentDigest()}}, s, []string{"oncall"}},
		"Ended":            {"the end goes to everybody who holds it, acknowledged or not", ended, held{sent(open, "oncall", 0), sent(open, "backup", 15*m)}, 30 * m, []string{"oncall", "backup"}},
		"EndedMaybeHeld":   {"a failed send may have arrived", ended, held{none}, 30 * m, []string{"oncall"}},
		"EndedNeverHeld":   {"who was down for a month is told what it missed", ended, held{none}, 30 * 24 * 60 * m, []string{"oncall"}},
		"EndedTold":        {"once", ended, held{sent(ended, "oncall", 29*m)}, 40 * m, nil},
		"EndedBeforeSent":  {"its turn had come, and nobody had begun to send", ended, nil, 30 * m, []string{"oncall"}},
		"EndedLongAgo":     {"held back on purpose is no page of today", ended, nil, 30*m + 24*time.Hour + 1, nil},
		"EndedOther":       {"a receiver that left the page still gets its end", ended, held{sent(open, "oncall", 25*m), sent(open, "pager", 0), sent(open, "boss", 0)}, 30 * m, []string{"oncall", "boss"}},
		"EndedTurnCame":    {"its wait was over before the end, and nobody had begun to send", ended, held{sent(open, "oncall", 20*m)}, 31 * m, []string{"oncall", "backup"}},
		"EndedTurnNotCome": {"a wait that the end cut short is nobody's turn", ended, held{sent(open, "oncall", 20*m+1)}, 50 * m, []string{"oncall"}},
		"EndedLate":        {"nor is one that began after the end", ended, held{sent(open, "oncall", 40*m)}, 90 * m, []string{"oncall"}},
		"EndedFails":       {"nobody has it: the next one is told of it, over as it is", ended, held{failed(escalate.Delivery{}, "oncall", 3, 31*m)}, 32*m - 1, []string{"backup"}},
		"EndedFailsHeld":   {"somebody has it: nobody else needs it", ended, held{failed(sent(open, "oncall", 25*m), "oncall", 3, 31*m)}, 32*m - 1, nil},
		"EndedAcked":       {"somebody took it, however they got to know of it", func() escalate.Page { c := ended; c.AckedBy = "os:alice"; return c }(), held{failed(escalate.Delivery{}, "oncall", 3, 31*m)}, 32*m - 1, nil},
		"Begun":            {"another process may be sending it", open, held{escalate.Delivery{}.Begin(open, "oncall", "b", t0)}, 30*s - 1, nil},
		"BegunByTheDead":   {"it recorded nothing of it: somebody else sends", open, held{escalate.Delivery{}.Begin(open, "oncall", "b", t0)}, 30 * s, []string{"oncall"}},
		"BegunAndChanged":  {"what it may have sent is not what is held, and not what is so", open, held{sent(open, "oncall", 0).Begin(changed, "oncall", "b", at(s))}, 31 * s, []string{"oncall"}},
		"BegunInFuture":    {"of a clock that was set back", open, held{escalate.Delivery{}.Begin(open, "oncall", "b", at(s))}, 0, []string{"oncall"}},
		"BegunEnd":         {"an end is begun like a page", ended, held{sent(open, "oncall", 25*m).Begin(ended, "oncall", "b", at(30*m))}, 30*m + 29*s, nil},
		"Reopened":         {"a page that is open again is news to who was told its end", open, held{sent(ended, "oncall", 0)}, s, []string{"oncall"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, escalate.Due(tc.page, tc.held, rules, at(tc.now))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDueBehindOneThatIsDown: what a receiver does to one page is known for the
// next, which does not wait for failures of its own.
func TestDueBehindOneThatIsDown(t *testing.T) {
	known := slices.Clone(rules)
	known[0].Down = true
	open, ended := page(), page()
	ended.EndedAt, ended.EndReason = at(time.Minute), "recovered"
	acked := page()
	acked.AckedBy = "os:alice"
	none := failed(escalate.Delivery{}, "oncall", 1, 0)
	for _, tt := range []struct {
		reason string
		page   escalate.Page
		held   []escalate.Delivery
		now    time.Duration
		want   []string
	}{
		{"both are tried at once", open, nil, 0, []string{"oncall", "backup"}},
		{"a first failure changes nothing", open, []escalate.Delivery{none, sent(open, "backup", 0)}, 15 * time.Second, []string{"oncall"}},
		{"who has the page has its wait", open, []escalate.Delivery{sent(open, "oncall", 0)}, 59 * time.Second, nil},
		{"somebody took it", acked, nil, 0, []string{"oncall"}},
		{"over before anybody was told", ended, nil, time.Minute, []string{"oncall", "backup"}},
		{"over, and somebody was", ended, []escalate.Delivery{sent(ended, "backup", time.Minute)}, time.Minute, []string{"oncall"}},
	} {
		if diff := cmp.Diff(tt.want, escalate.Due(tt.page, tt.held, known, at(tt.now))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
		}
	}
}

func TestDueWithoutConfig(t *testing.T) {
	p := page()
	if got := escalate.Due(p, nil, rules[1:2], t0); !slices.Equal(got, []string{"backup"}) {
		t.Errorf("%v: a receiver that is not configured must not hold up the next", got)
	}
	noWait := []escalate.Rule{{Name: "oncall"}, {Name: "backup"}}
	if got := escalate.Due(p, []escalate.Delivery{sent(p, "oncall", 0)}, noWait, at(10*time.Minute)); !slices.Equal(got, []string{"backup"}) {
		t.Errorf("%v: without escalateAfter the next one's turn is after 10 m", got)
	}
	p.Receivers = []string{"oncall", "oncall"}
	if got := escalate.Due(p, nil, rules, t0); !slices.Equal(got, []string{"oncall"}) {
		t.Errorf("%v: named twice, sent once", got)
	}
}

func TestDelivery(t *testing.T) {
	p := page()
	d := escalate.Delivery{}.After(p, "oncall", "", nil, t0)
	want := escalate.Delivery{Page: "e12", Receiver: "oncall", First: t0, Sent: t0, Tried: t0, Digest: p.ContentDigest()}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again := d.After(p, "oncall", "", nil, at(time.Minute))
	if d.News(again) {
		t.Error("the same content sent again is news; every pass would write an entry")
	}
	bad := again.After(p, "oncall", "", errors.New("line\none"), at(2*time.Minute))
	if !again.News(bad) || bad.Failures != 1 || bad.LastError != "line one" || !bad.Sent.Equal(again.Sent) {
		t.Errorf("after a failure: %+v", bad)
	}
	p.EndedAt = at(3 * time.Minute)
	end := bad.After(p, "oncall", "", nil, at(3*time.Minute))
	if !end.Ended || end.Failures != 0 || end.LastError != "" || !end.First.Equal(t0) {
		t.Errorf("after the end: %+v", end)
	}
	p.EndedAt = time.Time{}
	if broken := end.After(p, "oncall", "", errors.New("down"), at(time.Hour)); broken.Ended || !broken.First.IsZero() || broken.Failures != 1 {
		t.Errorf("open again and not delivered: %+v, the receiver holds nothing of it", broken)
	}
	if reopened := end.After(p, "oncall", "", nil, at(time.Hour)); !reopened.First.Equal(at(time.Hour)) || reopened.Ended {
		t.Errorf("open again: %+v, the wait must start anew", reopened)
	}
}

func TestContentDigest(t *testing.T) {
	p := page()
	base := p.ContentDigest()
	same := map[string]func(*escalate.Page){
		"numbers":   func(p *escalate.Page) { p.Summary, p.Text = "a", "b" },
		"ack":       func(p *escalate.Page) { p.AckedBy = "os:alice" },
		"receivers": func(p *escalate.Page) { p.Receivers = nil },
	}
	for name, change := range same {
		q := page()
		change(&q)
		if q.ContentDigest() != base {
			t.Errorf("%s changed the digest", name)
		}
	}
	other := map[string]func(*escalate.Page){
		"now":      func(p *escalate.Page) { p.Now = escalate.Blind },
		"gist":     func(p *escalate.Page) { p.Gist = "g2" },
		"end":      func(p *escalate.Page) { p.EndedAt = t0 },
		"severity": func(p *escalate.Page) { p.Severity = "warning" },
		"no gist":  func(p *escalate.Page) { p.Gist = "" },
	}
	for name, change := range other {
		q := page()
		change(&q)
		if q.ContentDigest() == base {
			t.Errorf("%s did not change the digest", name)
		}
	}
	bare := page()
	bare.Gist = ""
	told := bare
	told.Text = "other"
	if bare.ContentDigest() == told.ContentDigest() {
		t.Error("without a gist the text counts")
	}
}

// INV-31 as a simulation: receivers go down and up as they like, people may
// never answer. Whatever happened, once the receivers stay up, every one whose
// turn came holds the page, and after the end all of them were told it. And
// the number of sends is bounded: no pass sends without need.
func TestOutboxDelivers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := page()
		held := map[string]escalate.Delivery{}
		now := t0
		sends := 0
		pass := func(up map[string]bool) {
			all := make([]escalate.Delivery, 0, len(held))
			for _, name := range p.Receivers {
				if d, ok := held[name]; ok {
					all = append(all, d)
				}
			}
			for _, name := range escalate.Due(p, all, rules, now) {
				var err error
				if !up[name] {
					err = errors.New("down")
				}
				held[name] = held[name].After(p, name, "", err, now)
				sends++
			}
		}
		steps := rapid.IntRange(0, 60).Draw(t, "steps")
		for range steps {
			up := map[string]bool{}
			for _, name := range p.Receivers {
				up[name] = rapid.Bool().Draw(t, name)
			}
			pass(up)
			now = now.Add(30 * time.Second)
		}
		allUp := map[string]bool{"oncall": true, "backup": true, "boss": true}
		for range 12 {
			pass(allUp)
			now = now.Add(30 * time.Second)
		}
		if d := held["oncall"]; d.First.IsZero() || d.Failures != 0 {
			t.Fatalf("the first receiver is up and does not hold the page: %+v", d)
		}
		for name, d := range held {
			if d.Failures == 0 && d.Digest != p.ContentDigest() {
				t.Fatalf("%s holds old content: %+v", name, d)
			}
		}
		if limit := (steps + 12) * len(p.Receivers); sends > limit {
			t.Fatalf("%d sends in %d passes", sends, steps+12)
		}
		p.EndedAt = now
		for range 12 {
			pass(allUp)
			now = now.Add(30 * time.Second)
		}
		for name, d := range held {
			if !d.Ended {
				t.Fatalf("%s was never told the end: %+v", name, d)
			}
		}
	})
}
