package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// slackSite is a configuration with a workspace at that address.
func slackSite(api, more string) string {
	return fmt.Sprintf("documents: [slo/]\nslack: {apiURL: %q, botTokenFile: bot.token, team: %s, channel: %s, %s}\n",
		api, fakeslack.DefaultTeam, fakeslack.DefaultChannel, more)
}

const (
	overSocket = "appTokenFile: app.token"
	overHTTP   = "transport: http, signingSecretFile: signing.secret"
)

func TestDoctorSlack(t *testing.T) {
	type line struct {
		result string
		words  []string
	}
	tests := map[string]struct {
		reason string
		spoil  func(s *fakeslack.Slack)
		more   string
		files  map[string]string
		// want are lines by "check subject".
		want map[string]line
	}{
		"Socket": {
			reason: "nothing is wrong", more: overSocket,
			want: map[string]line{
				"receivers/slack token":              {resultOK, []string{"workspace T0000LAB00, posts as U0000BOT00"}},
				"receivers/slack scopes":             {resultOK, []string{"chat:write and channels:history"}},
				"receivers/slack-channel C0000OPS00": {resultOK, []string{"a member"}},
				"receivers/slack clicks":             {resultOK, []string{"opens a socket"}},
				"config/secret slack.botTokenFile":   {resultOK, nil},
				"config/secret slack.appTokenFile":   {resultOK, nil},
			},
		},
		"HTTP": {
			reason: "nothing is wrong, and what cannot be tried is said", more: overHTTP, files: map[string]string{"signing.secret": "s"},
			want: map[string]line{
				"receivers/slack clicks":                {resultOK, []string{"/slack/interactivity, which was not tried"}},
				"config/secret slack.signingSecretFile": {resultOK, nil},
			},
		},
		"EmptySigningSecret": {
			reason: "anybody could approve", more: overHTTP, files: map[string]string{"signing.secret": "\n"},
			want: map[string]line{"receivers/slack clicks": {resultFail, []string{"signing.secret is empty", "App Credentials"}}},
		},
		"EmptyToken": {
			reason: "nothing can be asked of Slack", more: overSocket, files: map[string]string{"bot.token": ""},
			want: map[string]line{"receivers/slack slack": {resultFail, []string{"slack.botTokenFile: the file ", "bot.token is empty", "xoxb-"}}},
		},
		"OtherTeam": {
			reason: "clicks of the token's workspace would be foreign", more: overSocket + ", team: T0000OTHER",
			want: map[string]line{"receivers/slack token": {resultFail, []string{"of workspace T0000LAB00", "slack.team is T0000OTHER", "set slack.team to T0000LAB00"}}},
		},
		"Revoked": {
			reason: "the token is none any more", more: overSocket, spoil: func(s *fakeslack.Slack) { s.Revoke(fakeslack.BotToken, true) },
			want: map[string]line{"receivers/slack token": {resultFail, []string{"token_revoked", "renew the token in slack.botTokenFile"}}},
		},
		"AppRevoked": {
			reason: "nobody can click", more: overSocket, spoil: func(s *fakeslack.Slack) { s.Revoke(fakeslack.AppToken, true) },
			want: map[string]line{
				"receivers/slack token":  {resultOK, nil},
				"receivers/slack clicks": {resultFail, []string{"apps.connections.open", "slack.appTokenFile"}},
			},
		},
		"Kicked": {
			reason: "nothing can be posted", more: overSocket, spoil: func(s *fakeslack.Slack) { s.Kick(fakeslack.DefaultChannel, true) },
			want: map[string]line{"receivers/slack-channel C0000OPS00": {resultFail, []string{"not in the channel", "/invite"}}},
		},
		"Archived": {
			reason: "nothing can be posted", more: overSocket, spoil: func(s *fakeslack.Slack) { s.Archive(fakeslack.DefaultChannel, true) },
			want: map[string]line{"receivers/slack-channel C0000OPS00": {resultFail, []string{"archived", "unarchive"}}},
		},
		"NoSuchChannel": {
			reason: "a typing error", more: overSocket + ", channel: C0000NONE0",
			want: map[string]line{"receivers/slack-channel C0000NONE0": {resultFail, []string{"no such channel", "/invite"}}},
		},
		"NoHistory": {
			reason: "a post whose answer was lost is never found", more: overSocket, spoil: func(s *fakeslack.Slack) { s.TakeScope("channels:history", true) },
			want: map[string]line{"receivers/slack scopes": {resultFail, []string{"lacks channels:history", "install the app again"}}},
		},
		"NoWrite": {
			reason: "nothing can be posted", more: overSocket, spoil: func(s *fakeslack.Slack) { s.TakeScope("chat:write", true) },
			want: map[string]line{"receivers/slack scopes": {resultFail, []string{"lacks chat:write"}}},
		},
		"NoRead": {
			reason: "membership cannot be looked up", more: overSocket, spoil: func(s *fakeslack.Slack) { s.TakeScope("channels:read", true) },
			want: map[string]line{"receivers/slack-channel C0000OPS00": {resultWarn, []string{"channels:read", "deploy/slack-manifest.yaml"}}},
		},
		"Limited": {
			reason: "Slack asks to wait", more: overSocket, spoil: func(s *fakeslack.Slack) { s.Fail("auth.test", 0, fakeslack.Fault{Error: "ratelimited", RetryAfter: 7}) },
			want: map[string]line{"receivers/slack token": {resultFail, []string{"wait 7s"}}},
		},
		"Down": {
			reason: "an outage is none of the token's", more: overSocket, spoil: func(s *fakeslack.Slack) {
				s.Fail("auth.test", 0, fakeslack.Fault{Status: http.StatusServiceUnavailable})
			},
			want: map[string]line{"receivers/slack token": {resultFail, []string{"reaches slack.apiURL"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakeslack.New(fakeslack.Options{})
			server := httptest.NewServer(fake.Handler())
			defer server.Close()
			defer fake.Close()
			if tt.spoil != nil {
				tt.spoil(fake)
			}
			text := slackSite(server.URL+"/api/", tt.more)
			for _, key := range []string{"team: T0000OTHER", "channel: C0000NONE0"} {
				if strings.Contains(tt.more, key) {
					text = strings.Replace(text, ", "+key, "", 1)
					field, _, _ := strings.Cut(key, ":")
					text = strings.Replace(text, field+": "+map[string]string{"team": fakeslack.DefaultTeam, "channel": fakeslack.DefaultChannel}[field], key, 1)
				}
			}
			files := map[string]string{"setpoint.yaml": text, "bot.token": fakeslack.BotToken + "\n", "app.token": fakeslack.AppToken + "\n"}
			for file, content := range tt.files {
				files[file] = content
			}
			_, r := diagnose(t, t.TempDir(), files, "--only", "receivers,config")
			for key, want := range tt.want {
				item, found := checkItem{}, 0
				for _, i := range r.Items {
					if i.Check+" "+i.Subject == key {
						item, found = i, found+1
					}
				}
				if found != 1 || item.Result != want.result {
					t.Errorf("%s: %s is %d lines, %+v, want %s; all: %+v", tt.reason, key, found, item, want.result, r.Items)
				}
				for _, w := range want.words {
					if !strings.Contains(item.Detail+" | "+item.Remedy, w) {
						t.Errorf("%s: %s lacks %q: %+v", tt.reason, key, w, item)
					}
				}
			}
			for _, i := range r.Items {
				if strings.Contains(i.Detail+i.Remedy, fakeslack.BotToken) || strings.Contains(i.Detail+i.Remedy, fakeslack.AppToken) || strings.Contains(i.Detail, "ticket=") {
					t.Errorf("%s: a secret is shown: %+v", tt.reason, i)
				}
			}
			for _, call := range fake.Calls() {
				if strings.HasPrefix(call.Method, "chat.") {
					t.Errorf("%s: %s was called: the doctor posts nothing", tt.reason, call.Method)
				}
			}
		})
	}
}

// TestDoctorSlackChannels: what is lost is what is posted there.
func TestDoctorSlackChannels(t *testing.T) {
	cfg := config.Config{
		Slack: &config.Slack{Channel: "C1"},
		Receivers: []config.Receiver{
			{Name: "chat", Slack: &config.SlackChannel{Channel: "C2"}}, {Name: "siren", Command: &config.Command{}},
			{Name: "both", Slack: &config.SlackChannel{Channel: "C1"}}, {Name: "late", Slack: &config.SlackChannel{Channel: "C2"}},
		},
	}
	const cards, pages = "no approval is asked there until then, and each one pages", "no page reaches anybody through receiver "
	wants := map[string][]string{"C1": {cards, pages + "both until then"}, "C2": {pages + "chat and late until then"}}
	all := slackChannels(cfg)
	if len(all) != len(wants) {
		t.Errorf("got %+v", all)
	}
	conversation := func(member, archived bool) *slackgo.Channel {
		c := slackgo.Channel{IsMember: member}
		c.IsArchived = archived
		return &c
	}
	for _, use := range all {
		for what, got := range map[string]checkItem{
			"Missing":  slackChannel(use, nil, slackgo.SlackErrorResponse{Err: "channel_not_found"}),
			"Outside":  slackChannel(use, conversation(false, false), nil),
			"Archived": slackChannel(use, conversation(true, true), nil),
		} {
			if got.Result != resultFail || strings.Contains(got.Remedy, cards) != (use.id == "C1") {
				t.Errorf("%s %s: %+v", use.id, what, got)
			}
			for _, want := range wants[use.id] {
				if !strings.Contains(got.Remedy, want) {
					t.Errorf("%s %s: no %q in %+v", use.id, what, want, got)
				}
			}
		}
	}
}

// TestDoctorSlackApprovers: a card that nobody can answer is told before there is
// one, whatever Slack says.
func TestDoctorSlackApprovers(t *testing.T) {
	tests := map[string]struct {
		reason, members, token string
		want                   bool
	}{
		"Somebody": {"a person of the workspace", fmt.Sprintf(`"slack:%s/U1", "os:alice"`, fakeslack.DefaultTeam), "xoxb-1", false},
		"Nobody":   {"people of this host alone", `"os:alice"`, "xoxb-1", true},
		"NoToken":  {"what else is wrong hides it not", `"os:alice"`, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := diagnose(t, t.TempDir(), map[string]string{
				"setpoint.yaml":     slackSite("http://127.0.0.1:1/api/", overHTTP) + `approvers: {"@oncall": [` + tt.members + "]}\n",
				"slo/checkout.yaml": askedService, "bot.token": tt.token, "signing.secret": "s",
			}, "--only", "receivers")
			var got []checkItem
			for _, i := range ofCheck(r, "receivers/slack") {
				if i.Subject == "approvers" {
					got = append(got, i)
				}
			}
			if (len(got) == 1) != tt.want || tt.want && (got[0].Result != resultWarn || !strings.Contains(got[0].Detail, "nobody can answer the cards of checkout in Slack: @oncall has nobody of workspace T0000LAB00")) {
				t.Errorf("%s: %+v", tt.reason, r.Items)
			}
		})
	}
}

// A token that leaves this host unencrypted is read by whoever is on the way.
func TestDoctorSlackWay(t *testing.T) {
	_, r := diagnose(t, t.TempDir(), map[string]string{
		"setpoint.yaml": slackSite("http://slack.invalid/api/", overSocket), "bot.token": "xoxb-1", "app.token": "xapp-1",
	}, "--only", "config")
	if got := ofCheck(r, "config/way"); len(got) != 1 || got[0].Result != resultWarn || !strings.Contains(got[0].Remedy, "apiURL of slack") {
		t.Errorf("got %+v", r.Items)
	}
}

// The manifest gives what the doctor asks for, and nothing that nobody uses.
func TestSlackManifest(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "slack-manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m slackgo.Manifest
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	slices.Sort(m.OAuthConfig.Scopes.Bot)
	want := []string{"channels:history", "channels:read", "chat:write", "groups:history", "groups:read"}
	if !slices.Equal(m.OAuthConfig.Scopes.Bot, want) || len(m.OAuthConfig.Scopes.User) > 0 {
		t.Errorf("scopes = %+v, want %q", m.OAuthConfig.Scopes, want)
	}
	if m.Settings.Interactivity == nil || !m.Settings.Interactivity.IsEnabled || !m.Settings.SocketModeEnabled || m.Settings.OrgDeployEnabled {
		t.Errorf("settings = %+v, want buttons, Socket Mode and one workspace", m.Settings)
	}
	header := http.Header{"X-Oauth-Scopes": {strings.Join(want, ",")}}
	for _, private := range []bool{false, true} {
		if got := slackScopes(header, private); got.Result != resultOK {
			t.Errorf("private %v: %+v", private, got)
		}
	}
}
