package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// sent is a delivery as this process made it.
type sent struct {
	escalate.Delivery
	service string
	// ended is when the page that was sent had ended; zero for an open one.
	ended time.Time
	// lost: it is news that could not be recorded.
	lost bool
}

// present is the delivery as far as it is of the page as it is now. An end that
// arrived when its page was open again, or had ended once more, left the receiver
// with nothing of the page that counts.
func (x sent) present(s *ledger.State) escalate.Delivery {
	if p := s.Pages[x.Page]; p != nil && !x.ended.IsZero() && !p.EndedAt.Equal(x.ended) {
		return escalate.Delivery{Page: x.Page, Receiver: x.Receiver, Tried: x.Tried}
	}
	return x.Delivery
}

// put remembers a delivery. Where one before it was lost, it is lost until it is
// recorded itself.
func (o *outbox) put(x sent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent[x.Page] == nil {
		o.sent[x.Page] = map[string]sent{}
	}
	if old, ok := o.sent[x.Page][x.Receiver]; ok {
		x.lost = x.lost || old.lost
	}
	o.sent[x.Page][x.Receiver] = x
}

// recordedOne forgets a delivery that the ledger says now.
func (o *outbox) recordedOne(x escalate.Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent[x.Page][x.Receiver].Delivery == x {
		delete(o.sent[x.Page], x.Receiver)
	}
	if len(o.sent[x.Page]) == 0 {
		delete(o.sent, x.Page) // There will be other pages, for years.
	}
}

// lost are the deliveries that could not be recorded.
func (o *outbox) lost() []sent {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []sent
	for _, page := range sortedKeys(o.sent) {
		for _, name := range sortedKeys(o.sent[page]) {
			if x := o.sent[page][name]; x.lost {
				out = append(out, x)
			}
		}
	}
	return out
}

// mayHold are the receivers of a page that this process tried to send it to; all
// of them where it knows of none.
func (o *outbox) mayHold(p escalate.Page) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sent[p.ID]) == 0 {
		return p.Receivers
	}
	return slices.DeleteFunc(slices.Clone(p.Receivers), func(name string) bool { _, ok := o.sent[p.ID][name]; return !ok })
}

// held is what the receivers hold of the page: what is recorded, or what this
// process did since, whichever is newer.
func (r *Reconciler) held(p escalate.Page) (held []escalate.Delivery) {
	r.book.view(func(s *ledger.State) { held = r.heldIn(s, p) })
	return held
}

func (r *Reconciler) heldIn(s *ledger.State, p escalate.Page) []escalate.Delivery {
	known := map[string]escalate.Delivery{}
	maps.Copy(known, s.Deliveries[p.ID])
	r.outbox.mu.Lock()
	for name, mine := range r.outbox.sent[p.ID] {
		known[name] = escalate.Newer(known[name], mine.Delivery)
	}
	r.outbox.mu.Unlock()
	return slices.Collect(maps.Values(known))
}

// due are the receivers that must be sent the page now. A heartbeat of before this
// process began says nothing of the way that its pages take.
func (r *Reconciler) due(p escalate.Page, held []escalate.Delivery, now time.Time) []string {
	if p.Reason == escalate.Heartbeat {
		for i := range held {
			if held[i].Sent.Before(r.born) {
				held[i].Sent = time.Time{}
			}
		}
	}
	return escalate.Due(p, held, r.receiverRules(), now)
}

// deliver brings one receiver to the page, and records what is news after each
// step: that it was begun, the first delivery, the end, and the beginning and end
// of a failure.
func (r *Reconciler) deliver(ctx context.Context, rec escalate.Receiver, p escalate.Page) {
	var d escalate.Delivery
	for _, known := range r.held(p) {
		if known.Receiver == rec.Name() {
			d = known.For(p)
		}
	}
	pages := escalate.Sequence(p, d)
	if r.hushed(ctx, rec.Name(), pages[0]) {
		r.drop(ctx, rec.Name(), p, d)
		return
	}
	d, mine := r.begun(ctx, rec.Name(), p, d)
	if !mine {
		return // another replica sends it
	}
	for i, page := range pages {
		after := r.send(ctx, rec, page, d)
		if after.Failures == 0 && i < len(pages)-1 {
			after.Begun, after.By = d.Begun, d.By
		}
		r.recordDelivery(ctx, page, d, after)
		if d = after; d.Failures > 0 {
			return
		}
	}
}

