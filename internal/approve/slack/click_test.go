package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
)

func TestWhoseClickCounts(t *testing.T) {
	other := "0000000000000000000000000000000000000000000000000000000000000000"
	tests := map[string]struct {
		reason string
		click  func(w *world, c *someone)
		want   slack.Result
		// state is that of the ticket after it, reply a part of what the person is
		// told ("" for nothing), log a part of the audit line.
		state      approve.State
		reply, log string
	}{
		"Approve": {
			reason: "a listed person of this workspace", click: func(*world, *someone) {},
			want: slack.Recorded, state: approve.Approved, reply: "is answered; it is checked again against fresh measurements before it is sent", log: "user=U_ONCALL",
		},
		"Deny": {
			reason: "a deny is recorded like an approval", click: func(_ *world, c *someone) { c.action = denyAction },
			want: slack.Recorded, state: approve.Denied, reply: "is denied; nothing is sent",
		},
		"TeamOfTheCallback": {
			reason: "a user without a team of its own is of the workspace of the callback", click: func(_ *world, c *someone) { c.userTeam = "" },
			want: slack.Recorded, state: approve.Approved, reply: "is answered",
		},
		"NotListed": {
			reason: "who is in the channel is not thereby an approver", click: func(_ *world, c *someone) { c.user = "U_PASSER" },
			want: slack.Refused, state: approve.Open, reply: "slack:T1/U_PASSER is not an approver of ticket", log: "code=not-approver",
		},
		"NameOfAnApprover": {
			reason: "a display name is chosen by its owner", click: func(_ *world, c *someone) {
				c.user = "U_PASSER"
				c.with = map[string]any{"user": map[string]any{"id": "U_PASSER", "username": onCall, "name": "slack:T1/U_ONCALL", "team_id": team}}
			},
			want: slack.Refused, state: approve.Open, reply: "is not an approver",
		},
		"OtherWorkspace": {
			reason: "the callback is of another workspace, whoever clicked", click: func(_ *world, c *someone) { c.team, c.userTeam = "T_OTHER", "T_OTHER" },
			want: slack.Foreign, state: approve.Open, log: "team=T_OTHER",
		},
		"OtherWorkspaceOurUser": {
			reason: "the callback's workspace must be ours too", click: func(_ *world, c *someone) { c.team = "T_OTHER" },
			want: slack.Foreign, state: approve.Open,
		},
		"Guest": {
			reason: "in a shared channel a guest's user is of another workspace, and its ids mean other people", click: func(_ *world, c *someone) { c.userTeam = "T_OTHER" },
			want: slack.Foreign, state: approve.Open, log: "a guest of another workspace",
		},
		"NoTeam": {
			reason: "an installation for a whole organisation names no workspace", click: func(_ *world, c *someone) { c.with = map[string]any{"team": nil} },
			want: slack.Foreign, state: approve.Open,
		},
		"NoUser": {
			reason: "nobody clicked", click: func(_ *world, c *someone) { c.with = map[string]any{"user": nil} },
			want: slack.Foreign, state: approve.Open, log: "nobody clicked",
		},
		"EmptyUser": {
			reason: "an empty id is nobody", click: func(_ *world, c *someone) { c.user = "" },
			want: slack.Foreign, state: approve.Open, log: "nobody clicked",
		},
		"Bot": {
			reason: "a bot is no person", click: func(_ *world, c *someone) {
				c.with = map[string]any{"user": map[string]any{"id": onCall, "team_id": team, "is_bot": true}}
			},
			want: slack.Foreign, state: approve.Open, log: "a bot, and no person",
		},
		"BotID": {
			reason: "a bot's id is no user's", click: func(_ *world, c *someone) { c.user = "B_DEPLOY" },
			want: slack.Foreign, state: approve.Open, log: "a bot, and no person",
		},
		"OddUser": {
			reason: "what has no form of an id is no principal", click: func(_ *world, c *someone) { c.user = "U1/../U_ONCALL" },
			want: slack.Foreign, state: approve.Open,
		},
		"OtherKind": {
			reason: "an interaction of another kind is no button's", click: func(_ *world, c *someone) { c.with = map[string]any{"type": "view_submission"} },
			want: slack.Foreign, state: approve.Open,
		},
		"OtherButton": {
			reason: "a button of somebody else's app, or of an older version", click: func(_ *world, c *someone) { c.action = "approve" },
			want: slack.Foreign, state: approve.Open, log: "action=approve",
		},
		"OtherDigest": {
			reason: "the person saw other bytes", click: func(w *world, c *someone) { c.value = w.ticket + " " + other },
			want: slack.Refused, state: approve.Open, reply: "other bytes", log: "code=other-ticket",
		},
		"UnknownTicket": {
			reason: "a card of another ledger", click: func(_ *world, c *someone) { c.value = "t999 " + digest },
			want: slack.Refused, state: approve.Open, reply: "the ledger knows no ticket t999", log: "code=unknown",
		},
		"OddValue": {
			reason: "a value in another form is not guessed at", click: func(_ *world, c *someone) { c.value = "checkout:w-29406" },
			want: slack.Malformed, state: approve.Open, reply: "not understood",
		},
		"TwoActions": {
			reason: "one click is one action", click: func(w *world, c *someone) {
				one := map[string]any{"type": "button", "block_id": "b", "action_id": approveAction, "value": w.value()}
				c.with = map[string]any{"actions": []any{one, one}}
			},
			want: slack.Malformed, state: approve.Open, reply: "not understood",
		},
		"NoActions": {
			reason: "no action is none", click: func(_ *world, c *someone) { c.with = map[string]any{"actions": []any{}} },
			want: slack.Malformed, state: approve.Open, reply: "not understood",
		},
		"Expired": {
			reason: "an approval after the expiry is none", click: func(w *world, _ *someone) { time.Sleep(16 * time.Minute) },
			want: slack.Refused, state: approve.Open, reply: "expired at", log: "code=expired",
		},
		"Ack": {
			reason: "a page is seen by whoever clicked", click: func(_ *world, c *someone) { c.action, c.value = ackAction, "e3" },
			want: slack.Recorded, state: approve.Open, reply: "you have seen page e3", log: "page=e3",
		},
		"AckUnknown": {
			reason: "a page that is not there", click: func(_ *world, c *someone) { c.action, c.value = ackAction, "e999" },
			want: slack.Refused, state: approve.Open, reply: "the ledger knows no page e999",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := newWorld(t)
				c := w.says(onCall, approveAction)
				tt.click(w, &c)
				if got := w.clicks.Handle(t.Context(), c.payload(t)); got != tt.want || w.count(tt.want) != 1 {
					t.Errorf("%s: result = %q, counted %v, want %q once", tt.reason, got, w.results, tt.want)
				}
				if got := w.stand().State; got != tt.state {
					t.Errorf("%s: the ticket is %q, want %q", tt.reason, got, tt.state)
				}
				log, replies := w.settled()
				contains(t, "the log", log, `msg="slack click" result=`+string(tt.want), tt.log)
				if strings.Contains(log, "hooks.example.invalid") || strings.Contains(log, "alice") {
					t.Errorf("the log has words of the payload:\n%s", log)
				}
				if tt.reply == "" && len(replies) > 0 {
					t.Errorf("%s: replied %q, want nothing", tt.reason, replies)
				}
				if tt.reply != "" {
					contains(t, "the replies", strings.Join(replies, "\n"), tt.reply, channel+" "+c.user)
				}
			})
		})
	}
}

func TestOnlyWhatIsNoJSONIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		for _, bad := range []string{"", "{", "[]", `"x"`, `{"actions":{}}`, `{"type":7}`, "null\x00"} {
			if got := w.clicks.Handle(t.Context(), []byte(bad)); got != slack.Malformed {
				t.Errorf("Handle(%q) = %q, want malformed", bad, got)
			}
		}
		// The card within it is read by nobody: one of next year's stands there.
		if got := w.clicks.Handle(t.Context(), w.says(onCall, approveAction).payload(t)); got != slack.Recorded {
			t.Errorf("result = %q, want recorded", got)
		}
	})
}

func TestAckIsByThePersonWhoClicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		c := w.says("U_PASSER", ackAction)
		c.value = "e3"
		w.clicks.Handle(t.Context(), c.payload(t))
		if diff := cmp.Diff([]string{"e3 slack:T1/U_PASSER slack"}, w.desk.acked); diff != "" {
			t.Error(diff)
		}
		if got := w.state().Pages["e3"].AckedBy; got != "slack:T1/U_PASSER" {
			t.Errorf("the page is acknowledged by %q", got)
		}
	})
}

// A duplicate of a card that the ledger does not know is found by whoever clicks
// on it, also where the click changes nothing.
func TestClickedCardsAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		for _, user := range []string{onCall, second, "U_PASSER"} {
			w.clicks.Handle(t.Context(), w.says(user, approveAction).payload(t))
		}
		guest, gone := w.says(onCall, approveAction), w.says(onCall, approveAction)
		guest.userTeam, gone.value = "T_OTHER", "t999 "+digest
		w.clicks.Handle(t.Context(), guest.payload(t))
		w.clicks.Handle(t.Context(), gone.payload(t))
		w.settled()
		one := w.ticket + " " + channel + " " + card
		if diff := cmp.Diff([]string{one, one, one}, w.desk.sighted); diff != "" {
			t.Errorf("noted cards (-want +got):\n%s", diff)
		}
		want := []approve.Message{{Channel: channel, ID: card}}
		if diff := cmp.Diff(want, w.state().Cards[w.ticket].Messages); diff != "" {
			t.Errorf("the ledger's messages of the card (-want +got):\n%s", diff)
		}
	})
}

