package web_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

const (
	pdKey    = "setpoint/1a2b3c/e3"
	pdSecret = "a webhook secret of pagerduty"
)

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// acknowledgement is a body of PagerDuty's webhooks, version 3.
func acknowledgement(kind, key, agent, at string) string {
	return `{"event":{"id":"01DEN4HPBQAAAG05V5QQYBRZMF","event_type":"` + kind + `","resource_type":"incident","occurred_at":"` + at + `",` +
		`"agent":` + agent + `,"client":null,"data":{"id":"PGR0VU2","type":"incident","incident_key":"` + key + `","status":"acknowledged","title":"approve t9"}}}`
}

const (
	alicePD = `{"id":"PLH1HKV","type":"user_reference","summary":"Alice"}`
	seen    = "incident.acknowledged"
	later   = "2026-03-01T12:15:00Z"
)

// pagerdutySite is a site whose page e3 is held by PagerDuty.
func pagerdutySite(t *testing.T, hooks ...web.PagerDuty) (*site, http.Handler) {
	t.Helper()
	s := newSite(t)
	o := s.options()
	o.PagerDuty = hooks
	server, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.record(ledger.Draft{Kind: ledger.KindDelivery, Body: escalate.Delivery{Page: "e3", Receiver: "pd", First: start, Sent: start, Ref: pdKey}})
	return s, server.TCP()
}

