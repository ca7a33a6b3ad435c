package pager_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate/pagerduty"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
)

const routingKey = "0123456789abcdef0123456789abcdef"

// event is one as it is posted; f changes it.
func event(action, key string, f ...func(map[string]any)) string {
	e := map[string]any{"routing_key": routingKey, "event_action": action, "dedup_key": key}
	if action == "trigger" {
		e["payload"] = map[string]any{"summary": "checkout", "source": "setpoint", "severity": "critical"}
	}
	for _, change := range f {
		change(e)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func payload(field string, v any) func(map[string]any) {
	return func(e map[string]any) {
		p := e["payload"].(map[string]any)
		if v == nil {
			delete(p, field)
			return
		}
		p[field] = v
	}
}

func pdWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.pager.PagerDuty(pager.PagerDuty{RoutingKey: routingKey})
	return w
}

// TestIncidents plays events, a minute for each, and reads what people see.
func TestIncidents(t *testing.T) {
	t.Parallel()
	one := func(status string, triggers int, ack, over time.Duration) pager.Incident {
		i := pager.Incident{Number: 1, Key: "k", Status: status, Summary: "checkout", Severity: "critical", Source: "setpoint", Triggers: triggers, TriggeredAt: start}
		if ack >= 0 {
			i.AcknowledgedAt = after(ack)
		}
		if over >= 0 {
			i.ResolvedAt = after(over)
		}
		return i
	}
	const no = -time.Second
	again := one(pager.Triggered, 1, no, no)
	again.Number, again.TriggeredAt = 2, after(2*time.Minute)
	cases := map[string]struct {
		reason string
		story  []string
		want   []pager.Incident
	}{
		"Trigger":  {"An incident opens.", []string{event("trigger", "k")}, []pager.Incident{one(pager.Triggered, 1, no, no)}},
		"Again":    {"The same key is the same incident.", []string{event("trigger", "k"), event("trigger", "k")}, []pager.Incident{one(pager.Triggered, 2, no, no)}},
		"Ack":      {"It is acknowledged once, and stays so under more triggers.", []string{event("trigger", "k"), event("acknowledge", "k"), event("acknowledge", "k"), event("trigger", "k")}, []pager.Incident{one(pager.Acknowledged, 2, time.Minute, no)}},
		"Resolve":  {"It ends.", []string{event("trigger", "k"), event("resolve", "k"), event("resolve", "k"), event("acknowledge", "k")}, []pager.Incident{one(pager.Resolved, 1, no, time.Minute)}},
		"Reopened": {"A trigger after that is another one.", []string{event("trigger", "k"), event("resolve", "k"), event("trigger", "k")}, []pager.Incident{one(pager.Resolved, 1, no, time.Minute), again}},
		"Unknown":  {"A resolve of nothing is taken and changes nothing.", []string{event("resolve", "k"), event("acknowledge", "k")}, []pager.Incident{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pdWorld(t)
			for _, e := range tc.story {
				status, body := call(t, http.MethodPost, w.url+"/v2/enqueue", e)
				if want := `{"dedup_key":"k","message":"Event processed","status":"success"}`; status != 202 || strings.TrimSpace(body) != want {
					t.Fatalf("HTTP %d %s, want %s", status, body, want)
				}
				w.pass(time.Minute)
			}
			if diff := cmp.Diff(tc.want, w.pager.Incidents()); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if n := len(w.pager.Journal()); n != len(tc.story) {
				t.Errorf("%d events in the journal, want %d", n, len(tc.story))
			}
			if n := len(w.pager.Pages()); n != 0 {
				t.Errorf("%d pages: incidents are a list of their own", n)
			}
		})
	}
}

// TestInvalidEvents: what PagerDuty refuses leaves nothing behind.
func TestInvalidEvents(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("ä", n) }
	set := func(field string, v any) func(map[string]any) { return func(e map[string]any) { e[field] = v } }
	cases := map[string]struct {
		body string
		says string // "" is taken
	}{
		"NoKey":         {event("trigger", "k", set("routing_key", "")), "'routing_key' is missing"},
		"OtherKey":      {event("trigger", "k", set("routing_key", strings.Repeat("0", 32))), "'routing_key' is invalid"},
		"Action":        {event("close", "k"), "'event_action'"},
		"Summary":       {event("trigger", "k", payload("summary", x(1024))), ""},
		"LongSummary":   {event("trigger", "k", payload("summary", x(1025))), "'payload.summary' is longer than 1024"},
		"NoSummary":     {event("trigger", "k", payload("summary", " ")), "'payload.summary' is missing"},
		"NoSource":      {event("trigger", "k", payload("source", nil)), "'payload.source' is missing"},
		"Severity":      {event("trigger", "k", payload("severity", "fatal")), "'payload.severity'"},
		"NoPayload":     {event("trigger", "k", set("payload", nil)), "'payload' is missing"},
		"DedupKey":      {event("trigger", x(255)), ""},
		"LongDedupKey":  {event("trigger", x(256)), "'dedup_key' is longer than 255"},
		"NoDedupKey":    {event("trigger", ""), ""},
		"ResolveNoKey":  {event("resolve", ""), "'dedup_key' is missing"},
		"Garbage":       {"{", "no JSON"},
		"TooLarge":      {event("trigger", "k", payload("custom_details", strings.Repeat("x", 600_000))), "larger than"},
		"SeveralFaults": {event("close", "", set("routing_key", "")), "'dedup_key' is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pdWorld(t)
			status, body := call(t, http.MethodPost, w.url+"/v2/enqueue", tc.body)
			if tc.says == "" {
				if status != 202 || len(w.pager.Incidents()) != 1 || w.pager.Incidents()[0].Key == "" {
					t.Errorf("HTTP %d %s", status, body)
				}
				return
			}
			if status != 400 || !strings.Contains(body, `"invalid event"`) || !strings.Contains(body, tc.says) {
				t.Errorf("HTTP %d %s, want 400 with %q", status, body, tc.says)
			}
			if n := len(w.pager.Incidents()); n != 0 {
				t.Errorf("%d incidents", n)
			}
			if j := w.pager.Journal(); len(j) != 1 || j[0].Taken || j[0].Status != 400 {
				t.Errorf("journal %+v", j)
			}
		})
	}
}

