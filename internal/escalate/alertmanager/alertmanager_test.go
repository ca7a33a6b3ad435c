package alertmanager_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

func receiver(t *testing.T, url string, now func() time.Time) *alertmanager.Receiver {
	t.Helper()
	r, err := alertmanager.New(alertmanager.Options{Name: "oncall", URL: url, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func page(now time.Time) escalate.Page {
	return escalate.Page{
		ID: "e12", Service: "checkout", Episode: "e12", Reason: escalate.CannotAct, Now: escalate.CannotAct, Severity: "critical",
		Summary: "checkout misses availability", Text: "Measured\n  availability: 6.2 % errors", Since: now.Add(-10 * time.Minute),
	}
}

// The life of a page in a real Alertmanager: posted, updated, silenced, ended.
func TestLifeOfAPage(t *testing.T) {
	am := start(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := receiver(t, am.url, func() time.Time { return now })
	p := page(now)

	send := func() {
		t.Helper()
		if _, err := r.Send(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
	}
	send()
	body := am.notification(t, "the page fires", func(m message) bool { return m.Status == "firing" })
	sameShape(t, body, p)

	// Posted again with other words: one alert, the same begin, a later end.
	p.Now, p.Summary = escalate.Blind, "checkout is now blind"
	now = now.Add(time.Minute)
	send()
	as := am.alerts(t)
	if len(as) != 1 {
		t.Fatalf("%d alerts, want the same one: %+v", len(as), as)
	}
	want := apiAlert{
		Labels:      map[string]string{"alertname": "SetpointEscalation", "service": "checkout", "episode": "e12", "severity": "critical", "reason": "cannot-act"},
		Annotations: map[string]string{"summary": p.Summary, "description": p.Text, "now": "blind"},
		StartsAt:    p.Since, EndsAt: now.Add(alertmanager.Lasts),
	}
	want.Status = as[0].Status
	if diff := cmp.Diff(want, as[0]); diff != "" {
		t.Errorf("alert, -want +got:\n%s", diff)
	}

	// Silenced by a person: the page shows it, and the silence is a hold.
	am.silence(t, "deploying", `{"name":"service","value":"checkout","isRegex":false}`)
	if as = am.alerts(t); len(as) != 1 || as[0].Status.State != "suppressed" {
		t.Errorf("a silenced page is %+v", as)
	}
	holds, err := r.Silences(t.Context(), "checkout")
	if err != nil || len(holds) != 1 || holds[0].By != "alice" || holds[0].Text != "deploying" || !holds[0].Until.After(now) || holds[0].ID != as[0].Status.SilencedBy[0] {
		t.Errorf("holds %+v, %v", holds, err)
	}
	am.call(t, http.MethodDelete, "/api/v2/silence/"+holds[0].ID, "", nil)
	if holds, err = r.Silences(t.Context(), "checkout"); err != nil || len(holds) != 0 {
		t.Errorf("an expired silence holds: %+v, %v", holds, err)
	}

	// Ended: its receiver hears that it is resolved, once for two sends.
	now = time.Now().UTC()
	p.EndedAt, p.EndReason = now, "recovered"
	send()
	send()
	am.notification(t, "the page is resolved", func(m message) bool {
		return m.Status == "resolved" && len(m.Alerts) == 1 && m.Alerts[0].Annotations["ended"] == "recovered"
	})
	if as = am.alerts(t); len(as) != 0 {
		t.Errorf("still open: %+v", as)
	}
}

// A begin in the future (a clock that was set back) must not lose the page,
// nor an end that nobody heard the beginning of.
func TestOddTimes(t *testing.T) {
	am := start(t)
	now := time.Now().UTC()
	r := receiver(t, am.url, func() time.Time { return now })
	cases := map[string]func(*escalate.Page){
		"Future":     func(p *escalate.Page) { p.Since = now.Add(24 * time.Hour) },
		"Zero":       func(p *escalate.Page) { p.Since = time.Time{} },
		"EndAtBegin": func(p *escalate.Page) { p.Since, p.EndedAt = now, now },
		"NeverSent":  func(p *escalate.Page) { p.EndedAt = now },
		"NoService":  func(p *escalate.Page) { p.Service = "" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			p := page(now)
			p.ID = name
			change(&p)
			if _, err := r.Send(t.Context(), p, ""); err != nil {
				t.Error(err)
			}
		})
	}
	var open []string
	for _, a := range am.alerts(t) {
		open = append(open, a.Labels["episode"])
	}
	slices.Sort(open)
	if diff := cmp.Diff([]string{"Future", "NoService", "Zero"}, open); diff != "" {
		t.Errorf("open pages, -want +got:\n%s", diff)
	}
}

// sameShape holds the generic webhook against what a real Alertmanager sends
// for the same page: every key it has, we have, and the same fingerprint.
func sameShape(t *testing.T, real []byte, p escalate.Page) {
	t.Helper()
	ours, err := json.Marshal(escalate.NewMessage(p, "sink", ""))
	if err != nil {
		t.Fatal(err)
	}
	var a, b map[string]any
	if err := json.Unmarshal(real, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(ours, &b); err != nil {
		t.Fatal(err)
	}
	first := func(m map[string]any) map[string]any { return m["alerts"].([]any)[0].(map[string]any) }
	for _, m := range []map[string]any{a, b} {
		// Where Alertmanager stands is its own matter.
		m["externalURL"], first(m)["generatorURL"] = "", ""
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("our webhook differs from Alertmanager's, -theirs +ours:\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(first(a))), slices.Sorted(maps.Keys(first(b)))); diff != "" {
		t.Errorf("keys of an alert:\n%s", diff)
	}
}

func (s server) silence(t *testing.T, comment string, matchers ...string) {
	t.Helper()
	now := time.Now().UTC()
	body := fmt.Sprintf(`{"matchers":[%s],"startsAt":%q,"endsAt":%q,"createdBy":"alice","comment":%q}`,
		strings.Join(matchers, ","), now.Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), comment)
	s.call(t, http.MethodPost, "/api/v2/silences", body, nil)
}

func matcher(name, op, value string) string {
	return fmt.Sprintf(`{"name":%q,"value":%q,"isRegex":%t,"isEqual":%t}`, name, value, strings.Contains(op, "~"), op[0] == '=')
}

func TestWhichSilencesHold(t *testing.T) {
	am := start(t)
	m := matcher
	silences := map[string]struct {
		matchers []string
		holds    bool
	}{
		"the service, whatever the alert":       {[]string{m("service", "=", "checkout"), m("alertname", "=", "HighErrorRate")}, true},
		"the service by pattern":                {[]string{m("service", "=~", "checkout|cart")}, true},
		"our page":                              {[]string{m("alertname", "=", "SetpointEscalation")}, true},
		"our critical pages":                    {[]string{m("alertname", "=", "SetpointEscalation"), m("severity", "=", "critical")}, true},
		"everything but another":                {[]string{m("alertname", "=~", "Setpoint.*"), m("service", "!=", "cart")}, true},
		"another service":                       {[]string{m("service", "=", "cart")}, false},
		"a pattern is anchored":                 {[]string{m("service", "=~", "check")}, false},
		"not this service":                      {[]string{m("alertname", "=", "SetpointEscalation"), m("service", "!=", "checkout")}, false},
		"another alert of every service":        {[]string{m("service", "=~", ".+"), m("alertname", "=", "Watchdog")}, false},
		"another alert":                         {[]string{m("alertname", "=", "Watchdog")}, false},
		"our page with a label that may differ": {[]string{m("alertname", "=", "SetpointEscalation"), m("severity", "=", "warning")}, false},
	}
	var want []string
	for comment, s := range silences {
		am.silence(t, comment, s.matchers...)
		if s.holds {
			want = append(want, comment)
		}
	}
	slices.Sort(want)
	holds, err := receiver(t, am.url+"/", time.Now).Silences(t.Context(), "checkout")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range holds {
		got = append(got, h.Text)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.IsSortedFunc(holds, func(a, b gate.Hold) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("not sorted: %+v", holds)
	}
}

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   string
	}{
		"Refused": {"Alertmanager's own words reach people", 400, `"invalid label set"`, "page e12 to alertmanager oncall: refused (400): invalid label set"},
		"Failed":  {"likewise", 500, `"disk full"`, "failed (500): disk full"},
		"Proxy":   {"an answer that is not Alertmanager's", 502, "<html>", "502"},
		"Moved":   {"a redirect is no delivery", 302, "", "302"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer srv.Close()
			r := receiver(t, srv.URL+"/prefix", time.Now)
			if _, err := r.Send(t.Context(), page(time.Now()), ""); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.want)
			}
			if _, err := r.Silences(t.Context(), "checkout"); err == nil {
				t.Error("silences that were not read are none")
			}
		})
	}
	t.Run("Down", func(t *testing.T) {
		srv := httptest.NewServer(http.NotFoundHandler())
		srv.Close()
		if _, err := receiver(t, srv.URL, time.Now).Send(t.Context(), page(time.Now()), ""); err == nil || strings.Contains(err.Error(), srv.URL) {
			t.Errorf("error %v, want one that does not print the url", err)
		}
	})
	t.Run("Hangs", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			<-r.Context().Done()
		}))
		defer srv.Close()
		r, err := alertmanager.New(alertmanager.Options{Name: "oncall", URL: srv.URL, Now: time.Now, Timeout: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Send(t.Context(), page(time.Now()), ""); err == nil {
			t.Error("a receiver that hangs took the page")
		}
	})
}

func TestNew(t *testing.T) {
	cases := map[string]alertmanager.Options{
		"no clock":    {Name: "a", URL: "http://127.0.0.1:9093"},
		"want http":   {Name: "a", URL: "127.0.0.1:9093", Now: time.Now},
		"want http:/": {Name: "a", URL: "http://", Now: time.Now},
		"basic_auth":  {Name: "a", URL: "http://u:hunter2@127.0.0.1:9093", Now: time.Now},
	}
	for want, o := range cases {
		_, err := alertmanager.New(o)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(want, ":/")) && !strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
