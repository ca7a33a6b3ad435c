package openai_test

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// A server may send as much as it likes: what is read is bounded.
func TestTwoGigabytes(t *testing.T) {
	const size = 2 << 30
	for name, declared := range map[string]bool{"declared": true, "chunked": false} {
		t.Run(name, func(t *testing.T) {
			var written atomic.Int64
			gone := make(chan struct{})
			url := server(t, func(w http.ResponseWriter, _ *http.Request) {
				defer close(gone)
				w.Header().Set("Content-Type", "application/json")
				if declared {
					w.Header().Set("Content-Length", "2147483648")
				}
				piece := bytes.Repeat([]byte(" "), 64<<10)
				for written.Load() < size {
					n, err := w.Write(piece)
					written.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			c := client(t, options(t, url))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, _ := c.Propose(t.Context(), request())
			<-gone
			runtime.ReadMemStats(&after)
			if p.Fault != "provider-error: endpoint e1: the response is longer than 1048576 bytes" {
				t.Errorf("Fault = %q", p.Fault)
			}
			used := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d KiB allocated, %d KiB written by the server", used>>10, written.Load()>>10)
			if used > 32<<20 || written.Load() > 64<<20 {
				t.Errorf("%d bytes allocated, %d written by the server", used, written.Load())
			}
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	_ = z.Close()
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
	cases := map[string]struct {
		reason string
		h      http.HandlerFunc
		fault  string
	}{
		"Bomb": {reason: "No compression was asked for, and none is undone.", h: func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("Accept-Encoding = %q", got)
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}, fault: `provider-error: endpoint e1: content encoding "gzip" that was not asked for`},
		"BombUnsaid": {reason: "Nor where it is not declared.", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bomb.Bytes()[:5000])
		}, fault: "provider-error: endpoint e1: the response is not one JSON document"},
		"Headers": {reason: "Headers are bounded too.", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Flood", strings.Repeat("x", 256<<10))
			w.WriteHeader(http.StatusOK)
		}, fault: "unreachable: endpoint e1: net/http: server response headers exceeded 65536 bytes; aborted"},
		"Drip": {reason: "A byte now and then is no answer.", h: drip, fault: "timeout: endpoint e1: no complete answer within the deadline"},
		"Spaces": {reason: "White space without end is cut.", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for {
				if _, err := w.Write(bytes.Repeat([]byte("\n"), 32<<10)); err != nil {
					return
				}
			}
		}, fault: "provider-error: endpoint e1: the response is longer than 1048576 bytes"},
		"Switched": {reason: "A bare connection has no deadline, so none is read.", h: func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.Copy(io.Discard, conn) // Until whoever asked hangs up.
		}, fault: "provider-error: endpoint e1: status 101: another protocol was not asked for"},
		"Cut": {reason: "Less than was promised is not whole.", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "5000")
			_, _ = io.WriteString(w, `{"choices":[]}`)
		}, fault: "unreachable: endpoint e1: unexpected EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, server(t, tc.h))
			if name == "Drip" {
				o.Endpoints[0].Timeout = 150 * time.Millisecond
			}
			start := time.Now()
			p, _ := client(t, o).Propose(t.Context(), request())
			if p.Fault != tc.fault {
				t.Errorf("%s\nFault = %q\nwant    %q", tc.reason, p.Fault, tc.fault)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// Nothing listens to a key that was sent on.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Int64
	elsewhere := server(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, code := range []int{301, 302, 303, 307, 308} {
		p, _ := client(t, options(t, server(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, code)
		}))).Propose(t.Context(), request())
		if !strings.HasPrefix(p.Fault, propose.FaultProvider) || followed.Load() != 0 {
			t.Errorf("status %d: %q, followed %d times", code, p.Fault, followed.Load())
		}
	}
}

func TestConnectionPerRequest(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(completion("prose"))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	_, u := client(t, options(t, s.URL)).Propose(t.Context(), request())
	if len(u.Exchanges) != 2 || opened.Load() != 2 {
		t.Errorf("%d requests over %d connections", len(u.Exchanges), opened.Load())
	}
}

func TestTransport(t *testing.T) {
	t.Parallel()
	if tr := openai.NewTransport(nil); tr.Proxy != nil || !tr.DisableCompression || !tr.DisableKeepAlives || tr.TLSClientConfig.InsecureSkipVerify {
		t.Errorf("transport %+v", tr)
	}
	var proto atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto.Store(int64(r.ProtoMajor))
		completion(good)(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	o := options(t, s.URL)
	if p, _ := client(t, o).Propose(t.Context(), request()); !strings.HasPrefix(p.Fault, propose.FaultUnreachable) || proto.Load() != 0 {
		t.Errorf("a certificate that nobody vouches for: %+v", p)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	o.Transport = openai.NewTransport(roots)
	if p, _ := client(t, o).Propose(t.Context(), request()); p.Action != "restart" || proto.Load() != 2 {
		t.Errorf("HTTP/%d: %+v", proto.Load(), p)
	}
}
