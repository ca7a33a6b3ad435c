package faultproxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
)

const (
	question = "hello world\n"
	reply    = "0123456789"
)

// Each fault of bytes, and what client and upstream saw of it.
func TestBytes(t *testing.T) {
	hour := func(n int) []time.Duration { return slices.Repeat([]time.Duration{time.Hour}, n) }
	cases := map[string]struct {
		fault    string
		reason   string
		client   sight
		upstream []sight
		log      faultproxy.Entry
		waits    []time.Duration
	}{
		"Pass": {
			"pass", "nothing is changed", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, nil,
		},
		"Refuse": {"refuse", "nobody can connect", sight{"", "refused"}, nil, faultproxy.Entry{}, nil},
		"Reset":  {"reset", "taken and reset", sight{"", "reset"}, nil, faultproxy.Entry{End: "reset"}, nil},
		"DelayConnect": {
			"delay-connect,delay=1h", "the upstream is reached later", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, hour(1),
		},
		"DelayReply": {
			"delay-reply,delay=1h", "the reply waits once", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, hour(1),
		},
		"CutRequest0": {
			"cut-request", "not one byte passes", sight{"", "reset"}, []sight{{"", "reset"}},
			faultproxy.Entry{FromClient: 12, Upstreams: 1, End: "cut"}, nil,
		},
		"CutRequest5": {
			"cut-request,bytes=5", "five bytes pass", sight{"", "reset"}, []sight{{"hello", "reset"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 5, Upstreams: 1, End: "cut"}, nil,
		},
		"CutRequest5FIN": {
			"cut-request,bytes=5,fin", "in order", sight{"", "end"}, []sight{{"hello", "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 5, Upstreams: 1, End: "cut"}, nil,
		},
		"CutRequestLong": {
			"cut-request,bytes=13", "a request that is shorter passes", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, nil,
		},
		"CutReply0": {
			"cut-reply", "the upstream has done it, the client hears nothing", sight{"", "reset"}, []sight{{question, "*"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, Upstreams: 1, End: "cut"}, nil,
		},
		"CutReply4FIN": {
			"cut-reply,bytes=4,fin", "four bytes, then the end", sight{"0123", "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 4, Upstreams: 1, End: "cut"}, nil,
		},
		"Blackhole": {
			"blackhole", "nobody is told anything", sight{"", "silence"}, nil,
			faultproxy.Entry{FromClient: 12, End: "swallowed"}, nil,
		},
		"SlowRequest": {
			"slow-request,delay=1h", "byte by byte", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, hour(12),
		},
		"SlowReply": {
			"slow-reply,delay=1h", "byte by byte", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, hour(10),
		},
		"Match": {
			"cut-request,match=world", "everything before the text passes", sight{"", "reset"}, []sight{{"hello ", "reset"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 6, Upstreams: 1, End: "cut"}, nil,
		},
		"MatchAbsent": {
			"blackhole,match=commit", "without the text there is no fault", sight{reply, "end"}, []sight{{question, "end"}},
			faultproxy.Entry{FromClient: 12, ToUpstream: 12, FromUpstream: 10, ToClient: 10, Upstreams: 1, End: "closed"}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			up, w := newAnswerer(t), &waits{}
			p := proxy(t, up.Addr().String(), faultproxy.Options{Wait: w.wait})
			set(t, p, tc.fault)
			patience := 5 * time.Second
			if tc.client.End == "silence" {
				patience = 100 * time.Millisecond
			}
			got := ask(p.Addr(), patience, question)
			if diff := cmp.Diff(tc.client, got); diff != "" {
				t.Errorf("%s: the client, -want +got:\n%s", tc.reason, diff)
			}
			soon(t, "the upstream's end", func() bool { return len(up.saw()) == len(tc.upstream) })
			saw := up.saw()
			for i := range tc.upstream {
				if tc.upstream[i].End == "*" {
					saw[i].End = "*" // The client's end and the cut are a race.
				}
			}
			if diff := cmp.Diff(tc.upstream, saw, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: the upstream, -want +got:\n%s", tc.reason, diff)
			}
			if tc.log != (faultproxy.Entry{}) {
				tc.log.Conn, tc.log.Fault = 1, tc.fault
				es := ended(t, p, 1)
				es[0].Fault = strings.ReplaceAll(es[0].Fault, "1h0m0s", "1h")
				if diff := cmp.Diff([]faultproxy.Entry{tc.log}, es); diff != "" {
					t.Errorf("%s: the log, -want +got:\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.waits, w.all); diff != "" {
				t.Errorf("%s: delays, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A text that comes in two reads is found no later than with its last byte.
func TestMatchInTwoReads(t *testing.T) {
	up := newAnswerer(t)
	p := proxy(t, up.Addr().String(), faultproxy.Options{})
	set(t, p, "cut-request,match=lo wo,fin")
	conn := dial(t, p)
	_, _ = io.WriteString(conn, "hello")
	soon(t, "the first piece", func() bool { return p.Log()[0].ToUpstream == 5 })
	_, _ = io.WriteString(conn, " world\n")
	if got, err := io.ReadAll(conn); len(got) != 0 || err != nil {
		t.Errorf("the client got %q, %v", got, err)
	}
	_ = conn.Close()
	soon(t, "the upstream's end", func() bool { return len(up.saw()) == 1 })
	if diff := cmp.Diff([]sight{{"hello", "end"}}, up.saw()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The answer to one statement is lost, as of a commit; those before are not.
func TestReplyToOneRequestIsLost(t *testing.T) {
	up := newAnswerer(t)
	p := proxy(t, up.Addr().String(), faultproxy.Options{})
	set(t, p, "cut-reply,match=commit")
	conn := dial(t, p)
	_, _ = io.WriteString(conn, "insert\n")
	first := make([]byte, len(reply))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != reply {
		t.Fatalf("the first reply is %q, %v", first, err)
	}
	_, _ = io.WriteString(conn, "commit\n")
	if got, err := io.ReadAll(conn); len(got) != 0 || ending(err) != "reset" {
		t.Errorf("the client got %q, %v", got, err)
	}
	soon(t, "the upstream's end", func() bool { return len(up.saw()) == 1 })
	if diff := cmp.Diff([]sight{{"insert\ncommit\n", "reset"}}, up.saw()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The delay is before the reply's first byte, not before each piece of it.
func TestDelayOnce(t *testing.T) {
	up, w := newAnswerer(t), &waits{}
	p := proxy(t, up.Addr().String(), faultproxy.Options{Wait: w.wait})
	set(t, p, "delay-reply,delay=1h")
	conn := dial(t, p)
	for range 3 {
		_, _ = io.WriteString(conn, question)
		if _, err := io.ReadFull(conn, make([]byte, len(reply))); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]time.Duration{time.Hour}, w.all); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNextThenAsBefore(t *testing.T) {
	up := newAnswerer(t)
	p := proxy(t, up.Addr().String(), faultproxy.Options{})
	if err := p.Next(2, faultproxy.Fault{Kind: faultproxy.Reset}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		got = append(got, ask(p.Addr(), 5*time.Second, question).End)
	}
	if diff := cmp.Diff([]string{"reset", "reset", "end"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, err := range map[string]error{
		"none":    p.Next(0, faultproxy.Fault{Kind: faultproxy.Reset}),
		"refuse":  p.Next(1, faultproxy.Fault{Kind: faultproxy.Refuse}),
		"unknown": p.Next(1, faultproxy.Fault{Kind: "explode"}),
		"ignored": p.Set(faultproxy.Fault{Kind: faultproxy.Pass, Bytes: 3}),
	} {
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

// A listener that was closed is opened again at the same address, and what
// stood before goes on.
func TestRefuseAndBack(t *testing.T) {
	up := newAnswerer(t)
	p := proxy(t, up.Addr().String(), faultproxy.Options{})
	conn := dial(t, p)
	soon(t, "the connection", func() bool { return len(p.Log()) == 1 })
	for range 3 {
		set(t, p, "refuse")
		if got := ask(p.Addr(), time.Second, question); got.End != "refused" {
			t.Errorf("refused: %+v", got)
		}
		if err := p.Next(1, faultproxy.Fault{Kind: faultproxy.Reset}); err == nil {
			t.Error("connections that cannot come are counted")
		}
		set(t, p, "pass")
		if got := ask(p.Addr(), 5*time.Second, question); got.Bytes != reply {
			t.Errorf("open again: %+v", got)
		}
	}
	_, _ = io.WriteString(conn, question)
	got := make([]byte, len(reply))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Errorf("the connection that stood: %v", err)
	}
}

// A held connection is a network that is cut: it stands, and nothing passes.
func TestHoldAndCut(t *testing.T) {
	up := newAnswerer(t)
	p := proxy(t, up.Addr().String(), faultproxy.Options{})
	conn := dial(t, p)
	soon(t, "the connection", func() bool { return len(p.Log()) == 1 && p.Log()[0].Upstreams == 1 })
	p.Hold(true)
	p.Hold(true)
	_, _ = io.WriteString(conn, question)
	soon(t, "the question", func() bool { return p.Log()[0].FromClient == len(question) })
	if e := p.Log()[0]; e.ToUpstream != 0 || e.End != "" {
		t.Errorf("held: %+v", e)
	}
	if got := ask(p.Addr(), 50*time.Millisecond, question); got != (sight{"", "silence"}) {
		t.Errorf("a new connection while held: %+v", got)
	}
	p.Hold(false)
	got := make([]byte, len(reply))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != reply {
		t.Errorf("released: %q, %v", got, err)
	}
	p.Cut()
	if _, err := io.ReadAll(conn); ending(err) != "reset" {
		t.Errorf("cut: %v", err)
	}
	if e := ended(t, p, 2)[0]; e.End != "cut-by-hand" {
		t.Errorf("the log says %+v", e)
	}
}

// A client and an upstream that reset are both told to the other.
func TestResetPasses(t *testing.T) {
	up := newAnswerer(t)
	p := proxy(t, up.Addr().String(), faultproxy.Options{})
	conn := dial(t, p)
	_, _ = io.WriteString(conn, "hel")
	soon(t, "the bytes", func() bool { return len(p.Log()) == 1 && p.Log()[0].ToUpstream == 3 })
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	soon(t, "the upstream's end", func() bool { return len(up.saw()) == 1 })
	if diff := cmp.Diff([]sight{{"hel", "reset"}}, up.saw()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_ = up.Close()
	if got := ask(p.Addr(), 5*time.Second, question); got.End != "reset" {
		t.Errorf("without an upstream: %+v", got)
	}
	if e := ended(t, p, 2)[1]; e.End != "no-upstream" || e.Upstreams != 0 {
		t.Errorf("the log says %+v", e)
	}
}

// Close leaves nothing behind, whatever connections are doing.
func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = up.Close() }()
	p, err := faultproxy.New(up.Addr().String(), faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	faults := []string{"pass", "blackhole", "delay-connect,delay=1h", "slow-request,delay=1h", "drop-reply", "duplicate", "cut-request,bytes=3,fin"}
	var conns []net.Conn
	for i, f := range faults {
		set(t, p, f)
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		conns = append(conns, conn)
		soon(t, f, func() bool {
			return len(p.Log()) == i+1 && p.Log()[i].FromClient+p.Log()[i].Upstreams > 0 || strings.HasPrefix(f, "delay")
		})
	}
	p.Hold(true)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, e := range p.Log() {
		if e.End == "" || e.Ended.IsZero() {
			t.Errorf("still open: %+v", e)
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
	soon(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
	if got := ask(p.Addr(), time.Second); got.End != "refused" {
		t.Errorf("after Close: %+v", got)
	}
	if err := p.Set(faultproxy.Fault{}); err == nil {
		t.Error("a closed proxy was opened again")
	}
	if err := p.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := faultproxy.New("127.0.0.1", faultproxy.Options{}); err == nil {
		t.Error("an upstream without a port was taken")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := faultproxy.New("127.0.0.1:1", faultproxy.Options{Listen: l.Addr().String()}); err == nil {
		t.Error("an address that is taken was opened")
	}
}

func TestControl(t *testing.T) {
	cases := map[string]struct {
		reason, method, url, body string
		status                    int
		want                      string
	}{
		"Set":     {"a fault", "PUT", "/control/fault", "cut-reply,bytes=10\n", 200, `"fault":"cut-reply,bytes=10"`},
		"Next":    {"for some connections", "PUT", "/control/fault?next=3", "reset", 200, `"connections":3`},
		"Get":     {"what is in force", "GET", "/control/fault", "", 200, `"fault":"pass"`},
		"Log":     {"what happened", "GET", "/control/log", "", 200, `"end":"closed"`},
		"Hold":    {"a cut network", "PUT", "/control/hold?on=true", "", 200, `"hold":true`},
		"Release": {"and back", "PUT", "/control/hold?on=false", "", 200, `"hold":false`},
		"Cut":     {"what stands is reset", "POST", "/control/cut", "", 200, `"cut":true`},
		"BadHold": {"neither on nor off", "PUT", "/control/hold", "", 400, "want ?on=true"},
		"Word":    {"no fault", "PUT", "/control/fault", "explode", 400, "no such kind"},
		"NoNext":  {"no number", "PUT", "/control/fault?next=some", "reset", 400, "want a number"},
		"Post":    {"not the way", "POST", "/control/fault", "reset", 405, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			up := newAnswerer(t)
			p := proxy(t, up.Addr().String(), faultproxy.Options{})
			ask(p.Addr(), 5*time.Second, question)
			ended(t, p, 1)
			w := httptest.NewRecorder()
			p.Control().ServeHTTP(w, httptest.NewRequest(tc.method, tc.url, strings.NewReader(tc.body)))
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%s: %d %s, want %d with %q", tc.reason, w.Code, w.Body, tc.status, tc.want)
			}
			if tc.status == http.StatusOK && !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
				t.Errorf("%s: %v", tc.reason, w.Header())
			}
		})
	}
}
