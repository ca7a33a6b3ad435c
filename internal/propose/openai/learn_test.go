package openai_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

func contextWith(t *testing.T, a *asking) context.Context {
	return context.WithValue(t.Context(), keyOf{}, a)
}

// An endpoint whose mode is not known is asked with json_schema, and with what
// it honours once that is known; nobody waits for it.
func TestLearn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		honours []openai.Reply
		instead http.HandlerFunc
		want    string
		asked   int
	}{
		"Schema": {reason: "The first is enough.", honours: []openai.Reply{"json_schema", "tool", "json_object"}, want: "json_schema", asked: 1},
		"Tool":   {reason: "The next that is honoured.", honours: []openai.Reply{"tool", "json_object"}, instead: status(400, ""), want: "tool", asked: 2},
		"Object": {reason: "The last.", honours: []openai.Reply{"json_object"}, instead: completion("prose"), want: "json_object", asked: 3},
		"None":   {reason: "None leaves the default.", instead: completion("prose"), want: "json_schema", asked: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &honest{honours: tc.honours, instead: tc.instead}
			o := options(t, server(t, h.ServeHTTP))
			o.Reply = openai.ReplyAuto
			c := client(t, o)
			if _, u := c.Propose(t.Context(), request()); u.Exchanges[0].Mode != "json_schema" {
				t.Errorf("%s\nbefore it is known: %s", tc.reason, u.Exchanges[0].Mode)
			}
			h.requests.Store(0)
			c.Learn(t.Context())
			if n := int(h.requests.Load()); n != tc.asked {
				t.Errorf("%s\n%d questions, want %d", tc.reason, n, tc.asked)
			}
			if _, u := c.Propose(t.Context(), request()); u.Exchanges[0].Mode != tc.want {
				t.Errorf("%s\nafter: %s, want %s", tc.reason, u.Exchanges[0].Mode, tc.want)
			}
			c.Learn(t.Context()) // known: nothing is asked
		})
	}
}

// One that does not answer is asked again every ten minutes, and no sooner;
// one with a mode of its own is never asked.
func TestLearnKeepsTrying(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		begin := time.Now()
		o := options(t)
		o.Reply = openai.ReplyAuto
		o.Endpoints = []openai.Endpoint{
			{Name: "e1", BaseURL: "http://e1/v1", Model: "m"},
			{Name: "e2", BaseURL: "http://e2/v1", Model: "m", Reply: openai.ReplyTool},
		}
		o.Now = time.Now
		o.Transport = puppet(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(begin))
			if r.URL.Host != "e1" {
				t.Errorf("%s was asked", r.URL.Host)
			}
			if time.Since(begin) < 25*time.Minute {
				return answer(429, "", ""), nil
			}
			return answer(200, chosen(formed), ""), nil
		})
		c := client(t, o)
		done := make(chan struct{})
		go func() { c.Learn(t.Context()); close(done) }()
		<-done
		want := []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		o.Reply = openai.ReplyAuto
		o.Endpoints = []openai.Endpoint{{Name: "e1", BaseURL: "http://e1/v1", Model: "m"}}
		o.Transport = puppet(func(*http.Request) (*http.Response, error) { return answer(503, "", ""), nil })
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		client(t, o).Learn(ctx) // returns when the process ends
	})
}
