package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/web"
)

const (
	// changesShown is how many changes an explanation has room for.
	changesShown = 3
	// changeWidth is how much of a reporter's words is shown, in characters.
	changeWidth = 100
)

// changes says what was done to a service before, as seen at an instant. The
// words are a reporter's, so they stand in quotes.
func (p *paper) changes(title string, items []web.Change, now time.Time, service string) {
	if len(items) == 0 {
		return
	}
	p.head(title)
	for _, c := range items[:min(len(items), changesShown)] {
		when := "just now"
		if c.Time.Before(now) {
			when = age(now.Sub(c.Time)) + " ago"
		}
		p.line("  %q at %s, %s", propose.CleanText(c.What+" "+c.Version, changeWidth), changeClock(c.Time, now), when)
	}
	if n := len(items) - changesShown; n > 0 {
		p.line("  and %d more: `setpoint get changes --service %s` lists all", n, service)
	}
}

// changeClock is the time of a change, with its day where that is another one.
func changeClock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Truncate(24 * time.Hour).Equal(now.Truncate(24 * time.Hour)) {
		return t.Format("15:04Z")
	}
	return t.Format("2006-01-02 15:04Z")
}

// changesRuledOn are the changes in the input of a decision, if the ledger still
// has it. They are a help: an explanation stands without.
func (a *app) changesRuledOn(ctx context.Context, s site, d web.DecisionDetail) []web.Change {
	if d.InputDigest == "" {
		return nil
	}
	r, err := readLedger(ctx, s)
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }() // It was only read.
	raw, err := r.Blob(ctx, d.InputDigest)
	if err != nil {
		return nil
	}
	var input struct {
		Changes []struct {
			What, Version string
			SecondsAgo    any
		}
	}
	if json.Unmarshal(raw, &input) != nil {
		return nil
	}
	var out []web.Change
	for _, c := range input.Changes {
		// Of one without a time nobody knows what to look for.
		if ago, known := c.SecondsAgo.(float64); known {
			at := d.Time.Add(-time.Duration(ago * float64(time.Second))).Truncate(time.Second)
			out = append(out, web.Change{Time: at, Service: d.Service, What: c.What, Version: c.Version, From: "input"})
		}
	}
	return out
}

// proposerCell is who proposed: an endpoint's name, or who speaks without one,
// and why no model did.
func proposerCell(d web.Decision) string {
	who := d.Proposer.Kind
	if d.Proposer.Endpoint != "" {
		who = d.Proposer.Endpoint
	}
	if d.Fallback != "" {
		who += " (" + d.Fallback + ")"
	}
	return strings.TrimSpace(who)
}
