package config

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func (k *checker) receivers(all []Receiver) {
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
	}
}

func (k *checker) oneKind(at string, r Receiver) {
	count := 0
	for _, set := range []bool{r.Alertmanager != nil, r.Webhook != nil, r.PagerDuty != nil, r.Slack != nil, r.Command != nil} {
		if set {
			count++
		}
	}
	k.that(count == 1, at, "has %d kinds, want exactly one: alertmanager or webhook", count)
}

// unsupported refuses by name what is read and cannot be done yet. A setting
// that is accepted and does nothing would be believed.
func (k *checker) unsupported(c Config) {
	for _, u := range []struct {
		set        bool
		path, what string
	}{
		{c.Slack != nil, "slack", "slack: answer by setpoint approve"},
		{c.Executors.Kubernetes.Kubeconfig != "", "executors.kubernetes.kubeconfig", "kubernetes: use webhook.post"},
	} {
		k.that(!u.set, u.path, "not supported by this version: %s", u.what)
	}
	const instead = "use alertmanager or webhook"
	for i, r := range c.Receivers {
		at := spec.IndexPath("receivers", i)
		k.that(r.PagerDuty == nil, at+".pagerduty", "not supported by this version: pagerduty: %s", instead)
		k.that(r.Slack == nil, at+".slack", "not supported by this version: slack: %s", instead)
		k.that(r.Heartbeat == 0, at+".heartbeat", "not supported by this version: a heartbeat: use the dead-man rule of deploy/alerts.yaml")
		k.that(r.Command == nil, at+".command", "not supported by this version: command: %s", instead)
	}
}