func (s *site) record(d ledger.Draft) {
	s.t.Helper()
	_, err := s.store.Append(context.Background(), s.state().Head, func([]ledger.Entry) ([]ledger.Draft, error) {
		return []ledger.Draft{d}, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func secretOf(value string) func() (string, error) {
	return func() (string, error) { return value, nil }
}

func TestPagerDutyAcknowledges(t *testing.T) {
	body := acknowledgement(seen, pdKey, alicePD, later)
	cases := map[string]struct {
		reason, method, body, signature string
		status                          int
		says, by                        string
	}{
		"Seen":       {"somebody saw it there", "POST", body, sign(pdSecret, body), 200, `"kind": "Ack"`, "pagerduty:PLH1HKV"},
		"Rotating":   {"of several signatures one is enough", "POST", body, "v1=" + strings.Repeat("0", 64) + ", " + sign(pdSecret, body), 200, `"kind": "Ack"`, "pagerduty:PLH1HKV"},
		"Uppercase":  {"hex is hex", "POST", body, "v1=" + strings.ToUpper(sign(pdSecret, body)[3:]), 200, `"kind": "Ack"`, "pagerduty:PLH1HKV"},
		"Unsigned":   {"a stranger quietens nothing", "POST", body, "", 401, "signature", ""},
		"Forged":     {"nor one with another key", "POST", body, sign("another", body), 401, "signature", ""},
		"EmptyKey":   {"nor one with none", "POST", body, sign("", body), 401, "signature", ""},
		"Tampered":   {"a byte more is another body", "POST", body + " ", sign(pdSecret, body), 401, "signature", ""},
		"Version":    {"version 0 is not ours", "POST", body, "v0=" + sign(pdSecret, body)[3:], 401, "signature", ""},
		"Half":       {"half a signature is none", "POST", body, sign(pdSecret, body)[:35], 401, "signature", ""},
		"Other":      {"only acknowledgements count", "POST", acknowledgement("incident.resolved", pdKey, alicePD, later), "", 200, "Ignored", ""},
		"UnknownKey": {"somebody else's incident", "POST", acknowledgement(seen, "x", alicePD, later), "", 200, "Ignored", ""},
		"NoKey":      {"no key is no page, even where a delivery has none", "POST", acknowledgement(seen, "", alicePD, later), "", 200, "Ignored", ""},
		"OldEvent":   {"one from before the page is of an earlier page of that key", "POST", acknowledgement(seen, pdKey, alicePD, "2026-03-01T12:09:59Z"), "", 200, "Ignored", ""},
		"Garbage":    {"what is no event is refused", "POST", "{", "", 400, "no event", ""},
		"Large":      {"a body has a limit", "POST", `"` + strings.Repeat("x", 1<<20) + `"`, "", 413, "1 MiB", ""},
		"Get":        {"it is posted", "GET", "", "", 405, "takes POST", ""},
		"Name":       {"an agent without an id has a name, cleaned", "POST", acknowledgement(seen, pdKey, `{"id":"../x","summary":"A\u202el\nice"}`, later), "", 200, "Ack", "pagerduty:A l ice"},
		"Nobody":     {"an agent without anything", "POST", acknowledgement(seen, pdKey, `null`, later), "", 200, "Ack", "pagerduty:unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, h := pagerdutySite(t, web.PagerDuty{Receiver: "pd", Secret: secretOf(pdSecret)})
			if tc.signature == "" && tc.status != 401 {
				tc.signature = sign(pdSecret, tc.body)
			}
			req := httptest.NewRequestWithContext(t.Context(), tc.method, "/hooks/pagerduty", strings.NewReader(tc.body))
			if tc.signature != "" {
				req.Header.Set("X-PagerDuty-Signature", tc.signature)
			}
			w := httptest.NewRecorder()
			before := s.state()
			h.ServeHTTP(w, req)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s: HTTP %d %s, want %d with %q", tc.reason, w.Code, w.Body, tc.status, tc.says)
			}
			after := s.state()
			if got := after.Pages["e3"].AckedBy; got != tc.by {
				t.Errorf("%s: acknowledged by %q, want %q", tc.reason, got, tc.by)
			}
			// It may only acknowledge.
			want := before.Head.Seq
			if tc.by != "" {
				want++
			}
			if after.Head.Seq != want {
				t.Errorf("%s: %d entries, want %d", tc.reason, after.Head.Seq, want)
			}
			if diff := cmp.Diff(before.Tickets, after.Tickets); diff != "" {
				t.Errorf("%s: a ticket changed:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPagerDutyTwice: PagerDuty may send an event again; it is recorded once.
func TestPagerDutyTwice(t *testing.T) {
	s, h := pagerdutySite(t, web.PagerDuty{Receiver: "pd", Secret: secretOf(pdSecret)})
	body := acknowledgement(seen, pdKey, alicePD, later)
	before := s.state().Head.Seq
	for range 3 {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/pagerduty", strings.NewReader(body))
		req.Header.Set("X-PagerDuty-Signature", sign(pdSecret, body))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, req); w.Code != 200 {
			t.Fatalf("HTTP %d %s", w.Code, w.Body)
		}
	}
	if got := s.state().Head.Seq; got != before+1 {
		t.Errorf("%d entries, want one more than %d", got, before)
	}
}

// TestPagerDutyWhose: the secret of one receiver speaks for the pages that it holds.
func TestPagerDutyWhose(t *testing.T) {
	broken := func() (string, error) { return "", errors.New("no such file") }
	cases := map[string]struct {
		reason string
		hooks  []web.PagerDuty
		status int
		by     string
	}{
		"NotConfigured": {"nobody wants acknowledgements from there", nil, 404, ""},
		"Another":       {"a receiver that does not hold the page cannot say that it was seen", []web.PagerDuty{{Receiver: "other", Secret: secretOf(pdSecret)}}, 200, ""},
		"Two":           {"two of them may share a secret", []web.PagerDuty{{Receiver: "other", Secret: secretOf(pdSecret)}, {Receiver: "pd", Secret: secretOf(pdSecret)}}, 200, "pagerduty:PLH1HKV"},
		"Unreadable":    {"a secret that cannot be read admits nobody", []web.PagerDuty{{Receiver: "pd", Secret: broken}}, 401, ""},
		"Empty":         {"nor does one that is empty", []web.PagerDuty{{Receiver: "pd", Secret: secretOf("")}}, 401, ""},
	}
	body := acknowledgement(seen, pdKey, alicePD, later)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, h := pagerdutySite(t, tc.hooks...)
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/pagerduty", strings.NewReader(body))
			req.Header.Set("X-PagerDuty-Signature", sign(pdSecret, body)+","+sign("", body))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if got := s.state().Pages["e3"].AckedBy; w.Code != tc.status || got != tc.by {
				t.Errorf("%s: HTTP %d, acknowledged by %q, want %d and %q", tc.reason, w.Code, got, tc.status, tc.by)
			}
		})
	}
}

// FuzzPagerDuty: whatever is posted without the secret is refused, and what is
// posted with it ends in no fault of the server.
func FuzzPagerDuty(f *testing.F) {
	body := acknowledgement(seen, pdKey, alicePD, later)
	f.Add(sign(pdSecret, body), body, false)
	f.Add("v1=,v1=zz,,v2=", "{}", true)
	f.Add("", `{"event":{"occurred_at":"yesterday"}}`, true)
	var looked bool
	view := web.View{State: ledger.NewState()}
	server, err := web.New(web.Options{
		View: func(use func(web.View)) { looked = true; use(view) }, Desk: reconcile.NewDesk(nil, nil, time.Now),
		Files:       func() ([]ledger.Freeze, error) { return nil, nil },
		WriteFreeze: func(ledger.Freeze) error { return nil }, RemoveFreeze: func(string) error { return nil },
		Ready: func() string { return "" }, Reload: func(context.Context) error { return nil }, Hint: func(string) {},
		PagerDuty: []web.PagerDuty{{Receiver: "pd", Secret: secretOf(pdSecret)}}, Now: time.Now,
	})
	if err != nil {
		f.Fatal(err)
	}
	h := server.TCP()
	f.Fuzz(func(t *testing.T, signature, body string, good bool) {
		if good {
			signature += "," + sign(pdSecret, body)
		}
		looked = false
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/pagerduty", strings.NewReader(body))
		req.Header["X-Pagerduty-Signature"] = []string{signature}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		signed := strings.Contains(strings.ToLower(signature), sign(pdSecret, body)[3:])
		switch {
		case w.Code >= 500:
			t.Errorf("HTTP %d %s", w.Code, w.Body)
		case !signed && (w.Code != 401 && w.Code != 413 || looked):
			t.Errorf("HTTP %d without a signature, looked at: %t", w.Code, looked)
		case signed && w.Code == 401 && strings.Count(signature, "v1=") < 20 && good:
			t.Errorf("HTTP 401 with a signature: %q", signature)
		}
	})
}
