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

// After is the delivery after an attempt to send the page at now: ref and err are
// what the receiver returned.
func (d Delivery) After(p Page, receiver, ref string, err error, now time.Time) Delivery {
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
	if ended := !p.EndedAt.IsZero(); d.First.IsZero() || d.Ended && !ended {
		d.First = now
	}
	d.Sent, d.Ended, d.Digest = now, !p.EndedAt.IsZero(), p.ContentDigest()
	d.Failures, d.LastError = 0, ""
	return d
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
}

// The rules of the outbox.
const (
	// FailuresToSkip in a row make the next receiver's turn at once: with
	// approve.Backoff that is less than two minutes and two sweeps after the first.
	FailuresToSkip = 3
	// defaultEscalateAfter stands in for a rule without one, so that nobody
	// waits for ever behind a receiver that nobody reads.
	defaultEscalateAfter = 10 * time.Minute
	// endFor is how long the end is offered to a receiver that never confirmed
	// the page: by then Alertmanager forgot what it may have got of it.
	endFor = 4 * time.Hour
)

// Due returns the receivers that must be sent this page now, in order.
//
// An open page goes to the first receiver, and to a further one when its
// predecessor failed FailuresToSkip times in a row, is not configured, or held
// the page unacknowledged for the further one's EscalateAfter. An
// acknowledgement stops that chain, and nothing else: who holds the page still
// gets its reposts, changes and end. A receiver is sent what it does not hold
// yet, changed content, and every Repost the same again; after failures not
// before its approve.Backoff. A page that ended goes to everybody who may hold it.
func Due(p Page, held []Delivery, rules []Rule, now time.Time) []string {
	o := outbox{page: p, now: now, digest: p.ContentDigest(), held: map[string]Delivery{}, rules: map[string]Rule{}}
	for _, d := range held {
		if d.Page == p.ID || d.Page == "" {
			o.held[d.Receiver] = d
		}
	}
	for _, r := range rules {
		o.rules[r.Name] = r
	}
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
	if _, known := o.rules[name]; !known || d.Failures >= FailuresToSkip {
		return true
	}
	if !tried || d.Sent.IsZero() || d.Ended {
		return false
	}
	wait := next.EscalateAfter
	if wait <= 0 {
		wait = defaultEscalateAfter
	}
	since := d.First
	if since.IsZero() {
		since = o.page.Since
	}
	return o.now.Sub(since) >= wait
}

// wants reports whether a receiver whose turn it is should be sent the open
// page now. A time in the future is of a clock that was set back; waiting for
// it could take for ever, sending once more does no harm.
func (o outbox) wants(d Delivery, tried bool, r Rule) bool {
	switch {
	case !tried:
		return true
	case d.Failures > 0:
		return o.rested(d)
	case d.Ended, d.Sent.IsZero(), d.Digest != o.digest:
		return true
	}
	age := o.now.Sub(d.Sent)
	return r.Repost > 0 && (age >= r.Repost || age < 0)
}

func (o outbox) rested(d Delivery) bool {
	age := o.now.Sub(d.Tried)
	return d.Failures == 0 || age >= approve.Backoff(d.Failures) || age < 0
}

// ended keeps the page's order, with receivers that left it since behind. One
// that failed may have got the page all the same, so it gets the end too.
func (o outbox) ended(held []Delivery) []string {
	names := slices.Clone(o.page.Receivers)
	for _, d := range held {
		names = append(names, d.Receiver)
	}
	var due []string
	for _, name := range names {
		d, tried := o.held[name]
		_, known := o.rules[name]
		if !known || !tried || d.Ended || slices.Contains(due, name) || !o.rested(d) {
			continue
		}
		if d.Sent.IsZero() && o.now.Sub(o.page.EndedAt) > endFor {
			continue
		}
		due = append(due, name)
	}
	return due
}
