package slack_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack/slackutilsx"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "write the golden files")

// rendered are the cards that the approve package renders, by name.
func rendered(t *testing.T) map[string]approve.Card {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "cards", "*.json"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d cards, %v", len(files), err)
	}
	cards := map[string]approve.Card{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c approve.Card
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		cards[strings.TrimSuffix(filepath.Base(file), ".json")] = c
	}
	return cards
}

// node is a part of Block Kit as Slack reads it.
type node = map[string]any

// sent is what goes over the wire for the card: its blocks and its text.
func sent(t interface{ Fatalf(string, ...any) }, c approve.Card) (raw []byte, blocks []node, text string) {
	list, fallback := slack.Blocks(c)
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return raw, blocks, slackutilsx.EscapeMessage(fallback)
}

func TestBlocks(t *testing.T) {
	for name, c := range rendered(t) {
		t.Run(name, func(t *testing.T) {
			raw, blocks, text := sent(t, c)
			var pretty any
			if err := json.Unmarshal(raw, &pretty); err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(map[string]any{"text": text, "blocks": pretty}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "cards", name+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("%s (-want +got), go test -update writes it:\n%s", path, diff)
			}
			for _, fault := range faults(c, raw, blocks, text) {
				t.Error(fault)
			}
			// Nothing of a card in a state that people meet is left out.
			if strings.Contains(string(raw), "has the rest") {
				t.Error("shortened")
			}
		})
	}
}

// words are all texts of a block, in order, with their styles left out.
func words(v any) []string {
	var found []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			found = append(found, words(e)...)
		}
	case node:
		if s, ok := v["text"].(string); ok {
			found = append(found, s)
		}
		for _, field := range []string{"text", "fields", "elements"} {
			found = append(found, words(v[field])...)
		}
	}
	return found
}

// faults are what Slack would refuse, and what a person must not be shown.
func faults(c approve.Card, raw []byte, blocks []node, text string) []string {
	var fs []string
	bad := func(when bool, format string, args ...any) {
		if when {
			fs = append(fs, fmt.Sprintf(format, args...))
		}
	}
	bad(len(blocks) == 0 || len(blocks) > 50, "%d blocks", len(blocks))
	bad(utf8.RuneCount(raw) > 13200, "%d characters of blocks", utf8.RuneCount(raw))
	bad(text == "" || utf8.RuneCountInString(text) > 4000, "a fallback of %d characters", utf8.RuneCountInString(text))
	bad(strings.ContainsAny(text, "<>`"), "a fallback with marks: %s", text)
	lead := c.Lead.Lines()
	if diff := cmp.Diff(lead[:], words(blocks[0])); diff != "" && !slices.Contains(lead[:], "") {
		bad(true, "the first five lines are not the lead:\n%s", diff)
	}
	ids, exact := map[string]bool{}, []string{}
	for i, b := range blocks {
		id, _ := b["block_id"].(string)
		bad(len(id) > 255 || id != "" && ids[id], "block %d: id %q", i, id)
		ids[id] = true
		switch b["type"] {
		case "rich_text":
			fs = append(fs, richFaults(b["elements"])...)
			for _, e := range b["elements"].([]any) {
				if e := e.(node); e["type"] == "rich_text_preformatted" {
					exact = append(exact, strings.Join(words(e), ""))
				}
			}
		case "context":
			fs = append(fs, contextFaults(b, c)...)
		case "actions":
			bad(i != len(blocks)-1, "buttons in block %d of %d", i, len(blocks))
		default:
			bad(true, "block %d is a %v", i, b["type"])
		}
	}
	bad(c.Exact != "" && !slices.Equal(exact, []string{c.Exact}), "exact bytes %q, want %q", exact, c.Exact)
	bad(c.Exact == "" && len(exact) != 0, "exact bytes %q of a card without", exact)
	return append(fs, buttonFaults(c, blocks[len(blocks)-1])...)
}

// richFaults: rich text is text alone, in styles of ours.
func richFaults(v any) []string {
	var fs []string
	list, _ := v.([]any)
	if len(list) == 0 {
		return []string{"empty rich text"}
	}
	for _, e := range list {
		e := e.(node)
		switch e["type"] {
		case "text":
			s, _ := e["text"].(string)
			if s == "" || utf8.RuneCountInString(s) > 3000 {
				fs = append(fs, fmt.Sprintf("a text of %d characters", utf8.RuneCountInString(s)))
			}
		case "rich_text_section", "rich_text_list", "rich_text_preformatted":
			fs = append(fs, richFaults(e["elements"])...)
		default:
			fs = append(fs, fmt.Sprintf("rich text holds a %v", e["type"]))
		}
	}
	return fs
}

