package reconcile_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	pageslack "github.com/setpoint-dev/setpoint/internal/escalate/slack"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// episodePage is the first message of a service's page, and the last.
func (j *journal) episodePage(t *testing.T) (first, last escalate.Page) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.pages {
		if p.Service == "" {
			continue
		}
		if first.ID == "" {
			first = p
		}
		last = p
	}
	if first.ID == "" {
		t.Fatalf("%s was told of no service", j.name)
	}
	return first, last
}

// TestPageAfterAReceiverIsKnownDown: the second is told of a new page in the round
// in which it opens, and why; it is not named as the next one.
func TestPageAfterAReceiverIsKnownDown(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 2, broken)
	js := []*journal{newJournal(w, "first"), newJournal(w, "second"), newJournal(w, "third")}
	w.cfg.Receivers = []config.Receiver{{Name: "first"}, {Name: "second", EscalateAfter: 10 * time.Minute}, {Name: "third", EscalateAfter: 10 * time.Minute}}
	rs := replicasOf(w, 1, broken, inMemory(w), js[0], js[1], js[2])
	rs.run(3 * time.Minute)
	js[0].set(down)
	broken["s0"] = 0.5
	rs.run(8 * time.Minute)
	if js[1].told("receiver/first") != "open" {
		t.Fatal("the first is not known to be down")
	}
	broken["s1"] = 0.5
	for js[0].tries = 0; len(rs.ids()) < 3; rs.pass(step30) {
		rs.sweep(0)
	}
	if !slices.ContainsFunc(js[1].pages, func(p escalate.Page) bool { return p.Service == "s1" }) {
		t.Error("the page is open, and the second one waits for failures of the first")
	}
	if js[0].tries == 0 {
		t.Error("the first is not tried any more")
	}
	p, _ := js[1].episodePage(t)
	if !strings.HasPrefix(p.Lead.Why, "why: you are told because first could not be reached; ") || !strings.Contains(p.Lead.Until, "next receiver third at ") || strings.Contains(p.Text, "receiver second") {
		t.Errorf("the second reads\n%s", p.Text)
	}
	rs.run(12 * time.Minute)
	p, _ = js[2].episodePage(t)
	if !strings.HasPrefix(p.Lead.Why, "why: you are told because second did not acknowledge it within 10m; ") || !strings.HasSuffix(p.Lead.Until, "; nobody is next") {
		t.Errorf("the third reads\n%s", p.Text)
	}
	broken["s0"], broken["s1"] = 0, 0
	rs.run(5 * time.Minute)
	if _, p = js[2].episodePage(t); p.EndedAt.IsZero() || !strings.Contains(p.Summary, "meets its SLO again") || strings.Contains(p.Text, "not yet long enough") || p.Lead.Do != "do: nothing; setpoint explain "+p.Service+" tells what happened" {
		t.Errorf("the end reads %q\n%s", p.Summary, p.Text)
	}
}

// TestPageNamesWhatHolds: nothing was decided, because nobody can read silences.
// Whoever is woken is told that, and not only that nothing is permitted.
func TestPageNamesWhatHolds(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.silences = func(string) ([]gate.Hold, error) { return nil, errors.New("connection refused") }
	w.breakNow(0.3)
	w.run(30 * time.Minute)
	for _, p := range w.pager.open() {
		if !strings.Contains(p.Lead.Why, "no step is permitted: Alertmanager cannot be asked who silenced what: connection refused") ||
			!strings.Contains(p.Text, "Why Setpoint stopped\n  silences-unreadable: ") {
			t.Errorf("the page says\n%s", p.Text)
		}
	}
	if w.page() != escalate.CannotAct {
		t.Errorf("page %q", w.page())
	}
}

// TestAlertmanagerDown: what takes no pages there cannot be asked for silences
// either, and the page says what that holds.
func TestAlertmanagerDown(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	first, second := newJournal(w, "first"), newJournal(w, "second")
	w.cfg.Receivers = []config.Receiver{{Name: "first", Alertmanager: &config.Alertmanager{}}, {Name: "second"}}
	rs := replicasOf(w, 1, broken, inMemory(w), first, second)
	rs.run(3 * time.Minute)
	first.set(down)
	broken["s0"] = 0.5
	rs.run(5 * time.Minute)
	for _, p := range second.pages {
		if p.ID != "receiver/first" {
			continue
		}
		if !strings.HasPrefix(p.Lead.Broken, "receiver first takes no pages, since ") ||
			!strings.Contains(p.Summary, "while its silences cannot be read either, every action is held: the connection is down (3 failures in a row)") {
			t.Errorf("the page says %q\n%s", p.Summary, p.Text)
		}
		return
	}
	t.Error("the second was not told")
}

// TestSecondAcknowledgement: who comes second is told who has it, and what is over
// is not taken.
func TestSecondAcknowledgement(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.rule = func([]byte) gate.Ruling {
		return gate.Ruling{Revision: "test", Escalate: []gate.Rule{{Reason: "people-have-it", Package: "setpoint.gate"}}}
	}
	w.breakNow(0.3)
	w.run(15 * time.Minute)
	id := ""
	for known := range w.pager.open() {
		id = known
	}
	at := w.clock()
	if err := w.r.Ack(t.Context(), id, "os:alice", "cli"); err != nil {
		t.Fatal(err)
	}
	entries := len(w.entries())
	refused := func(code, text string) {
		t.Helper()
		err := w.r.Ack(t.Context(), id, "slack:T1/U1", "slack")
		var r *approve.Refusal
		if !errors.As(err, &r) || r.Code != code || !strings.Contains(r.Text, text) {
			t.Errorf("the second one is told %v", err)
		}
		if n := len(w.entries()); n != entries {
			t.Errorf("%d entries of a refusal", n-entries)
		}
	}
	refused(approve.RefusedAcked, "already acknowledged by os:alice at "+at.UTC().Format("2006-01-02 15:04:05 UTC"))
	w.heal()
	w.run(30 * time.Minute)
	entries = len(w.entries())
	refused(approve.RefusedNotOpen, "is over since ")
}

