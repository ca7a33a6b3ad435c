// Package pager is a receiver of pages that writes down what people would see:
// Alertmanager's webhook JSON, the part of Alertmanager's API v2 that Setpoint
// uses, and PagerDuty's Events API v2 with somebody who acknowledges. Each of
// them can be down.
package pager

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

// maxBody bounds a request; no page of ours comes near it.
const maxBody = 1 << 20

// Page is one page as a person sees it.
type Page struct {
	ID       string            `json:"id"`
	Labels   map[string]string `json:"labels"`
	Summary  string            `json:"summary"`
	OpenedAt time.Time         `json:"openedAt"`
	// EndedAt is zero while it is open.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Posts counts deliveries.
	Posts int `json:"posts"`
}

// Pager keeps pages in memory. It is safe for concurrent use.
type Pager struct {
	now     func() time.Time
	started time.Time
	// faults guards itself.
	faults fault.Book

	mu    sync.Mutex
	pages []*record
	// pd is how PagerDuty is set up; the rest is what it holds.
	pd        PagerDuty
	incidents []*Incident
	events    []Event
	ids       int
	// alerts are what Alertmanager would hold, by fingerprint.
	alerts map[string]alert
}

// record is a page with the instant at which it ends by itself.
type record struct {
	Page
	// until is zero for a page that only its sender ends.
	until time.Time
}

// New returns a pager without pages.
func New(now func() time.Time) *Pager {
	return &Pager{now: now, started: now(), alerts: map[string]alert{}}
}

// Handler answers POST /page (webhook, version 4), POST and GET
// /api/v2/alerts, GET /api/v2/silences (there are none), GET /api/v2/status, and
// PagerDuty's POST /v2/enqueue and /v2/change/enqueue.
func (p *Pager) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /page", p.endpoint(Webhook, p.webhook))
	mux.Handle("POST /api/v2/alerts", p.endpoint(Alertmanager, p.postAlerts))
	mux.Handle("GET /api/v2/alerts", p.endpoint(Alertmanager, p.getAlerts))
	mux.Handle("GET /api/v2/silences", p.endpoint(Alertmanager, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, []struct{}{})
	}))
	mux.Handle("GET /api/v2/status", p.endpoint(Alertmanager, p.status))
	mux.Handle("POST /v2/enqueue", p.endpoint(Events, p.enqueue))
	mux.Handle("POST /v2/change/enqueue", p.endpoint(Changes, p.change))
	return mux
}

// Pages are all that were seen, in order of their opening. A page that fires
// again after its end is a second one, as it is for whoever is woken. An end
// without an opening is a page that opened and ended at once.
func (p *Pager) Pages() []Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire(p.now())
	pages := make([]Page, len(p.pages))
	for i, r := range p.pages {
		pages[i] = r.Page
		pages[i].Labels = maps.Clone(r.Labels)
	}
	slices.SortStableFunc(pages, func(a, b Page) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return pages
}

// delivery is one alert of one request, whatever the way it came.
type delivery struct {
	labels  map[string]string
	summary string
	ended   bool
	// until is when it ends without another delivery; zero: never.
	until time.Time
}

// id is the page's: the label that Setpoint puts there, or what Alertmanager
// tells alerts apart by.
func (d delivery) id() string { return cmp.Or(d.labels["episode"], fingerprint(d.labels)) }

func fingerprint(labels map[string]string) string {
	set := model.LabelSet{}
	for k, v := range labels {
		set[model.LabelName(k)] = model.LabelValue(v)
	}
	return set.Fingerprint().String()
}

// take writes down one delivery. The caller holds the lock.
func (p *Pager) take(d delivery, now time.Time) {
	r := p.last(d.id())
	if r == nil || !r.EndedAt.IsZero() && !d.ended {
		r = &record{Page: Page{ID: d.id(), OpenedAt: now}}
		p.pages = append(p.pages, r)
	}
	r.Posts++
	r.Labels, r.Summary, r.until = d.labels, d.summary, d.until
	if d.ended && r.EndedAt.IsZero() {
		r.EndedAt = now
	}
}

// last is the newest page of that id, or nil.
func (p *Pager) last(id string) *record {
	for _, r := range slices.Backward(p.pages) {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// expire ends what was not posted again in time. The caller holds the lock.
func (p *Pager) expire(now time.Time) {
	for _, r := range p.pages {
		if r.EndedAt.IsZero() && !r.until.IsZero() && !now.Before(r.until) {
			r.EndedAt = r.until
		}
	}
	maps.DeleteFunc(p.alerts, func(_ string, a alert) bool { return !now.Before(a.ends) })
}

// message is the part of Alertmanager's webhook body that a person sees.
type message struct {
	Version string `json:"version"`
	Alerts  []struct {
		Status      string            `json:"status"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"alerts"`
}

func (m message) check() error {
	switch {
	case m.Version != "4":
		return fmt.Errorf("version is %q, want 4", m.Version)
	case len(m.Alerts) == 0:
		return errors.New("it has no alerts")
	}
	for i, a := range m.Alerts {
		if a.Status != "firing" && a.Status != "resolved" {
			return fmt.Errorf("alerts[%d].status is %q, want firing or resolved", i, a.Status)
		}
		if len(a.Labels) == 0 {
			return fmt.Errorf("alerts[%d] has no labels", i)
		}
	}
	return nil
}

func (p *Pager) webhook(w http.ResponseWriter, req *http.Request) {
	var m message
	err := read(w, req, &m)
	if err == nil {
		err = m.check()
	}
	if err != nil {
		answer(w, http.StatusBadRequest, "no webhook message of Alertmanager: "+err.Error())
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.expire(now)
	for _, a := range m.Alerts {
		p.take(delivery{labels: a.Labels, summary: a.Annotations["summary"], ended: a.Status == "resolved"}, now)
	}
	w.WriteHeader(http.StatusOK)
}

// read reads one JSON value, and refuses what follows it.
func read(w http.ResponseWriter, req *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the body could not be read: %w", err)
	}
	return json.Unmarshal(body, into)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away is not told.
	_ = json.NewEncoder(w).Encode(v)
}
