package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

const (
	team = "T1"
	// onCall and second may approve, whoever else is in the workspace.
	onCall, second = "U_ONCALL", "U_SECOND"
	digest         = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	key            = gate.Key("checkout:1764399600-600")
	secret         = "a-signing-secret-of-tests"
	channel        = "C_OPS"
	card           = "1764399700.000100"
)

// world is the handler over a real desk and a real ledger with one open ticket.
type world struct {
	t      *testing.T
	store  *sqlite.Store
	desk   *desk
	clicks *slack.Clicks
	ticket string
	// replyError is what Slack answers to a reply, which takes replyFor.
	replyError error
	replyFor   time.Duration

	mu      sync.Mutex
	log     bytes.Buffer
	results map[slack.Result]int
	replies []string
}

// desk is the real one, with a ledger that can be slow, or full.
type desk struct {
	*reconcile.Desk
	mu      sync.Mutex
	sighted []string
	acked   []string
}

func (d *desk) Sighted(ctx context.Context, ticket string, m approve.Message) error {
	d.mu.Lock()
	d.sighted = append(d.sighted, ticket+" "+m.Channel+" "+m.ID)
	d.mu.Unlock()
	return d.Desk.Sighted(ctx, ticket, m)
}

func (d *desk) Ack(ctx context.Context, page, by, via string) error {
	d.mu.Lock()
	d.acked = append(d.acked, page+" "+by+" "+via)
	d.mu.Unlock()
	return d.Desk.Ack(ctx, page, by, via)
}

// slowStore is a ledger on a disk that takes its time.
type slowStore struct {
	ledger.Store
	mu    sync.Mutex
	delay time.Duration
	full  bool
	// tardy: it is written at once, and says so late.
	tardy bool
	seen  bool
}

func (s *slowStore) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	s.mu.Lock()
	delay, full, tardy := s.delay, s.full, s.tardy
	s.seen = true
	s.mu.Unlock()
	if tardy {
		defer time.Sleep(delay)
	} else {
		time.Sleep(delay)
	}
	if full {
		return nil, errors.New("no space left on device")
	}
	return s.Store.Append(ctx, after, plan)
}

func (s *slowStore) set(delay time.Duration, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay, s.full = delay, full
}

func (s *slowStore) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func newWorld(t *testing.T) (*world, *slowStore) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "setpoint.db")
	if err := sqlite.Init(file, "os:root"); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, results: map[slack.Result]int{}}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	w.fill()
	slow := &slowStore{Store: store}
	groups := approve.Groups{"@oncall": {"slack:" + team + "/" + onCall, "slack:" + team + "/" + second, "slack:T_OTHER/" + onCall}}
	w.desk = &desk{Desk: reconcile.NewDesk(slow, groups, time.Now)}
	w.clicks, err = slack.NewClicks(slack.Options{
		Desk: w.desk, Team: team, Log: slog.New(slog.NewTextHandler(w, nil)),
		Unknown: func(err error) bool { return errors.Is(err, reconcile.ErrNotFound) },
		OnResult: func(r slack.Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.results[r]++
		},
		Reply: w.reply,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.clicks.Close)
	return w, slow
}

// Write takes log lines.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

