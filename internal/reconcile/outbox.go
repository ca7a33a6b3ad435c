package reconcile

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// outbox remembers what the ledger does not say of deliveries: when a page was
// sent once more without news, and what could not be recorded. It is a cache:
// after a restart everything open is sent once more.
type outbox struct {
	mu sync.Mutex
	// sent are deliveries by page and receiver.
	sent map[string]map[string]sent
	// sending are the deliveries under way, by page and receiver.
	sending map[string]bool
	// loose are pages that were sent although they could not be recorded. They
	// are recorded, and ended, when the ledger can be written again.
	loose map[string]escalate.Page
	// unwanted are open pages of no episode that this process does not want.
	unwanted map[string]unwanted
	// down are the receivers that take nothing, as last looked at, with the delivery
	// that failed last: no page waits for failures of its own to be handed on.
	down map[string]escalate.Delivery
}

func newOutbox() outbox {
	return outbox{
		sent: map[string]map[string]sent{}, sending: map[string]bool{}, loose: map[string]escalate.Page{},
		unwanted: map[string]unwanted{},
	}
}

// begin reports whether a delivery may begin: none of that page to that
// receiver is under way.
func (o *outbox) begin(page, receiver string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := page + "\x00" + receiver
	if o.sending[key] {
		return false
	}
	o.sending[key] = true
	return true
}

func (o *outbox) end(page, receiver string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sending, page+"\x00"+receiver)
}

// keep remembers pages that could not be recorded.
func (o *outbox) keep(pages map[string]escalate.Page) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, p := range pages {
		if p.Reason != escalate.Heartbeat {
			o.loose[id] = p
		}
	}
}

// unrecorded are the pages that were kept.
func (o *outbox) unrecorded() map[string]escalate.Page {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.loose)
}

// recorded forgets the kept ones.
func (o *outbox) recorded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.loose)
}

// recordPages appends pages that opened, changed or ended, and returns all
// that some receiver may still have to hear of. Without a ledger it returns
// what is wanted: people are told at least once.
func (r *Reconciler) recordPages(ctx context.Context, f *fleet, wanted map[string]escalate.Page, now time.Time) []escalate.Page {
	plan := pagePlan{wanted: wanted, loose: r.outbox.unrecorded(), set: f.set}
	r.book.view(func(s *ledger.State) { plan.over = r.outbox.lingered(s.Pages, wanted, now) })
	// A ledger that is known to be broken is not waited for again: people first.
	// The sweep tries whether it can be written.
	err := r.book.broken()
	if err == nil {
		err = r.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
			plan.sent = r.outbox.lost()
			return plan.drafts(s), nil
		})
	}
	if err == nil {
		for _, x := range plan.sent {
			r.outbox.recordedOne(x.Delivery)
		}
		r.outbox.endedBy(plan.ended)
	}
	r.settleLoose(err, plan.loose, wanted)
	var out []escalate.Page
	r.book.view(func(s *ledger.State) {
		for _, id := range sortedKeys(s.Pages) {
			p := *s.Pages[id]
			if fresh, ok := wanted[id]; ok && p.EndedAt.IsZero() {
				fresh = fresh.Acknowledged(p)
				fresh.Reason, fresh.Since = p.Reason, p.Since
				p = fresh
			}
			out = append(out, p)
		}
		for _, id := range sortedKeys(wanted) {
			if s.Pages[id] == nil {
				out = append(out, wanted[id])
			}
		}
	})
	return out
}

// settleLoose forgets the unrecorded pages when they were recorded, and keeps
// the wanted ones when they could not be.
func (r *Reconciler) settleLoose(err error, loose, wanted map[string]escalate.Page) {
	switch {
	case err == nil && len(loose) > 0:
		r.outbox.recorded()
		r.keepLoose()
	case err != nil && (r.o.Store != nil || r.o.LedgerFault != nil):
		r.log.Error("pages could not be recorded; they are sent all the same", "error", err)
		r.outbox.keep(wanted)
		r.keepLoose()
	}
}

// keepLoose puts the unrecorded pages where a restart finds them, with the
// receivers that may hold them.
func (r *Reconciler) keepLoose() {
	if r.o.Loose == nil {
		return
	}
	pages := r.outbox.unrecorded()
	for id, p := range pages {
		p.Receivers = r.outbox.mayHold(p)
		pages[id] = p
	}
	if err := r.o.Loose.KeepPages(pages); err != nil {
		r.log.Error("pages that are not recorded could not be kept for a restart", "error", err)
	}
}

// foundLoose are the pages that an earlier process left unrecorded.
func (r *Reconciler) foundLoose() {
	if r.o.Loose == nil {
		return
	}
	pages, err := r.o.Loose.KeptPages()
	if err != nil {
		r.log.Error("pages of an earlier process could not be read; one may stay open at its receiver", "error", err)
		return
	}
	r.outbox.keep(pages)
}

