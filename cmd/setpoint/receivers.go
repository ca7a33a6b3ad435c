package main

import (
	"fmt"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	"github.com/setpoint-dev/setpoint/internal/escalate/webhook"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// receivers makes who is told, and who is asked for silences: every
// Alertmanager. Without sending there are only the latter.
func (s site) receivers(now func() time.Time, send bool) (told []escalate.Receiver, silencers []reconcile.Silencer, err error) {
	for _, c := range s.cfg.Receivers {
		switch {
		case c.Alertmanager != nil:
			r, err := alertmanager.New(alertmanager.Options{
				Name: c.Name, URL: c.Alertmanager.URL, HTTP: promconfig.DefaultHTTPClientConfig,
				Now: now, ExternalURL: s.externalURL(),
			})
			if err != nil {
				return nil, nil, err
			}
			told, silencers = append(told, r), append(silencers, r)
		case !send:
		case c.Webhook != nil:
			r, err := s.webhook(c, now)
			if err != nil {
				return nil, nil, err
			}
			told = append(told, r)
		default:
			return nil, nil, fmt.Errorf("receiver %s: its kind is not in this version; use alertmanager or webhook", c.Name)
		}
	}
	return told, silencers, nil
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
	if s.cfg.Web.Listen == "" {
		return ""
	}
	return "http://" + s.cfg.Web.Listen
}
