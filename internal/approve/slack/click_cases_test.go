package slack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// right is the right answer to a recorded case, over each transport.
type right struct {
	reason string
	// exact are the statuses of the bytes as they were recorded: their button is
	// another program's, so that a good signature is acknowledged and no more.
	exact []int
	// statuses are those of the same requests with our button.
	statuses []int
	// shown is what the person sees over Socket Mode, where nothing is signed.
	shown string
	// http and socket count the results.
	http, socket map[slack.Result]int
	// decided: there is one answer in the end, else none.
	decided bool
	// replies and log are parts of what is said.
	replies, log []string
	// slow is how long the ledger takes.
	slow time.Duration
}

const ok, warning = fakeslack.ShownOK, fakeslack.ShownWarning

// counts is a table of results.
type counts = map[slack.Result]int

var rights = map[string]right{
	"K01-form-encoded-payload": {
		reason: "a form with one field is decided once", exact: []int{200}, statuses: []int{200}, shown: ok, decided: true,
		http: counts{slack.Recorded: 1}, socket: counts{slack.Recorded: 1},
	},
	"K03-replayed-old-request": {
		reason: "a replay is refused and said; on a socket there is no signature to replay", exact: []int{401}, statuses: []int{401}, shown: ok,
		http: counts{slack.Stale: 1}, socket: counts{slack.Recorded: 1}, log: []string{"result=stale", "level=WARN"},
	},
	"K05-retry-after-timeout": {
		reason: "a retry is answered like the first, and decides nothing anew", exact: []int{200, 200}, statuses: []int{200, 200}, shown: ok, decided: true,
		http: counts{slack.Recorded: 1, slack.Refused: 1}, socket: counts{slack.Recorded: 1, slack.Refused: 1},
		replies: []string{"slack:T1/U_ONCALL answered ticket t5 already, at "},
	},
	"K07-double-click": {
		reason: "the first decides, the second is told so", exact: []int{200, 200}, statuses: []int{200, 200}, shown: ok, decided: true,
		http: counts{slack.Recorded: 1, slack.Refused: 1}, socket: counts{slack.Recorded: 1, slack.Refused: 1},
		replies: []string{"slack:T1/U_ONCALL answered ticket t5 already, at ", "Recorded: ticket "},
	},
	"K13-slow-handler": {
		reason: "what is slow comes after the answer; a ledger that is slow is no record", exact: []int{200}, statuses: []int{503}, shown: warning,
		http: counts{slack.Failed: 1}, socket: counts{slack.Failed: 1}, slow: 5 * time.Second,
	},
	"K15-body-tampered": {
		reason: "the signature is over the body; on a socket the altered button is nobody's", exact: []int{401}, statuses: []int{401}, shown: ok,
		http: counts{slack.Unsigned: 1}, socket: counts{slack.Foreign: 1},
	},
	// The answers of the Web API meet the reply here, which is all that a click
	// asks of it; what they mean for a card is the board's.
	"K09-prompt-message-deleted": {
		reason: "the decision stands whatever becomes of the message", statuses: []int{200}, shown: ok, decided: true,
		http: counts{slack.Recorded: 1}, socket: counts{slack.Recorded: 1}, log: []string{"slack reply failed", "message_not_found"},
	},
	"K11-bot-not-in-channel": {
		reason: "who cannot be told has decided all the same", statuses: []int{200}, shown: ok, decided: true,
		http: counts{slack.Recorded: 1}, socket: counts{slack.Recorded: 1}, log: []string{"slack reply failed", "not_in_channel"},
	},
	"K17-rate-limited-post": {
		reason: "nobody waits for thirty seconds", statuses: []int{200}, shown: ok, decided: true,
		http: counts{slack.Recorded: 1}, socket: counts{slack.Recorded: 1}, log: []string{"slack reply failed", "rate limit"},
	},
}

func cases(t *testing.T) []fakeslack.Case {
	t.Helper()
	all, err := fakeslack.Cases()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.ID)
		if _, ok := rights[c.ID]; !ok {
			t.Errorf("case %s has no right answer here: %s", c.ID, c.Right)
		}
	}
	if len(all) != len(rights) {
		t.Fatalf("cases are %q, want one for each right answer", names)
	}
	return all
}

