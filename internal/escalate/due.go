package escalate

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Delivery is what one receiver is known to hold of one page.
type Delivery struct {
	Page     string `json:"page"`
	Receiver string `json:"receiver"`
	// First is when it first held the open page; zero before. The wait for an
	// acknowledgement counts from here, whatever is sent later.
	First time.Time `json:"first,omitzero"`
	// Sent is the last success, Tried the last attempt.
	Sent  time.Time `json:"sent,omitzero"`
	Tried time.Time `json:"tried,omitzero"`
	// Ended: the end was delivered too.
	Ended bool `json:"ended"`
	// Digest of the content that was delivered.
	Digest string `json:"digest"`
	// Acked: what was delivered said that somebody had acknowledged the page.
	Acked bool `json:"acked,omitempty"`
	// Ref is the receiver's own name of what it holds; "" where the page's id is
	// enough.
	Ref string `json:"ref,omitempty"`
	// Begun is when a process began to send what it has not recorded yet, and By
	// that process: of several replicas one sends. Zero and "" otherwise.
	Begun time.Time `json:"begun,omitzero"`
	By    string    `json:"by,omitempty"`
	// Failures in a row, and the last error for people.
	Failures  int    `json:"failures"`
	LastError string `json:"lastError"`
}

// For is what counts of the delivery for the page as it is now: a page that is
// open again after its end was told is a new one to the receiver.
func (d Delivery) For(p Page) Delivery {
	if !d.Ended || !p.EndedAt.IsZero() {
		return d
	}
	return Delivery{Page: d.Page, Receiver: d.Receiver, Tried: d.Tried, Begun: d.Begun, By: d.By}
}

// Begin is the delivery once a process says that it sends: of several replicas
// that say so, the first one recorded does.
func (d Delivery) Begin(p Page, receiver, process string, now time.Time) Delivery {
	d = d.For(p)
	d.Page, d.Receiver, d.Begun, d.By = p.ID, receiver, now, process
	return d
}

// After is the delivery after an attempt to send the page at now: ref and err are
// what the receiver returned.
func (d Delivery) After(p Page, receiver, ref string, err error, now time.Time) Delivery {
	d = d.For(p)
	d.Page, d.Receiver, d.Tried = p.ID, receiver, now
	d.Begun, d.By = time.Time{}, ""
	if ref != "" {
		d.Ref = ref
	}
	if err != nil {
		d.Failures++
		d.LastError = execute.CleanText(err.Error(), 200)
		return d
	}
	if d.First.IsZero() {
		d.First = now
	}
	d.Sent, d.Ended, d.Digest = now, !p.EndedAt.IsZero(), p.ContentDigest()
	d.Acked = p.AckedBy != ""
	d.Failures, d.LastError = 0, ""
	return d
}

// Newer is the one that says more of the present. Where both are of the same time
// it is the second.
func Newer(a, b Delivery) Delivery {
	if b.latest().Before(a.latest()) {
		return a
	}
	return b
}

func (d Delivery) latest() time.Time {
	if d.Begun.After(d.Tried) {
		return d.Begun
	}
	return d.Tried
}

// underWay reports whether some process may be sending now. A begin in the future
// is of a clock that was set back.
func (d Delivery) underWay(now time.Time) bool {
	age := now.Sub(d.Begun)
	return !d.Begun.IsZero() && age >= 0 && age < TakeOverAfter
}

// News reports whether the next delivery says more than the time of a repeated
// success, so that it must be recorded: a pass that changes nothing writes
// nothing.
func (d Delivery) News(next Delivery) bool {
	d.Sent, d.Tried = next.Sent, next.Tried
	return d != next
}

