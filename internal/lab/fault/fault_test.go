package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

var start = time.Date(2100, 1, 1, 12, 0, 0, 0, time.UTC)

// TestBook: queues by name and in order, windows before them.
func TestBook(t *testing.T) {
	t.Parallel()
	word := func(s string) fault.Fault { return fault.Fault{Error: s} }
	var b fault.Book
	b.Fail("a", 2, word("first"))
	b.Fail("a", 0, word("ever"))
	b.Fail(fault.Any, 1, word("any"))
	b.Down("a", start.Add(time.Minute), start.Add(2*time.Minute), word("down"))
	steps := []struct {
		at    time.Duration
		names []string
		want  string
	}{
		{0, []string{"a", fault.Any}, "first"},
		{time.Minute, []string{"a"}, "down"},
		{2*time.Minute - 1, []string{"a"}, "down"},
		{90 * time.Second, []string{"b"}, ""},
		{90 * time.Second, []string{"b", fault.Any}, "any"},
		{2 * time.Minute, []string{"a"}, "first"},
		{time.Hour, []string{"a"}, "ever"},
		{time.Hour, []string{"a", fault.Any}, "ever"},
		{time.Hour, []string{"b", fault.Any}, ""},
	}
	for i, s := range steps {
		if got := b.Take(start.Add(s.at), s.names...).Error; got != s.want {
			t.Errorf("step %d: %q, want %q", i, got, s.want)
		}
	}
	b.Fail("b", 0, word("b"))
	b.Clear("a")
	got := []string{b.Take(start.Add(time.Minute), "a").Error, b.Take(start, "b").Error}
	b.Clear("")
	got = append(got, b.Take(start, "b").Error)
	if diff := cmp.Diff([]string{"", "b", ""}, got); diff != "" {
		t.Errorf("after Clear: -want, +got:\n%s", diff)
	}
}

// TestBefore: what the caller and the stand-in hear of each fault.
func TestBefore(t *testing.T) {
	t.Parallel()
	hour := fault.Duration(time.Hour)
	cases := map[string]struct {
		fault  fault.Fault
		said   string
		client string
	}{
		"None":        {fault.Fault{}, "", "200 on "},
		"Status":      {fault.Fault{Status: 503}, "503", "503 refused "},
		"Limited":     {fault.Fault{Status: 429}, "429", "429 refused 30"},
		"Later":       {fault.Fault{Status: 503, RetryAfter: 5}, "503", "503 refused 5"},
		"Word":        {fault.Fault{Error: "no"}, "no", "200 refused "},
		"DropRequest": {fault.Fault{DropRequest: true}, fault.Dropped, "reset"},
		"Hang":        {fault.Fault{Hang: hour}, fault.HungUp, "timeout"},
		"DropReply":   {fault.Fault{Hang: hour, DropReply: true}, "", "200 on "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := make(chan string, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				s := tc.fault.Before(w, req, nil, func(status int) {
					w.WriteHeader(max(status, 200))
					_, _ = io.WriteString(w, "refused")
				})
				if s == "" {
					_, _ = io.WriteString(w, "on")
				}
				said <- s
			}))
			defer srv.Close()
			patience := 10 * time.Second
			if tc.said == fault.HungUp {
				patience = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if got := ask(ctx, t, srv.URL); got != tc.client {
				t.Errorf("the client hears %q, want %q", got, tc.client)
			}
			if got := <-said; got != tc.said {
				t.Errorf("it says %q, want %q", got, tc.said)
			}
		})
	}
}

func ask(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return "reset"
	case err != nil:
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return strings.Join([]string{resp.Status[:3], string(body), resp.Header.Get("Retry-After")}, " ")
}

// TestWords: a fault is written in JSON as a person types it.
func TestWords(t *testing.T) {
	t.Parallel()
	var f fault.Fault
	if err := json.Unmarshal([]byte(`{"status":429,"retryAfter":30,"hang":"1m30s","dropReply":true}`), &f); err != nil {
		t.Fatal(err)
	}
	want := fault.Fault{Status: 429, RetryAfter: 30, Hang: fault.Duration(90 * time.Second), DropReply: true}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if text, err := json.Marshal(f); err != nil || !strings.Contains(string(text), `"1m30s"`) {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"hang":5}`), &f); err == nil {
		t.Error("a number without a unit was taken")
	}
}