// drop records that nobody is told of a page that was silenced until it was over.
func (r *Reconciler) drop(ctx context.Context, receiver string, p escalate.Page, d escalate.Delivery) {
	if p.EndedAt.IsZero() || !d.Tried.IsZero() {
		return
	}
	after := d
	after.Page, after.Receiver, after.Tried, after.Ended = p.ID, receiver, r.o.Now(), true
	r.recordDelivery(ctx, p, d, after)
}

// begun says durably that this process sends, where others might as well: of
// several replicas one does, and when it dies before it recorded what came of it,
// another takes over. What the ledger says at that moment decides. A ledger that
// cannot be written decides nothing: people are told at least once.
//
// An Alertmanager tells by its labels what it holds already, so it needs none of
// this, and a lone process neither.
func (r *Reconciler) begun(ctx context.Context, receiver string, p escalate.Page, d escalate.Delivery) (begun escalate.Delivery, mine bool) {
	if !r.o.Shared || r.isAlertmanager(receiver) || r.book.broken() != nil {
		return d, true
	}
	now := r.o.Now()
	err := r.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		mine = false
		known := s.Pages[p.ID]
		if known == nil || known.ContentDigest() != p.ContentDigest() || !slices.Contains(r.due(p, r.heldIn(s, p), now), receiver) {
			return nil, nil
		}
		for _, held := range r.heldIn(s, p) {
			if held.Receiver == receiver {
				begun = held
			}
		}
		begun, mine = begun.Begin(p, receiver, r.o.Process, now), true
		return []ledger.Draft{delivered(p.Service, begun)}, nil
	})
	if err != nil {
		r.log.Error("a delivery could not be begun durably; it is sent all the same", "page", p.ID, "receiver", receiver, "error", err)
		return d, true
	}
	return begun, mine
}

func (r *Reconciler) send(ctx context.Context, rec escalate.Receiver, p escalate.Page, before escalate.Delivery) escalate.Delivery {
	ref, failure := sendWithin(ctx, rec, r.wordsFor(rec.Name(), p), before.Ref)
	after := before.After(p, rec.Name(), ref, failure, r.o.Now())
	if failure != nil {
		r.tel.receivers.failed(rec.Name())
		r.log.Warn("page not delivered", "page", p.ID, "receiver", rec.Name(), "failures", after.Failures, "error", failure)
	}
	return after
}

// wordsFor is the page as that receiver is sent it. It is the same content: what is
// recorded of it is that of the page.
func (r *Reconciler) wordsFor(receiver string, p escalate.Page) escalate.Page {
	if !p.EndedAt.IsZero() {
		return p.Over()
	}
	return p.For(receiver, r.held(p), r.receiverRules(), r.o.Now())
}

func (r *Reconciler) recordDelivery(ctx context.Context, p escalate.Page, before, after escalate.Delivery) {
	x := sent{Delivery: after, service: p.Service, ended: p.EndedAt}
	r.outbox.put(x)
	if !before.News(after) {
		return
	}
	err := r.book.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		return []ledger.Draft{delivered(p.Service, x.present(s))}, nil
	})
	if err != nil {
		x.lost = true
		r.outbox.put(x)
		r.log.Error("delivery could not be recorded; the page may be sent again", "page", p.ID, "error", err)
		return
	}
	r.outbox.recordedOne(after)
}

// receiverTimeout bounds one delivery. What comes before and after it has a time
// of its own: an Alertmanager that hangs must not use up that of a pager, and a
// receiver that does must not keep its own failure out of the ledger. Two of them,
// a page that is over and its end, are shorter than escalate.TakeOverAfter.
const receiverTimeout = 10 * time.Second

func sendWithin(ctx context.Context, rec escalate.Receiver, p escalate.Page, ref string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, receiverTimeout)
	defer cancel()
	return rec.Send(ctx, p, ref)
}
