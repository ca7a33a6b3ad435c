package slack_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/slack"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func page() escalate.Page {
	p := escalate.Page{
		ID: "e12", Service: "checkout", Episode: "e12", Reason: escalate.CannotAct, Now: escalate.CannotAct,
		Severity: escalate.SeverityCritical, Summary: "checkout misses availability: 6.2 % errors", Gist: "g",
		Receivers: []string{"chat", "backup"}, Since: now.Add(-10 * time.Minute),
		Lead: approve.Lead{
			Broken: "checkout misses availability <!channel> & more", Step: "did: restart; measured: no-change", Why: "why: *budget* `spent`",
			Until: "until: it is met for 5m", Do: "do: setpoint explain checkout",
		},
	}
	lines := p.Lead.Lines()
	p.Text = strings.Join(lines[:], "\n") + "\nMeasured at 12:00\n  availability: breached :fire: <https://evil|click>"
	return p
}

func ended(p escalate.Page) escalate.Page {
	p.EndedAt, p.EndReason = now, "recovered"
	return p
}

func reason(p escalate.Page, now string) escalate.Page {
	p.Now, p.Lead.Why = now, "why: now "+now
	return p
}

func acked(p escalate.Page) escalate.Page {
	p.AckedBy = "slack:T1/U1"
	return p
}

func later(p escalate.Page) escalate.Page {
	p.Since = p.Since.Add(time.Hour)
	return p
}

func heartbeat(at time.Time) escalate.Page {
	return escalate.Page{
		ID: "heartbeat/chat", Reason: escalate.Heartbeat, Now: escalate.Heartbeat, Severity: escalate.SeverityNone,
		Summary: "setpoint: heartbeat, nothing to do", Text: "Setpoint can reach chat.", Since: at,
	}
}

// world is a Slack on loopback.
type world struct {
	*fakeslack.Slack
	t   *testing.T
	r   *slack.Receiver
	ref string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := fakeslack.New(fakeslack.Options{Now: func() time.Time { return now }})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	t.Cleanup(s.Close)
	w := &world{Slack: s, t: t}
	w.r = w.receiver(srv.URL, fakeslack.DefaultChannel)
	return w
}