// channel is a receiver of pages in the workspace.
func (w *world) channel(t *testing.T, fake *fakeslack.Slack) escalate.Receiver {
	t.Helper()
	server := httptest.NewServer(fake.Handler())
	t.Cleanup(server.Close)
	rec, err := pageslack.New(pageslack.Options{
		Name: "chat", Channel: ops, Client: slack.NewClient(server.URL+"/api/", fakeslack.BotToken, fakeslack.AppToken), Now: w.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestAckInSlackReachesTheMessage: in the next round the message of any page says
// who has it, and asks nobody any more; a second click is told so.
func TestAckInSlackReachesTheMessage(t *testing.T) {
	for name, id := range map[string]string{"Episode": "", "ReceiverDown": "receiver/first", "Storm": "storm"} {
		t.Run(name, func(t *testing.T) {
			broken := map[string]float64{}
			w := manyOf(t, 4, broken)
			fake := w.workspace()
			w.cfg.Limits.StormMin = 3
			first := newJournal(w, "first")
			w.cfg.Receivers = []config.Receiver{{Name: "first"}, {Name: "chat", Slack: &config.SlackChannel{Channel: ops}}}
			for i := range w.set.Services {
				w.set.Services[i].Remediation.Escalation.Receivers = nil
			}
			chat := w.channel(t, fake)
			w.options = func(o *reconcile.Options) { o.Receivers = []escalate.Receiver{first, chat} }
			w.rule = func([]byte) gate.Ruling {
				return gate.Ruling{Revision: "test", Escalate: []gate.Rule{{Reason: "people-have-it", Package: "setpoint.gate"}}}
			}
			w.start()
			w.sweeps(12 * time.Minute)
			first.set(down)
			broken["s0"] = 0.5
			if name == "Storm" {
				broken["s1"], broken["s2"], broken["s3"] = 0.5, 0.5, 0.5
			}
			w.sweeps(8 * time.Minute)
			if id == "" {
				w.r.View(func(s *ledger.State) { id = s.Services["s0"].Episode })
			}
			message := func() fakeslack.Message {
				for _, m := range fake.Messages(ops) {
					if len(m.Buttons) > 0 && m.Buttons[0].Value == id || strings.Contains(string(m.Blocks), fmt.Sprintf("/%s\"", id)) {
						return m
					}
				}
				t.Fatalf("no message of %s", id)
				return fakeslack.Message{}
			}
			m := message()
			if len(m.Buttons) != 1 || m.Buttons[0].Action != "setpoint-ack" {
				t.Fatalf("buttons %+v", m.Buttons)
			}
			press := func() fakeslack.Outcome {
				o, err := fake.Press(t.Context(), fakeslack.Press{User: dana, Channel: m.Channel, TS: m.TS, Action: "setpoint-ack", SignedAt: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			if o := press(); o.Shown != fakeslack.ShownOK {
				t.Fatalf("the click shows %+v", o)
			}
			w.r.Sweep(t.Context())
			got := message()
			if got.TS != m.TS || len(got.Buttons) != 0 || !strings.Contains(string(got.Blocks), "acknowledged by slack:"+fakeslack.DefaultTeam+"/"+dana) {
				t.Errorf("after a round: buttons %+v, %s", got.Buttons, got.Blocks)
			}
			// Somebody's screen still shows the button.
			second, err := fake.Press(t.Context(), fakeslack.Press{User: "U0000ERIK0", Channel: m.Channel, TS: m.TS, Action: "setpoint-ack", Back: got.Edits, SignedAt: time.Now()})
			if err != nil || second.Shown != fakeslack.ShownOK {
				t.Fatalf("the second click shows %+v, %v", second, err)
			}
			w.hears(t, fake, "already acknowledged by slack:")
		})
	}
}

// hears waits for what one person alone is told, which comes after the click was
// answered.
func (w *world) hears(t *testing.T, fake *fakeslack.Slack, text string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-tick.C {
		for _, e := range fake.Ephemerals(ops) {
			if strings.Contains(e.Text, text) {
				return
			}
		}
	}
	t.Errorf("nobody is told %q, but %+v", text, fake.Ephemerals(ops))
}

// TestUnaskedPageSaysWhy: a question that Slack did not take comes as a page, which
// says what Slack said.
func TestUnaskedPageSaysWhy(t *testing.T) {
	w := prepare(t)
	fake := w.workspace()
	fake.Fail("chat.postMessage", 0, slackCase(t, "K11"))
	w.asks()
	w.sweep()
	for _, p := range w.pager.open() {
		if !strings.Contains(p.Text, "it comes as a page because its card could not be shown: ") || !strings.Contains(p.Text, "not_in_channel") {
			t.Errorf("the page says\n%s", p.Text)
		}
	}
	w.run(17 * time.Minute)
	if w.page() != escalate.ApprovalExpired {
		t.Fatalf("page %q", w.page())
	}
	for _, p := range w.pager.open() {
		if !strings.HasPrefix(p.Lead.Step, "not done: scale replicas=6") || !strings.HasSuffix(p.Lead.Step, "; it is not asked again in this episode") || strings.Contains(p.Text, "would do") {
			t.Errorf("the page says\n%s", p.Text)
		}
	}
}
