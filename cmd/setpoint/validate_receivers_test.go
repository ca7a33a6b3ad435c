package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// peopleTold is everything, with Slack and PagerDuty, each key on a line of its own.
const peopleTold = everything + `slack:
  team: T0000LAB00
  channel: C0000OPS00
  botTokenFile: bot.token
`

// TestValidateReceiverSecrets: a page or a card that could not be sent for want of
// a secret is said before it is to be sent.
func TestValidateReceiverSecrets(t *testing.T) {
	pager := strings.Replace(peopleTold, "receivers:\n", "receivers:\n  - name: pd\n    pagerduty:\n      routingKeyFile: pd.key\n      webhookSecretFile: pd.hook\n", 1)
	pager = strings.Replace(pager, "web: {", `web: {externalURL: "https://setpoint.example", `, 1)
	cases := map[string]struct {
		reason, transport string
		key               string
		file              string
	}{
		"BotToken":      {"nothing can be posted", "  appTokenFile: app.token\n", "setpoint.yaml:26: slack.botTokenFile", "bot.token"},
		"AppToken":      {"no click comes in", "  appTokenFile: app.token\n", "setpoint.yaml:27: slack.appTokenFile", "app.token"},
		"SigningSecret": {"anybody could click", "  signingSecretFile: signing.secret\n  transport: http\n", "setpoint.yaml:27: slack.signingSecretFile", "signing.secret"},
		"RoutingKey":    {"no page is sent", "  appTokenFile: app.token\n", "setpoint.yaml:16: receivers[0].pagerduty.routingKeyFile", "pd.key"},
		"WebhookSecret": {"no acknowledgement counts", "  appTokenFile: app.token\n", "setpoint.yaml:17: receivers[0].pagerduty.webhookSecretFile", "pd.hook"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := hostFiles(t)
			put(t, filepath.Join(dir, "setpoint.yaml"), pager+tc.transport)
			for _, file := range []string{"bot.token", "app.token", "signing.secret", "pd.key", "pd.hook"} {
				put(t, filepath.Join(dir, file), "k")
			}
			if code, _, complaints := command(t, dir, "validate"); code != exitFine {
				t.Fatalf("with everything there: exit %d, %s", code, complaints)
			}
			put(t, filepath.Join(dir, tc.file), " \n")
			code, _, complaints := command(t, dir, "validate")
			want := tc.key + ": the file " + tc.file + " is empty\nsetpoint: 1 fault; nothing was loaded\n"
			if code != exitError || complaints != want {
				t.Errorf("%s: exit %d, %swant %s", tc.reason, code, complaints, want)
			}
			if err := os.Remove(filepath.Join(dir, tc.file)); err != nil {
				t.Fatal(err)
			}
			code, _, complaints = command(t, dir, "validate")
			want = tc.key + ": stat " + tc.file + ": no such file or directory\nsetpoint: 1 fault; nothing was loaded\n"
			if code != exitError || complaints != want {
				t.Errorf("%s: exit %d, %swant %s", tc.reason, code, complaints, want)
			}
		})
	}
}

// askedService has an approver to ask.
const askedService = aService + `---
apiVersion: openslo/v1
kind: SLO
metadata: {name: availability}
spec:
  service: checkout
  indicator: {spec: {ratioMetric: {counter: true, bad: {metricSource: {metricSourceRef: main, spec: {query: a}}}, total: {metricSource: {metricSourceRef: main, spec: {query: b}}}}}}
  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.99}]
---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: checkout}
spec:
  service: checkout
  approvers: ["@oncall"]
  escalation: {receivers: [oncall]}
`

// TestValidateNotes: what hardly can be meant is said, and is no fault.
func TestValidateNotes(t *testing.T) {
	const (
		noAnswer  = "slo/checkout.yaml:20: warning (nobody-in-slack): nobody can answer the cards of checkout in Slack: @oncall has nobody of workspace T0000LAB00; add slack:T0000LAB00/<user> under approvers in setpoint.yaml\n"
		web       = `web: {listen: "127.0.0.1:0", tokensFile: tokens.yaml}`
		pagerDuty = "receivers:\n  - {name: pd, pagerduty: {routingKeyFile: hook.key}}\n"
	)
	links := func(sender, address string) string {
		return "note: links in what " + sender + " shows begin with http://" + address + ", which leads nowhere on the host of who reads it: set web.externalURL to where people reach the agent\n"
	}
	slack := func(members string) string {
		return peopleTold + "  appTokenFile: hook.key\napprovers: {\"@oncall\": [" + members + "]}\n"
	}
	cases := map[string]struct {
		reason, config string
		want           []string
		none           string
	}{
		"Plain":       {"nobody outside is shown a link", everything + `approvers: {"@oncall": ["os:alice"]}`, nil, "note"},
		"NobodyThere": {"a card that nobody can answer", slack(`"os:alice"`), []string{noAnswer, "setpoint.yaml:18: " + links("Slack", "127.0.0.1:0")}, ""},
		"Somebody":    {"one who can", strings.Replace(slack(`"slack:T0000LAB00/U1"`), web, `web: {externalURL: "https://setpoint.example", tokensFile: tokens.yaml}`, 1), nil, "note"},
		"PagerDuty":   {"a phone is another host", strings.Replace(everything, "receivers:\n", pagerDuty, 1) + `approvers: {"@oncall": ["os:alice"]}`, []string{"setpoint.yaml:19: " + links("receiver pd", "127.0.0.1:0")}, "warning"},
		"NoListen":    {"the default listens here too", strings.Replace(slack(`"slack:T0000LAB00/U1"`), web, "web: {tokensFile: tokens.yaml}", 1), []string{"setpoint.yaml:19: " + links("Slack", "127.0.0.1:8321")}, "warning"},
		"Everywhere":  {"all addresses are none to go to", strings.Replace(slack(`"slack:T0000LAB00/U1"`), "127.0.0.1:0", "0.0.0.0:8321", 1), []string{links("Slack", "0.0.0.0:8321")}, "warning"},
		"Chosen":      {"who says it means it", strings.Replace(slack(`"slack:T0000LAB00/U1"`), web, `web: {externalURL: "http://127.0.0.1:8321", tokensFile: tokens.yaml}`, 1), nil, "note"},
		"Reachable":   {"an address of this host", strings.Replace(slack(`"slack:T0000LAB00/U1"`), "127.0.0.1:0", "setpoint.internal:8321", 1), nil, "note"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := hostFiles(t)
			put(t, filepath.Join(dir, "setpoint.yaml"), tc.config)
			put(t, filepath.Join(dir, "bot.token"), "k")
			put(t, filepath.Join(dir, "slo/checkout.yaml"), askedService)
			code, out, complaints := command(t, dir, "validate")
			out = strings.ReplaceAll(out, dir+"/", "")
			if code != exitFine {
				t.Fatalf("%s: exit %d, %s", tc.reason, code, complaints)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s: no\n%sin\n%s", tc.reason, want, out)
				}
			}
			if tc.none != "" && strings.Contains(out, tc.none) {
				t.Errorf("%s: a %s in\n%s", tc.reason, tc.none, out)
			}
		})
	}
}
