package prom_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// trickle sends a byte now and then, and never ends.
func trickle(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // a server sees that its client went away only after the body
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			_, _ = w.Write([]byte(" "))
			w.(http.Flusher).Flush()
		}
	}
}

func TestFaultsOfTheServer(t *testing.T) {
	zipped := func(body []byte, times int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zw := gzip.NewWriter(w)
			for range times {
				_, _ = zw.Write(body)
			}
			_ = zw.Close()
		}
	}
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    measure.Reason
		detail  string
	}{
		"bad query":      {"the query's own fault", status(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), measure.QueryError, "parse error"},
		"400 HTML":       {"a proxy refuses", status(400, "<html>"), measure.SourceError, "HTTP 400"},
		"401":            {"credentials", status(401, "no"), measure.SourceRefused, "HTTP 401"},
		"403":            {"GET is tried as well, and is refused again", status(403, "no"), measure.SourceRefused, "HTTP 403"},
		"404":            {"wrong path", status(404, "404 page not found"), measure.SourceRefused, "HTTP 404"},
		"422 of storage": {"VictoriaMetrics writes numbers for words", status(422, `{"status":"error","errorType":"422","error":"cannot fetch query results from vmstorage"}`), measure.SourceError, "vmstorage"},
		"429":            {"too much", status(429, "slow down"), measure.SourceError, "HTTP 429"},
		"500":            {"server fault", status(500, "oops"), measure.SourceError, "HTTP 500"},
		"503 timeout":    {"overloaded", status(503, `{"status":"error","errorType":"timeout","error":"query timed out"}`), measure.SourceError, "HTTP 503"},
		"204":            {"nothing", status(204, ""), measure.SourceError, "empty body"},
		"log-in page":    {"a proxy's page with 200", status(200, "<html><title>Sign in</title>", "Content-Type", "text/html"), measure.SourceRefused, `the html page "Sign in"`},
		"text":           {"something that listens", status(200, "It works"), measure.SourceRefused, "not a Prometheus API"},
		"JSON of others": {"an API, but not this one", status(200, `{"cluster_name":"x"}`), measure.SourceRefused, "not a Prometheus API"},
		"50 MB": {"bounded before anything parses it", func(w http.ResponseWriter, _ *http.Request) {
			for range 50 {
				if _, err := w.Write(spaces); err != nil {
					return
				}
			}
		}, measure.SourceError, "too large"},
		"50 MB announced":  {"not even read", status(200, " ", "Content-Length", "52428800"), measure.SourceError, "too large"},
		"gzip bomb":        {"bounded after unpacking", zipped(spaces, 8), measure.SourceError, "too large"},
		"gzip, no header":  {"a proxy dropped it", status(200, "\x1f\x8b\x08\x00"), measure.SourceError, "gzip without Content-Encoding"},
		"broken gzip":      {"no gzip at all", status(200, "plain", "Content-Encoding", "gzip"), measure.SourceError, "gzip"},
		"cut gzip":         {"half a body", status(200, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "Content-Encoding", "gzip"), measure.SourceError, "read the answer"},
		"another encoding": {"was not asked for", status(200, "plain", "Content-Encoding", "br"), measure.SourceError, "encoding"},
		"cut off":          {"the connection ends inside the body", status(200, "{", "Content-Length", "1000"), measure.SourceError, "read the answer"},
		"slow-loris":       {"a byte now and then ends at the deadline", trickle, measure.SourceError, "no whole answer within 300ms"},
		"hung":             {"no byte at all", func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm(); <-r.Context().Done() }, measure.SourceError, "no whole answer within 300ms"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := one(t, serve(t, tc.handler, func(o *prom.Options) {
				o.MaxBytes = 1 << 20
				if strings.Contains(tc.detail, "300ms") {
					o.Timeout = 300 * time.Millisecond
				}
			}), objective())
			if m.Reason != tc.want || !strings.Contains(m.Detail, tc.detail) || strings.ContainsAny(m.Detail, "<>\x1f\n") {
				t.Errorf("%s: got %s (%s), want %s with %q", tc.reason, m.Reason, m.Detail, tc.want, tc.detail)
			}
		})
	}
}

// A body that is far too large is not held, not even for a moment.
func TestMemoryIsBounded(t *testing.T) {
	block := bytes.Repeat([]byte("x"), 1<<20)
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 50 {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	s := source(t, server.URL, func(o *prom.Options) { o.MaxBytes = 1 << 20 })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := s.Ask(t.Context(), "x", now)
	runtime.ReadMemStats(&after)
	if r.Reason != measure.SourceError || !strings.Contains(r.Detail, "too large") {
		t.Fatalf("got %+v", r)
	}
	// A buffer that doubles allocates some times what it ends with.
	if got := after.TotalAlloc - before.TotalAlloc; got > 10<<20 {
		t.Errorf("%d MB were allocated for an answer of 50 MB where 1 MB is the limit, want 10 MB at most", got>>20)
	}
	if sent.Load() == 0 {
		t.Error("nothing was sent, so this proves nothing")
	}
}

func TestGzipThatWasNotAskedForIsRead(t *testing.T) {
	a := healthy()
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = zw.Write([]byte(a[kind(r.FormValue("query"))]))
		_ = zw.Close()
	}))
	if m := one(t, s, objective()); m.ErrorRatio != 0.25 {
		t.Errorf("got %+v, want a ratio of 0.25", m)
	}
}