// TestAgentsReceiver: the agent's own receiver opens and closes an incident, and
// the journal shows no routing key.
func TestAgentsReceiver(t *testing.T) {
	t.Parallel()
	w := pdWorld(t)
	r, err := pagerduty.New(pagerduty.Options{Name: "pd", URL: w.url + "/v2/enqueue", Key: func() (string, error) { return routingKey, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := r.Send(t.Context(), page("a"), "")
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	if _, err := r.Send(t.Context(), ended(page("a"), w.clock()), ref); err != nil {
		t.Fatal(err)
	}
	got := w.pager.Incidents()
	if len(got) != 1 || got[0].Key != ref || got[0].Summary != page("a").Summary || !got[0].ResolvedAt.Equal(after(time.Minute)) {
		t.Errorf("%+v", got)
	}
	var story []string
	for _, e := range w.pager.Journal() {
		story = append(story, e.At.Format(time.TimeOnly)+" "+e.Endpoint+" "+e.Action+" "+e.Key)
		if strings.Contains(string(e.Body), routingKey) || !strings.Contains(string(e.Body), "<secret>") {
			t.Errorf("the journal holds %s", e.Body)
		}
	}
	want := []string{"12:00:00 pagerduty trigger " + ref, "12:01:00 pagerduty resolve " + ref}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAcknowledge: a person's acknowledgement is told by a signed webhook.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	type heard struct {
		header http.Header
		body   []byte
	}
	got := make(chan heard, 10)
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		got <- heard{req.Header, body}
		w.WriteHeader(status)
	}))
	t.Cleanup(srv.Close)
	w := newWorld(t)
	w.pager.PagerDuty(pager.PagerDuty{WebhookURL: srv.URL + "/hooks/pagerduty", WebhookSecrets: []string{"new", "old"}})
	ann := pager.Person{ID: "PANN001", Name: "Ann"}
	if _, err := w.pager.Acknowledge(t.Context(), "k", ann); !errors.Is(err, pager.ErrNoIncident) {
		t.Errorf("nothing is open, and: %v", err)
	}
	call(t, http.MethodPost, w.url+"/v2/enqueue", event("trigger", "k"))
	w.pass(time.Minute)
	d, err := w.pager.Acknowledge(t.Context(), "k", ann)
	if err != nil || d.Status != 200 || d.Error != "" {
		t.Fatalf("%+v, %v", d, err)
	}
	h := <-got
	sign := func(secret string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(h.body)
		return "v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	if want, got := sign("new")+","+sign("old"), h.header.Get("X-PagerDuty-Signature"); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
	var said struct {
		Event struct {
			Type       string    `json:"event_type"`
			OccurredAt time.Time `json:"occurred_at"`
			Agent      struct{ ID, Summary string }
			Data       struct {
				Key    string `json:"incident_key"`
				Status string
			}
		}
	}
	if err := json.Unmarshal(h.body, &said); err != nil {
		t.Fatal(err)
	}
	e := said.Event
	line := fmt.Sprint(e.Type, " ", e.Data.Key, " ", e.Data.Status, " ", e.Agent.ID, " ", e.Agent.Summary, " ", e.OccurredAt.Equal(after(time.Minute)))
	if want := "incident.acknowledged k acknowledged PANN001 Ann true"; line != want {
		t.Errorf("it says %q, want %q", line, want)
	}
	if i := w.pager.Incidents()[0]; i.Status != pager.Acknowledged || i.AcknowledgedBy != "Ann" {
		t.Errorf("%+v", i)
	}

	if again := w.pager.Deliver(t.Context(), d.Hook); again.Status != 200 {
		t.Errorf("the same bytes again: %+v", again)
	}
	if h2 := <-got; string(h2.body) != string(h.body) || h2.header.Get("X-PagerDuty-Signature") != h.header.Get("X-PagerDuty-Signature") {
		t.Error("the second delivery is another one")
	}
	status = http.StatusUnauthorized
	if d, err = w.pager.Resolve(t.Context(), "k", ann); err != nil || d.Status != 401 || d.Error == "" {
		t.Errorf("refused: %+v, %v", d, err)
	}
	if i := w.pager.Incidents()[0]; i.Status != pager.Resolved {
		t.Errorf("a webhook that failed does not undo what a person did: %+v", i)
	}
}

