package config

import (
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func (k *checker) receivers(all []Receiver, slack bool) {
	names(k, "receivers", all, func(r Receiver) string { return r.Name })
	for i, r := range all {
		at := spec.IndexPath("receivers", i)
		k.oneKind(at, r)
		k.duration(at+".escalateAfter", r.EscalateAfter, time.Second, day)
		if r.Alertmanager != nil {
			k.url(at+".alertmanager.url", r.Alertmanager.URL)
		}
		if r.Webhook != nil {
			k.url(at+".webhook.url", r.Webhook.URL)
		}
		if r.PagerDuty != nil {
			k.url(at+".pagerduty.url", r.PagerDuty.URL)
			k.set(at+".pagerduty.routingKeyFile", r.PagerDuty.RoutingKeyFile)
		}
		if r.Slack != nil {
			k.slackID(at+".slack.channel", r.Slack.Channel, "CGD")
			k.that(slack, at+".slack", "needs the workspace: add slack with team, channel and botTokenFile")
		}
		if r.Command != nil {
			k.that(len(r.Command.Argv) > 0 && r.Command.Argv[0] != "", at+".command.argv", "is empty: name the program")
		}
		if r.Heartbeat != 0 {
			k.duration(at+".heartbeat", r.Heartbeat, time.Second, 7*day)
		}
	}
}

// slackID checks an id of Slack's: a letter of its kind, then capitals and digits.
// A channel's name is none, and could be given to another channel tomorrow.
func (k *checker) slackID(path, id, kinds string) {
	ok := len(id) > 1 && strings.IndexByte(kinds, id[0]) >= 0
	for i := range len(id) {
		ok = ok && (id[i] >= 'A' && id[i] <= 'Z' || id[i] >= '0' && id[i] <= '9' || id[i] == '_')
	}
	k.that(ok, path, "%q is no id of Slack: it begins with %s and has capitals and digits only (in Slack: copy link, or About)", id, strings.Join(strings.Split(kinds, ""), " or "))
}

func (k *checker) slack(s *Slack) {
	if s == nil {
		return
	}
	k.word("slack.transport", s.Transport, SlackSocket, SlackHTTP)
	k.url("slack.apiURL", s.APIURL)
	k.slackID("slack.team", s.Team, "TE")
	k.slackID("slack.channel", s.Channel, "CGD")
	k.set("slack.botTokenFile", s.BotTokenFile)
	within(k, "slack.openCards", s.OpenCards, 1, 50)
	switch s.Transport {
	case SlackSocket:
		k.that(s.AppTokenFile != "", "slack.appTokenFile", "is required with transport socket: the app-level token (xapp-…) with connections:write")
	case SlackHTTP:
		k.that(s.SigningSecretFile != "", "slack.signingSecretFile", "is required with transport http: nobody else's clicks are to be believed")
		k.listen("slack.listen", s.Listen)
	}
}

func (k *checker) oneKind(at string, r Receiver) {
	count := 0
	for _, set := range []bool{r.Alertmanager != nil, r.Webhook != nil, r.PagerDuty != nil, r.Slack != nil, r.Command != nil} {
		if set {
			count++
		}
	}
	k.that(count == 1, at, "has %d kinds, want exactly one: alertmanager, webhook, pagerduty, slack or command", count)
}

// unsupported refuses by name what is read and cannot be done yet. A setting
// that is accepted and does nothing would be believed.
func (k *checker) unsupported(c Config) {
	for _, u := range []struct {
		set        bool
		path, what string
	}{
		{c.Executors.Kubernetes.Kubeconfig != "", "executors.kubernetes.kubeconfig", "kubernetes: use webhook.post"},
	} {
		k.that(!u.set, u.path, "not supported by this version: %s", u.what)
	}
}