func (w *world) receiver(base, channel string) *slack.Receiver {
	w.t.Helper()
	client := slackgo.New(fakeslack.BotToken, slackgo.OptionAPIURL(base+"/api/"), slackgo.OptionHTTPClient(&http.Client{Timeout: 2 * time.Second}))
	r, err := slack.New(slack.Options{
		Name: "chat", Channel: channel, Client: client, Now: func() time.Time { return now },
		Timeout: time.Second, ExternalURL: "http://setpoint.internal:8321",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// send keeps what is returned, as the outbox does.
func (w *world) send(p escalate.Page) error {
	ref, err := w.r.Send(w.t.Context(), p, w.ref)
	if ref != "" {
		w.ref = ref
	}
	return err
}

// shown is what the channel shows: a line for each message, its replies below.
func (w *world) shown() []string {
	w.t.Helper()
	return lines(w.Messages(fakeslack.DefaultChannel), "")
}

func lines(all []fakeslack.Message, indent string) []string {
	var out []string
	for _, m := range all {
		line, _, _ := strings.Cut(m.Text, ": checkout misses")
		if m.Deleted {
			line = "(deleted)"
		}
		for _, b := range m.Buttons {
			line += " [" + b.Action + "=" + b.Value + "]"
		}
		out = append(append(out, indent+line), lines(m.Replies, "  ")...)
	}
	return out
}

func TestStories(t *testing.T) {
	const open = "CRITICAL: checkout: cannot-act [setpoint-ack=e12]"
	type act func(*world)
	tell := func(p escalate.Page) act {
		return func(w *world) {
			if err := w.send(p); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	forget := func(w *world) { w.ref = "" }
	remove := func(w *world) {
		for _, m := range w.Messages(fakeslack.DefaultChannel) {
			if !m.Deleted {
				w.Delete(m.Channel, m.TS)
				return
			}
		}
	}
	cases := map[string]struct {
		reason string
		story  []act
		want   []string
	}{
		"Open":      {"a page is one message with a button", []act{tell(page())}, []string{open}},
		"Again":     {"and stays one", []act{tell(page()), tell(page()), tell(page())}, []string{open}},
		"Acked":     {"who has seen it is not asked again", []act{tell(page()), tell(acked(page()))}, []string{"CRITICAL: checkout: cannot-act"}},
		"Changed":   {"an update notifies nobody, so another reason is said below", []act{tell(page()), tell(reason(page(), escalate.Blind))}, []string{"CRITICAL: checkout: blind [setpoint-ack=e12]", "  now blind: why: now blind"}},
		"Ended":     {"it is over, and has no button", []act{tell(page()), tell(ended(page()))}, []string{"over: checkout: recovered", "  over: recovered"}},
		"EndTwice":  {"which is said once", []act{tell(page()), tell(ended(page())), tell(ended(page()))}, []string{"over: checkout: recovered", "  over: recovered"}},
		"Reopened":  {"an id that comes again is a new message, because only that notifies", []act{tell(page()), tell(ended(page())), tell(later(page()))}, []string{"over: checkout: recovered", "  over: recovered", open}},
		"LostEnd":   {"although the end of the first was never said, whose button is gone then", []act{tell(page()), tell(later(page()))}, []string{"over: checkout: a newer message shows it", "  over: a newer message shows it", open}},
		"Deleted":   {"a deleted one is posted again while it is open", []act{tell(page()), remove, tell(page())}, []string{"(deleted)", open}},
		"DeleteEnd": {"and not once it is over", []act{tell(page()), remove, tell(ended(page())), tell(ended(page()))}, []string{"(deleted)"}},
		"Found":     {"a post whose reply was lost is found again", []act{tell(page()), forget, tell(page())}, []string{open}},
		"FoundEnd":  {"and ended", []act{tell(page()), forget, tell(ended(page()))}, []string{"over: checkout: recovered", "  over: recovered"}},
		"NeverHeld": {"the end of what was never posted is nothing", []act{tell(ended(page()))}, nil},
		"Heartbeat": {"a heartbeat is one message for ever", []act{tell(heartbeat(now)), tell(heartbeat(now.Add(time.Hour))), forget, tell(heartbeat(now.Add(2 * time.Hour)))}, []string{"Setpoint reaches this channel: setpoint: heartbeat, nothing to do"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, do := range tc.story {
				do(w)
			}
			if diff := cmp.Diff(tc.want, w.shown()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFaults: what is not posted is an error that says what to do, and is posted
// later, once.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		method string
		fault  fakeslack.Fault
		has    string
		posted int
	}{
		"Limited":    {"it says for how long", "chat.postMessage", fakeslack.Fault{Error: "ratelimited", RetryAfter: 45}, "left alone for 45s", 1},
		"NotThere":   {"and what to do", "chat.postMessage", fakeslack.Fault{Error: "not_in_channel"}, "invite the app into the channel", 1},
		"Archived":   {"ok: false is an error", "chat.postMessage", fakeslack.Fault{Error: "is_archived"}, "name another one", 1},
		"Revoked":    {"a token that was revoked", "chat.postMessage", fakeslack.Fault{Error: "token_revoked"}, "renew slack.botTokenFile", 1},
		"NewWord":    {"a word that nobody knows", "chat.postMessage", fakeslack.Fault{Error: "fatal_error"}, "fatal_error", 1},
		"Down":       {"a page instead of JSON", "chat.postMessage", fakeslack.Fault{Status: 503}, "503", 1},
		"Hangs":      {"no answer", "chat.postMessage", fakeslack.Fault{Hang: fakeslack.Duration(3 * time.Second)}, "no answer within 1s", 1},
		"Reset":      {"a cut connection", "chat.postMessage", fakeslack.Fault{DropRequest: true}, "page e12 to slack chat: ", 1},
		"LostReply":  {"it was posted, and nobody knew", "chat.postMessage", fakeslack.Fault{DropReply: true}, "page e12 to slack chat: ", 1},
		"NoHistory":  {"who cannot look for it posts", "conversations.history", fakeslack.Fault{Error: "missing_scope"}, "", 1},
		"SlowToFind": {"nor waits for it", "conversations.history", fakeslack.Fault{Status: 500}, "", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Fail(tc.method, 1, tc.fault)
			err := w.send(page())
			switch {
			case tc.has == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.has != "" && (err == nil || !strings.Contains(err.Error(), tc.has) || strings.Contains(err.Error(), fakeslack.BotToken)):
				t.Errorf("%s: %v, want %q and no token", tc.reason, err, tc.has)
			case tc.has != "" && w.ref != "":
				t.Errorf("%s: ref %q of what failed", tc.reason, w.ref)
			}
			if err := w.send(page()); err != nil {
				t.Errorf("%s: it is not posted later: %v", tc.reason, err)
			}
			if got := w.shown(); len(got) != tc.posted {
				t.Errorf("%s: %q, want %d", tc.reason, got, tc.posted)
			}
		})
	}
}

// TestReplyFails: what was to be said below a message is said with the next try.
func TestReplyFails(t *testing.T) {
	w := newWorld(t)
	if err := w.send(page()); err != nil {
		t.Fatal(err)
	}
	w.Fail("chat.postMessage", 1, fakeslack.Fault{Status: 500})
	if err := w.send(reason(page(), escalate.Blind)); err == nil {
		t.Fatal("no error although nobody was told")
	}
	if err := w.send(reason(page(), escalate.Blind)); err != nil {
		t.Fatal(err)
	}
	want := []string{"CRITICAL: checkout: blind [setpoint-ack=e12]", "  now blind: why: now blind"}
	if diff := cmp.Diff(want, w.shown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBlocks: the messages as Slack gets them.
func TestBlocks(t *testing.T) {
	fleet := escalate.Render(escalate.PageFacts{ID: "source/main", Reason: escalate.SourceDown, Why: "source main does not answer", Now: now})
	long := page()
	for range 200 {
		long.Text += "\n  a line of which there are too many to be shown"
	}
	cases := map[string]escalate.Page{
		"open": page(), "acked": acked(page()), "ended": ended(page()), "fleet": fleet, "heartbeat": heartbeat(now), "long": long,
	}
	for name, p := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "ended" {
				open := p
				open.EndedAt, open.EndReason = time.Time{}, ""
				if err := w.send(open); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.send(p); err != nil {
				t.Fatal(err)
			}
			m := w.Messages(fakeslack.DefaultChannel)[0]
			var got bytes.Buffer
			got.WriteString(m.Text + "\n")
			if err := json.Indent(&got, m.Blocks, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			golden(t, name+".json", got.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got (go test -update writes it):\n%s", file, diff)
	}
}

// TestAnyPage: whatever a page holds, Slack takes it, it is found again, and
// nobody's words become markup.
func TestAnyPage(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<!channel>", "<@U1>", "a\u202eb", strings.Repeat("x", 5000), strings.Repeat("ä\n", 4000)}))
		p := page()
		p.ID = rapid.OneOf(rapid.StringN(1, 20, -1), rapid.Just(strings.Repeat("i", 3000))).Draw(t, "id")
		p.Service, p.Now, p.AckedBy = words.Draw(t, "service"), words.Draw(t, "now"), words.Draw(t, "acked")
		p.Summary, p.Text, p.Lead.Why = words.Draw(t, "summary"), words.Draw(t, "text"), words.Draw(t, "why")
		ref, err := w.r.Send(w.t.Context(), p, "")
		if err != nil {
			t.Fatalf("%v", err)
		}
		all := w.Messages(fakeslack.DefaultChannel)
		m := all[len(all)-1]
		if strings.Contains(m.Text, "<") || utf8.RuneCountInString(m.Text) > 4*1000 {
			t.Errorf("text %q", m.Text)
		}
		if again, err := w.r.Send(w.t.Context(), p, ref); err != nil || again != ref {
			t.Errorf("sent again: %q after %q, %v", again, ref, err)
		}
		if again, err := w.r.Send(w.t.Context(), ended(p), ref); err != nil || !strings.HasSuffix(again, "/over") {
			t.Errorf("ended: %q, %v", again, err)
		}
	})
}

// FuzzReference: what is kept of a message is only ever a name; whatever it holds,
// the page is posted.
func FuzzReference(f *testing.F) {
	f.Add("C1/1.1/5/blind")
	f.Add("///")
	f.Add("C0000OPS00/1.1/99999999999999999999/x/y")
	s := fakeslack.New(fakeslack.Options{Now: func() time.Time { return now }})
	srv := httptest.NewServer(s.Handler())
	f.Cleanup(srv.Close)
	client := slackgo.New(fakeslack.BotToken, slackgo.OptionAPIURL(srv.URL+"/api/"))
	r, err := slack.New(slack.Options{Name: "chat", Channel: fakeslack.DefaultChannel, Client: client, Now: func() time.Time { return now }})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		got, err := r.Send(t.Context(), page(), ref)
		if err != nil || !strings.HasPrefix(got, fakeslack.DefaultChannel+"/") {
			t.Errorf("ref %q: %q, %v", ref, got, err)
		}
	})
}

func TestNew(t *testing.T) {
	client, clock := slackgo.New(""), func() time.Time { return now }
	cases := map[string]struct {
		o   slack.Options
		has string
	}{
		"Client":  {slack.Options{Name: "chat", Channel: "C1", Now: clock}, "botTokenFile"},
		"Channel": {slack.Options{Name: "chat", Client: client, Now: clock}, "no channel"},
		"Clock":   {slack.Options{Name: "chat", Client: client, Channel: "C1"}, "no clock"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := slack.New(tc.o); err == nil || !strings.Contains(err.Error(), tc.has) {
				t.Errorf("%v, want %q", err, tc.has)
			}
		})
	}
}