func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	refused := func(edit func(*prom.Options)) *prom.Source {
		return source(t, strings.Replace(server.URL, "http://", "http://user:hunter2hunter2@", 1)+"?authKey=topsecretkey", edit)
	}
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	cases := map[string]struct {
		reason string
		edit   func(*prom.Options)
		want   measure.Reason
		detail string
	}{
		"connection refused": {"it may be starting", func(*prom.Options) {}, measure.SourceError, "refused"},
		"unknown host":       {"a name that nobody has", func(o *prom.Options) { o.URL = "http://prometheus.invalid:9090" }, measure.SourceRefused, "no such host"},
		"unknown authority":  {"a certificate that nobody vouches for", func(o *prom.Options) { o.URL = tls.URL }, measure.SourceRefused, "certificate"},
		"no TLS":             {"the scheme is wrong", func(o *prom.Options) { o.URL = strings.Replace(plain.URL, "http:", "https:", 1) }, measure.SourceRefused, "HTTPS"},
		"no credentials": {"a file that is not there", func(o *prom.Options) {
			o.URL = plain.URL
			o.HTTP.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: filepath.Join(t.TempDir(), "token")}
		}, measure.SourceRefused, "credentials"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := one(t, refused(tc.edit), objective())
			if m.Reason != tc.want || !strings.Contains(m.Detail, tc.detail) {
				t.Errorf("%s: got %s (%s), want %s with %q", tc.reason, m.Reason, m.Detail, tc.want, tc.detail)
			}
			if strings.Contains(m.Detail, "hunter2") || strings.Contains(m.Detail, "topsecretkey") {
				t.Errorf("detail %q holds a secret", m.Detail)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = w.Write([]byte(vector("1")))
	}))
	t.Cleanup(other.Close)
	cases := map[string]struct {
		reason string
		to     string
		code   int
		follow bool
		tls    bool
		known  bool
	}{
		"another host":         {"the query carries credentials", other.URL + "/api/v1/query", 307, true, false, false},
		"same host":            {"a path may move", "/moved", 307, true, false, true},
		"permanently":          {"likewise", "/moved", 308, true, false, true},
		"drops the query":      {"302 makes a GET without a query of it", "/moved", 302, true, false, false},
		"same host, not asked": {"follow_redirects: false", "/moved", 307, false, false, false},
		"for ever":             {"a circle ends", "/api/v1/query", 307, true, false, false},
		"https to http":        {"what was secret would be read on the way", "http", 307, true, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle("/moved", healthy())
			mux.HandleFunc("/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
				to := tc.to
				if tc.tls {
					to = "http://" + r.Host + "/moved"
				}
				http.Redirect(w, r, to, tc.code)
			})
			server := httptest.NewUnstartedServer(mux)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			if tc.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			m := one(t, source(t, server.URL, func(o *prom.Options) {
				o.HTTP.FollowRedirects = tc.follow
				o.HTTP.TLSConfig.InsecureSkipVerify = true
			}), objective())
			if m.Known() != tc.known || elsewhere.Load() != 0 {
				t.Errorf("%s: got %+v, and %d calls elsewhere", tc.reason, m, elsewhere.Load())
			}
			if !tc.known && m.Reason != measure.SourceRefused {
				t.Errorf("%s: got %s (%s), want %s", tc.reason, m.Reason, m.Detail, measure.SourceRefused)
			}
		})
	}
}

// A page of 429 parts is one fault: whoever is refused waits.
func TestBusySourceIsAskedOnce(t *testing.T) {
	server := &fleetServer{}
	server.set(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		w.Header().Set("Retry-After", "120")
		refuse(w, 429, "too_many_requests", "slow down")
		return true
	})
	s := serve(t, server, func(o *prom.Options) { o.Chunk, o.MaxConcurrency, o.Now = 1, 1, func() time.Time { return now } })
	ms := s.Measure(t.Context(), fleetQueries(50)(now))
	if n := server.calls(); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	want := fmt.Sprintf("not asked until %s after 1 failure: HTTP 429, too_many_requests: slow down", now.Add(2*time.Minute).Format("15:04:05Z"))
	for _, m := range ms[2:] {
		if m.Reason != measure.SourceError || !strings.HasSuffix(m.Detail, want) {
			t.Fatalf("got %s (%s), want %q", m.Reason, m.Detail, want)
		}
	}
}
