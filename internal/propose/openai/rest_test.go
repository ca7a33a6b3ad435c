package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// The table of what follows a result, as it is documented.
func TestWhatFollows(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"ok":             "well",
		"malformed":      "repair next well",
		"truncated":      "repair longer next well",
		"empty":          "next well",
		"refusal":        "well",
		"content-filter": "well",
		"rate-limited":   "next ill",
		"provider-error": "next ill",
		"unreachable":    "next ill",
		"timeout":        "next ill",
		"prompt":         "next ",
		"canceled":       "",
	}
	got := map[string]string{}
	for code, r := range openai.Rules {
		got[code] = r.Follows()
		// Rules stand in exactly where no model answered, or could even be asked.
		if none := strings.HasSuffix(got[code], "ill") || code == propose.FaultPrompt; propose.NoModel(code) != none {
			t.Errorf("%s: no answer %t, no model %t", code, none, propose.NoModel(code))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// puppet is a transport whose answers the test gives. Hosts are endpoints.
type puppet func(*http.Request) (*http.Response, error)

func (p puppet) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

func answer(code int, body, retryAfter string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}
}

func chosen(content string) string {
	return fmt.Sprintf(`{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%q}}]}`, content)
}

// scene is a client over a puppet with a clock of its own.
type scene struct {
	t     *testing.T
	c     *openai.Client
	now   time.Time
	codes map[string]*http.Response // by host; taken once
	asked []string
}

func newScene(t *testing.T, endpoints int) *scene {
	t.Helper()
	s := &scene{t: t, now: now}
	o := options(t)
	for i := range endpoints {
		o.Endpoints = append(o.Endpoints, openai.Endpoint{Name: fmt.Sprintf("e%d", i+1), BaseURL: fmt.Sprintf("http://e%d/v1", i+1), Model: "m"})
	}
	o.Now = func() time.Time { return s.now }
	o.Random = func() float64 { return 0.5 }
	o.Transport = puppet(func(r *http.Request) (*http.Response, error) {
		s.asked = append(s.asked, r.URL.Host)
		if resp := s.codes[r.URL.Host]; resp != nil {
			delete(s.codes, r.URL.Host)
			return resp, nil
		}
		return answer(503, "", ""), nil
	})
	s.c = client(t, o)
	return s
}

// ask gives what the endpoints answer once, by host.
func (s *scene) ask(codes map[string]*http.Response) (propose.Proposal, []string) {
	s.asked, s.codes = nil, codes
	p, _ := s.c.Propose(s.t.Context(), request())
	return p, s.asked
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, header string
		code           int
		rest           time.Duration
	}{
		"Seconds":     {reason: "As long as it asks.", code: 429, header: "37", rest: 37 * time.Second},
		"Date":        {reason: "Or until a date.", code: 429, header: now.Add(90 * time.Second).Format(http.TimeFormat), rest: 90 * time.Second},
		"Unavailable": {reason: "503 asks alike.", code: 503, header: "20", rest: 20 * time.Second},
		"Huge":        {reason: "A provider must not switch us off.", code: 429, header: "2000000000", rest: time.Hour},
		"Absent":      {reason: "The backoff stands in.", code: 429, rest: 2 * time.Second},
		"Past":        {reason: "So it does for a date gone by.", code: 429, header: now.Add(-time.Hour).Format(http.TimeFormat), rest: 2 * time.Second},
		"Negative":    {reason: "Or for nonsense.", code: 429, header: "-5", rest: 2 * time.Second},
		"Overflow":    {reason: "Of any length.", code: 429, header: "99999999999999999999", rest: 2 * time.Second},
		"Unpassing":   {reason: "Waiting does not mend a key.", code: 401},
		"WellSaid":    {reason: "An answer asks for nothing.", code: 200, header: "60"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, 1)
			s.ask(map[string]*http.Response{"e1": answer(tc.code, `{"choices":[]}`, tc.header)})
			well := func() map[string]*http.Response {
				return map[string]*http.Response{"e1": answer(200, chosen(good), "")}
			}
			if tc.rest > 0 {
				s.now = now.Add(tc.rest - time.Millisecond)
				p, asked := s.ask(well())
				want := fmt.Sprintf("resting: every endpoint is left alone, the first until %s: e1 after ", now.Add(tc.rest).Format("15:04:05Z"))
				if len(asked) > 0 || !strings.HasPrefix(p.Fault, want) || !propose.NoModel(p.Fault) {
					t.Errorf("%s\nasked %v: %s", tc.reason, asked, p.Fault)
				}
			}
			s.now = now.Add(tc.rest)
			if p, asked := s.ask(well()); len(asked) != 1 || p.Action != "restart" {
				t.Errorf("%s\nasked %v after it: %s", tc.reason, asked, p.Fault)
			}
		})
	}
}

