package pager_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/pagerduty"
	"github.com/setpoint-dev/setpoint/internal/lab/fault"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
)

func (w *world) pagerduty(t *testing.T, timeout time.Duration) *pagerduty.Receiver {
	t.Helper()
	r, err := pagerduty.New(pagerduty.Options{Name: "pd", URL: w.url + "/v2/enqueue", Timeout: timeout, Key: func() (string, error) { return routingKey, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFaults: each fault as the agent's receiver sees it, what was taken, and
// that the next page comes through.
func TestFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault fault.Fault
		says  string
		taken bool
		heard bool
	}{
		"Throttled":   {fault.Fault{Status: 429, RetryAfter: 7}, "for 7s", false, true},
		"Failed":      {fault.Fault{Status: 500}, "HTTP 500", false, true},
		"Down":        {fault.Fault{Status: 503}, "HTTP 503", false, true},
		"Hang":        {fault.Fault{Hang: fault.Duration(time.Hour)}, "no answer within", false, false},
		"DropReply":   {fault.Fault{DropReply: true}, "reset", true, false},
		"DropRequest": {fault.Fault{DropRequest: true}, "reset", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pdWorld(t)
			patience := 10 * time.Second
			if tc.fault.Hang > 0 {
				patience = 500 * time.Millisecond
			}
			r := w.pagerduty(t, patience)
			w.pager.Fail(pager.Events, 1, tc.fault)
			_, err := r.Send(t.Context(), page("a"), "")
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "EOF", "reset"), tc.says) {
				t.Errorf("the receiver sees %v, want %q", err, tc.says)
			}
			eventually(t, func() bool { return len(w.pager.Journal()) == 1 })
			e := w.pager.Journal()[0]
			if e.Taken != tc.taken || e.Heard != tc.heard || e.Fault == "" || e.Action != "trigger" {
				t.Errorf("journal %+v, want taken %v, heard %v", e, tc.taken, tc.heard)
			}
			if n := len(w.pager.Incidents()); (n == 1) != tc.taken {
				t.Errorf("%d incidents", n)
			}
			if _, err := w.pagerduty(t, 10*time.Second).Send(t.Context(), page("a"), ""); err != nil {
				t.Errorf("the next one: %v", err)
			}
			if got := w.pager.Incidents(); len(got) != 1 || got[0].Status != pager.Triggered {
				t.Errorf("however often it was sent there is one incident, not %+v", got)
			}
		})
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatal("it never happened")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestDown: each endpoint is down from one time until another, by the pager's
// clock, and the others are not.
func TestDown(t *testing.T) {
	t.Parallel()
	for name, down := range map[string][]string{
		pager.Webhook: {"webhook"}, pager.Alertmanager: {"alertmanager"}, pager.Events: {"pagerduty"},
		pager.Every: {"webhook", "alertmanager", "pagerduty"},
	} {
		for kind, f := range map[string]fault.Fault{"503": {Status: 503}, "reset": {DropRequest: true}} {
			t.Run(strings.ReplaceAll(name, "*", "every")+"/"+kind, func(t *testing.T) {
				t.Parallel()
				w := pdWorld(t)
				w.pager.Down(name, after(time.Minute), after(2*time.Minute), f)
				receivers := map[string]escalate.Receiver{
					"webhook": w.webhook(t), "alertmanager": w.alertmanager(t), "pagerduty": w.pagerduty(t, time.Minute),
				}
				failing := func() []string {
					var names []string
					for _, n := range []string{"webhook", "alertmanager", "pagerduty"} {
						if _, err := receivers[n].Send(t.Context(), page("a"), ""); err != nil {
							names = append(names, n)
						}
					}
					return names
				}
				var got [][]string
				for range 3 {
					got = append(got, failing())
					w.pass(time.Minute)
				}
				if diff := cmp.Diff([][]string{nil, down, nil}, got); diff != "" {
					t.Errorf("failing before, in and after the window: -want, +got:\n%s", diff)
				}
				taken := 0
				for _, e := range w.pager.Journal() {
					if e.Taken {
						taken++
					}
				}
				if want := 9 - len(down); taken != want {
					t.Errorf("%d events were taken, want %d of 9", taken, want)
				}
			})
		}
	}
}

// TestGate: a closed port refuses, cuts off what was connected, and opens again
// at the same address.
func TestGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := pager.NewGate(l)
	srv := &http.Server{Handler: w.pager.Handler()}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(gate) }()
	url := "http://" + gate.Addr().String() + "/api/v2/status"
	ask := func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	kept, err := net.Dial("tcp", gate.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for round := range 3 {
		if err := ask(); err != nil {
			t.Fatalf("round %d, open: %v", round, err)
		}
		gate.Refuse(true)
		if err := ask(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("round %d, closed: %v", round, err)
		}
		gate.Refuse(false)
	}
	_ = kept.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := kept.Read(make([]byte, 1)); err == nil || errors.Is(err, syscall.ETIMEDOUT) || isTimeout(err) {
		t.Errorf("a connection from before was not cut off: %v", err)
	}
	gate.RefuseFor(50 * time.Millisecond)
	if err := ask(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("closed for a while: %v", err)
	}
	eventually(t, func() bool { return ask() == nil })
	gate.Refuse(true)
	if err := srv.Close(); err != nil {
		t.Errorf("close while it refuses: %v", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("it ended with %v", err)
	}
	gate.Refuse(false)
	if err := ask(); err == nil {
		t.Error("it opened again after its end")
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// TestControl: another process disturbs and acknowledges.
func TestControl(t *testing.T) {
	t.Parallel()
	w := pdWorld(t)
	mux := http.NewServeMux()
	mux.Handle("/control/", w.pager.Control())
	do := func(method, path, body string) (int, string) {
		rec := httptest.NewRecorder()
		req, err := http.NewRequest(method, path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		mux.ServeHTTP(rec, req)
		return rec.Code, rec.Body.String()
	}
	trigger := func() int {
		status, _ := call(t, http.MethodPost, w.url+"/v2/enqueue", event("trigger", "k"))
		return status
	}
	steps := []struct {
		method, path, body string
		status             int
		has                string
		trigger            int
	}{
		{"PUT", "/control/fault?endpoint=pagerduty&next=1", `{"status":500}`, 204, "", 500},
		{"PUT", "/control/fault?endpoint=pagerduty", `{"status":429}`, 204, "", 429},
		{"DELETE", "/control/fault?endpoint=pagerduty", "", 204, "", 202},
		{"PUT", "/control/fault?endpoint=*&for=1m&after=1m", `{"status":503}`, 204, "", 202},
		{"GET", "/control/incidents", "", 200, `"status":"triggered"`, 202},
		{"POST", "/control/ack", `{"key":"k","name":"Ann"}`, 200, "there is no webhook URL", 202},
		{"GET", "/control/incidents", "", 200, `"acknowledgedBy":"Ann"`, 202},
		{"GET", "/control/journal", "", 200, `"fault":"429"`, 202},
		{"POST", "/control/resolve", `{"key":"k"}`, 200, "", 202},
		{"POST", "/control/ack", `{"key":"other"}`, 404, "no incident", 202},
		{"POST", "/control/ack", `{}`, 400, "key is required", 202},
		{"POST", "/control/ack", `{"kee":"k"}`, 400, "unknown field", 202},
		{"PUT", "/control/fault?endpoint=pager", `{"status":500}`, 400, "webhook, alertmanager, pagerduty, change, *", 202},
		{"PUT", "/control/fault?endpoint=pagerduty", `{}`, 400, "no fault", 202},
		{"PUT", "/control/fault?endpoint=pagerduty", `{"state":5}`, 400, "unknown field", 202},
		{"PUT", "/control/fault?endpoint=pagerduty&next=x", `{"status":500}`, 400, "at least 1", 202},
		{"PUT", "/control/fault?endpoint=pagerduty&for=x", `{"status":500}`, 400, "such as 10m", 202},
		{"PUT", "/control/fault?endpoint=pagerduty&for=1m&after=x", `{"status":500}`, 400, "such as 1m", 202},
	}
	for _, s := range steps {
		status, text := do(s.method, s.path, s.body)
		if status != s.status || !strings.Contains(text, s.has) {
			t.Errorf("%s %s: HTTP %d %s, want %d with %q", s.method, s.path, status, text, s.status, s.has)
		}
		if got := trigger(); got != s.trigger {
			t.Errorf("after %s %s a trigger gets %d, want %d", s.method, s.path, got, s.trigger)
		}
	}
	w.pass(time.Minute)
	if got := trigger(); got != 503 {
		t.Errorf("in the window a trigger gets %d", got)
	}
	w.pass(time.Minute)
	if got := trigger(); got != 202 {
		t.Errorf("after the window a trigger gets %d", got)
	}
}
