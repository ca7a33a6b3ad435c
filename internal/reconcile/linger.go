package reconcile

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// unwanted is an open page of no episode that this process does not want.
type unwanted struct {
	// since is when that was first so of this content.
	since   time.Time
	content string
	// again is how often somebody else opened it anew after this process ended it.
	again int
}

// lingered gives the pages of no episode that have not been wanted for long
// enough to end, each with its content: a page that somebody else says anew is
// wanted by them, and waits from then on. It is not recorded since when a page is
// unwanted; a restart only delays an end.
func (o *outbox) lingered(pages map[string]*escalate.Page, wanted map[string]escalate.Page, now time.Time) map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	over := map[string]string{}
	for id, p := range pages {
		if p.Service != "" || p.Reason == escalate.Heartbeat || !p.EndedAt.IsZero() {
			continue
		}
		if _, is := wanted[id]; is {
			delete(o.unwanted, id)
			continue
		}
		u, content := o.unwanted[id], p.ContentDigest()
		if u.content != content || u.since.After(now) {
			u.since, u.content = now, content
		}
		o.unwanted[id] = u
		if now.Sub(u.since) >= escalate.Linger(u.again) {
			over[id] = content
		}
	}
	return over
}

// endedBy remembers what this process ended.
func (o *outbox) endedBy(ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		o.unwanted[id] = unwanted{again: o.unwanted[id].again + 1}
	}
}
