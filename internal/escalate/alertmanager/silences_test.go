package alertmanager_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// A silence holds a page exactly when a real Alertmanager mutes what Send posts:
// it is asked which silences muted the alert.
func TestSilencesForAPage(t *testing.T) {
	am := start(t)
	m := matcher
	silences := map[string]struct {
		matchers []string
		holds    bool
	}{
		"its service":                     {[]string{m("service", "=", "checkout")}, true},
		"its service and severity":        {[]string{m("service", "=", "checkout"), m("severity", "=", "critical")}, true},
		"its episode":                     {[]string{m("episode", "=", "e12")}, true},
		"its reason by pattern":           {[]string{m("reason", "=~", "cannot-.*|blind")}, true},
		"every page of ours":              {[]string{m("alertname", "=", "SetpointEscalation")}, true},
		"no warning":                      {[]string{m("severity", "!=", "warning")}, true},
		"none of two services":            {[]string{m("service", "!~", "cart|web")}, true},
		"a label that it has not":         {[]string{m("service", "=", "checkout"), m("team", "=", "")}, true},
		"a label that it has not, negate": {[]string{m("service", "=", "checkout"), m("team", "!=", "payments")}, true},
		"a pattern that takes empty":      {[]string{m("service", "=", "checkout"), m("team", "=~", "(payments)?")}, true},
		"another severity":                {[]string{m("service", "=", "checkout"), m("severity", "=", "warning")}, false},
		"another alert of the service":    {[]string{m("service", "=", "checkout"), m("alertname", "=", "HighErrorRate")}, false},
		"another service":                 {[]string{m("service", "=", "cart")}, false},
		"a pattern is anchored":           {[]string{m("service", "=~", "check")}, false},
		"not this service":                {[]string{m("alertname", "=", "SetpointEscalation"), m("service", "!~", "check.+")}, false},
		"a label that it needs":           {[]string{m("service", "=", "checkout"), m("team", "!=", "")}, false},
		"another episode":                 {[]string{m("service", "=", "checkout"), m("episode", "=", "e13")}, false},
		"the episode's upper case":        {[]string{m("episode", "=", "E12")}, false},
	}
	var want []string
	for comment, s := range silences {
		am.silence(t, comment, s.matchers...)
		if s.holds {
			want = append(want, comment)
		}
	}
	now := time.Now()
	am.silenceAt(t, "pending", now.Add(time.Hour), now.Add(2*time.Hour), m("service", "=", "checkout"))
	am.silence(t, "expired", m("service", "=", "checkout"))
	am.call(t, http.MethodDelete, "/api/v2/silence/"+am.silenceID(t, "expired"), "", nil)

	r, p := receiver(t, am.url, time.Now), page(now)
	if _, err := r.Send(t.Context(), p, ""); err != nil {
		t.Fatal(err)
	}
	holds, err := r.SilencesFor(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var got, ids []string
	for _, h := range holds {
		got, ids = append(got, h.Text), append(ids, h.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	as := am.alerts(t)
	if len(as) != 1 {
		t.Fatalf("%d alerts, want the one page", len(as))
	}
	muted := as[0].Status.SilencedBy
	slices.Sort(muted)
	if diff := cmp.Diff(muted, ids); diff != "" {
		t.Errorf("Alertmanager mutes the page by other silences (-its +ours):\n%s", diff)
	}
}

// A page about no service has no label for it, and is held by what does not ask
// for one.
func TestSilencesForAPageWithoutService(t *testing.T) {
	am := start(t)
	am.silence(t, "sources", matcher("episode", "=~", "source/.*"))
	am.silence(t, "no service", matcher("alertname", "=", "SetpointEscalation"), matcher("service", "=", ""))
	am.silence(t, "some service", matcher("alertname", "=", "SetpointEscalation"), matcher("service", "=~", ".+"))
	p := escalate.Page{ID: "source/main", Reason: escalate.SourceDown, Severity: escalate.SeverityWarning, Since: time.Now()}
	holds, err := receiver(t, am.url, time.Now).SilencesFor(t.Context(), p)
	if err != nil || len(holds) != 2 {
		t.Fatalf("got %+v, %v, want the two that match", holds, err)
	}
	for _, h := range holds {
		if h.Text == "some service" {
			t.Errorf("a page without a service is held by %+v", h)
		}
	}
}

// What cannot be read holds back no page, and holds every action.
func TestUnreadableSilences(t *testing.T) {
	const good = `{"name":"service","value":"checkout","isRegex":false,"isEqual":true}`
	for name, matchers := range map[string]string{
		"broken pattern": good + `,{"name":"reason","value":"(","isRegex":true,"isEqual":true}`,
		"broken negated": good + `,{"name":"reason","value":"(","isRegex":true,"isEqual":false}`,
		"no name":        good + `,{"value":"x","isRegex":false,"isEqual":true}`,
		"nothing":        good + `,null`,
		"no matchers":    ``,
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `[{"id":"s1","status":{"state":"active"},"createdBy":"alice","comment":"x","startsAt":"2026-01-01T00:00:00Z","endsAt":"2027-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","matchers":[%s]}]`, matchers)
			}))
			defer srv.Close()
			r := receiver(t, srv.URL, time.Now)
			if holds, err := r.SilencesFor(t.Context(), page(time.Now())); err != nil || len(holds) != 0 {
				t.Errorf("the page is held by %+v, %v", holds, err)
			}
			holds, err := r.Silences(t.Context(), "checkout")
			if want := matchers != ""; err != nil || (len(holds) == 1) != want {
				t.Errorf("actions held by %+v, %v, want held: %t", holds, err, want)
			}
		})
	}
}

// Whoever cannot be asked gives an error, which the caller reads by its need:
// not silenced for paging, silenced for acting.
func TestSilencesForOfNobody(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>")
	}))
	defer srv.Close()
	if holds, err := receiver(t, srv.URL, time.Now).SilencesFor(t.Context(), page(time.Now())); err == nil {
		t.Errorf("got %+v and no error", holds)
	}
}

func (s server) silenceAt(t *testing.T, comment string, from, to time.Time, matchers string) {
	t.Helper()
	body := fmt.Sprintf(`{"matchers":[%s],"startsAt":%q,"endsAt":%q,"createdBy":"alice","comment":%q}`,
		matchers, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), comment)
	s.call(t, http.MethodPost, "/api/v2/silences", body, nil)
}

func (s server) silenceID(t *testing.T, comment string) string {
	t.Helper()
	var all []struct{ ID, Comment string }
	s.call(t, http.MethodGet, "/api/v2/silences", "", &all)
	for _, x := range all {
		if x.Comment == comment {
			return x.ID
		}
	}
	t.Fatalf("no silence %q", comment)
	return ""
}
