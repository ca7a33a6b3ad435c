package pager

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Person is somebody who is paged.
type Person struct {
	// ID is PagerDuty's, e.g. PABC123.
	ID, Name string
}

// Hook is one webhook of PagerDuty, as it is posted.
type Hook struct {
	Header http.Header
	Body   []byte
}

// Delivery is what became of a webhook.
type Delivery struct {
	Hook Hook `json:"-"`
	// Status is the answer's, 0 without one; Error says why.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ErrNoIncident is returned for a key without an open incident.
var ErrNoIncident = errors.New("no incident of that key is open")

// Acknowledge is what a person does on the phone; the webhook tells of it. The
// incident is acknowledged whatever becomes of the webhook.
func (p *Pager) Acknowledge(ctx context.Context, key string, by Person) (Delivery, error) {
	return p.act(ctx, key, by, Acknowledged)
}

// Resolve is the other thing that a person does there.
func (p *Pager) Resolve(ctx context.Context, key string, by Person) (Delivery, error) {
	return p.act(ctx, key, by, Resolved)
}

func (p *Pager) act(ctx context.Context, key string, by Person, status string) (Delivery, error) {
	h, err := p.acted(key, by, status)
	if err != nil {
		return Delivery{}, err
	}
	return p.Deliver(ctx, h), nil
}

func (p *Pager) acted(key string, by Person, status string) (Hook, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, now := p.open(key), p.now()
	switch {
	case i == nil:
		return Hook{}, fmt.Errorf("%w: %s", ErrNoIncident, key)
	case status == Resolved:
		i.Status, i.ResolvedAt = Resolved, now
	default:
		i.acknowledge(by.Name, now)
	}
	return p.hook(*i, by, "incident."+status, now)
}

// hook is PagerDuty's webhook of version 3. The caller holds the lock.
func (p *Pager) hook(i Incident, by Person, kind string, now time.Time) (Hook, error) {
	p.ids++
	self := "https://api.pagerduty.com/incidents/" + fmt.Sprintf("PINC%06d", i.Number)
	body, err := json.Marshal(map[string]any{"event": map[string]any{
		"id": fmt.Sprintf("01LAB%021d", p.ids), "event_type": kind, "resource_type": "incident",
		"occurred_at": now.UTC().Format(time.RFC3339Nano), "client": nil,
		"agent": map[string]any{
			"id": by.ID, "type": "user_reference", "summary": by.Name,
			"self": "https://api.pagerduty.com/users/" + by.ID, "html_url": "https://lab.pagerduty.com/users/" + by.ID,
		},
		"data": map[string]any{
			"id": fmt.Sprintf("PINC%06d", i.Number), "type": "incident", "self": self, "number": i.Number,
			"html_url": "https://lab.pagerduty.com/incidents/" + fmt.Sprintf("PINC%06d", i.Number),
			"status":   i.Status, "incident_key": i.Key, "title": i.Summary, "urgency": "high",
			"created_at": i.TriggeredAt.UTC().Format(time.RFC3339), "assignees": []any{}, "teams": []any{},
			"priority": nil, "conference_bridge": nil, "resolve_reason": nil,
		},
	}})
	if err != nil {
		return Hook{}, fmt.Errorf("the webhook is no JSON: %w", err)
	}
	return p.sign(body), nil
}

// Sign makes the webhook that carries a body.
func (p *Pager) Sign(body []byte) Hook {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sign(body)
}

func (p *Pager) sign(body []byte) Hook {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "PagerDuty-Webhook/V3.0")
	h.Set("X-Webhook-Id", "lab")
	var signatures []string
	for _, secret := range p.pd.WebhookSecrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		signatures = append(signatures, "v1="+hex.EncodeToString(mac.Sum(nil)))
	}
	if len(signatures) > 0 {
		h.Set("X-PagerDuty-Signature", strings.Join(signatures, ","))
	}
	return Hook{Header: h, Body: body}
}

// hookTimeout is how long PagerDuty waits for an answer, by the real clock.
const hookTimeout = 5 * time.Second

// Deliver posts a webhook, also one that was sent before or is forged.
func (p *Pager) Deliver(ctx context.Context, h Hook) Delivery {
	p.mu.Lock()
	to := p.pd.WebhookURL
	p.mu.Unlock()
	d := Delivery{Hook: h}
	if to == "" {
		d.Error = "there is no webhook URL"
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(h.Body))
	if err != nil {
		d.Error = err.Error()
		return d
	}
	req.Header = h.Header.Clone()
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Error = err.Error()
		return d
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // Only to be shown.
	if d.Status = resp.StatusCode; d.Status > 299 {
		d.Error = fmt.Sprintf("HTTP %d %s", d.Status, bytes.TrimSpace(said))
	}
	return d
}
