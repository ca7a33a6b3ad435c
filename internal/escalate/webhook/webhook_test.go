package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func page() escalate.Page {
	return escalate.Page{
		ID: "e12", Service: "checkout", Episode: "e12", Reason: escalate.CannotAct, Now: escalate.CannotAct, Severity: "critical",
		Summary: "checkout misses availability", Text: "Measured", Gist: "g", Since: now.Add(-10 * time.Minute),
	}
}

// received is what a receiver on loopback got.
type received struct {
	header http.Header
	body   string
}

func serve(t *testing.T, o webhook.Options, status int) (*webhook.Receiver, *[]received) {
	t.Helper()
	got := &[]received{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*got = append(*got, received{r.Header.Clone(), string(b)})
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "try\nlater")
	}))
	t.Cleanup(srv.Close)
	o.Name, o.URL, o.Now = "backup", srv.URL+"/hook/hunter2", func() time.Time { return now }
	r, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, got
}

// The whole body, byte by byte: it is other people's format.
func TestBody(t *testing.T) {
	const labels = `{"alertname":"SetpointEscalation","episode":"e12","reason":"cannot-act","service":"checkout","severity":"critical"}`
	const group = `"groupLabels":{"alertname":"SetpointEscalation","episode":"e12"},"commonLabels":` + labels
	const tail = `"externalURL":"http://setpoint.internal:8321","version":"4","groupKey":"{}:{alertname=\"SetpointEscalation\", episode=\"e12\"}","truncatedAlerts":0}`
	ended := page()
	ended.EndedAt, ended.EndReason = now, "recovered"
	cases := map[string]struct {
		page escalate.Page
		want string
	}{
		"Firing": {page(), `{"receiver":"backup","status":"firing","alerts":[{"status":"firing","labels":` + labels +
			`,"annotations":{"description":"Measured","now":"cannot-act","summary":"checkout misses availability"},"startsAt":"2026-11-29T11:50:00Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://setpoint.internal:8321","fingerprint":"PRINT"}],` +
			group + `,"commonAnnotations":{"description":"Measured","now":"cannot-act","summary":"checkout misses availability"},` + tail},
		"Resolved": {ended, `{"receiver":"backup","status":"resolved","alerts":[{"status":"resolved","labels":` + labels +
			`,"annotations":{"description":"Measured","ended":"recovered","now":"cannot-act","summary":"checkout misses availability"},"startsAt":"2026-11-29T11:50:00Z","endsAt":"2026-11-29T12:00:00Z","generatorURL":"http://setpoint.internal:8321","fingerprint":"PRINT"}],` +
			group + `,"commonAnnotations":{"description":"Measured","ended":"recovered","now":"cannot-act","summary":"checkout misses availability"},` + tail},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, got := serve(t, webhook.Options{ExternalURL: "http://setpoint.internal:8321"}, 200)
			if _, err := r.Send(t.Context(), tc.page, ""); err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(tc.want, "PRINT", "04b0d39b81e5cbd5", 1)
			if diff := cmp.Diff(want, (*got)[0].body); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	r, got := serve(t, webhook.Options{Secret: []byte("s")}, 204)
	p := page()
	changed := page()
	changed.Now = escalate.Blind
	for _, q := range []escalate.Page{p, p, changed} {
		if _, err := r.Send(t.Context(), q, ""); err != nil {
			t.Fatal(err)
		}
	}
	id := func(i int) string { return (*got)[i].header.Get("Idempotency-Key") }
	if id(0) != "e12/"+p.ContentDigest() || id(0) != id(1) || id(1) == id(2) {
		t.Errorf("Idempotency-Key %q, %q, %q: want equal for equal content only", id(0), id(1), id(2))
	}
	for _, g := range *got {
		if g.header.Get("Content-Type") != "application/json" || !executetest.Verify([]byte("s"), g.header.Get("X-Setpoint-Signature"), []byte(g.body)) {
			t.Errorf("headers %v", g.header)
		}
	}
	r, got = serve(t, webhook.Options{}, 200)
	if _, err := r.Send(t.Context(), p, ""); err != nil {
		t.Fatal(err)
	}
	if _, ok := (*got)[0].header["X-Setpoint-Signature"]; ok {
		t.Error("signed without a secret")
	}
}

func TestErrors(t *testing.T) {
	for _, status := range []int{302, 400, 401, 404, 410, 429, 500, 503} {
		r, _ := serve(t, webhook.Options{}, status)
		_, err := r.Send(t.Context(), page(), "")
		if err == nil || !strings.Contains(err.Error(), "webhook backup") {
			t.Errorf("HTTP %d: %v, want an error that names the receiver", status, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("HTTP %d: the error prints the url or raw text: %q", status, err)
		}
	}
	r, got := serve(t, webhook.Options{}, 200)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Send(ctx, page(), ""); err == nil || strings.Contains(err.Error(), "hunter2") || len(*got) != 0 {
		t.Errorf("cancelled: %v, %d sent", err, len(*got))
	}
	if r.Name() != "backup" {
		t.Errorf("Name %q", r.Name())
	}
	for _, o := range []webhook.Options{{URL: "http://127.0.0.1"}, {URL: "ftp://h", Now: time.Now}, {URL: "http://", Now: time.Now}, {URL: ":%hunter2", Now: time.Now}} {
		if _, err := webhook.New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A receiver that switches protocols hands over a connection without a deadline:
// nothing waits for it, for the next receiver stands behind it.
func TestSwitchedProtocols(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.Copy(io.Discard, conn) // Until whoever sent hangs up.
	}))
	t.Cleanup(srv.Close)
	r, err := webhook.New(webhook.Options{Name: "backup", URL: srv.URL, Timeout: time.Second, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := r.Send(t.Context(), page(), ""); err == nil || !strings.Contains(err.Error(), "HTTP 101") || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
