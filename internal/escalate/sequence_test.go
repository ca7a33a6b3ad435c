package escalate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

func TestSequence(t *testing.T) {
	open, ended := page(), page()
	ended.EndedAt, ended.EndReason = at(30*time.Minute), "recovered"
	down := errors.New("down")
	cases := map[string]struct {
		reason string
		page   escalate.Page
		d      escalate.Delivery
		want   string
	}{
		"open":          {"an open page is itself", open, escalate.Delivery{}, "open"},
		"held":          {"whoever confirmed it is told its end", ended, sent(open, "oncall", 0), "end"},
		"held, failing": {"also when something failed since", ended, failed(sent(open, "oncall", 0), "oncall", 2, time.Minute), "end"},
		"never tried":   {"an end alone tells nobody anything", ended, escalate.Delivery{}, "late end"},
		"never held":    {"nor does it where sending failed", ended, escalate.Delivery{}.After(open, "oncall", "", down, at(0)), "late end"},
		"opened late":   {"what was opened late is only ended", ended, escalate.Delivery{}.After(escalate.Sequence(ended, escalate.Delivery{})[0], "oncall", "", nil, at(0)), "end"},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range escalate.Sequence(tt.page, tt.d) {
				switch {
				case !p.EndedAt.IsZero():
					got = append(got, "end")
				case strings.Contains(p.Text, "over already"):
					got = append(got, "late")
				default:
					got = append(got, "open")
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
	late := escalate.Sequence(ended, escalate.Delivery{})[0]
	if late.ID != ended.ID || late.EndReason != "" || !strings.HasPrefix(late.Summary, "over already: checkout") ||
		!strings.HasPrefix(late.Text, "This is over already: ended at 2026-11-29 12:30:00 UTC (recovered)") || !strings.Contains(late.Text, "until: it is over") {
		t.Errorf("the late page: %+v", late)
	}
	if late.ContentDigest() == ended.ContentDigest() || late.ContentDigest() == open.ContentDigest() {
		t.Error("the late page passes for another one")
	}
}

func TestNewer(t *testing.T) {
	tried := func(s int) escalate.Delivery { return escalate.Delivery{Tried: at(time.Duration(s) * time.Second)} }
	begun := func(d escalate.Delivery, s int) escalate.Delivery {
		d.Begun = at(time.Duration(s) * time.Second)
		return d
	}
	for _, tt := range []struct {
		reason string
		a, b   escalate.Delivery
		want   int
	}{
		{"the later try", tried(1), tried(2), 2},
		{"whichever it is", tried(2), tried(1), 1},
		{"a begin after the try", begun(tried(1), 3), tried(2), 1},
		{"the second where they are of one time", tried(1), begun(tried(0), 1), 2},
		{"nothing is older than anything", tried(1), escalate.Delivery{}, 1},
	} {
		want := tt.a
		if tt.want == 2 {
			want = tt.b
		}
		if got := escalate.Newer(tt.a, tt.b); got != want {
			t.Errorf("%s: %+v", tt.reason, got)
		}
	}
}

func TestDown(t *testing.T) {
	p := page()
	three := failed(escalate.Delivery{}, "oncall", 3, 10*time.Minute)
	two := failed(escalate.Delivery{}, "oncall", 2, 10*time.Minute)
	for name, tt := range map[string]struct {
		held []escalate.Delivery
		now  time.Duration
		want bool
	}{
		"nothing known":        {nil, 0, false},
		"two in a row":         {[]escalate.Delivery{two}, 10 * time.Minute, false},
		"three in a row":       {[]escalate.Delivery{two, three}, 10 * time.Minute, true},
		"it took another page": {[]escalate.Delivery{three, sent(p, "oncall", 11*time.Minute)}, 12 * time.Minute, false},
		"before it failed":     {[]escalate.Delivery{sent(p, "oncall", 9*time.Minute), three}, 12 * time.Minute, true},
		"nobody tried lately":  {[]escalate.Delivery{three}, 25 * time.Minute, false},
	} {
		last, down := escalate.Down(tt.held, at(tt.now))
		if down != tt.want || down && last.LastError != "503 from the receiver" {
			t.Errorf("%s: down %v, %+v", name, down, last)
		}
	}
}

func TestLinger(t *testing.T) {
	for again, want := range map[int]time.Duration{-1: 5 * time.Minute, 0: 5 * time.Minute, 1: 10 * time.Minute, 5: 160 * time.Minute, 6: 4 * time.Hour, 1 << 40: 4 * time.Hour} {
		if got := escalate.Linger(again); got != want {
			t.Errorf("Linger(%d) = %s, want %s", again, got, want)
		}
	}
}

// An Alertmanager forgets what is not posted again within four hours: a longer
// interval must not set off the dead man's switch that watches for the heartbeat.
func TestSeldomHeartbeat(t *testing.T) {
	beat := escalate.NewHeartbeat("oncall", 12*time.Hour, t0)
	held := []escalate.Delivery{sent(beat, "oncall", 0)}
	forgetful := []escalate.Rule{{Name: "oncall", Repost: time.Minute, Heartbeat: 12 * time.Hour}}
	if got := escalate.Due(beat, held, forgetful, at(3*time.Hour)); len(got) != 1 {
		t.Error("it is forgotten before it is sent again")
	}
	lasting := []escalate.Rule{{Name: "oncall", Heartbeat: 12 * time.Hour}}
	if got := escalate.Due(beat, held, lasting, at(12*time.Hour-1)); len(got) != 0 {
		t.Error("it is sent more often than was asked for")
	}
}

// A heartbeat is due at once, then every interval, to its own receiver, and has no
// end.
func TestHeartbeat(t *testing.T) {
	beat := escalate.NewHeartbeat("oncall", time.Hour, t0)
	beating := []escalate.Rule{{Name: "oncall", Repost: time.Minute, Heartbeat: time.Hour}, {Name: "backup"}}
	d := sent(beat, "oncall", 0)
	for _, tt := range []struct {
		held []escalate.Delivery
		now  time.Duration
		want int
	}{
		{nil, 0, 1},
		{[]escalate.Delivery{d}, time.Hour - 1, 0},
		{[]escalate.Delivery{d}, time.Hour, 1},
		{[]escalate.Delivery{failed(d, "oncall", 1, time.Hour)}, time.Hour + 15*time.Second, 1},
	} {
		if got := escalate.Due(beat, tt.held, beating, at(tt.now)); len(got) != tt.want {
			t.Errorf("%v after %s", got, tt.now)
		}
	}
	if next := escalate.NewHeartbeat("oncall", time.Hour, at(time.Hour)); next.ContentDigest() != beat.ContentDigest() || next.Text == beat.Text {
		t.Error("one beat is news beside another, or does not say when it was sent")
	}
	if beat.Severity != escalate.SeverityNone {
		t.Errorf("a heartbeat is %s", beat.Severity)
	}
	// Whoever routes every page to a pager must not be woken by a sign of life.
	if got, of := beat.Labels()["alertname"], page().Labels()["alertname"]; got != "SetpointHeartbeat" || of != "SetpointEscalation" {
		t.Errorf("a heartbeat is the alert %s, a page %s", got, of)
	}
	beat.EndedAt, beat.EndReason = at(time.Minute), "not-configured"
	if got := escalate.Due(beat, []escalate.Delivery{d}, beating, at(2*time.Hour)); got != nil {
		t.Errorf("the end of a heartbeat goes to %v", got)
	}
}

// breached is an assessment that misses one objective.
func breached(ratio float64) compare.Assessment {
	return compare.Assessment{State: compare.Breached, Objectives: []compare.Objective{{
		ID: "availability", State: compare.Breached, Target: 0.99,
		Judge: measure.Measurement{Total: 100, ErrorRatio: ratio, HasEvents: true, ID: measure.ID{Window: 5 * time.Minute}},
	}}}
}

func TestAffecting(t *testing.T) {
	p := page()
	if got := p.Affecting(nil); got.Text != p.Text {
		t.Errorf("nothing is affected: %q", got.Text)
	}
	got := p.Affecting([]escalate.Affected{
		{Service: "blind", Assessment: compare.Assessment{State: compare.Unknown, Reason: measure.NoData}, Since: t0},
		{Service: "mild", Assessment: breached(0.02), Since: t0},
		{Service: "bad", Assessment: breached(0.5), Since: at(time.Minute)},
	})
	want := p.Text + `
Missed now (3, the worst first)
  bad: availability 50 % errors over 5m, 1 % allowed, since 2026-11-29 12:01:00 UTC
  mild: availability 2 % errors over 5m, 1 % allowed, since 2026-11-29 12:00:00 UTC
  blind: unknown (no-data), since 2026-11-29 12:00:00 UTC`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	many := make([]escalate.Affected, 503)
	for i := range many {
		many[i] = escalate.Affected{Service: fmt.Sprintf("s%d", i), Assessment: breached(0.5), Since: t0}
	}
	lines := strings.Split(p.Affecting(many).Text, "\n")
	if len(lines) != 1+1+500+1 || lines[len(lines)-1] != "  and 3 more: setpoint get services" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestStormGist(t *testing.T) {
	gist := func(known string, n int, after time.Duration, sources ...string) string {
		return escalate.StormGist(known, n, sources, t0, at(after))
	}
	first := gist("", 5, 0)
	for _, tt := range []struct {
		reason string
		got    string
		same   bool
	}{
		{"more joined, too soon to say so", gist(first, 90, 59*time.Second), true},
		{"more joined", gist(first, 90, time.Minute), false},
		{"nobody joined", gist(first, 5, time.Hour), true},
		{"some left", gist(first, 3, time.Hour), true},
		{"another source is at fault", gist(first, 5, time.Second, "main"), false},
		{"a gist of an older version is no gist", gist("storm 3 [main]", 5, 0), true},
	} {
		if (tt.got == first) != tt.same {
			t.Errorf("%s: %q after %q", tt.reason, tt.got, first)
		}
	}
	second := gist(first, 90, time.Minute)
	if gist(second, 91, 10*time.Minute) != second || gist(second, 91, 11*time.Minute) == second {
		t.Errorf("after %q: %q, %q", second, gist(second, 91, 10*time.Minute), gist(second, 91, 11*time.Minute))
	}
	if from := gist("", 5, 0, "a", "b"); gist(from, 5, time.Hour, "a", "b") != from {
		t.Errorf("the same sources are news: %q", from)
	}
}

// However a receiver comes and goes, and however often its answer is lost, what it
// sees of a page is: opened, perhaps again, then ended; and in the end both.
func TestOpenedBeforeEnded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := page(), t0
		var d escalate.Delivery
		var journal []string
		pass := func(weather string) {
			var held []escalate.Delivery
			if !d.Tried.IsZero() {
				held = append(held, d)
			}
			if got := escalate.Due(p, held, rules, now); len(got) == 0 || got[0] != "oncall" {
				return
			}
			for _, q := range escalate.Sequence(p, d) {
				var err error
				if weather != "up" {
					err = errors.New(weather)
				}
				if weather != "down" {
					journal = append(journal, map[bool]string{true: "open", false: "end"}[q.EndedAt.IsZero()])
				}
				if d = d.After(q, "oncall", "", err, now); err != nil {
					return
				}
			}
		}
		weather := rapid.SampledFrom([]string{"up", "down", "lost"})
		open := rapid.IntRange(0, 6).Draw(t, "passes while it is open")
		for i := range open + rapid.IntRange(0, 6).Draw(t, "passes after its end") {
			if i == open {
				p.EndedAt, p.EndReason = now, "recovered"
			}
			pass(weather.Draw(t, "weather"))
			now = now.Add(rapid.SampledFrom([]time.Duration{30 * time.Second, 6 * time.Minute}).Draw(t, "time"))
		}
		if p.EndedAt.IsZero() {
			p.EndedAt, p.EndReason = now, "recovered"
		}
		now = now.Add(6 * time.Minute)
		pass("up")
		if len(journal) < 2 || journal[0] != "open" || journal[len(journal)-1] != "end" || !d.Ended {
			t.Fatalf("the receiver saw %v", journal)
		}
		if got := strings.Join(journal, " "); strings.Contains(got, "end open") {
			t.Fatalf("opened again after its end: %s", got)
		}
	})
}
