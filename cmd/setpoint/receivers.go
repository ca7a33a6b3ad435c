package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	siren "github.com/setpoint-dev/setpoint/internal/escalate/command"
	"github.com/setpoint-dev/setpoint/internal/escalate/pagerduty"
	"github.com/setpoint-dev/setpoint/internal/escalate/slack"
	"github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	execcommand "github.com/setpoint-dev/setpoint/internal/execute/command"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// telling is what receivers are made for.
type telling struct {
	now func() time.Time
	// send: an agent, which pages; without it there are only those who are asked
	// for silences.
	send bool
	// installation keeps its incidents apart from those of others.
	installation string
}

// receivers makes who is told, and who is asked for silences: every Alertmanager.
// Nobody is told a secret of this site.
func (s site) receivers(t telling) (told []escalate.Receiver, silencers []reconcile.Silencer, err error) {
	for _, c := range s.cfg.Receivers {
		if c.Alertmanager == nil && !t.send {
			continue
		}
		r, err := s.receiver(c, t)
		if err != nil {
			return nil, nil, err
		}
		if am, ok := r.(*alertmanager.Receiver); ok {
			silencers = append(silencers, am)
		}
		told = append(told, escalate.Redacted(r, s.secretValues))
	}
	return told, silencers, nil
}

func (s site) receiver(c config.Receiver, t telling) (escalate.Receiver, error) {
	switch {
	case c.Alertmanager != nil:
		return s.alertmanager(c, t.now)
	case c.Webhook != nil:
		return s.webhook(c, t.now)
	case c.PagerDuty != nil:
		return pagerduty.New(pagerduty.Options{
			Name: c.Name, URL: c.PagerDuty.URL, Installation: t.installation, ExternalURL: s.externalURL(),
			Key: fileOf("routingKeyFile of receiver "+c.Name, c.PagerDuty.RoutingKeyFile),
		})
	case c.Slack != nil:
		client, err := s.slackClient()
		if err != nil {
			return nil, fmt.Errorf("receiver %q: %w", c.Name, err)
		}
		return slack.New(slack.Options{Name: c.Name, Channel: c.Slack.Channel, Client: client, Now: t.now, ExternalURL: s.externalURL()})
	case c.Command != nil:
		return siren.New(siren.Options{
			Name: c.Name, Argv: c.Command.Argv, Check: execcommand.Check, Directory: filepath.Dir(s.file), ExternalURL: s.externalURL(),
		})
	}
	return nil, fmt.Errorf("receiver %q: no kind: want alertmanager, webhook, pagerduty, slack or command", c.Name)
}

// receiverFiles are those that the receivers name.
func (s site) receiverFiles() []namedFile {
	var out []namedFile
	for i, r := range s.cfg.Receivers {
		at := spec.IndexPath("receivers", i)
		if r.Webhook != nil {
			out = append(out, namedFile{at + ".webhook.secretFile", r.Webhook.SecretFile, checkSecret})
		}
		if r.PagerDuty != nil {
			out = append(out, namedFile{at + ".pagerduty.routingKeyFile", r.PagerDuty.RoutingKeyFile, checkSecret},
				namedFile{at + ".pagerduty.webhookSecretFile", r.PagerDuty.WebhookSecretFile, checkSecret})
		}
	}
	return out
}

// receiverProgram is the file that a receiver would run, looked at as before each
// page.
func receiverProgram(c config.Command) (file string, err error) {
	if len(c.Argv) == 0 {
		return "", errors.New("argv is empty: name the program")
	}
	path, err := siren.Resolve(c.Argv[0])
	if err != nil {
		return "", err
	}
	return execcommand.Check(path)
}

// fileOf reads a secret's file each time it is used.
func fileOf(what, path string) func() (string, error) {
	return func() (string, error) {
		secret, err := readSecret(what, path)
		if err == nil && secret.Empty() {
			err = errors.New(what + ": no file is named")
		}
		return secret.Reveal(), err
	}
}

// installation names a ledger, by the hash of its first entry: it is the same for
// every replica and after every restart. A ledger that cannot be read has no name;
// what is open is ended under the name that it was opened by.
func installation(ctx context.Context, store ledger.Store) string {
	const length = 12
	if store == nil {
		return ""
	}
	first, err := store.Read(ctx, 0, 1)
	if err != nil || len(first) == 0 || len(first[0].Hash) < length {
		return ""
	}
	return first[0].Hash[:length]
}

// pagerDuties are the receivers whose acknowledgements are taken.
func (s site) pagerDuties() []web.PagerDuty {
	var out []web.PagerDuty
	for _, c := range s.cfg.Receivers {
		if c.PagerDuty != nil && c.PagerDuty.WebhookSecretFile != "" {
			out = append(out, web.PagerDuty{
				Receiver: c.Name, Secret: fileOf("webhookSecretFile of receiver "+c.Name, c.PagerDuty.WebhookSecretFile),
			})
		}
	}
	return out
}

func (s site) alertmanager(c config.Receiver, now func() time.Time) (*alertmanager.Receiver, error) {
	return alertmanager.New(alertmanager.Options{
		Name: c.Name, URL: c.Alertmanager.URL, HTTP: promconfig.DefaultHTTPClientConfig,
		Now: now, ExternalURL: s.externalURL(),
	})
}

func (s site) webhook(c config.Receiver, now func() time.Time) (*webhook.Receiver, error) {
	secret, err := readSecret("secretFile of receiver "+c.Name, c.Webhook.SecretFile)
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Options{
		Name: c.Name, URL: c.Webhook.URL, HTTP: promconfig.DefaultHTTPClientConfig,
		Now: now, Secret: []byte(secret.Reveal()), ExternalURL: s.externalURL(),
	})
}

// externalURL is where the agent answers, for links in pages.
func (s site) externalURL() string {
	return s.cfg.Web.Links()
}
