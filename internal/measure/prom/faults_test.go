package prom_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

func TestFaultsOfTheServer(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    measure.Reason
		detail  string
	}{
		"bad query": {"the query's own fault", status(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), measure.QueryError, "parse error"},
		"400 HTML":  {"a proxy refuses", status(400, "<html>"), measure.SourceError, "400"},
		"401":       {"credentials", status(401, "no"), measure.SourceError, "401"},
		"403":       {"the client tries GET as well, and is refused again", status(403, "no"), measure.SourceError, "403"},
		"404":       {"wrong path", status(404, "404 page not found"), measure.SourceError, "404"},
		"429":       {"too much", status(429, "slow down"), measure.SourceError, "429"},
		"500":       {"server fault", status(500, "oops"), measure.SourceError, "500"},
		"204":       {"nothing", status(204, ""), measure.SourceError, "no Prometheus answer"},
		"huge": {"bounded before anything parses it", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 2<<20))
		}, measure.SourceError, "larger than"},
		"gzip bomb": {"bounded after unpacking", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zw := gzip.NewWriter(w)
			for range 64 {
				_, _ = zw.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
			_ = zw.Close()
		}, measure.SourceError, "larger than"},
		"broken gzip": {"no gzip at all", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("plain"))
		}, measure.SourceError, "gzip"},
		"another encoding": {"was not asked for", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte("plain"))
		}, measure.SourceError, "encoding"},
		"cut off": {"the connection ends inside the body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("{"))
		}, measure.SourceError, "read the answer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := one(t, serve(t, tc.handler, func(o *prom.Options) { o.MaxBytes = 1 << 20 }), query())
			if m.Reason != tc.want || !strings.Contains(m.Detail, tc.detail) {
				t.Errorf("%s: got %s (%s), want %s with %q", tc.reason, m.Reason, m.Detail, tc.want, tc.detail)
			}
		})
	}
}

func TestGzipThatWasNotAskedForIsRead(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = zw.Write([]byte(map[string]string{
			"good": vector("75"), "total": vector("100"), "newest": vector(seconds(now)),
		}[r.FormValue("query")]))
		_ = zw.Close()
	}))
	if m := one(t, s, query()); m.ErrorRatio != 0.25 {
		t.Errorf("got %+v, want a ratio of 0.25", m)
	}
}

func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s := source(t, strings.Replace(server.URL, "http://", "http://user:hunter2hunter2@", 1)+"?authKey=topsecretkey")
	m := one(t, s, query())
	if m.Reason != measure.SourceError || !strings.Contains(m.Detail, "refused") {
		t.Errorf("got %+v, want a refused connection", m)
	}
	if strings.Contains(m.Detail, "hunter2") || strings.Contains(m.Detail, "topsecretkey") {
		t.Errorf("detail %q holds a secret", m.Detail)
	}
}

func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = w.Write([]byte(vector("1")))
	}))
	t.Cleanup(other.Close)
	good := answers{"good": vector("75"), "total": vector("100"), "newest": vector(seconds(now))}
	cases := map[string]struct {
		reason string
		to     string
		follow bool
		known  bool
	}{
		"another host":         {"the query carries credentials", other.URL + "/api/v1/query", true, false},
		"same host":            {"a path may move", "/moved", true, true},
		"same host, not asked": {"follow_redirects: false", "/moved", false, false},
		"for ever":             {"a circle ends", "/api/v1/query", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle("/moved", good)
			mux.Handle("/api/v1/query", http.RedirectHandler(tc.to, http.StatusTemporaryRedirect))
			m := one(t, serve(t, mux, func(o *prom.Options) { o.HTTP.FollowRedirects = tc.follow }), query())
			if m.Known() != tc.known || elsewhere.Load() != 0 {
				t.Errorf("%s: got %+v, and %d calls elsewhere", tc.reason, m, elsewhere.Load())
			}
		})
	}
}

func TestSecretsAndControlCharactersNeverReachTheDetail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("file-secret-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		edit   func(*prom.Options)
		secret string
	}{
		"inline": {"a hostile server echoes its header", func(o *prom.Options) {
			o.HTTP.Authorization = &config.Authorization{Type: "Bearer", Credentials: "inline-secret-1"}
		}, "inline-secret-1"},
		"file": {"likewise from a file", func(o *prom.Options) {
			o.HTTP.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: file}
		}, "file-secret-1"},
		"basic": {"encoded", func(o *prom.Options) {
			o.HTTP.BasicAuth = &config.BasicAuth{Username: "u", Password: "basic-secret-1"}
		}, base64.StdEncoding.EncodeToString([]byte("u:basic-secret-1"))},
		"url": {"encoded from the URL", func(o *prom.Options) {
			o.URL = strings.Replace(o.URL, "http://", "http://u:url-secret-1@", 1)
		}, base64.StdEncoding.EncodeToString([]byte("u:url-secret-1"))},
		"param": {"a key among the parameters", func(o *prom.Options) {
			o.Params = map[string]string{"authKey": "param-secret-1"}
		}, "param-secret-1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Bool
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				echo := r.Header.Get("Authorization") + " " + r.FormValue("authKey")
				sent.Store(strings.Contains(echo, tc.secret))
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]string{
					"status": "error", "errorType": "bad_data",
					"error": "\x1b[2J\u202etold\x00 " + echo + strings.Repeat(" и so on", 100),
				})
			}), tc.edit)
			m := one(t, s, query())
			if !sent.Load() {
				t.Fatal("the secret was not sent, so the test proves nothing")
			}
			if strings.Contains(m.Detail, tc.secret) || !strings.Contains(m.Detail, "<secret>") {
				t.Errorf("%s: detail %q", tc.reason, m.Detail)
			}
			if strings.ContainsAny(m.Detail, "\x1b\x00\u202e\n") || len([]rune(m.Detail)) > 220 {
				t.Errorf("detail %q is not fit to be shown", m.Detail)
			}
		})
	}
}