// pagePlan brings the recorded pages to the wanted ones.
type pagePlan struct {
	wanted, loose map[string]escalate.Page
	set           spec.Set
	// over are the pages of no episode that may end now, by id, with the content
	// that nobody wants any more.
	over map[string]string
	// sent are deliveries that could not be recorded when they were made.
	sent []sent
	// ended are the pages of no episode that the drafts end.
	ended []string
}

// drafts are the pages first, then who holds them, then what ends.
func (p *pagePlan) drafts(s *ledger.State) []ledger.Draft {
	p.ended = nil
	drafts := append(p.open(s), p.deliveries(s)...)
	for _, id := range sortedKeys(s.Pages) {
		if reason := p.endOf(s, *s.Pages[id]); reason != "" {
			drafts = append(drafts, pageEnd(*s.Pages[id], reason))
		}
	}
	for _, id := range sortedKeys(p.loose) {
		if p.stray(s, id) && p.loose[id].Service != "" {
			drafts = append(drafts, pageEnd(p.loose[id], "recovered"))
		}
	}
	return drafts
}

func pageEnd(p escalate.Page, reason string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindPageEnd, Service: p.Service, Body: ledger.PageEnd{Page: p.ID, Reason: reason}}
}

// stray reports whether a page was sent while the ledger could not be written and
// is no longer wanted: a receiver must not keep what nothing ends.
func (p *pagePlan) stray(s *ledger.State, id string) bool {
	known := s.Pages[id]
	_, still := p.wanted[id]
	return !still && (known == nil || !known.EndedAt.IsZero())
}

// open are the pages that open or say something new, and strays.
func (p *pagePlan) open(s *ledger.State) []ledger.Draft {
	var drafts []ledger.Draft
	for _, id := range sortedKeys(p.loose) {
		if p.stray(s, id) {
			drafts = append(drafts, ledger.Draft{Kind: ledger.KindPage, Service: p.loose[id].Service, Body: p.loose[id]})
		}
	}
	for _, id := range sortedKeys(p.wanted) {
		if passed(s, p.wanted[id]) {
			continue
		}
		if known := s.Pages[id]; known == nil || !known.EndedAt.IsZero() || news(*known, p.wanted[id]) {
			drafts = append(drafts, ledger.Draft{Kind: ledger.KindPage, Service: p.wanted[id].Service, Body: p.wanted[id]})
		}
	}
	return drafts
}

// passed reports whether somebody else has just ended the episode of a page, and the
// page with it: this process looked a moment before, and would open it again.
func passed(s *ledger.State, wanted escalate.Page) bool {
	known, sv := s.Pages[wanted.ID], s.Services[wanted.Service]
	return known != nil && !known.EndedAt.IsZero() && sv != nil && wanted.ID == wanted.Episode && sv.Episode != wanted.Episode
}

// deliveries are those that were made while the ledger could not be written. Of a
// page that an earlier process sent it is not known who holds it: its receivers
// are told all of it.
func (p *pagePlan) deliveries(s *ledger.State) []ledger.Draft {
	var drafts []ledger.Draft
	known := map[string]bool{}
	for _, d := range p.sent {
		known[d.Page] = true
		_, wanted := p.wanted[d.Page]
		_, loose := p.loose[d.Page]
		if s.Pages[d.Page] != nil || wanted || loose {
			drafts = append(drafts, delivered(d.service, d.present(s)))
		}
	}
	for _, id := range sortedKeys(p.loose) {
		if !p.stray(s, id) || known[id] {
			continue
		}
		for _, name := range p.loose[id].Receivers {
			d := escalate.Delivery{Page: id, Receiver: name, Tried: p.loose[id].Since}
			drafts = append(drafts, delivered(p.loose[id].Service, d))
		}
	}
	return drafts
}

func delivered(service string, d escalate.Delivery) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindDelivery, Service: service, Body: d}
}

// news: what the page says now differs from what is recorded. Numbers alone
// are no news; receivers get them with the next post.
func news(known, wanted escalate.Page) bool {
	return known.ContentDigest() != wanted.ContentDigest() || !slices.Equal(known.Receivers, wanted.Receivers)
}

// endOf says why an open page ends now; "" while it stays. An episode's page
// stays until the episode ends by measurement, even when nothing would open it
// any more.
func (p *pagePlan) endOf(s *ledger.State, page escalate.Page) string {
	if _, still := p.wanted[page.ID]; still || !page.EndedAt.IsZero() {
		return ""
	}
	switch {
	case page.Reason == escalate.Heartbeat:
		return "not-configured"
	case page.Service == "":
		return p.lingered(page)
	}
	if svc, ok := p.set.Service(page.Service); !ok || svc.Remediation.Name == "" && page.Episode != "" {
		return "document-removed"
	}
	if known := s.Services[page.Service]; known != nil && page.ID == known.Episode {
		return ""
	}
	return "recovered"
}

// lingered ends a page of no episode: what comes and goes is one page.
func (p *pagePlan) lingered(page escalate.Page) string {
	if content, over := p.over[page.ID]; !over || content != page.ContentDigest() {
		return ""
	}
	p.ended = append(p.ended, page.ID)
	return "recovered"
}