// Rule is a receiver's part of setpoint.yaml that Due needs.
type Rule struct {
	Name string
	// EscalateAfter is how long its predecessor may hold the page without an
	// acknowledgement; zero: 10 m.
	EscalateAfter time.Duration
	// Repost is how often an open page is sent again (Alertmanager forgets an
	// alert after endsAt); zero: only when its content changes.
	Repost time.Duration
	// Heartbeat is how often a sign of life is sent; zero: never.
	Heartbeat time.Duration
	// ShowsAck: an acknowledgement changes what the receiver shows, so that it is
	// sent one; another would only be disturbed.
	ShowsAck bool
	// Down: it is known to take nothing (Down), whatever this page's own delivery
	// says. The next one's turn is at once; it is tried all the same.
	Down bool
}

// wait is how long a predecessor may hold a page unacknowledged.
func (r Rule) wait() time.Duration {
	if r.EscalateAfter <= 0 {
		return defaultEscalateAfter
	}
	return r.EscalateAfter
}

// beat is how often a heartbeat is sent: where what is not posted again is
// forgotten, often enough that it is not, or the switch that watches for it would
// go off between two of them.
func (r Rule) beat() time.Duration {
	if r.Repost > 0 {
		return min(r.Heartbeat, mostSilent)
	}
	return r.Heartbeat
}

// The rules of the outbox.
const (
	// FailuresToSkip in a row make the next receiver's turn at once: with
	// approve.Backoff that is less than two minutes and two sweeps after the first.
	FailuresToSkip = 3
	// defaultEscalateAfter stands in for a rule without one, so that nobody
	// waits for ever behind a receiver that nobody reads.
	defaultEscalateAfter = 10 * time.Minute
	// TakeOverAfter is how long a process that began a delivery has to record what
	// came of it. It is longer than everything that one sends at a time may take.
	TakeOverAfter = 30 * time.Second
	// mostSilent is shorter than an Alertmanager keeps an alert.
	mostSilent = time.Hour
	// apart is how far the clocks of two replicas may be from each other. What is
	// further ahead is of a clock that was set back: the next receiver would wait
	// until that time has come, and nobody knows how long it has waited already.
	apart = time.Minute
	// untriedFor is how long after its end a page is still sent to a receiver whose
	// turn had come and that nobody began to send it to. The process that records an
	// end tries at once, so whoever is older was held back on purpose: by a silence,
	// or by a version that did not send the end of what it had never sent.
	untriedFor = 24 * time.Hour
)

// Due returns the receivers that must be sent this page now, in order.
//
// An open page goes to the first receiver, and to a further one when its
// predecessor failed FailuresToSkip times in a row, is known to be down, is not
// configured, or held the page unacknowledged for the further one's EscalateAfter. An
// acknowledgement stops that chain, and nothing else: who holds the page still
// gets its reposts, changes and end. A receiver is sent what it does not hold
// yet, changed content, and every Repost the same again; after failures not
// before its approve.Backoff, and while a process may be sending to it nothing.
//
// A page that ended goes, for as long as it takes, to everybody who may hold it and
// to everybody whose turn had come: what could not be delivered in time is not lost
// (Sequence). Where nobody got it at all, failures pass it on after its end too.
func Due(p Page, held []Delivery, rules []Rule, now time.Time) []string {
	o := newOutbox(p, held, rules, now)
	if p.EndedAt.IsZero() {
		return o.open()
	}
	return o.ended(held)
}

type outbox struct {
	page   Page
	now    time.Time
	digest string
	held   map[string]Delivery
	rules  map[string]Rule
}

func newOutbox(p Page, held []Delivery, rules []Rule, now time.Time) outbox {
	o := outbox{page: p, now: now, digest: p.ContentDigest(), held: map[string]Delivery{}, rules: map[string]Rule{}}
	for _, d := range held {
		if d.Page == p.ID || d.Page == "" {
			o.held[d.Receiver] = d
		}
	}
	for _, r := range rules {
		o.rules[r.Name] = r
	}
	return o
}