func (w *world) reply(ctx context.Context, channel, user, text string) error {
	if w.replyFor > 0 {
		select {
		case <-time.After(w.replyFor):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies = append(w.replies, channel+" "+user+" "+text)
	return w.replyError
}

// fill appends a breach, a decision that asks, its ticket and a page.
func (w *world) fill() {
	w.t.Helper()
	now := time.Now()
	six := propose.Proposal{
		Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)}, Proposer: propose.Proposer{Kind: "rules"},
	}
	needs := []gate.Need{{Reason: "class-approval", Approvers: []string{"@oncall"}, Quorum: 1, Expires: 15 * time.Minute}}
	w.append(
		ledger.Draft{Kind: ledger.KindDocuments, Body: ledger.Documents{Set: "set-1", Services: map[string]string{"checkout": "doc-1"}}},
		ledger.Draft{Kind: ledger.KindState, Service: "checkout", Body: ledger.StateChange{To: compare.Breached, Reason: compare.Burning, ErrorRatio: 0.3}},
		ledger.Draft{Kind: ledger.KindDecision, Service: "checkout", Body: ledger.Decided{
			Window: "1764399600-600", Episode: "e3", Key: key, Step: "ask", Proposal: six, State: compare.Breached, Reason: compare.Burning,
			Decision: gate.Decision{Verdict: gate.Approval, Digest: digest, Key: key, Needs: needs},
		}},
		ledger.Draft{Kind: ledger.KindTicket, Service: "checkout", Body: approve.Ticket{
			Service: "checkout", Episode: "e3", Decision: "d4", Key: key, Digest: digest, Proposal: six, Needs: needs,
			Asked: now, Expires: now.Add(15 * time.Minute), State: approve.Open,
		}},
		ledger.Draft{Kind: ledger.KindPage, Service: "checkout", Body: escalate.Page{
			ID: "e3", Service: "checkout", Episode: "e3", Reason: escalate.ApprovalNeeded, Now: escalate.ApprovalNeeded, Severity: "page", Receivers: []string{"oncall"}, Since: now,
		}},
	)
	for id := range w.state().Tickets {
		w.ticket = id
	}
	if w.ticket == "" {
		w.t.Fatal("the ledger has no ticket")
	}
}

func (w *world) append(drafts ...ledger.Draft) {
	w.t.Helper()
	_, err := w.store.Append(context.Background(), w.state().Head, func([]ledger.Entry) ([]ledger.Draft, error) { return drafts, nil })
	if err != nil {
		w.t.Fatal(err)
	}
}

// state is folded from the file itself, never from what the desk believes.
func (w *world) state() *ledger.State {
	w.t.Helper()
	entries, err := w.store.Read(context.Background(), 0, 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := ledger.Fold(entries)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// answers are those in the ledger, as entries.
func (w *world) answers() []string {
	w.t.Helper()
	entries, err := w.store.Read(context.Background(), 0, 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Kind == ledger.KindAnswer {
			var a approve.Answer
			if err := json.Unmarshal(e.Body, &a); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %s %s approve=%v", a.Ticket, a.By, a.Via, a.Approve))
		}
	}
	return out
}

func (w *world) stand() approve.Ticket { return *w.state().Tickets[w.ticket] }

// value is that of the card's buttons.
func (w *world) value() string { return w.ticket + " " + digest }

// settled ends the handler, so that everything that it put aside is done.
func (w *world) settled() (log string, replies []string) {
	w.clicks.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String(), w.replies
}

func (w *world) count(r slack.Result) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.results[r]
}

// someone is a click as Slack tells of it.
type someone struct {
	team, user, userTeam, action, value string
	// with replaces fields of the payload; nil takes one out.
	with map[string]any
}

func (s someone) payload(t *testing.T) []byte {
	t.Helper()
	user := map[string]any{"id": s.user, "username": "alice", "name": "alice"}
	if s.userTeam != "" {
		user["team_id"] = s.userTeam
	}
	p := map[string]any{
		"type": "block_actions", "team": map[string]any{"id": s.team, "domain": "ex"}, "user": user, "api_app_id": "A1",
		"container":  map[string]any{"type": "message", "message_ts": card, "channel_id": channel},
		"trigger_id": "t1", "channel": map[string]any{"id": channel, "name": "ops"},
		"message":      map[string]any{"ts": card, "text": "p", "blocks": []any{map[string]any{"type": "of-next-year", "elements": 7}}},
		"response_url": "https://hooks.example.invalid/actions/T1/1/x",
		"actions": []any{map[string]any{
			"type": "button", "action_id": s.action, "block_id": "b1", "value": s.value, "action_ts": "1764399998.100",
		}},
	}
	for name, v := range s.with {
		if p[name] = v; v == nil {
			delete(p, name)
		}
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const approveAction, denyAction, ackAction = "setpoint-approve", "setpoint-deny", "setpoint-ack"

// says is a click of one of the workspace.
func (w *world) says(user, action string) someone {
	return someone{team: team, user: user, userTeam: team, action: action, value: w.value()}
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}
