package escalate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
	slackgo "github.com/slack-go/slack"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	"github.com/setpoint-dev/setpoint/internal/escalate/command"
	"github.com/setpoint-dev/setpoint/internal/escalate/pagerduty"
	"github.com/setpoint-dev/setpoint/internal/escalate/slack"
	"github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// wire keeps every byte that any receiver sent, and answers all of them well.
type wire struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text, err := url.QueryUnescape(string(body))
	if err != nil {
		text = string(body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(body)
	w.all.WriteString("\n" + text + "\n")
	rw.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/enqueue") {
		rw.WriteHeader(http.StatusAccepted)
	}
	_, _ = io.WriteString(rw, `{"ok":true,"channel":"C1","ts":"1.1"}`)
}

// fiveKinds are receivers of every kind, which send to w.
func fiveKinds(t *testing.T, base, dir string) map[string]escalate.Receiver {
	t.Helper()
	clock := func() time.Time { return t0 }
	program := filepath.Join(dir, "siren.sh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >> heard; env >> heard\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out := map[string]escalate.Receiver{}
	keep := func(kind string, r escalate.Receiver, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = r
	}
	am, err := alertmanager.New(alertmanager.Options{Name: "am", URL: base, HTTP: promconfig.DefaultHTTPClientConfig, Now: clock})
	keep("alertmanager", am, err)
	hook, err := webhook.New(webhook.Options{Name: "hook", URL: base + "/page", HTTP: promconfig.DefaultHTTPClientConfig, Now: clock})
	keep("webhook", hook, err)
	pd, err := pagerduty.New(pagerduty.Options{Name: "pd", URL: base + "/v2/enqueue", Key: func() (string, error) { return "key-of-the-receiver", nil }})
	keep("pagerduty", pd, err)
	chat, err := slack.New(slack.Options{Name: "chat", Channel: "C1", Now: clock, Client: slackgo.New("xoxb", slackgo.OptionAPIURL(base+"/api/"))})
	keep("slack", chat, err)
	siren, err := command.New(command.Options{
		Name: "siren", Argv: []string{program}, Directory: dir, Check: func(p string) (string, error) { return p, nil },
	})
	keep("command", siren, err)
	return out
}

// canaries are secrets as they come: with marks that a page changes, and with what
// JSON and shells escape.
var canaries = []string{"canary-hunter2-value", "sk-<live>`canary`", `canary"quoted\secret`, "canary\"<é>`", "canary with  spaces", "canarÿ-ünïcode-secret"}

// TestCanary: a secret that got into what others said is in no receiver's bytes.
func TestCanary(t *testing.T) {
	for i, canary := range canaries {
		plant := func(f *escalate.PageFacts, place string) {
			switch place {
			case "rationale":
				f.Proposal.Rationale = "use " + canary + " to log in"
			case "label value":
				f.Assessment.Objectives[1].Detail = `two series for instance="` + canary + `"`
			case "version":
				f.Changes = []measure.Change{{At: t0, Service: "checkout", What: "deploy", Version: canary}}
			case "actuator's error":
				f.Why = "its undo failed: 401 for " + canary
				f.Reasons = []gate.Reason{{Code: gate.ReasonCooldown, Text: "the actuator said " + canary}}
			case "parameter":
				f.Ticket.Proposal.Parameters["note"] = canary
			case "cut":
				f.Proposal.Rationale = strings.Repeat("x", 280) + canary + strings.Repeat("y", 300)
			}
		}
		for _, place := range []string{"rationale", "label value", "version", "actuator's error", "parameter", "cut"} {
			t.Run(strconv.Itoa(i)+"/"+place, func(t *testing.T) {
				f := facts()
				plant(&f, place)
				p := escalate.Render(f)
				marks := needles(canary)
				if !holdsAny(p.Text, marks) && place != "cut" {
					t.Fatalf("the canary is not in the page, so nothing would be shown:\n%s", p.Text)
				}
				over := p
				over.EndedAt, over.EndReason = t0, "ended-by-"+canary
				w, dir := &wire{}, t.TempDir()
				srv := httptest.NewServer(w)
				t.Cleanup(srv.Close)
				for kind, r := range fiveKinds(t, srv.URL, dir) {
					quiet := escalate.Redacted(r, func() []string { return []string{"short", canary} })
					ref, err := quiet.Send(t.Context(), p, "")
					if err != nil {
						t.Fatalf("%s: %v", kind, err)
					}
					if _, err := quiet.Send(t.Context(), over, ref); err != nil {
						t.Fatalf("%s: %v", kind, err)
					}
				}
				heard, err := os.ReadFile(filepath.Join(dir, "heard"))
				if err != nil {
					t.Fatal(err)
				}
				sent := w.all.String() + string(heard)
				sent = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(sent)
				if n := strings.Count(sent, "<secret>"); n < 5 {
					t.Errorf("it was cut out %d times only", n)
				}
				for _, m := range marks {
					if strings.Contains(sent, m) {
						t.Errorf("%q was sent", m)
					}
				}
			})
		}
	}
}

// needles are the canary as it could stand in what was sent, and its first half.
func needles(canary string) []string {
	quoted, _ := json.Marshal(canary)
	tidy := strings.Join(strings.Fields(canary), " ")
	marks := strings.NewReplacer("<", "‹", ">", "›", "`", "'")
	shown := marks.Replace(tidy)
	ascii := strings.Trim(strconv.QuoteToASCII(canary), `"`)
	return []string{canary, tidy, shown, strings.Trim(string(quoted), `"`), ascii, marks.Replace(ascii), shown[:9]}
}

func holdsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

type failing struct {
	escalate.Receiver
	got escalate.Page
	err error
}

func (f *failing) Send(_ context.Context, p escalate.Page, ref string) (string, error) {
	f.got = p
	return ref, f.err
}

// TestRedactedErrors: what a server repeats goes into the log and the ledger; an
// error without a secret stays what it was.
func TestRedactedErrors(t *testing.T) {
	plain := errors.New("HTTP 500")
	secrets := func() []string { return []string{"canary-hunter2-value"} }
	f := &failing{err: plain}
	if ref, err := escalate.Redacted(f, secrets).Send(t.Context(), escalate.Page{ID: "e1"}, "C1/1"); !errors.Is(err, plain) || ref != "C1/1" {
		t.Errorf("ref %q, error %v", ref, err)
	}
	f.err = errors.New("HTTP 401: canary-hunter2-value is no key")
	if _, err := escalate.Redacted(f, secrets).Send(t.Context(), escalate.Page{ID: "e1"}, ""); err == nil || err.Error() != "HTTP 401: <secret> is no key" {
		t.Errorf("got %v", err)
	}
}

// TestRedact: what is no secret stays, but for what nobody sees.
func TestRedact(t *testing.T) {
	p := escalate.Render(facts())
	if diff := cmp.Diff(p, escalate.Redact(p, []string{"a", "short", ""})); diff != "" {
		t.Errorf("a page without secrets changed: -want +got:\n%s", diff)
	}
	p.Summary, p.Text, p.Lead.Do = "a\u202eb\x1b[31m", "one\n  two\r\u200b\nthree\x00\n", "do:\nthis"
	got := escalate.Redact(p, nil)
	if got.Summary != "a b [31m" || got.Text != "one\n  two\nthree\n" || got.Lead.Do != "do: this" {
		t.Errorf("got %q, %q, %q", got.Summary, got.Text, got.Lead.Do)
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9/+=_-]{8,40}`).Draw(t, "secret")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		p := escalate.Page{ID: "e1", Text: before + secret + after, Summary: before + secret + after}
		got := escalate.Redact(p, []string{secret})
		if strings.Contains(got.Text+got.Summary, secret) {
			t.Errorf("%q in %q, %q", secret, got.Text, got.Summary)
		}
	})
}