// Each failure doubles the rest, up to five minutes; an answer ends that.
func TestBackoff(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	var rests []time.Duration
	for range 10 {
		from := s.now
		s.ask(nil)
		for {
			s.now = s.now.Add(time.Second)
			if _, asked := s.ask(map[string]*http.Response{"e1": answer(503, "", "")}); len(asked) > 0 {
				break
			}
		}
		rests = append(rests, s.now.Sub(from))
		// The probe of the loop failed once more: let that rest go by.
		s.now = s.now.Add(10 * time.Minute)
	}
	for i := 1; i < len(rests); i++ {
		if rests[i] < rests[i-1] || rests[i] > 5*time.Minute {
			t.Errorf("rests %v", rests)
		}
	}
	if rests[0] != 2*time.Second || rests[9] != 5*time.Minute {
		t.Errorf("rests %v, want from 2s to 5m", rests)
	}
	if p, _ := s.ask(map[string]*http.Response{"e1": answer(200, chosen(good), "")}); p.Action != "restart" {
		t.Fatal(p.Fault)
	}
	s.ask(nil)
	s.now = s.now.Add(2 * time.Second)
	if _, asked := s.ask(nil); len(asked) != 1 {
		t.Error("an answer does not end the backoff")
	}
}

// A key that is wrong, or a request that is not taken, is asked about again,
// until it has happened three times in a row; a model that talks nonsense is
// not left alone at all.
func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	for i := range openai.OpenAfter {
		if _, asked := s.ask(map[string]*http.Response{"e1": answer(401, "", "")}); len(asked) != 1 {
			t.Fatalf("question %d: %v", i+1, asked)
		}
	}
	if p, asked := s.ask(nil); len(asked) != 0 || !strings.Contains(p.Fault, "e1 after provider-error") {
		t.Errorf("after %d failures in a row: %v, %s", openai.OpenAfter, asked, p.Fault)
	}
	nonsense := newScene(t, 1)
	for range 3 * openai.OpenAfter {
		if _, asked := nonsense.ask(map[string]*http.Response{"e1": answer(200, `{"choices":[]}`, "")}); len(asked) != 1 {
			t.Fatalf("a model that answers nonsense: %v", asked)
		}
	}
}

// What was said by one that answered counts, not that another one is gone.
func TestAnsweredFaultIsKept(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2)
	p, asked := s.ask(map[string]*http.Response{"e1": answer(200, chosen("no"), "")})
	if want := []string{"e1", "e1", "e2"}; cmp.Diff(want, asked) != "" {
		t.Errorf("asked %v", asked)
	}
	if p.Proposer.Endpoint != "e1" || !strings.HasPrefix(p.Fault, "malformed: endpoint e1: ") || !strings.HasSuffix(p.Fault, "; then provider-error: status 503; also asked, or left alone: e2: provider-error") {
		t.Errorf("%+v", p)
	}
}

// asking is one question of the state test, which goes from request to request.
type asking struct {
	at       string // where its request waits
	trial    bool
	turns    map[string]int
	requests chan *http.Request
	reply    chan *http.Response
	done     chan []propose.Exchange
}

type keyOf struct{}

// endpointModel is what must be true of one endpoint.
type endpointModel struct {
	notBefore time.Time
	failures  int
	trial     bool
}

