package pagerduty_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/pagerduty"
	"github.com/setpoint-dev/setpoint/internal/lab/fault"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
)

var update = flag.Bool("update", false, "write the golden files")

const routingKey = "R0UTINGKEY0123456789abcdefABCDEF"

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func page() escalate.Page {
	p := escalate.Page{
		ID: "e12", Service: "checkout", Owner: "team-payments", Episode: "e12", Reason: escalate.CannotAct, Now: escalate.CannotAct,
		Severity: escalate.SeverityCritical, Summary: "checkout misses availability: 6.2 % errors", Gist: "g",
		Receivers: []string{"pd", "backup"}, Since: now.Add(-10 * time.Minute),
		Lead: approve.Lead{Broken: "checkout misses availability", Step: "did: restart", Why: "why: budget", Until: "until: it is met", Do: "do: setpoint explain checkout"},
	}
	lines := p.Lead.Lines()
	p.Text = strings.Join(lines[:], "\n") + "\nMeasured"
	return p
}

func ended(p escalate.Page) escalate.Page {
	p.EndedAt, p.EndReason = now, "recovered"
	return p
}

func options(url string) pagerduty.Options {
	return pagerduty.Options{
		Name: "pd", URL: url, Installation: "1a2b3c", ExternalURL: "http://setpoint.internal:8321",
		Key: func() (string, error) { return routingKey, nil },
	}
}

func receiver(t *testing.T, o pagerduty.Options) *pagerduty.Receiver {
	t.Helper()
	r, err := pagerduty.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recorder keeps the bodies that it was sent.
type recorder struct {
	mu     sync.Mutex
	bodies []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(b))
	w.WriteHeader(http.StatusAccepted)
}

// TestEvents: the bodies, byte by byte: they are other people's format.
func TestEvents(t *testing.T) {
	fleet := escalate.Render(escalate.PageFacts{ID: "source/main", Reason: escalate.SourceDown, Why: "source main does not answer", Now: now})
	beat := escalate.Page{ID: "heartbeat/pd", Reason: escalate.Heartbeat, Now: escalate.Heartbeat, Severity: escalate.SeverityNone, Summary: "setpoint: heartbeat, nothing to do", Text: "Setpoint can reach pd.", Since: now}
	cases := map[string]escalate.Page{"trigger": page(), "resolve": ended(page()), "fleet": fleet, "heartbeat": beat}
	for name, p := range cases {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{}
			srv := httptest.NewServer(rec)
			t.Cleanup(srv.Close)
			if _, err := receiver(t, options(srv.URL)).Send(t.Context(), p, ""); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, b := range rec.bodies {
				if err := json.Indent(&got, []byte(b), "", "  "); err != nil {
					t.Fatal(err)
				}
				got.WriteByte('\n')
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got (go test -update writes it):\n%s", diff)
			}
		})
	}
}

// world is a PagerDuty on loopback.
type world struct {
	*pager.Pager
	url string
}

func newWorld(t *testing.T) world {
	t.Helper()
	p := pager.New(func() time.Time { return now })
	p.PagerDuty(pager.PagerDuty{RoutingKey: routingKey})
	srv := httptest.NewServer(p.Handler())
	t.Cleanup(srv.Close)
	return world{p, srv.URL + "/v2/enqueue"}
}

func (w world) statuses() []string {
	var out []string
	for _, i := range w.Incidents() {
		out = append(out, i.Key+" "+i.Severity+" "+i.Status)
	}
	return out
}

