// Package pager is a receiver of pages that writes down what people would see:
// Alertmanager's webhook JSON, and the part of Alertmanager's API v2 that
// Setpoint uses.
package pager

import (
	"net/http"
	"time"
)

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
type Pager struct{}

// New returns a pager without pages.
func New(now func() time.Time) *Pager { panic("lab") }

// Handler answers POST /page (webhook, version 4), POST and GET
// /api/v2/alerts, and GET /api/v2/silences.
func (p *Pager) Handler() http.Handler { panic("lab") }

// Pages are all that were seen, in order of their opening.
func (p *Pager) Pages() []Page { panic("lab") }
