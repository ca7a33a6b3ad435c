package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const (
	ops  = fakeslack.DefaultChannel
	dana = "U0000DANA0"
)

// workspace gives the world a Slack: the real board and the real handler of
// clicks, over HTTP.
func (w *world) workspace() *fakeslack.Slack {
	w.t.Helper()
	fake := fakeslack.New(fakeslack.Options{Now: w.clock})
	server := httptest.NewServer(fake.Handler())
	w.t.Cleanup(server.Close)
	w.t.Cleanup(fake.Close)
	client := slack.NewClient(server.URL+"/api/", fakeslack.BotToken, fakeslack.AppToken)
	w.cfg.Slack = &config.Slack{Team: fakeslack.DefaultTeam, Channel: ops, OpenCards: 5}
	w.cfg.Approvers["@oncall"] = append(w.cfg.Approvers["@oncall"], "slack:"+fakeslack.DefaultTeam+"/"+dana)
	for i := range w.set.Services {
		w.set.Services[i].Remediation.Actions[0].Class = spec.ClassApproval
	}
	w.options = func(o *reconcile.Options) { o.Board = slack.NewBoard(client, ops, "") }
	clicks, err := slack.NewClicks(slack.Options{
		Desk: presentDesk{w}, Team: fakeslack.DefaultTeam, Log: slog.New(slog.NewTextHandler(logTo{w.t}, nil)),
		Unknown: func(err error) bool { return errors.Is(err, reconcile.ErrNotFound) },
		Reply:   slack.Ephemeral(client),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(clicks.Close)
	handler, err := clicks.Handler(fakeslack.SigningSecret)
	if err != nil {
		w.t.Fatal(err)
	}
	way := httptest.NewServer(handler)
	w.t.Cleanup(way.Close)
	fake.SetInteractivity(way.URL + slack.Path)
	return fake
}

// presentDesk is that of the process that runs now.
type presentDesk struct{ w *world }

func (d presentDesk) Answer(ctx context.Context, a approve.Answer) (approve.Ticket, error) {
	return d.w.r.Answer(ctx, a)
}

func (d presentDesk) Ack(ctx context.Context, page, by, via string) error {
	return d.w.r.Ack(ctx, page, by, via)
}

func (d presentDesk) Sighted(ctx context.Context, ticket string, m approve.Message) error {
	return d.w.r.Sighted(ctx, ticket, m)
}

// clicked is a click on the newest message of a ticket.
func (w *world) clicked(fake *fakeslack.Slack, ticket, action string) fakeslack.Outcome {
	w.t.Helper()
	m, ok := fake.Holds(ticket)
	if !ok {
		w.t.Fatalf("there is no card of %s", ticket)
	}
	// A signature is of the real time, whatever the world's is.
	o, err := fake.Press(w.t.Context(), fakeslack.Press{User: dana, Channel: m.Channel, TS: m.TS, Action: action, SignedAt: time.Now()})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// slackCase is the fault of a recorded answer of Slack's.
func slackCase(t *testing.T, id string) fakeslack.Fault {
	t.Helper()
	cases, err := fakeslack.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !strings.HasPrefix(c.ID, id) {
			continue
		}
		var said struct{ Error string }
		if err := json.Unmarshal(c.API.Body, &said); err != nil {
			t.Fatal(err)
		}
		return fakeslack.Fault{Error: said.Error, Status: c.API.Status}
	}
	t.Fatalf("no case %s", id)
	return fakeslack.Fault{}
}

func posts(fake *fakeslack.Slack, done bool) int {
	n := 0
	for _, c := range fake.Calls() {
		if c.Method == "chat.postMessage" && (c.Done || !done) {
			n++
		}
	}
	return n
}

// TestSlackTheWholeWay: asked, clicked, done, measured: in one message and the
// replies below it, through a restart.
func TestSlackTheWholeWay(t *testing.T) {
	w := prepare(t)
	fake := w.workspace()
	asked := w.asks()
	w.restart()
	if o := w.clicked(fake, asked.ID, "setpoint-approve"); o.Shown != fakeslack.ShownOK {
		t.Fatalf("the click shows %+v", o)
	}
	got := w.ticket(asked.ID)
	if got.State != approve.Approved || got.Answers[0].By != "slack:"+fakeslack.DefaultTeam+"/"+dana || got.Answers[0].Via != "slack" {
		t.Fatalf("ticket %+v", got)
	}
	w.until("approved effect", 5*time.Minute, applied)
	w.restart()
	w.until("outcome", 30*time.Minute, judged)
	w.sweep()
	m := fake.Messages(ops)[0]
	want := []string{dana, "claimed", "sent", "effect", "no-change"}
	if len(m.Buttons) != 0 || len(m.Replies) != len(want) {
		t.Fatalf("the card has buttons %v, replies %+v", m.Buttons, m.Replies)
	}
	for i, word := range want {
		if !strings.Contains(m.Replies[i].Text, word) {
			t.Errorf("reply %d is %q, want %q in it", i, m.Replies[i].Text, word)
		}
	}
	if !w.card(asked.ID).Closed {
		t.Errorf("recorded %+v", w.card(asked.ID))
	}
}

// TestSlackLosesAReply: the card stands there, and the agent heard nothing of it.
func TestSlackLosesAReply(t *testing.T) {
	w := prepare(t)
	fake := w.workspace()
	fake.Fail("chat.postMessage", 1, fakeslack.Fault{DropReply: true})
	asked := w.asks()
	w.restart()
	w.run(2 * time.Minute)
	if n := posts(fake, true); n != 1 {
		t.Errorf("%d posts of one card", n)
	}
	if o := w.clicked(fake, asked.ID, "setpoint-deny"); o.Shown != fakeslack.ShownOK {
		t.Errorf("the click shows %+v", o)
	}
	w.sweep()
	if m, _ := fake.Holds(asked.ID); len(m.Buttons) != 0 {
		t.Errorf("it still has buttons: %+v", m.Buttons)
	}
}

// TestCaseK09: the prompt is deleted. Slack says so with HTTP 200, the decision
// that is stored stands, and a prompt that is deleted while it waits is no answer.
func TestCaseK09(t *testing.T) {
	t.Run("Answered", func(t *testing.T) {
		w := prepare(t)
		fake := w.workspace()
		asked := w.asks()
		w.clicked(fake, asked.ID, "setpoint-approve")
		fake.Fail("chat.update", 0, slackCase(t, "K09"))
		w.until("approved effect", 5*time.Minute, applied)
		w.sweep()
		if p := w.card(asked.ID); w.ticket(asked.ID).State != approve.Approved || len(p.Messages) != 1 || !p.Messages[0].Gone {
			t.Errorf("ticket %s, card %+v", w.ticket(asked.ID).State, p)
		}
	})
	t.Run("Pending", func(t *testing.T) {
		w := prepare(t)
		fake := w.workspace()
		asked := w.asks()
		for range 32 {
			if m, ok := fake.Holds(asked.ID); ok {
				fake.Delete(m.Channel, m.TS)
			}
			w.sweep()
		}
		if n := posts(fake, true); n != approve.MaxMessages {
			t.Errorf("posted %d times", n)
		}
		if got := w.ticket(asked.ID).State; got != approve.Expired || w.page() != escalate.ApprovalExpired || len(w.actuator.Effects()) != 0 {
			t.Errorf("ticket %s, page %q, %d effects", got, w.page(), len(w.actuator.Effects()))
		}
	})
}

// TestCaseK11: the bot is not in the channel. That pages at once, and nothing is
// approved by itself.
func TestCaseK11(t *testing.T) {
	w := prepare(t)
	fake := w.workspace()
	fake.Fail("chat.postMessage", 0, slackCase(t, "K11"))
	asked := w.asks()
	w.sweep()
	if got := w.page(); got != escalate.ApprovalNeeded {
		t.Errorf("page %q in the next round", got)
	}
	w.run(16 * time.Minute)
	if got := w.ticket(asked.ID).State; got != approve.Expired || len(w.actuator.Effects()) != 0 {
		t.Errorf("ticket %s, %d effects", got, len(w.actuator.Effects()))
	}
}

// slowExecutor takes as long as it is held.
type slowExecutor struct {
	execute.Executor
	entered, held chan struct{}
}

func (e slowExecutor) Execute(ctx context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	close(e.entered)
	<-e.held
	return e.Executor.Execute(ctx, p, ready)
}

// TestCaseK13: the action takes longer than Slack waits for anything. The click is
// answered when it is recorded, and a second one while it runs is, too.
func TestCaseK13(t *testing.T) {
	w := live(t)
	w.set.Services = w.set.Services[:1]
	fake := w.workspace()
	slow := slowExecutor{entered: make(chan struct{}), held: make(chan struct{})}
	board := w.options
	w.options = func(o *reconcile.Options) {
		board(o)
		slow.Executor = o.Executors["webhook"]
		o.Executors = map[string]execute.Executor{"webhook": slow}
	}
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.r.Run(ctx) }()
	w.soon("met and held", func(s *ledger.State) bool { a, ok := s.Service("a"); return ok && a.EverMet })
	w.broken()
	w.soon("card", func(s *ledger.State) bool {
		for _, p := range s.Cards {
			if _, live := p.Live(); live {
				return true
			}
		}
		return false
	})
	asked := w.openTicket("a")
	first := w.clicked(fake, asked.ID, "setpoint-approve")
	<-slow.entered
	w.soon("card that says so while it runs", func(*ledger.State) bool {
		m := fake.Messages(ops)[0]
		sent := func(r fakeslack.Message) bool { return strings.HasPrefix(r.Text, "sent at") }
		return len(m.Buttons) == 0 && slices.ContainsFunc(m.Replies, sent)
	})
	// Somebody's screen still shows the buttons.
	m, _ := fake.Holds(asked.ID)
	second, err := fake.Press(t.Context(), fakeslack.Press{User: dana, Channel: ops, TS: m.TS, Action: "setpoint-approve", Back: m.Edits, SignedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []fakeslack.Outcome{first, second} {
		if o.Shown != fakeslack.ShownOK || time.Duration(o.Took) >= 3*time.Second {
			t.Errorf("the click shows %+v", o)
		}
	}
	close(slow.held)
	w.soon("one effect", func(*ledger.State) bool { return len(w.actuator.Effects()) == 1 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestCaseK17: Slack says 429 while an incident makes many prompts. The loop goes
// on, each key has one prompt, and what is over before it could be posted is not.
func TestCaseK17(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 3, broken)
	fake := w.workspace()
	w.set.Services[2].Remediation.Actions[0].Class = spec.ClassAuto
	w.start()
	w.sweeps(12 * time.Minute)
	limit := slackCase(t, "K17")
	fake.Fail("chat.postMessage", 1, limit)
	for i := range 3 {
		broken[w.set.Services[i].Name] = 0.3
	}
	began := time.Now()
	for range 6 {
		w.r.Sweep(t.Context())
		if posts(fake, false) > 0 {
			break
		}
		w.pass(step30)
	}
	s0, s1 := w.openTicket("s0"), w.openTicket("s1")
	if n := posts(fake, false); n < 1 || n > 2 || posts(fake, true) != n-1 {
		t.Errorf("%d requests in the round of the limit: %+v", n, fake.Calls())
	}
	if len(w.actuator.Effects()) != 1 || time.Since(began) > 20*time.Second {
		t.Errorf("%d effects of the others, after %s", len(w.actuator.Effects()), time.Since(began))
	}
	// One of the two was limited. Its service recovers before it may be asked.
	over, stays := s0, s1
	if _, shown := w.card(s0.ID).Live(); shown {
		over, stays = s1, s0
	}
	if _, shown := w.card(over.ID).Live(); shown {
		t.Fatal("both are shown: nothing is tried")
	}
	broken[over.Service] = 0
	w.sweeps(3 * time.Minute)
	if _, shown := fake.Holds(over.ID); shown || w.ticket(over.ID).State != approve.Withdrawn {
		t.Errorf("%s is %s, shown %v", over.ID, w.ticket(over.ID).State, shown)
	}
	var about []string
	for _, m := range fake.Messages(ops) {
		about = append(about, m.Text)
	}
	if n := len(slices.Compact(about)); n != 1 || !strings.Contains(about[0], stays.ID) {
		t.Errorf("the channel holds %q, want one prompt of %s", about, stays.ID)
	}
}