// TestStories sends what happens to pages, and reads what people see.
func TestStories(t *testing.T) {
	beat := page()
	beat.ID, beat.Reason, beat.Severity = "heartbeat/pd", escalate.Heartbeat, escalate.SeverityNone
	warning := page()
	warning.Severity = escalate.SeverityWarning
	long := page()
	long.ID, long.Summary = strings.Repeat("x", 300), strings.Repeat("ä", 5000)
	empty := escalate.Page{ID: "e9", Reason: "a word of a later version", Severity: "dire"}
	cases := map[string]struct {
		reason string
		story  []escalate.Page
		want   []string
	}{
		"Open":      {"a page opens an incident", []escalate.Page{page()}, []string{"setpoint/1a2b3c/e12 critical triggered"}},
		"Again":     {"the same page is the same incident", []escalate.Page{page(), page()}, []string{"setpoint/1a2b3c/e12 critical triggered"}},
		"Ended":     {"a measured end resolves it", []escalate.Page{page(), ended(page())}, []string{"setpoint/1a2b3c/e12 critical resolved"}},
		"Reopened":  {"who is woken twice has two incidents", []escalate.Page{page(), ended(page()), page()}, []string{"setpoint/1a2b3c/e12 critical resolved", "setpoint/1a2b3c/e12 critical triggered"}},
		"Warning":   {"a warning is one", []escalate.Page{warning}, []string{"setpoint/1a2b3c/e12 warning triggered"}},
		"Heartbeat": {"a heartbeat leaves nothing open", []escalate.Page{beat, beat}, []string{"setpoint/1a2b3c/heartbeat/pd info resolved", "setpoint/1a2b3c/heartbeat/pd info resolved"}},
		"Long":      {"what is too long is taken all the same", []escalate.Page{long}, []string{pagerduty.DedupKey("1a2b3c", long.ID) + " critical triggered"}},
		"Unknown":   {"a word that nobody knows is not quieter, and an empty page is one", []escalate.Page{empty}, []string{"setpoint/1a2b3c/e9 critical triggered"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := receiver(t, options(w.url))
			ref := ""
			for _, p := range tc.story {
				next, err := r.Send(t.Context(), p, ref)
				if err != nil {
					t.Fatal(err)
				}
				ref = next
			}
			if diff := cmp.Diff(tc.want, w.statuses()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReference: what was opened under a key is closed under it, although this
// process would give the page another one.
func TestReference(t *testing.T) {
	w := newWorld(t)
	before := options(w.url)
	before.Installation = ""
	ref, err := receiver(t, before).Send(t.Context(), page(), "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := receiver(t, options(w.url)).Send(t.Context(), ended(page()), ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"setpoint/e12 critical resolved"}, w.statuses()); diff != "" || again != ref {
		t.Errorf("ref %q then %q; -want +got:\n%s", ref, again, diff)
	}
}

// TestFaults: what is not delivered is an error that says what to do, and holds no
// key.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  fault.Fault
		key    string
		has    string
	}{
		"Limited":  {"it says for how long", fault.Fault{Status: 429, RetryAfter: 45}, routingKey, "HTTP 429: too many events for this routing key; it wants to be left alone for 45s"},
		"WrongKey": {"its own words are shown", fault.Fault{}, "another-key-of-32-characters-long", "HTTP 400: it refused the event: Event object is invalid: 'routing_key' is invalid"},
		"Down":     {"any other answer", fault.Fault{Status: 503}, routingKey, "HTTP 503, want 202"},
		"OK":       {"200 is no answer of PagerDuty's", fault.Fault{Status: 200}, routingKey, "HTTP 200, want 202"},
		"Reset":    {"a connection that is cut", fault.Fault{DropRequest: true}, routingKey, "page e12 to pagerduty pd: "},
		"Lost":     {"a reply that is lost is no delivery", fault.Fault{DropReply: true}, routingKey, "page e12 to pagerduty pd: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.fault != (fault.Fault{}) {
				w.Fail(pager.Events, 1, tc.fault)
			}
			o := options(w.url)
			o.Key = func() (string, error) { return tc.key, nil }
			r := receiver(t, o)
			ref, err := r.Send(t.Context(), page(), "")
			if err == nil || ref != "" {
				t.Fatalf("%s: no error, ref %q", tc.reason, ref)
			}
			if !strings.Contains(err.Error(), tc.has) || strings.Contains(err.Error(), tc.key) {
				t.Errorf("%s: %v, want %q and no key", tc.reason, err, tc.has)
			}
			o.Key = options("").Key
			if _, err := receiver(t, o).Send(t.Context(), page(), ""); err != nil {
				t.Errorf("%s: it is not delivered later: %v", tc.reason, err)
			}
			if got := w.statuses(); len(got) != 1 {
				t.Errorf("%s: incidents %v, want one", tc.reason, got)
			}
		})
	}
}

// TestAnswers are those of servers that are not PagerDuty.
func TestAnswers(t *testing.T) {
	var elsewhere recorder
	other := httptest.NewServer(&elsewhere)
	t.Cleanup(other.Close)
	cases := map[string]struct {
		handler http.HandlerFunc
		has     string
	}{
		"Redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "HTTP 307: it redirects, which is not followed"},
		"Echo": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.Copy(w, r.Body)
		}, "<secret>"},
		"Switched": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSwitchingProtocols) }, "101"},
		"Hangs":    {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }, "no answer within 200ms"},
		"Endless": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1000))
			}
		}, "HTTP 500"},
		"Hours": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "left alone for a while"},
		"Markup": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "a\n\u202eb\x00")
		}, "refused the event: a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(tc.handler)
			t.Cleanup(srv.Close)
			o := options(srv.URL)
			o.Timeout = 200 * time.Millisecond
			_, err := receiver(t, o).Send(t.Context(), page(), "")
			if err == nil || !strings.Contains(err.Error(), tc.has) || strings.Contains(err.Error(), routingKey) {
				t.Errorf("%v, want %q and no key", err, tc.has)
			}
		})
	}
	if len(elsewhere.bodies) > 0 {
		t.Error("a key went where a redirect led")
	}
}