// However questions and answers interleave: none is sent before an endpoint's
// Retry-After, one at most after three failures in a row, and two at most per
// endpoint and question.
func TestEndpointsStates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clock := now
		o := options(t)
		for i := range 2 {
			o.Endpoints = append(o.Endpoints, openai.Endpoint{Name: fmt.Sprintf("e%d", i+1), BaseURL: fmt.Sprintf("http://e%d/v1", i+1), Model: "m", Timeout: time.Minute})
		}
		o.Timeout = time.Minute
		o.Now = func() time.Time { return clock }
		random := rapid.Float64Range(0, 1).Draw(rt, "jitter")
		o.Random = func() float64 { return random }
		o.Transport = puppet(func(r *http.Request) (*http.Response, error) {
			a, _ := r.Context().Value(keyOf{}).(*asking)
			a.requests <- r
			return <-a.reply, nil
		})
		c := client(t, o)
		model := map[string]*endpointModel{"e1": {}, "e2": {}}
		var open []*asking

		// next waits for the next event of a question and checks it.
		next := func(a *asking, left string, ill bool, wait time.Duration) {
			leave := func() {
				m := model[left]
				if m == nil {
					return
				}
				if a.trial {
					m.trial, a.trial = false, false
				}
				if ill {
					m.failures++
				} else {
					m.failures = 0
				}
			}
			if m := model[left]; m != nil && ill && wait > 0 {
				// Known to the client only when the question has left, which is
				// before its next request or its end.
				if until := clock.Add(wait); until.After(m.notBefore) {
					m.notBefore = until
				}
			}
			select {
			case r := <-a.requests:
				host := r.URL.Host
				a.turns[host]++
				if a.turns[host] > 2 {
					rt.Fatalf("%d requests to %s for one question", a.turns[host], host)
				}
				m := model[host]
				if clock.Before(m.notBefore) {
					rt.Fatalf("%s is asked %s before its Retry-After is over", host, m.notBefore.Sub(clock))
				}
				if host != left {
					leave()
					if m.failures >= openai.OpenAfter {
						if m.trial {
							rt.Fatalf("a second question to %s, which failed %d times", host, m.failures)
						}
						m.trial, a.trial = true, true
					}
				}
				a.at = host
			case xs := <-a.done:
				leave()
				a.at = ""
				for i, q := range open {
					if q == a {
						open = append(open[:i:i], open[i+1:]...)
						break
					}
				}
				n := 0
				for _, k := range a.turns {
					n += k
				}
				if len(xs) != n {
					rt.Fatalf("%d exchanges of %d requests", len(xs), n)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"time": func(rt *rapid.T) {
				clock = clock.Add(time.Duration(rapid.IntRange(1, 400).Draw(rt, "seconds")) * time.Second)
			},
			"ask": func(rt *rapid.T) {
				if len(open) > 4 {
					rt.Skip()
				}
				a := &asking{turns: map[string]int{}, requests: make(chan *http.Request), reply: make(chan *http.Response), done: make(chan []propose.Exchange, 1)}
				open = append(open, a)
				ctx := contextWith(t, a)
				go func() {
					_, u := c.Propose(ctx, request())
					a.done <- u.Exchanges
				}()
				next(a, "", false, 0)
			},
			"answer": func(rt *rapid.T) {
				if len(open) == 0 {
					rt.Skip()
				}
				a := rapid.SampledFrom(open).Draw(rt, "question")
				code := rapid.SampledFrom([]int{200, 200, 400, 429, 503}).Draw(rt, "status")
				wait := rapid.SampledFrom([]int{0, 0, 30, 600}).Draw(rt, "retry after")
				body := rapid.SampledFrom([]string{chosen(good), chosen("prose"), `{"choices":[]}`}).Draw(rt, "body")
				header := ""
				if wait > 0 {
					header = fmt.Sprint(wait)
				}
				a.reply <- answer(code, body, header)
				next(a, a.at, code != 200, time.Duration(wait)*time.Second)
			},
		})
		for len(open) > 0 {
			a := open[0]
			a.reply <- answer(200, chosen(good), "")
			next(a, a.at, false, 0)
		}
	})
}