// Fifty people and retries at once: the ledger takes what approve.Record takes,
// in its order, and everybody is told.
func TestFiftyClicksAtOnceAreOneDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		var all sync.WaitGroup
		for i := range 50 {
			c := w.says([]string{onCall, second, "U_PASSER"}[i%3], []string{approveAction, denyAction}[i/3%2])
			payload := c.payload(t)
			all.Go(func() {
				if got := w.clicks.Handle(context.Background(), payload); got != slack.Recorded && got != slack.Refused {
					t.Errorf("result = %q, want recorded or refused", got)
				}
			})
		}
		all.Wait()
		if got := w.stand().State; got != approve.Denied {
			t.Errorf("the ticket is %q, want denied: nothing was started, so a deny wins", got)
		}
		answers := w.answers()
		if denies := slices.DeleteFunc(slices.Clone(answers), func(a string) bool { return strings.HasSuffix(a, "=true") }); len(denies) != 1 || answers[len(answers)-1] != denies[0] {
			t.Errorf("answers = %q, want one deny, and nothing after it", answers)
		}
		if len(answers) > 2 {
			t.Errorf("answers = %q, want at most one approval before the deny", answers)
		}
		if recorded, refused := w.count(slack.Recorded), w.count(slack.Refused); recorded != len(answers) || recorded+refused != 50 {
			t.Errorf("%d recorded and %d refused of 50, with answers %q", recorded, refused, answers)
		}
		log, _ := w.settled()
		if got := strings.Count(log, `msg="slack click"`); got != 50 {
			t.Errorf("%d audit lines for 50 clicks", got)
		}
	})
}

// An approval and a deny of the same instant, in whichever order: the deny wins
// while nothing is sent, and both are in the ledger or in the log.
func TestDenyWins(t *testing.T) {
	for _, order := range [][]string{{approveAction, denyAction}, {denyAction, approveAction}} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := newWorld(t)
			w.clicks.Handle(t.Context(), w.says(onCall, order[0]).payload(t))
			w.clicks.Handle(t.Context(), w.says(second, order[1]).payload(t))
			if got := w.stand().State; got != approve.Denied {
				t.Errorf("%v: the ticket is %q, want denied", order, got)
			}
			log, _ := w.settled()
			contains(t, "the log", log, "action="+approveAction, "action="+denyAction)
		})
	}
}

