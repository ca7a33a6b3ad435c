package alertmanager_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
)

// The real Alertmanager says who it is, and a silence counts whatever it is
// about.
func TestStatusOfARealOne(t *testing.T) {
	am := start(t)
	am.silence(t, "deploying", `{"name":"alertname","value":"Other","isRegex":false}`)
	got, err := receiver(t, am.url, time.Now).Status(t.Context())
	if err != nil || got.Version == "" || got.Cluster != "disabled" || got.Silences != 1 || time.Since(got.Up) > time.Minute {
		t.Errorf("got %+v, %v", got, err)
	}
	if as := am.alerts(t); len(as) != 0 {
		t.Errorf("it holds %+v", as)
	}
}

// Whatever is no Alertmanager is said in words of ours: a page to log in must
// not be shown, nor taken for one.
func TestStatusOfOthers(t *testing.T) {
	const status = `{"cluster":{"status":"ready","peers":[{"address":"a","name":"b"}]},"config":{"original":""},"uptime":"2026-11-29T12:00:00Z",` +
		`"versionInfo":{"branch":"","buildDate":"","buildUser":"","goVersion":"","revision":"","version":"0.28.0"}}`
	cases := map[string]struct {
		reason            string
		status            int
		kind, body, after string
		want              string
		silences          bool
	}{
		"HTML":      {"a portal in between", 200, "text/html", "<html>secret-page</html>", "", "not that of Alertmanager", false},
		"OtherJSON": {"another server", 200, "application/json", `{"status":"success"}`, "", "not that of Alertmanager", false},
		"List":      {"of another form", 200, "application/json", `[1]`, "", "not that of Alertmanager", false},
		"Broken":    {"its own fault", 500, "application/json", `"secret-page"`, "", "HTTP 500", false},
		"Forbidden": {"a proxy that refuses", 403, "text/plain", "secret-page", "", "HTTP 403", false},
		"Silences":  {"it answers, its silences do not", 200, "application/json", status, "<html>", "silences cannot be read", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s", r.Method, r.URL.Path)
				}
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				if strings.HasSuffix(r.URL.Path, "/silences") {
					fmt.Fprint(w, tc.after)
					return
				}
				fmt.Fprint(w, tc.body)
			}))
			t.Cleanup(srv.Close)
			_, err := receiver(t, srv.URL, time.Now).Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret-page") || strings.Contains(err.Error(), "models.") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if errors.Is(err, alertmanager.ErrSilences) != tc.silences {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