// contextFaults: the only mrkdwn are our two links.
func contextFaults(b node, c approve.Card) []string {
	var fs []string
	list := b["elements"].([]any)
	if len(list) == 0 || len(list) > 10 {
		fs = append(fs, fmt.Sprintf("%d elements of context", len(list)))
	}
	for _, e := range list {
		e := e.(node)
		s := e["text"].(string)
		link := s == "<"+strings.ReplaceAll(c.PageURL, "&", "&amp;")+"|page>" || s == "<"+strings.ReplaceAll(c.TraceURL, "&", "&amp;")+"|trace>"
		closed := link && strings.Count(s, "|") == 1 && strings.Count(s, ">") == 1
		if s == "" || len(s) > 3000 || e["type"] != "plain_text" && (e["type"] != "mrkdwn" || !closed) {
			fs = append(fs, fmt.Sprintf("context %v", e))
		}
	}
	return fs
}

// buttonFaults: buttons are those of the ticket's own bytes, and stand only where
// an answer is asked for.
func buttonFaults(c approve.Card, last node) []string {
	var fs, got []string
	if last["type"] == "actions" {
		list := last["elements"].([]any)
		if len(list) == 0 || len(list) > 25 || last["block_id"] != "setpoint/"+c.Ticket+"/"+c.Digest {
			fs = append(fs, fmt.Sprintf("%d buttons in %v", len(list), last["block_id"]))
		}
		for _, e := range list {
			e := e.(node)
			got = append(got, e["action_id"].(string))
			value, _ := e["value"].(string)
			if value != c.Ticket+" "+c.Digest || len(value) > 2000 || !plainUpTo(e["text"], 75) {
				fs = append(fs, fmt.Sprintf("button %v", e))
			}
			confirm, asks := e["confirm"].(node)
			if asks != (e["action_id"] == "setpoint-approve") {
				fs = append(fs, fmt.Sprintf("%v asks again: %t", e["action_id"], asks))
			}
			for part, most := range map[string]int{"title": 100, "text": 300, "confirm": 30, "deny": 30} {
				if asks && !plainUpTo(confirm[part], most) {
					fs = append(fs, fmt.Sprintf("%s of the confirmation %v", part, confirm))
				}
			}
		}
	}
	var want []string
	if c.Open() && c.Ticket != approve.DigestCard && c.Digest != "" && len(c.Ticket) < 150 && len(c.Digest) <= 64 {
		want = []string{"setpoint-deny"}
		if c.NoClick == "" {
			want = []string{"setpoint-approve", "setpoint-deny"}
		}
	}
	if !slices.Equal(got, want) {
		fs = append(fs, fmt.Sprintf("buttons %v, want %v", got, want))
	}
	return fs
}

func plainUpTo(v any, most int) bool {
	t, _ := v.(node)
	s, _ := t["text"].(string)
	return t["type"] == "plain_text" && t["emoji"] == false && s != "" && utf8.RuneCountInString(s) <= most
}

