package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// defaultLookBack is for how long the summary looks back without --since.
const defaultLookBack = 28 * 24 * time.Hour

// showDrift lists what is not as it should be, oldest first. The summary of what
// is over needs the whole ledger, so the table has it with -o wide only.
func showDrift(l *lister) error {
	items, err := load(l, web.Drifts)
	if err != nil {
		return err
	}
	out := web.DriftList{List: items}
	if l.output != formatTable && l.output != formatName {
		took, err := l.timeToReconcile()
		if err != nil {
			return err
		}
		out.TimeToReconcile = &took
	}
	if l.output == formatJSON || l.output == formatYAML {
		return emit(l.app.out, l.output, out)
	}
	if err := l.show(driftTable(l, items.Items)); err != nil || out.TimeToReconcile == nil {
		return err
	}
	return l.app.print("\n%s\n", reconcileText(*out.TimeToReconcile))
}

// timeToReconcile reads the whole ledger for the episodes that ended since.
func (l *lister) timeToReconcile() (web.TimeToReconcile, error) {
	r, err := readLedger(l.ctx, l.site)
	if err != nil {
		return web.TimeToReconcile{}, err
	}
	defer func() { _ = r.Close() }() // It was only read.
	c, err := chronicleOf(l.ctx, r)
	if err != nil {
		return web.TimeToReconcile{}, err
	}
	since := l.filter.Since
	if since.IsZero() {
		since = l.app.now().Add(-defaultLookBack)
	}
	took, byItself := c.reconciled(l.filter.Service, since)
	return web.Summarise(took, byItself, since), nil
}

// reconciled is how long the episodes took that ended since a time, of a service
// or of all, and in how many nothing of ours was applied.
func (c *chronicle) reconciled(service string, since time.Time) (took []time.Duration, byItself int) {
	acted := c.acted()
	for _, e := range c.episodes {
		if service != "" && e.service != service || e.ended.IsZero() || e.ended.Before(since) {
			continue
		}
		took = append(took, e.ended.Sub(e.began))
		if !acted[e.service+" "+e.id] {
			byItself++
		}
	}
	return took, byItself
}

func driftTable(l *lister, items []web.Drift) (*table, []string) {
	t := columns(l, []string{"SERVICE", "AGE", "STATE", "REASON", "MODE", "TRIED", "WAITS FOR", "PAGE", "EPISODE"},
		"OWNER", "ERRORS", "SINCE", "UNTIL", "WHY", "PLANNED")
	t.coloured = []int{2}
	var names []string
	for _, d := range items {
		names = append(names, "drift/"+d.Service)
		until := ""
		if d.Pending.Until != nil {
			until = left(d.Pending.Until, l.app.now())
		}
		t.row(l, []string{
			d.Service, secondsAge(&d.AgeSeconds), d.State, d.Reason, modeText(d.Mode, d.EffectiveMode), fmt.Sprint(d.Tried),
			pendingText(d), driftPage(d), d.Episode,
		}, d.Owner, percent(&d.ErrorRatio), clock(d.Since), until, d.Pending.Text, plannedText(d.Planned))
	}
	if len(items) > 0 {
		oldest := items[0]
		t.hint("%s is missed longest: setpoint explain %s", oldest.Service, oldest.Service)
	}
	return t, names
}

// pendingText is what is waited for, and the id of what it is about.
func pendingText(d web.Drift) string {
	words := slices.DeleteFunc([]string{d.Pending.Code, d.Pending.Ticket, d.Pending.Decision}, func(s string) bool { return s == "" })
	if len(words) > 1 {
		return words[0] + " (" + words[1] + ")"
	}
	return words[0]
}

func driftPage(d web.Drift) string {
	if d.Page == nil {
		return ""
	}
	return d.Page.State
}

func plannedText(p *web.Planned) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s until %s", p.Name, p.Owner, clock(p.Until))
}

// reconcileText is the summary in one line.
func reconcileText(s web.TimeToReconcile) string {
	if s.Count == 0 {
		return "time to reconcile: no episode ended since " + clock(s.Since)
	}
	return fmt.Sprintf("time to reconcile: %s since %s, half of them within %s, 9 of 10 within %s, the longest %s; %d without any effect",
		count(s.Count, "episode"), clock(s.Since), secondsAge(s.P50Seconds), secondsAge(s.P90Seconds), secondsAge(s.MaxSeconds), s.ByItself)
}