// A hanging ledger costs a warning that the person sees, and nothing else.
func TestSlowLedger(t *testing.T) {
	tests := map[string]struct {
		reason string
		delay  time.Duration
		want   slack.Result
	}{
		"InTime": {"a record after two seconds is in time", 2 * time.Second, slack.Recorded},
		"Late":   {"Slack would show a warning after three seconds", 5 * time.Second, slack.Failed},
		"Hangs":  {"a disk that answers in a minute is no ledger", time.Minute, slack.Failed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, slow := newWorld(t)
				slow.set(tt.delay, false)
				payload, began := w.says(onCall, approveAction).payload(t), time.Now()
				if got := w.clicks.Handle(t.Context(), payload); got != tt.want {
					t.Errorf("%s: result = %q, want %q", tt.reason, got, tt.want)
				}
				if took := time.Since(began); took >= 3*time.Second {
					t.Errorf("%s: answered after %s", tt.reason, took)
				}
				// Whoever clicks again when the disk is well is heard, once.
				time.Sleep(2 * time.Minute)
				slow.set(0, false)
				if got := w.clicks.Handle(t.Context(), payload); got != slack.Recorded && got != slack.Refused {
					t.Errorf("%s: the second click is %q", tt.reason, got)
				}
				if diff := cmp.Diff([]string{w.ticket + " slack:T1/U_ONCALL slack approve=true"}, w.answers()); diff != "" {
					t.Errorf("%s: answers (-want +got):\n%s", tt.reason, diff)
				}
			})
		})
	}
}

// What is recorded at once is never taken for late, however the two ends of it are
// scheduled: the person would see a warning although the answer counts.
func TestRecordedIsNeverLate(t *testing.T) {
	c := formClicks(t)
	defer c.Close()
	payload := someone{team: team, user: onCall, action: approveAction, value: "t1 " + digest}.payload(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				if got := c.Handle(context.Background(), payload); got != slack.Recorded {
					t.Errorf("result = %q, want recorded", got)
					return
				}
			}
		})
	}
	all.Wait()
}

// A record that was made, and whose word came too late, stands: the person is told
// once it is known, and whoever clicks again changes nothing.
func TestLateRecordStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newWorld(t)
		slow.set(5*time.Second, false)
		slow.tardy = true
		payload := w.says(onCall, approveAction).payload(t)
		if got := w.clicks.Handle(t.Context(), payload); got != slack.Failed {
			t.Errorf("result = %q, want failed", got)
		}
		time.Sleep(time.Minute)
		slow.set(0, false)
		if got := w.clicks.Handle(t.Context(), payload); got != slack.Refused {
			t.Errorf("the second click is %q, want refused", got)
		}
		if got := w.answers(); len(got) != 1 {
			t.Errorf("answers = %q, want one", got)
		}
		log, replies := w.settled()
		contains(t, "the log", log, "result=failed", "result=recorded", "code=already-answered")
		contains(t, "the replies", strings.Join(replies, "\n"), "Click again", "is answered; it is checked again", "slack:T1/U_ONCALL answered ticket t5 already")
	})
}

func TestFullDiskIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newWorld(t)
		slow.set(0, true)
		if got := w.clicks.Handle(t.Context(), w.says(onCall, approveAction).payload(t)); got != slack.Failed {
			t.Errorf("result = %q, want failed", got)
		}
		log, replies := w.settled()
		contains(t, "the log", log, "level=ERROR", "no space left on device")
		contains(t, "the replies", strings.Join(replies, "\n"), "Click again")
		if got := w.stand().State; got != approve.Open {
			t.Errorf("the ticket is %q, want open", got)
		}
	})
}

// What is told to people afterwards is told in the background: a Slack that
// hangs keeps no click waiting, and no more than a few dozen replies.
func TestRepliesHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		w.replyFor, w.replyError = time.Hour, errors.New("message_not_found")
		began := time.Now()
		for range 200 {
			w.clicks.Handle(t.Context(), w.says("U_PASSER", approveAction).payload(t))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("200 clicks took %s while replies hang", took)
		}
		log, replies := w.settled()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the end took %s", took)
		}
		contains(t, "the log", log, "one reply is left out")
		if len(replies) > 0 {
			t.Errorf("replied %q although Slack hangs", replies)
		}
		if len(w.desk.sighted) < 60 {
			t.Errorf("%d cards noted while replies hang", len(w.desk.sighted))
		}
	})
}

