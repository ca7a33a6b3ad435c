package faultproxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
)

// counter is an upstream that numbers its answers and keeps what it was sent.
type counter struct {
	mu      sync.Mutex
	bodies  []string
	chunked bool
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.bodies = append(c.bodies, string(body))
	n, chunked := len(c.bodies), c.chunked
	c.mu.Unlock()
	_, _ = io.WriteString(w, "answer ")
	if chunked {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = fmt.Fprint(w, n)
}

func (c *counter) saw() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.bodies...)
}

// heard is what a client of HTTP got; Lost is how the body ended too early.
type heard struct {
	Status     int
	Body, Lost string
}

// post sends one request on a fresh connection; status 0 is no answer.
func post(address, body string) heard {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/", strings.NewReader(body))
	if err != nil {
		return heard{Lost: err.Error()}
	}
	resp, err := client.Do(req)
	if err != nil {
		return heard{Lost: lost(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return heard{resp.StatusCode, string(got), lost(err)}
}

func lost(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "end"
	}
	word := ending(err)
	return word
}

// Each fault of HTTP, and what client and upstream saw of it.
func TestHTTP(t *testing.T) {
	on503 := heard{503, "faultproxy: 503 on purpose\n", ""}
	cases := map[string]struct {
		fault   string
		reason  string
		chunked bool
		client  heard
		// requests is what the upstream saw.
		requests, upstreams int
		end                 string
	}{
		"Status":         {"status", "nothing is forwarded", false, on503, 0, 0, "answered"},
		"StatusNumber":   {"status,status=429", "any status", false, heard{429, "faultproxy: 429 on purpose\n", ""}, 0, 0, "answered"},
		"StatusAfter":    {"status-after,status=503", "done, and another answer", false, on503, 1, 1, "answered"},
		"StatusGateway":  {"status-after", "as a gateway would", false, heard{502, "faultproxy: 502 on purpose\n", ""}, 1, 1, "answered"},
		"DropReply":      {"drop-reply", "done, and no answer", false, heard{Lost: "reset"}, 1, 1, "cut"},
		"DropReplyFIN":   {"drop-reply,fin", "in order", false, heard{Lost: "end"}, 1, 1, "cut"},
		"Truncate":       {"truncate,bytes=3,fin", "three of eight bytes", false, heard{200, "ans", "end"}, 1, 1, "cut"},
		"TruncateReset":  {"truncate,bytes=3", "then a reset", false, heard{200, "ans", "reset"}, 1, 1, "cut"},
		"TruncateChunks": {"truncate,bytes=3,fin", "chunks get a length too", true, heard{200, "ans", "end"}, 1, 1, "cut"},
		"TooLong":        {"wrong-length,length=9", "a byte is missing at the end", false, heard{200, "answer 1", "end"}, 1, 1, "answered"},
		"TooShort":       {"wrong-length,length=6", "the rest is not read", false, heard{200, "answer", ""}, 1, 1, "answered"},
		"NoLength":       {"no-length", "the body ends with the connection", false, heard{200, "answer 1", ""}, 1, 1, "answered"},
		"NoLengthCut":    {"no-length,bytes=3", "and nobody can tell that it was cut", true, heard{200, "ans", ""}, 1, 1, "answered"},
		"Duplicate":      {"duplicate", "sent twice, the first answer", false, heard{200, "answer 1", ""}, 2, 2, "answered"},
		"DuplicateLast":  {"duplicate,last", "sent twice, the second answer", true, heard{200, "answer 2", ""}, 2, 2, "answered"},
		"Replay":         {"replay", "nothing to repeat yet", false, heard{502, "faultproxy: 502 on purpose\n", ""}, 0, 0, "answered"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			up := &counter{chunked: tc.chunked}
			srv := httptest.NewServer(up)
			defer srv.Close()
			p := proxy(t, srv.Listener.Addr().String(), faultproxy.Options{})
			set(t, p, tc.fault)
			if diff := cmp.Diff(tc.client, post(p.Addr(), "do it")); diff != "" {
				t.Errorf("%s: the client, -want +got:\n%s", tc.reason, diff)
			}
			e := ended(t, p, 1)[0]
			if e.Upstreams != tc.upstreams || e.End != tc.end {
				t.Errorf("%s: the log says %+v, want %d upstreams, %s", tc.reason, e, tc.upstreams, tc.end)
			}
			if e.ToUpstream != e.FromClient*tc.upstreams {
				t.Errorf("%s: %d bytes became %d", tc.reason, e.FromClient, e.ToUpstream)
			}
			saw := up.saw()
			if len(saw) != tc.requests {
				t.Errorf("%s: the upstream saw %d requests, want %d", tc.reason, len(saw), tc.requests)
			}
			for _, body := range saw {
				if body != "do it" {
					t.Errorf("%s: the upstream saw %q", tc.reason, body)
				}
			}
		})
	}
}

// The answer to an earlier request comes again, whichever way that one went.
func TestReplay(t *testing.T) {
	for _, before := range []string{"pass", "duplicate,last"} {
		t.Run(before, func(t *testing.T) {
			up := &counter{chunked: true}
			srv := httptest.NewServer(up)
			defer srv.Close()
			p := proxy(t, srv.Listener.Addr().String(), faultproxy.Options{})
			set(t, p, before)
			old := post(p.Addr(), "one")
			seen := len(up.saw())
			set(t, p, "replay")
			if diff := cmp.Diff(old, post(p.Addr(), "two")); diff != "" || old.Status != 200 {
				t.Errorf("-old +got:\n%s", diff)
			}
			if n := len(up.saw()); n != seen {
				t.Errorf("the upstream saw %d requests, want %d", n, seen)
			}
		})
	}
}

// An answer is not lost because the client still sends: a socket that is closed
// with unread bytes would be reset.
func TestAnswerWhileTheClientSends(t *testing.T) {
	p := proxy(t, "127.0.0.1:1", faultproxy.Options{})
	set(t, p, "status")
	conn := dial(t, p)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.WriteString(conn, strings.Repeat("x", 16<<20)); err != nil {
		t.Errorf("sending: %v", err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(got), "HTTP/1.1 503 ") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// What follows a request is not sent with it.
func TestOneRequestOnly(t *testing.T) {
	up := &counter{}
	srv := httptest.NewServer(up)
	defer srv.Close()
	p := proxy(t, srv.Listener.Addr().String(), faultproxy.Options{})
	set(t, p, "duplicate")
	ask(p.Addr(), 5e9, strings.Repeat("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", 3))
	ended(t, p, 1)
	if saw := up.saw(); len(saw) != 2 {
		t.Errorf("the upstream saw %d requests, want one twice", len(saw))
	}
}

// What is not HTTP, or ends inside, is cut on the side that still stands.
func TestNotHTTP(t *testing.T) {
	cases := map[string]struct {
		reason, fault, sends, end string
		up                        bool
	}{
		"Prose":      {"no request", "status", "hello\r\n\r\n", "no-request", true},
		"Half":       {"a request that ends inside", "duplicate", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf", "no-request", true},
		"NoUpstream": {"nobody there", "drop-reply", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "no-reply", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			up := &counter{}
			srv := httptest.NewServer(up)
			defer srv.Close()
			if !tc.up {
				srv.Close()
			}
			p := proxy(t, srv.Listener.Addr().String(), faultproxy.Options{})
			set(t, p, tc.fault)
			if got := ask(p.Addr(), 5e9, tc.sends); got.Bytes != "" {
				t.Errorf("%s: the client got %+v", tc.reason, got)
			}
			if e := ended(t, p, 1)[0]; e.End != tc.end || len(up.saw()) != 0 {
				t.Errorf("%s: the log says %+v, the upstream saw %d", tc.reason, e, len(up.saw()))
			}
		})
	}
}
