package escalate

import (
	"time"

	"github.com/prometheus/common/model"
)

// Message is Alertmanager's webhook body, version 4.
type Message struct {
	Receiver          string            `json:"receiver"`
	Status            string            `json:"status"`
	Alerts            []Alert           `json:"alerts"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   uint64            `json:"truncatedAlerts"`
}

// Alert is one alert of a Message.
type Alert struct {
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	// EndsAt is zero (0001-01-01T00:00:00Z) while the alert fires.
	EndsAt       time.Time `json:"endsAt"`
	GeneratorURL string    `json:"generatorURL"`
	// Fingerprint is Alertmanager's own, over the labels.
	Fingerprint string `json:"fingerprint"`
}

// NewMessage is the body for a page. Its group is the episode.
func NewMessage(p Page, receiver, externalURL string) Message {
	labels, annotations := filled(p.Labels()), filled(p.Annotations())
	status := "firing"
	if !p.EndedAt.IsZero() {
		status = "resolved"
	}
	group := model.LabelSet{"alertname": model.LabelValue(labels["alertname"]), "episode": model.LabelValue(labels["episode"])}
	all := model.LabelSet{}
	for k, v := range labels {
		all[model.LabelName(k)] = model.LabelValue(v)
	}
	return Message{
		Receiver: receiver, Status: status,
		Alerts: []Alert{{
			Status: status, Labels: labels, Annotations: annotations, StartsAt: p.Since.UTC(), EndsAt: p.EndedAt.UTC(),
			GeneratorURL: externalURL, Fingerprint: all.Fingerprint().String(),
		}},
		GroupLabels:  map[string]string{"alertname": labels["alertname"], "episode": labels["episode"]},
		CommonLabels: labels, CommonAnnotations: annotations,
		ExternalURL: externalURL, Version: "4", GroupKey: "{}:" + group.String(),
	}
}

// filled leaves out empty values, which no alert in Alertmanager has.
func filled(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if v != "" {
			out[k] = v
		}
	}
	return out
}
