package pager_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	"github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
)

var start = time.Date(2100, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a pager on loopback with the agent's own receivers, on one clock.
type world struct {
	pager *pager.Pager
	url   string

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: start}
	w.pager = pager.New(w.clock)
	srv := httptest.NewServer(w.pager.Handler())
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) alertmanager(t *testing.T) *alertmanager.Receiver {
	t.Helper()
	r, err := alertmanager.New(alertmanager.Options{Name: "oncall", URL: w.url, HTTP: config.DefaultHTTPClientConfig, Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) webhook(t *testing.T) *webhook.Receiver {
	t.Helper()
	r, err := webhook.New(webhook.Options{Name: "backup", URL: w.url + "/page", HTTP: config.DefaultHTTPClientConfig, Now: w.clock, Secret: []byte("s")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func page(id string) escalate.Page {
	return escalate.Page{
		ID: id, Service: "checkout", Episode: id, Reason: escalate.CannotAct, Now: escalate.CannotAct,
		Severity: escalate.SeverityCritical, Summary: "checkout misses its SLO", Text: "Measured", Since: start.Add(-time.Minute),
	}
}

func ended(p escalate.Page, at time.Time) escalate.Page {
	p.EndedAt, p.EndReason = at, "recovered"
	return p
}

func send(t *testing.T, r escalate.Receiver, p escalate.Page) {
	t.Helper()
	if _, err := r.Send(t.Context(), p, ""); err != nil {
		t.Fatal(err)
	}
}

func after(d time.Duration) time.Time { return start.Add(d) }

// TestDeliveries sends a story through each of the agent's receivers, a minute
// for each line, and reads it back.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	blind := page("a")
	blind.Summary, blind.Now = "now blind", escalate.Blind
	seen := func(id string, opened, over time.Duration, posts int) pager.Page {
		p := pager.Page{ID: id, Labels: page(id).Labels(), Summary: page(id).Summary, OpenedAt: after(opened), Posts: posts}
		if over >= 0 {
			p.EndedAt = after(over)
		}
		return p
	}
	const open = -time.Second
	changed := seen("a", 0, open, 2)
	changed.Summary = "now blind"
	cases := map[string]struct {
		reason string
		story  []escalate.Page
		want   []pager.Page
	}{
		"Open":      {"A page is open until it is ended.", []escalate.Page{page("a")}, []pager.Page{seen("a", 0, open, 1)}},
		"Again":     {"The same page is one page, however often it is posted.", []escalate.Page{page("a"), page("a"), page("a")}, []pager.Page{seen("a", 0, open, 3)}},
		"Ended":     {"It ends once.", []escalate.Page{page("a"), ended(page("a"), after(time.Minute)), ended(page("a"), after(2*time.Minute))}, []pager.Page{seen("a", 0, time.Minute, 3)}},
		"Changed":   {"Its words may change.", []escalate.Page{page("a"), blind}, []pager.Page{changed}},
		"Reopened":  {"Who is woken twice has two pages.", []escalate.Page{page("a"), ended(page("a"), after(time.Minute)), page("a")}, []pager.Page{seen("a", 0, time.Minute, 2), seen("a", 2*time.Minute, open, 1)}},
		"Two":       {"Pages are told apart by their id, in order of opening.", []escalate.Page{page("b"), page("a"), ended(page("b"), after(2*time.Minute))}, []pager.Page{seen("b", 0, 2*time.Minute, 2), seen("a", time.Minute, open, 1)}},
		"OnlyEnded": {"An end without an opening does not pass unseen.", []escalate.Page{ended(page("a"), start)}, []pager.Page{seen("a", 0, 0, 1)}},
	}
	for name, tc := range cases {
		receivers := map[string]func(*world, *testing.T) escalate.Receiver{
			"Webhook":      func(w *world, t *testing.T) escalate.Receiver { return w.webhook(t) },
			"Alertmanager": func(w *world, t *testing.T) escalate.Receiver { return w.alertmanager(t) },
		}
		for kind, receiver := range receivers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				r := receiver(w, t)
				for _, p := range tc.story {
					send(t, r, p)
					w.pass(time.Minute)
				}
				if diff := cmp.Diff(tc.want, w.pager.Pages()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// TestForgotten: Alertmanager ends what is no longer posted; a webhook waits.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send(t, w.alertmanager(t), page("a"))
	send(t, w.webhook(t), page("b"))
	w.pass(alertmanager.Lasts + time.Hour)
	got := map[string]time.Time{}
	for _, p := range w.pager.Pages() {
		got[p.ID] = p.EndedAt
	}
	if diff := cmp.Diff(map[string]time.Time{"a": after(alertmanager.Lasts), "b": {}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestNoSilences: the agent's own client reads the empty list as none.
func TestNoSilences(t *testing.T) {
	t.Parallel()
	holds, err := newWorld(t).alertmanager(t).Silences(t.Context(), "checkout")
	if err != nil || len(holds) != 0 {
		t.Errorf("got %v, %v, want none", holds, err)
	}
}

// TestPagesAreCopies: what was handed out does not change what is kept.
func TestPagesAreCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send(t, w.webhook(t), page("a"))
	first := w.pager.Pages()
	first[0].Labels["service"] = "x"
	if got := w.pager.Pages()[0].Labels["service"]; got != "checkout" {
		t.Errorf("label service is now %q", got)
	}
}

func TestAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	am, hook := w.alertmanager(t), w.webhook(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			send(t, am, page("a"))
			send(t, hook, page("b"))
			w.pager.Pages()
		})
	}
	all.Wait()
	want := map[string]int{"a": 8, "b": 8}
	got := map[string]int{}
	for _, p := range w.pager.Pages() {
		got[p.ID] += p.Posts
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestRefused: what is no page is refused whole, and leaves nothing behind.
func TestRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		path, body string
		status     int
		has        string
	}{
		"WebhookGarbage":  {"/page", "page!", 400, "no webhook message"},
		"WebhookVersion":  {"/page", `{"version":"3","alerts":[{"status":"firing","labels":{"a":"b"}}]}`, 400, "want 4"},
		"WebhookEmpty":    {"/page", `{"version":"4","alerts":[]}`, 400, "no alerts"},
		"WebhookStatus":   {"/page", `{"version":"4","alerts":[{"status":"firing","labels":{"a":"b"}},{"status":"on","labels":{"a":"b"}}]}`, 400, "alerts[1].status"},
		"WebhookLabels":   {"/page", `{"version":"4","alerts":[{"status":"firing"}]}`, 400, "no labels"},
		"WebhookLarge":    {"/page", `"` + strings.Repeat("x", 2<<20) + `"`, 400, "too large"},
		"AlertsGarbage":   {"/api/v2/alerts", "{", 400, ""},
		"AlertsObject":    {"/api/v2/alerts", "{}", 400, ""},
		"AlertsNull":      {"/api/v2/alerts", "[null]", 400, "label"},
		"AlertsNoLabels":  {"/api/v2/alerts", `[{"labels":{}}]`, 400, "label"},
		"AlertsEmpty":     {"/api/v2/alerts", `[{"labels":{"a":"b"}},{"labels":{"a":""}}]`, 400, "alert 1"},
		"AlertsBackwards": {"/api/v2/alerts", `[{"labels":{"a":"b"},"startsAt":"2100-01-01T13:00:00Z","endsAt":"2100-01-01T12:00:00Z"}]`, 400, "before end time"},
		"AlertsTime":      {"/api/v2/alerts", `[{"labels":{"a":"b"},"endsAt":"soon"}]`, 400, ""},
		"NoneIsFine":      {"/api/v2/alerts", "[]", 200, ""},
		"Elsewhere":       {"/api/v1/alerts", "[]", 404, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			status, body := call(t, http.MethodPost, w.url+tc.path, tc.body)
			if status != tc.status || !strings.Contains(body, tc.has) {
				t.Errorf("HTTP %d %s, want %d with %q", status, body, tc.status, tc.has)
			}
			if diff := cmp.Diff([]pager.Page{}, w.pager.Pages(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestOthersAlert: an alert without our labels is a page as well; an absent
// end is Alertmanager's five minutes.
func TestOthersAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if status, body := call(t, http.MethodPost, w.url+"/api/v2/alerts", `[{"labels":{"alertname":"Dead"}}]`); status != 200 {
		t.Fatalf("HTTP %d %s", status, body)
	}
	w.pass(time.Hour)
	want := []pager.Page{{
		Labels: map[string]string{"alertname": "Dead"}, OpenedAt: start, EndedAt: after(5 * time.Minute), Posts: 1,
	}}
	got := w.pager.Pages()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(pager.Page{}, "ID")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got[0].ID == "" {
		t.Error("it has no id")
	}
}