// The dialog says once more what is done to which target.
func TestConfirmationRepeatsTheStep(t *testing.T) {
	_, blocks, _ := sent(t, rendered(t)["open"])
	buttons := blocks[len(blocks)-1]["elements"].([]any)
	confirm := buttons[0].(node)["confirm"].(node)
	got := strings.Join(append(words(confirm["title"]), words(confirm["text"])...), "\n")
	const want = "Approve t7 for checkout?\nrollback-flag version=v41 on webhook.post http://flags.internal/checkout. It is measured and checked again before it is sent."
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// strange are texts of strangers, long ones among them.
var strange = rapid.OneOf(
	rapid.StringMatching(`[ -~]{0,30}`), rapid.String(),
	rapid.SampledFrom([]string{
		"<!channel>", "<@U1>", "<https://evil.example|ok>", "[a](https://evil.example)", "*b* _i_ ~s~ `c`", ":tada:", "&lt;&amp;", "\u202ex", "\u200b",
		"“”", "line\nline", strings.Repeat("&", 3000), strings.Repeat("<x>", 900), strings.Repeat("😀", 700), "http://page.internal/a?b=c&d=e", "https://x|y>z",
	}),
)

// anyFacts are card facts that need not make sense.
func anyFacts(t *rapid.T) approve.CardFacts {
	text := func(name string) string { return strange.Draw(t, name) }
	many := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	when := func(name string) time.Time {
		if many(name+" known", 3) == 0 {
			return time.Time{}
		}
		return start.Add(time.Duration(many(name, 100000)) * time.Second)
	}
	// Half of them can be approved, unless the exact bytes say otherwise.
	tame := rapid.Bool().Draw(t, "tame")
	exact := func(name string) string {
		if tame {
			return rapid.OneOf(rapid.StringMatching(`[ -~]{0,300}`), rapid.Map(rapid.IntRange(0, 2000), func(n int) string { return strings.Repeat(`&"`, n/2) })).Draw(t, name)
		}
		return text(name)
	}
	act := spec.Action{Name: exact("action"), Uses: "webhook.post", Target: spec.Target{URL: exact("url")}, Reversal: spec.Restore}
	f := approve.CardFacts{
		Service: spec.Service{Name: exact("service"), Remediation: spec.Remediation{Actions: []spec.Action{act}}},
		Since:   when("since"), Now: when("now"), Storm: rapid.SampledFrom([]string{"", "", text("storm")}).Draw(t, "stormy"),
		PageURL: text("page"), TraceURL: text("trace"), Balance: &budget.Balance{Remaining: rapid.Float64().Draw(t, "balance")},
		Course: approve.Course{
			ClaimedAt: when("claimed"), SentAt: when("sent"), JudgedAt: when("judged"), Over: many("over", 1) == 0,
			Effect: text("effect"), Detail: text("detail"), VoidReason: rapid.SampledFrom([]string{"", text("void")}).Draw(t, "voided"),
			Outcome: rapid.SampledFrom([]compare.Outcome{"", compare.OutcomeNone, compare.OutcomePending, compare.OutcomeWorsened, compare.OutcomeUnknown}).Draw(t, "outcome"),
		},
	}
	f.Assessment.State = rapid.SampledFrom([]compare.State{"", compare.Met, compare.Breached, compare.Unknown}).Draw(t, "state")
	f.Ticket = approve.Ticket{
		ID: fmt.Sprintf("t%d", many("ticket", 99999)), Service: f.Service.Name, Key: gate.Key(exact("key")), Expires: when("expires"), AnsweredAt: when("answered"),
		State:    rapid.SampledFrom([]approve.State{approve.Open, approve.Open, approve.Open, approve.Approved, approve.Denied, approve.Expired, approve.Withdrawn, approve.Void}).Draw(t, "stands"),
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: act.Name, Rationale: text("rationale"), Proposer: propose.Proposer{Kind: text("kind"), Model: text("model")}},
	}
	f.Ticket.Proposal.Parameters = propose.Parameters{}
	for range many("parameters", 3) {
		f.Ticket.Proposal.Parameters[exact("parameter")] = exact("value")
	}
	for range many("rows", 30) {
		o := compare.Objective{ID: text("objective"), State: f.Assessment.State, Reason: compare.Reason(text("why")), Detail: text("detail"), Target: 0.99, Group: text("group"),
			Judge: measure.Measurement{ID: measure.ID{Window: 5 * time.Minute}, ErrorRatio: rapid.Float64Range(0, 1).Draw(t, "ratio"), HasEvents: true}}
		f.Assessment.Objectives = append(f.Assessment.Objectives, o)
		f.Tried = append(f.Tried, propose.Tried{Action: o.ID, At: when("tried"), Effect: "applied", Outcome: f.Course.Outcome, ThisEpisode: true})
		f.Ticket.Reasons = append(f.Ticket.Reasons, gate.Reason{Code: text("code"), Text: text("reason")})
		f.Ticket.Needs = append(f.Ticket.Needs, gate.Need{Reason: text("need"), Approvers: []string{text("approver")}, Quorum: many("quorum", 3)})
		f.Ticket.Answers = append(f.Ticket.Answers, approve.Answer{By: text("by"), Via: text("via"), Approve: many("yes", 1) == 1, Reason: text("said"), At: when("said at")})
	}
	if tame {
		f.Ticket.State, f.Storm, f.Now, f.Ticket.Expires = approve.Open, "", start, start.Add(time.Minute)
	}
	f.Ticket.Digest, _ = gate.Digest(f.Ticket.Service, f.Ticket.Key, act, f.Ticket.Proposal.Parameters)
	if many("other", 4) == 0 {
		f.Ticket.Digest = strings.Repeat("0123456789abcdef", 4)
	}
	return f
}