// TestChangeEvents are taken, and open nothing.
func TestChangeEvents(t *testing.T) {
	t.Parallel()
	w := pdWorld(t)
	if status, body := call(t, http.MethodPost, w.url+"/v2/change/enqueue", event("trigger", "")); status != 202 {
		t.Errorf("HTTP %d %s", status, body)
	}
	if status, body := call(t, http.MethodPost, w.url+"/v2/change/enqueue", `{"routing_key":"`+routingKey+`"}`); status != 400 {
		t.Errorf("HTTP %d %s", status, body)
	}
	if n := len(w.pager.Incidents()); n != 0 {
		t.Errorf("%d incidents", n)
	}
}

// FuzzEnqueue: whatever is posted, the answer is PagerDuty's JSON, and an
// incident is there exactly when a trigger was taken.
func FuzzEnqueue(f *testing.F) {
	f.Add([]byte(event("trigger", "k")))
	f.Add([]byte(event("resolve", "k")))
	f.Add([]byte(`{"payload":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p := pager.New(func() time.Time { return start })
		rec := httptest.NewRecorder()
		p.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v2/enqueue", strings.NewReader(string(body))))
		var said struct{ Status string }
		if err := json.Unmarshal(rec.Body.Bytes(), &said); err != nil || (rec.Code == 202) != (said.Status == "success") {
			t.Fatalf("HTTP %d %s, %v", rec.Code, rec.Body, err)
		}
		j := p.Journal()
		if len(j) != 1 || j[0].Taken != (rec.Code == 202) {
			t.Fatalf("HTTP %d, journal %+v", rec.Code, j)
		}
		if opened := len(p.Incidents()) == 1; opened != (j[0].Taken && j[0].Action == "trigger") {
			t.Errorf("opened %v by %+v", opened, j[0])
		}
	})
}
