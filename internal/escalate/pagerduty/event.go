package pagerduty

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// The limits of an event. PagerDuty refuses what is larger, and with it the page.
const (
	maxKey     = 255
	maxSummary = 1024
	maxDetails = 100_000
)

// The actions.
const (
	actionTrigger = "trigger"
	actionResolve = "resolve"
)

// Event is the body of a request.
type Event struct {
	RoutingKey string   `json:"routing_key"`
	Action     string   `json:"event_action"`
	DedupKey   string   `json:"dedup_key"`
	Client     string   `json:"client,omitempty"`
	ClientURL  string   `json:"client_url,omitempty"`
	Links      []Link   `json:"links,omitempty"`
	Payload    *Payload `json:"payload,omitempty"`
}

// Link leads to more.
type Link struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// Payload is what an incident shows.
type Payload struct {
	Summary   string    `json:"summary"`
	Source    string    `json:"source"`
	Severity  string    `json:"severity"`
	Timestamp time.Time `json:"timestamp,omitzero"`
	Component string    `json:"component,omitempty"`
	Group     string    `json:"group,omitempty"`
	Class     string    `json:"class,omitempty"`
	Details   Details   `json:"custom_details"`
}

// Details are the rest, in the order in which PagerDuty does not keep them: the
// names are numbered so that the five lines of the lead come first.
type Details struct {
	Broken    string   `json:"1 broken,omitempty"`
	Step      string   `json:"2 step,omitempty"`
	Why       string   `json:"3 why,omitempty"`
	Until     string   `json:"4 until,omitempty"`
	Do        string   `json:"5 do,omitempty"`
	Text      string   `json:"6 text,omitempty"`
	Page      string   `json:"page"`
	Episode   string   `json:"episode,omitempty"`
	Now       string   `json:"now"`
	Receivers []string `json:"receivers,omitempty"`
	// Cut says that not all of it is shown.
	Cut string `json:"cut,omitempty"`
}

// DedupKey is the key of a page's incident: the same however often it is sent,
// and different for any two pages of any two installations. An id that is too long
// is hashed, under another beginning, so that no short id can equal it.
func DedupKey(installation, page string) string {
	place := ""
	if installation != "" {
		place = installation + "/"
	}
	if key := "setpoint/" + place + page; len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(place + page))
	return "setpoint#" + hex.EncodeToString(sum[:])
}

// severity is PagerDuty's word for ours. One that it does not know would be
// refused, and an unknown one must not be quieter.
func severity(s string) string {
	switch s {
	case escalate.SeverityWarning:
		return "warning"
	case escalate.SeverityNone:
		return "info"
	}
	return "critical"
}

func (r *Receiver) event(p escalate.Page, action, key, routing string) Event {
	e := Event{RoutingKey: routing, Action: action, DedupKey: key}
	if action == actionResolve {
		return e
	}
	e.Client, e.ClientURL = "Setpoint", r.o.ExternalURL
	if link := p.Link(r.o.ExternalURL); link != "" {
		e.Links = []Link{{Href: link, Text: "This page in Setpoint"}}
	}
	source := p.Service
	if source == "" {
		source = "setpoint"
	}
	e.Payload = &Payload{
		Summary: summaryOf(p), Source: source, Severity: severity(p.Severity), Timestamp: p.Since.UTC(),
		Component: p.Service, Group: p.Owner, Class: p.Reason, Details: details(p),
	}
	return e
}

// summaryOf is never empty: PagerDuty refuses an event without one.
func summaryOf(p escalate.Page) string {
	s := execute.CleanText(p.Summary, maxSummary-1) // The mark of a cut is one more.
	if s == "" {
		s = execute.CleanText("Setpoint: "+p.Reason, maxSummary-1)
	}
	return s
}

// details hold the whole text where it fits, and say so where it does not.
func details(p escalate.Page) Details {
	l := p.Lead
	d := Details{
		Broken: l.Broken, Step: l.Step, Why: l.Why, Until: l.Until, Do: l.Do,
		Text: p.Text, Page: p.ID, Episode: p.Episode, Now: p.Now, Receivers: p.Receivers,
	}
	if size(d) <= maxDetails {
		return d
	}
	d.Cut = "this is cut to what fits: setpoint explain, or the link, shows the whole"
	for _, f := range []*string{&d.Broken, &d.Step, &d.Why, &d.Until, &d.Do, &d.Page, &d.Episode} {
		*f = cut(*f, 2000)
	}
	if size(d)-len(d.Text) > maxDetails/2 {
		d.Receivers = nil
	}
	for size(d) > maxDetails && d.Text != "" {
		// Escapes make a byte six at the most, so this ends soon.
		d.Text = cut(d.Text, len(d.Text)*2/3)
	}
	return d
}

// size is that of the JSON, which is what counts.
func size(d Details) int {
	b, err := json.Marshal(d)
	if err != nil {
		return 0
	}
	return len(b)
}

// cut keeps whole characters within so many bytes.
func cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	if limit -= len(mark); limit <= 0 {
		return ""
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return strings.TrimRight(s[:limit], mark) + mark
}
