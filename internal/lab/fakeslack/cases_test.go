package fakeslack_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

func cases(t *testing.T) map[string]fakeslack.Case {
	t.Helper()
	all, err := fakeslack.Cases()
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]fakeslack.Case{}
	for _, c := range all {
		if c.Source == "" || c.What == "" || c.Right == "" {
			t.Errorf("%s lacks its source, or what is right", c.ID)
		}
		byID[strings.Split(c.ID, "-")[0]] = c
	}
	if len(all) != 9 || len(byID) != 9 {
		t.Fatalf("%d cases with %d ids, want 9", len(all), len(byID))
	}
	return byID
}

// TestCasesVerify: at its own time each signed case verifies, or does not, as
// its right answer says.
func TestCasesVerify(t *testing.T) {
	t.Parallel()
	want := map[string][]error{
		"K01": {nil}, "K03": {slack.ErrExpiredTimestamp}, "K05": {nil, nil}, "K07": {nil, nil}, "K13": {nil},
		"K15": {slack.ErrInvalidSignature},
	}
	byID := cases(t)
	for id, results := range want {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c := byID[id]
			var got []error
			synctest.Test(t, func(*testing.T) {
				time.Sleep(time.Until(c.Clock))
				for _, r := range c.Requests {
					got = append(got, verify(r.Header, r.Body, c.SigningSecret))
				}
			})
			if len(got) != len(results) {
				t.Fatalf("%d requests, want %d", len(got), len(results))
			}
			for i, err := range got {
				if !errors.Is(err, results[i]) {
					t.Errorf("request %d: %v, want %v", i, err, results[i])
				}
				if refused := strings.HasPrefix(c.Right, "401"); refused != (err != nil) {
					t.Errorf("request %d: %v, and right is %q", i, err, c.Right)
				}
			}
		})
	}
	for id, c := range byID {
		if _, signed := want[id]; signed != (c.API == nil) {
			t.Errorf("%s: signed %v, and an answer of the API %v", id, signed, c.API != nil)
		}
	}
}

// TestCasesClick: the signed cases are clicks as this Slack makes them.
func TestCasesClick(t *testing.T) {
	t.Parallel()
	c := cases(t)["K01"].Requests[0]
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(c.Body)))
	req.Header = c.Header
	click, err := slack.InteractionCallbackParse(req)
	if err != nil {
		t.Fatal(err)
	}
	a := click.ActionCallback.BlockActions[0]
	if click.Type != slack.InteractionTypeBlockActions || a.ActionID != "approve" || a.Value != "checkout:w-29406" || click.User.ID != "U_ONCALL" {
		t.Errorf("%+v", click)
	}
}

// TestCasesAnswer: the answers of the Web API, as the real client reads them.
func TestCasesAnswer(t *testing.T) {
	t.Parallel()
	want := map[string]string{"K09": "message_not_found", "K11": "not_in_channel", "K17": "slack rate limit exceeded, retry after 30s"}
	got := map[string]string{}
	for id, c := range cases(t) {
		if c.API == nil {
			continue
		}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for name := range c.API.Header {
				w.Header().Set(name, c.API.Header.Get(name))
			}
			w.WriteHeader(c.API.Status)
			_, _ = w.Write(c.API.Body)
		}))
		api := slack.New("x", slack.OptionAPIURL(srv.URL+"/"))
		_, _, err := api.PostMessageContext(t.Context(), "C", slack.MsgOptionText("x", false))
		srv.Close()
		if err == nil {
			t.Fatalf("%s: no error", id)
		}
		got[id] = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if d := cases(t)["K13"].Executor; d != 20*time.Second {
		t.Errorf("the slow handler's action takes %s", d)
	}
}
