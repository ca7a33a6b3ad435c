package prom_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

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
			m := one(t, s, objective())
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