// Whatever the facts, Slack takes the message, the lead and the exact bytes are
// whole, nothing in it is markup; and a card with a button to approve shows, byte
// for byte, what the ticket's digest was made of.
func TestAnyFactsAreValid(t *testing.T) {
	approvable, cut := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := approve.RenderCard(anyFacts(t))
		raw, blocks, text := sent(t, c)
		for _, fault := range faults(c, raw, blocks, text) {
			t.Error(fault)
		}
		if strings.Contains(string(raw), "has the rest") {
			cut++
		}
		if !strings.Contains(string(raw), "setpoint-approve") {
			return
		}
		approvable++
		var shown []string
		for _, b := range blocks {
			list, _ := b["elements"].([]any)
			for _, e := range list {
				if e := e.(node); e["type"] == "rich_text_preformatted" {
					shown = append(shown, words(e)...)
				}
			}
		}
		if len(shown) != 1 {
			t.Fatalf("%d blocks of exact bytes beside a button to approve", len(shown))
		}
		sum := sha256.Sum256([]byte(shown[0]))
		if value := c.Ticket + " " + hex.EncodeToString(sum[:]); !strings.Contains(string(raw), `"value":"`+value+`"`) {
			t.Fatalf("the button does not approve what is shown: %s", shown[0])
		}
	})
	if approvable < 3 || cut < 3 {
		t.Errorf("%d could be approved and %d were shortened, which proves little", approvable, cut)
	}
}

// Whatever a card holds, Slack takes it: also one that no renderer of ours made.
func TestAnyDigestCardIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waiting []approve.Ticket
		for range rapid.IntRange(0, 60).Draw(t, "waiting") {
			tk := approve.Ticket{
				ID: strange.Draw(t, "id"), Service: strange.Draw(t, "service"), Expires: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "expires"), 0),
				Proposal: propose.Proposal{Action: strange.Draw(t, "action"), Parameters: propose.Parameters{"x": strange.Draw(t, "x")}},
				Needs:    []gate.Need{{Approvers: []string{strange.Draw(t, "approver")}}},
			}
			waiting = append(waiting, tk)
		}
		c := approve.RenderDigest(waiting, strange.Draw(t, "storm"), time.Unix(1e9, 0))
		raw, blocks, text := sent(t, c)
		for _, fault := range faults(c, raw, blocks, text) {
			t.Error(fault)
		}
	})
}

// Escaping makes a text longer, and an update with a long one is refused.
func TestFallbackIsShortOnceEscaped(t *testing.T) {
	c, long := rendered(t)["open"], strings.Repeat("&", approve.MaxLine)
	c.Exact, c.NoClick, c.Lead = "", "too long", approve.Lead{Broken: long, Step: long, Why: "why: x", Until: "until: x", Do: "do: x"}
	c.Sections, c.Words = nil, ""
	raw, blocks, text := sent(t, c)
	for _, fault := range faults(c, raw, blocks, text) {
		t.Error(fault)
	}
	if !strings.HasPrefix(text, c.Title+"\n&amp;&amp;") {
		t.Errorf("the fallback begins with %.60s", text)
	}
}

// Slack refuses a whole message for one URL that it does not take.
func TestLinks(t *testing.T) {
	cases := map[string]bool{
		"https://setpoint.internal/t7": true, "http://127.0.0.1:8321/tickets/t7?a=b&c=d": true,
		"": false, "setpoint.internal": false, "javascript:alert(1)": false, "https://": false, "https://a|b": false, "https://a/>b": false,
		"https://a/ b": false, "https://a/\u202e": false, "https://a/`": false, "https://a/" + strings.Repeat("x", 1000): false, "ftp://a/b": false,
	}
	for raw, want := range cases {
		c := rendered(t)["open"]
		c.PageURL, c.TraceURL = raw, ""
		blocks, _ := slack.Blocks(c)
		data, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), "|page"); got != want {
			t.Errorf("%q is a link: %t, want %t", raw, got, want)
		}
		if _, err := url.Parse(raw); err != nil && want {
			t.Error(err)
		}
	}
}