func (o outbox) open() []string {
	var due []string
	reached := true
	for i, name := range o.page.Receivers {
		rule, known := o.rules[name]
		if i > 0 {
			reached = reached && o.passedOn(o.page.Receivers[i-1], rule)
		}
		d, tried := o.held[name]
		if holds := tried && !d.First.IsZero() && !d.Ended; !known || !reached && !holds || slices.Contains(due, name) {
			continue
		}
		if o.wants(d, tried, rule) {
			due = append(due, name)
		}
	}
	return due
}

// passedOn reports whether the predecessor's turn is over.
func (o outbox) passedOn(name string, next Rule) bool {
	if o.page.AckedBy != "" {
		return false
	}
	d, tried := o.held[name]
	rule, known := o.rules[name]
	if !known || d.Failures >= FailuresToSkip || rule.Down && !o.holds(name) {
		return true
	}
	if !tried || d.Sent.IsZero() || d.Ended {
		return false
	}
	since := d.First
	if since.IsZero() {
		since = o.page.Since
	}
	age := o.now.Sub(since)
	return age >= next.wait() || age < -apart
}

// wants reports whether a receiver whose turn it is should be sent the open
// page now. A time in the future is of a clock that was set back; waiting for
// it could take for ever, sending once more does no harm.
func (o outbox) wants(d Delivery, tried bool, r Rule) bool {
	switch {
	case !tried:
		return true
	case !o.rested(d):
		return false
	case d.Failures > 0, d.Ended, d.Sent.IsZero(), d.Digest != o.digest, !d.Begun.IsZero(),
		r.ShowsAck && o.page.AckedBy != "" && !d.Acked:
		return true // of what was begun and not recorded nobody knows what arrived
	}
	every := r.Repost
	if o.page.Reason == Heartbeat {
		every = r.beat()
	}
	age := o.now.Sub(d.Sent)
	return every > 0 && (age >= every || age < 0)
}

// rested reports whether the receiver may be sent to: nobody does just now, and
// after a failure it was left alone for long enough.
func (o outbox) rested(d Delivery) bool {
	if d.underWay(o.now) {
		return false
	}
	age := o.now.Sub(d.Tried)
	return d.Failures == 0 || age >= approve.Backoff(d.Failures) || age < 0
}

// ended keeps the page's order, with receivers that left it since behind. One
// that failed may have got the page all the same, so it gets the end too. A
// heartbeat has no end: it stops.
func (o outbox) ended(held []Delivery) []string {
	if o.page.Reason == Heartbeat {
		return nil
	}
	var due []string
	turn, chain := o.turns(held), len(o.page.Receivers)
	names := slices.Clone(o.page.Receivers)
	for _, d := range held {
		names = append(names, d.Receiver)
	}
	for i, name := range names {
		d, tried := o.held[name]
		_, known := o.rules[name]
		if known && (tried || i < chain && turn[i]) && !d.Ended && o.rested(d) && !slices.Contains(due, name) {
			due = append(due, name)
		}
	}
	return due
}

// turns says for each receiver of a page that ended whether its turn came.
func (o outbox) turns(held []Delivery) []bool {
	confirmed := slices.ContainsFunc(held, func(d Delivery) bool { return !d.First.IsZero() })
	turn := make([]bool, len(o.page.Receivers))
	reached := o.now.Sub(o.page.EndedAt) <= untriedFor
	for i, name := range o.page.Receivers {
		if i > 0 {
			reached = reached && o.hadPassedOn(o.page.Receivers[i-1], o.rules[name], confirmed)
		}
		turn[i] = reached
	}
	return turn
}

// hadPassedOn reports whether the predecessor's turn was over before the page
// ended, or is over now, as long as nobody confirmed the page.
func (o outbox) hadPassedOn(name string, next Rule, confirmed bool) bool {
	if o.page.AckedBy != "" {
		return false
	}
	d := o.held[name]
	rule, known := o.rules[name]
	if !known || (d.Failures >= FailuresToSkip || rule.Down) && !confirmed {
		return true
	}
	return !d.First.IsZero() && o.page.EndedAt.Sub(d.First) >= next.wait()
}
