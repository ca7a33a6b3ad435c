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

// outbox remembers when pages were last sent, so that re-posting needs no
// entry. It is a cache: after a restart everything open is sent once more.
type outbox struct {
	mu   sync.Mutex
	sent map[string]escalate.Delivery
	// sending are the deliveries under way, by page and receiver.
	sending map[string]bool
	// loose are pages that were sent although they could not be recorded. They
	// are recorded, and ended, when the ledger can be written again.
	loose map[string]escalate.Page
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
	maps.Copy(o.loose, pages)
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
func (r *Reconciler) recordPages(ctx context.Context, f *fleet, wanted map[string]escalate.Page) []escalate.Page {
	loose := r.outbox.unrecorded()
	// A ledger that is known to be broken is not waited for again: people first.
	// The sweep tries whether it can be written.
	err := r.book.broken()
	if err == nil {
		err = r.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
			return append(looseDrafts(s, loose, wanted), pageDrafts(s, wanted, f.set)...), nil
		})
	}
	r.settleLoose(err, loose, wanted)
	var out []escalate.Page
	r.book.view(func(s *ledger.State) {
		for _, id := range sortedKeys(s.Pages) {
			p := *s.Pages[id]
			if fresh, ok := wanted[id]; ok && p.EndedAt.IsZero() {
				fresh.AckedBy, fresh.Reason, fresh.Since = p.AckedBy, p.Reason, p.Since
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

// keepLoose puts the unrecorded pages where a restart finds them.
func (r *Reconciler) keepLoose() {
	if r.o.Loose == nil {
		return
	}
	if err := r.o.Loose.KeepPages(r.outbox.unrecorded()); err != nil {
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

// looseDrafts record pages that were sent while the ledger could not be
// written, and end at once those that are no longer wanted: a receiver must not
// keep what nothing ends.
func looseDrafts(s *ledger.State, loose, wanted map[string]escalate.Page) []ledger.Draft {
	var drafts []ledger.Draft
	for _, id := range sortedKeys(loose) {
		if known := s.Pages[id]; known != nil && known.EndedAt.IsZero() {
			continue
		}
		if _, still := wanted[id]; still {
			continue
		}
		p := loose[id]
		drafts = append(drafts, ledger.Draft{Kind: ledger.KindPage, Service: p.Service, Body: p})
		// Which of them got it is not known any more; an end too many is harmless.
		for _, name := range p.Receivers {
			d := escalate.Delivery{Page: id, Receiver: name, First: p.Since, Sent: p.Since, Tried: p.Since}
			drafts = append(drafts, ledger.Draft{Kind: ledger.KindDelivery, Service: p.Service, Body: d})
		}
		drafts = append(drafts, ledger.Draft{Kind: ledger.KindPageEnd, Service: p.Service, Body: ledger.PageEnd{Page: id, Reason: "recovered"}})
	}
	return drafts
}

// pageDrafts are the entries that bring the recorded pages to the wanted ones.
func pageDrafts(s *ledger.State, wanted map[string]escalate.Page, set spec.Set) []ledger.Draft {
	var drafts []ledger.Draft
	for _, id := range sortedKeys(wanted) {
		if known := s.Pages[id]; known == nil || !known.EndedAt.IsZero() || news(*known, wanted[id]) {
			drafts = append(drafts, ledger.Draft{Kind: ledger.KindPage, Service: wanted[id].Service, Body: wanted[id]})
		}
	}
	for _, id := range sortedKeys(s.Pages) {
		if reason := endOf(s, *s.Pages[id], wanted, set); reason != "" {
			drafts = append(drafts, ledger.Draft{
				Kind: ledger.KindPageEnd, Service: s.Pages[id].Service, Body: ledger.PageEnd{Page: id, Reason: reason},
			})
		}
	}
	return drafts
}

// news: what the page says now differs from what is recorded. Numbers alone
// are no news; receivers get them with the next post.
func news(known, wanted escalate.Page) bool {
	return known.ContentDigest() != wanted.ContentDigest() || !slices.Equal(known.Receivers, wanted.Receivers)
}

// endOf says why an open page ends now; "" while it stays. An episode's page
// stays until the episode ends by measurement, even when nothing would open it
// any more.
func endOf(s *ledger.State, p escalate.Page, wanted map[string]escalate.Page, set spec.Set) string {
	if !p.EndedAt.IsZero() {
		return ""
	}
	if _, still := wanted[p.ID]; still {
		return ""
	}
	if p.Service == "" {
		return "recovered"
	}
	if svc, ok := set.Service(p.Service); !ok || svc.Remediation.Name == "" && p.Episode != "" {
		return "document-removed"
	}
	if known := s.Services[p.Service]; known != nil && p.ID == known.Episode {
		return ""
	}
	return "recovered"
}

// held is what the receivers hold of the page, with what this process sent
// since.
func (r *Reconciler) held(p escalate.Page) []escalate.Delivery {
	known := map[string]escalate.Delivery{}
	r.book.view(func(s *ledger.State) { maps.Copy(known, s.Deliveries[p.ID]) })
	r.outbox.mu.Lock()
	for _, name := range r.allReceivers() {
		if mine, ok := r.outbox.sent[p.ID+"\x00"+name]; ok {
			known[name] = mine
		}
	}
	r.outbox.mu.Unlock()
	return slices.Collect(maps.Values(known))
}

// deliver sends one page to one receiver and records what is news: the first
// delivery, the end, and the beginning and end of a failure.
func (r *Reconciler) deliver(ctx context.Context, rec escalate.Receiver, p escalate.Page, now time.Time) {
	if r.hushed(ctx, rec.Name(), p) {
		return
	}
	before := r.delivery(p.ID, rec.Name())
	ref, failure := sendWithin(ctx, rec, p, before.Ref)
	after := before.After(p, rec.Name(), ref, failure, now)
	if failure != nil {
		r.tel.receiverFailed(rec.Name())
		r.log.Warn("page not delivered", "page", p.ID, "receiver", rec.Name(), "failures", after.Failures, "error", failure)
	}
	r.outbox.mu.Lock()
	r.outbox.sent[p.ID+"\x00"+rec.Name()] = after
	r.outbox.mu.Unlock()
	if !before.News(after) {
		return
	}
	err := r.book.append(ctx, func(*ledger.State) ([]ledger.Draft, error) {
		return []ledger.Draft{{Kind: ledger.KindDelivery, Service: p.Service, Body: after}}, nil
	})
	if err != nil {
		r.log.Error("delivery could not be recorded; the page may be sent again", "page", p.ID, "error", err)
	}
}

// receiverTimeout bounds one delivery. What comes before and after it has a time
// of its own: an Alertmanager that hangs must not use up that of a pager, and a
// receiver that does must not keep its own failure out of the ledger.
const receiverTimeout = 10 * time.Second

func sendWithin(ctx context.Context, rec escalate.Receiver, p escalate.Page, ref string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, receiverTimeout)
	defer cancel()
	return rec.Send(ctx, p, ref)
}

func (r *Reconciler) delivery(page, receiver string) escalate.Delivery {
	r.outbox.mu.Lock()
	mine, ok := r.outbox.sent[page+"\x00"+receiver]
	r.outbox.mu.Unlock()
	if ok {
		return mine
	}
	var d escalate.Delivery
	r.book.view(func(s *ledger.State) { d = s.Deliveries[page][receiver] })
	return d
}