// TestRotation: the key is that of the moment, and without one nothing is sent.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	key, fault := "", errors.New("pd.key: permission denied")
	o := options(w.url)
	o.Key = func() (string, error) { return key, fault }
	r := receiver(t, o)
	if _, err := r.Send(t.Context(), page(), ""); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("without a key: %v", err)
	}
	if n := len(w.Journal()); n != 0 {
		t.Errorf("%d requests without a key", n)
	}
	key, fault = routingKey, nil
	if _, err := r.Send(t.Context(), page(), ""); err != nil {
		t.Errorf("with the new key: %v", err)
	}
}

// TestDedupKey: a key fits, is the same each time, and two pages never share one.
func TestDedupKey(t *testing.T) {
	id := rapid.OneOf(rapid.String(), rapid.StringN(200, 400, -1), rapid.Map(rapid.IntRange(0, 400), func(n int) string { return strings.Repeat("x", n) }))
	place := rapid.SampledFrom([]string{"", "1a2b3c", "ffffffffffff"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		pa, pb := place.Draw(t, "place a"), place.Draw(t, "place b")
		ka, kb := pagerduty.DedupKey(pa, a), pagerduty.DedupKey(pb, b)
		if len(ka) > 255 || ka != pagerduty.DedupKey(pa, a) {
			t.Errorf("key %q of %q", ka, a)
		}
		if (a != b || pa != pb) && ka == kb {
			t.Errorf("%q at %q and %q at %q share %q", a, pa, b, pb, ka)
		}
	})
	long := strings.Repeat("x", 300)
	if pagerduty.DedupKey("", long+"a") == pagerduty.DedupKey("", long+"b") {
		t.Error("two long ids share a key")
	}
}

// TestSize: whatever a page holds, the event is small enough, begins with the lead
// and says where it was cut.
func TestSize(t *testing.T) {
	rec := &recorder{}
	srv := httptest.NewServer(rec)
	t.Cleanup(srv.Close)
	r := receiver(t, options(srv.URL))
	rapid.Check(t, func(t *rapid.T) {
		p := page()
		unit := rapid.SampledFrom([]string{"x", "ä", "<", "\x01", "\"", "line\n", "…", "\u202e"}).Draw(t, "unit")
		p.Text = strings.Repeat(unit, rapid.SampledFrom([]int{0, 10, 10_000, 99_000, 150_000}).Draw(t, "times"))
		if rapid.Bool().Draw(t, "long lead") {
			p.Lead.Why = strings.Repeat(unit, 60_000)
		}
		if rapid.Bool().Draw(t, "many receivers") {
			p.Receivers = strings.Split(strings.Repeat("receiver,", 9000), ",")
		}
		if _, err := r.Send(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
		var e struct {
			Payload struct {
				Summary string          `json:"summary"`
				Details json.RawMessage `json:"custom_details"`
			} `json:"payload"`
		}
		body := rec.bodies[len(rec.bodies)-1]
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err)
		}
		var d pagerduty.Details
		if err := json.Unmarshal(e.Payload.Details, &d); err != nil {
			t.Fatal(err)
		}
		if len(e.Payload.Details) > 100_000 || utf8.RuneCountInString(e.Payload.Summary) > 1024 {
			t.Errorf("%d bytes of details, summary of %d", len(e.Payload.Details), len(e.Payload.Summary))
		}
		whole := d.Text == p.Text && d.Why == p.Lead.Why && len(d.Receivers) == len(p.Receivers)
		if whole != (d.Cut == "") || d.Do != p.Lead.Do {
			t.Errorf("whole: %t, and cut says %q; do: %q", whole, d.Cut, d.Do)
		}
	})
}

func TestNew(t *testing.T) {
	key := options("").Key
	cases := map[string]struct {
		o   pagerduty.Options
		has string
	}{
		"NoKey":  {pagerduty.Options{Name: "pd", URL: "https://x"}, "routing key"},
		"URL":    {pagerduty.Options{Name: "pd", URL: "http://[", Key: key}, "malformed"},
		"Scheme": {pagerduty.Options{Name: "pd", URL: "ftp://x", Key: key}, "http or https"},
		"Host":   {pagerduty.Options{Name: "pd", URL: "https:///v2", Key: key}, "a host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := pagerduty.New(tc.o); err == nil || !strings.Contains(err.Error(), tc.has) {
				t.Errorf("%v, want %q", err, tc.has)
			}
		})
	}
}
