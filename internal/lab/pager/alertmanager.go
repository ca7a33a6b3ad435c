package pager

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
)

// alert is one alert as Alertmanager would hold it.
type alert struct {
	posted                *models.PostableAlert
	starts, ends, updated time.Time
}

// resolveTimeout is after which Alertmanager ends an alert without an end.
const resolveTimeout = 5 * time.Minute

// postAlerts takes all alerts of a request or none. (Alertmanager takes the
// valid ones and answers 400 as well; whoever relies on that has a fault.)
func (p *Pager) postAlerts(w http.ResponseWriter, req *http.Request) {
	var posted models.PostableAlerts
	err := read(w, req, &posted)
	if err == nil {
		err = posted.Validate(strfmt.Default)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.expire(now)
	var alerts []alert
	for i := 0; err == nil && i < len(posted); i++ {
		var a alert
		if a, err = newAlert(posted[i], now); err != nil {
			err = fmt.Errorf("alert %d: %w", i, err)
		}
		alerts = append(alerts, a)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	for _, a := range alerts {
		p.hold(a, now)
	}
	w.WriteHeader(http.StatusOK)
}

func newAlert(posted *models.PostableAlert, now time.Time) (alert, error) {
	if posted == nil || len(posted.Labels) == 0 {
		return alert{}, fmt.Errorf("at least one label pair is required")
	}
	for name, value := range posted.Labels {
		if name == "" || value == "" {
			return alert{}, fmt.Errorf("label %q has an empty name or value", name)
		}
	}
	a := alert{posted: posted, starts: time.Time(posted.StartsAt), ends: time.Time(posted.EndsAt), updated: now}
	if a.starts.Unix() <= 0 { // The client writes an absent time as 1970.
		a.starts = now
	}
	if a.ends.Unix() <= 0 {
		a.ends = now.Add(resolveTimeout)
	}
	if a.ends.Before(a.starts) {
		return alert{}, fmt.Errorf("start time must be before end time")
	}
	return a, nil
}

// hold keeps an alert that fires, and writes the page down. The caller holds
// the lock.
func (p *Pager) hold(a alert, now time.Time) {
	key := fingerprint(a.posted.Labels)
	ended := !now.Before(a.ends)
	if ended {
		delete(p.alerts, key)
	} else {
		p.alerts[key] = a
	}
	p.take(delivery{
		labels: maps.Clone(map[string]string(a.posted.Labels)), summary: a.posted.Annotations["summary"],
		ended: ended, until: a.ends,
	}, now)
}

// getAlerts gives the alerts that fire, by fingerprint. Filters are not read,
// but for active=false, which leaves none here.
func (p *Pager) getAlerts(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire(p.now())
	alerts := models.GettableAlerts{}
	if req.URL.Query().Get("active") != "false" {
		for _, key := range slices.Sorted(maps.Keys(p.alerts)) {
			alerts = append(alerts, p.alerts[key].gettable(key))
		}
	}
	answer(w, http.StatusOK, alerts)
}

func (a alert) gettable(fingerprint string) *models.GettableAlert {
	active, receiver := models.AlertStatusStateActive, "pager"
	annotations := a.posted.Annotations
	if annotations == nil {
		annotations = models.LabelSet{}
	}
	return &models.GettableAlert{
		Annotations: annotations, Fingerprint: &fingerprint, Alert: a.posted.Alert,
		StartsAt: instant(a.starts), EndsAt: instant(a.ends), UpdatedAt: instant(a.updated),
		Receivers: []*models.ReceiverReference{{Name: &receiver}},
		Status:    &models.AlertStatus{State: &active, InhibitedBy: []string{}, MutedBy: []string{}, SilencedBy: []string{}},
	}
}

func instant(t time.Time) *strfmt.DateTime {
	d := strfmt.DateTime(t.UTC())
	return &d
}

// status says what this is, in the place where Alertmanager says its version.
func (p *Pager) status(w http.ResponseWriter, _ *http.Request) {
	disabled, none, version := models.ClusterStatusStatusDisabled, "", "setpoint-lab pager"
	answer(w, http.StatusOK, models.AlertmanagerStatus{
		Cluster: &models.ClusterStatus{Status: &disabled}, Config: &models.AlertmanagerConfig{Original: &none},
		Uptime: instant(p.started),
		VersionInfo: &models.VersionInfo{
			Branch: &none, BuildDate: &none, BuildUser: &none, GoVersion: &none, Revision: &none, Version: &version,
		},
	})
}