// ours gives the payload of a recorded request with our button in the place of
// the recorded one, whose value has another program's form; everything else stays.
func ours(t *testing.T, body []byte, value string) []byte {
	t.Helper()
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal([]byte(fields.Get("payload")), &p); err != nil {
		t.Fatal(err)
	}
	action := p["actions"].([]any)[0].(map[string]any)
	action["action_id"] = strings.Replace(action["action_id"].(string), "approv", "setpoint-approv", 1)
	action["value"] = value
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// payloads are our variants of a case's clicks.
func payloads(t *testing.T, w *world, c fakeslack.Case) [][]byte {
	t.Helper()
	var out [][]byte
	for _, r := range c.Requests {
		out = append(out, ours(t, r.Body, w.value()))
	}
	if c.API != nil {
		out = append(out, w.says(onCall, approveAction).payload(t))
	}
	return out
}

// judge compares what became of a case with what is right.
func (w *world) judge(r right, results counts, log string, replies []string) {
	w.t.Helper()
	if diff := cmp.Diff(results, w.results); diff != "" {
		w.t.Errorf("%s: results (-want +got):\n%s", r.reason, diff)
	}
	contains(w.t, "the log", log, r.log...)
	contains(w.t, "the replies", strings.Join(replies, "\n"), r.replies...)
	recorded := results[slack.Recorded] > 0
	if got := w.answers(); recorded != (len(got) == 1) || len(got) > 1 {
		w.t.Errorf("%s: answers = %q", r.reason, got)
	}
	ticket, want := w.stand(), approve.Open
	if recorded {
		want = approve.Approved
	}
	if ticket.State != want || ticket.Key != key {
		w.t.Errorf("%s: the ticket is %q under %s, want %q under %s", r.reason, ticket.State, ticket.Key, want, key)
	}
}

// TestCasesOverHTTP posts each recorded request at its time: first the exact bytes
// that were signed, then the same with our button, signed with the case's secret
// at the case's time.
func TestCasesOverHTTP(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.ID, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key, clock := c.SigningSecret, c.Clock
				if c.API != nil {
					key, clock = secret, time.Now().Add(time.Minute)
				}
				time.Sleep(time.Until(clock.Add(-time.Minute)))
				w, slow := newWorld(t)
				time.Sleep(time.Until(clock))
				r, h := rights[c.ID], w.handler(key)
				exact := []int{}
				for _, sent := range c.Requests {
					exact = append(exact, w.post(h, recordedRequest(sent)))
				}
				if !slices.Equal(exact, r.exact) {
					t.Errorf("%s: the exact bytes are answered %v, want %v", r.reason, exact, r.exact)
				}
				clear(w.results)
				w.replyError = apiError(c.API)
				slow.set(r.slow, false)
				if got := postOurs(t, w, h, c); !slices.Equal(got, r.statuses) {
					t.Errorf("%s: answered %v, want %v", r.reason, got, r.statuses)
				}
				if took := time.Since(clock); took >= 3*time.Second {
					t.Errorf("%s: answered after %s", r.reason, took)
				}
				log, replies := w.settled()
				w.judge(r, r.http, log, replies)
			})
		})
	}
}

func recordedRequest(c fakeslack.CaseRequest) *http.Request {
	r := httptest.NewRequest(c.Method, slack.Path, strings.NewReader(string(c.Body)))
	r.Header = c.Header.Clone()
	return r
}

// postOurs posts our variants, signed anew, with the headers of the case.
func postOurs(t *testing.T, w *world, h http.Handler, c fakeslack.Case) (statuses []int) {
	t.Helper()
	for i, payload := range payloads(t, w, c) {
		if c.API != nil {
			statuses = append(statuses, w.post(h, signed(secret, time.Now(), form(payload))))
			continue
		}
		sent := form(payload)
		r := recordedRequest(c.Requests[i])
		good := strings.ReplaceAll(string(sent), "approvE", "approve")
		r.Header.Set(hSignature, sign(c.SigningSecret, r.Header.Get(hTimestamp), []byte(good)))
		r.Body = &readCloser{strings.NewReader(string(sent))}
		statuses = append(statuses, w.post(h, r))
	}
	return statuses
}

// apiError is what the client of Slack makes of a case's answer.
func apiError(a *fakeslack.CaseResponse) error {
	switch {
	case a == nil:
		return nil
	case a.Status == http.StatusTooManyRequests:
		return &slackgo.RateLimitedError{RetryAfter: 30 * time.Second}
	}
	var body slackgo.SlackResponse
	_ = json.Unmarshal(a.Body, &body)
	return body.Err()
}

// TestCasesOverSocketMode sends the same clicks in envelopes, to a handler that is
// connected to a Slack on loopback. Nothing is signed there: what is wrong with a
// signature does not arise.
func TestCasesOverSocketMode(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			w, slow := newWorld(t)
			f := connect(t, w)
			r := rights[c.ID]
			w.replyError = apiError(c.API)
			slow.set(r.slow, false)
			for _, payload := range payloads(t, w, c) {
				if got := f.send(payload, 1); got.Shown != r.shown {
					t.Errorf("%s: the person sees %+v, want %q", r.reason, got, r.shown)
				}
			}
			slow.set(0, false)
			f.stop()
			log, replies := w.settled()
			r.log = slices.DeleteFunc(slices.Clone(r.log), func(s string) bool { return strings.Contains(s, "stale") || strings.Contains(s, "WARN") })
			w.judge(r, r.socket, log, replies)
		})
	}
}

// API answers are given by a server, so that what the reply meets is what the
// client makes of the exact bytes.
func TestRepliesMeetTheAnswersOfTheCases(t *testing.T) {
	for _, c := range cases(t) {
		if c.API == nil {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				asked++
				if r.URL.Path != "/chat.postEphemeral" || r.FormValue("user") != onCall || r.FormValue("text") != "a &lt;!channel&gt;" {
					t.Errorf("%s with %v", r.URL.Path, r.Form)
				}
				for name, values := range c.API.Header {
					rw.Header()[name] = values
				}
				rw.WriteHeader(c.API.Status)
				_, _ = rw.Write(c.API.Body)
			}))
			defer server.Close()
			began := time.Now()
			err := slack.Ephemeral(slack.NewClient(server.URL, "xoxb-1", ""))(context.Background(), channel, onCall, "a <!channel>")
			if err == nil || asked != 1 || time.Since(began) > 5*time.Second {
				t.Errorf("err = %v after %d requests and %s, want one error at once", err, asked, time.Since(began))
			}
			if want := apiError(c.API); err == nil || err.Error() != want.Error() {
				t.Errorf("err = %v, want %v", err, want)
			}
		})
	}
}