// A stop lets a click under way be recorded, and takes no other.
func TestCloseFinishesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newWorld(t)
		slow.set(2*time.Second, false)
		got := make(chan slack.Result, 1)
		go func() { got <- w.clicks.Handle(context.Background(), w.says(onCall, approveAction).payload(t)) }()
		time.Sleep(time.Second)
		w.clicks.Close()
		if n := len(w.answers()); n != 1 {
			t.Errorf("%d answers recorded when Close returned, want 1: the ledger is closed next", n)
		}
		if r := <-got; r != slack.Recorded {
			t.Errorf("the click under way is %q, want recorded", r)
		}
		if r := w.clicks.Handle(t.Context(), w.says(second, denyAction).payload(t)); r != slack.Failed {
			t.Errorf("a click after the end is %q, want failed: Slack shows it", r)
		}
	})
}

func TestNewClicksWantsAWorkspace(t *testing.T) {
	w, _ := newWorld(t)
	_, err := slack.NewClicks(slack.Options{Desk: w.desk, Log: slog.New(slog.DiscardHandler), Unknown: func(error) bool { return false }})
	if err == nil || !strings.Contains(err.Error(), "slack.team") {
		t.Errorf("err = %v, want one that names slack.team", err)
	}
}

// neverRecorded is a desk that takes answers only in the form that the fuzz
// tests allow.
type formDesk struct{ t *testing.T }

func (d formDesk) Answer(_ context.Context, a approve.Answer) (approve.Ticket, error) {
	if len(a.Digest) != 64 || !strings.HasPrefix(a.Ticket, "t") || approve.CheckPrincipal(a.By) != nil || !strings.HasPrefix(a.By, "slack:T1/") || a.Via != "slack" {
		d.t.Errorf("answered %+v", a)
	}
	return approve.Ticket{ID: a.Ticket}, nil
}

func (d formDesk) Ack(_ context.Context, page, by, _ string) error {
	if page == "" || !strings.HasPrefix(by, "slack:T1/") {
		d.t.Errorf("acknowledged %q by %q", page, by)
	}
	return nil
}

func (formDesk) Sighted(context.Context, string, approve.Message) error { return nil }

func formClicks(t *testing.T) *slack.Clicks {
	t.Helper()
	c, err := slack.NewClicks(slack.Options{
		Desk: formDesk{t}, Team: team, Log: slog.New(slog.DiscardHandler), Unknown: func(error) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1"},"actions":[{"action_id":"setpoint-approve","value":"t1 ` + digest + `"}]}`))
	f.Add([]byte(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T2"},"actions":[{"action_id":"setpoint-ack","value":"e1"}]}`))
	f.Add([]byte(`{"team":null,"user":7}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		c := formClicks(t)
		defer c.Close()
		got := c.Handle(context.Background(), payload)
		if got == slack.Recorded && !json.Valid(payload) {
			t.Errorf("recorded %q", payload)
		}
		if !slices.Contains([]slack.Result{slack.Recorded, slack.Foreign, slack.Malformed}, got) {
			t.Errorf("result = %q", got)
		}
	})
}

func FuzzButtonValue(f *testing.F) {
	for _, s := range []string{"t1 " + digest, "t0 " + digest, "t1  " + digest, "t1 " + strings.ToUpper(digest), "t1 " + digest + " ", " t1 " + digest, "t1\t" + digest, "digest", "t99999999999999999999 " + digest} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		c := formClicks(t)
		defer c.Close()
		got := c.Handle(context.Background(), someone{team: team, user: onCall, action: approveAction, value: value}.payload(t))
		ticket, rest, _ := strings.Cut(value, " ")
		exact := len(rest) == 64 && strings.HasPrefix(ticket, "t") && ticket+" "+rest == value
		if got == slack.Recorded && !exact {
			t.Errorf("the value %q was taken", value)
		}
	})
}
