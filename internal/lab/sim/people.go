package sim

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// person is one thing that people do: mostly they answer questions.
func (w *world) person() {
	w.fate = fateOK
	switch n := w.pick(100); {
	case n < 60:
		w.answerAny()
	case n < 72:
		w.settleAny()
	case n < 77:
		w.freeze()
	case n < 95:
		w.thaw()
	default:
		w.resetAny()
	}
}

// desk appends for a person through some process, which may know an old
// ledger.
func (w *world) desk(base *ledger.State, draft func(s *ledger.State) (ledger.Draft, error)) error {
	drafts, err := w.chain.append(base, w.at, one(draft))
	if err == nil {
		w.look(nil, drafts)
	}
	return err
}

// anyBase is what one of the processes knows.
func (w *world) anyBase() *ledger.State {
	if w.rng == nil {
		return w.chain.head
	}
	if r := w.reps[w.pick(len(w.reps))]; r.up {
		return r.known
	}
	return w.chain.head
}

// answerAny answers the newest ticket of some service, whatever became of it:
// sometimes twice, sometimes two people at once in two places.
func (w *world) answerAny() {
	t := w.newestTicket()
	if t == nil {
		return
	}
	who := []string{"os:alice", "os:bob", "os:mallory"}
	by, approves := who[w.pick(3)], !w.roll(250)
	w.answer(t.ID, by, approves)
	if w.roll(200) {
		w.answer(t.ID, by, approves)
	}
	if w.roll(250) {
		w.answer(t.ID, who[w.pick(2)], !approves)
	}
}

// newestTicket prefers one that still waits.
func (w *world) newestTicket() *approve.Ticket {
	var last *approve.Ticket
	for i := range w.services {
		sv, _ := w.chain.head.Service(serviceName(i))
		if len(sv.Tickets) == 0 {
			continue
		}
		t := w.chain.head.Tickets[sv.Tickets[len(sv.Tickets)-1]]
		if last == nil || t.State == approve.Open {
			last = t
		}
	}
	return last
}

func (w *world) answer(ticket, by string, approves bool) {
	a := approve.Answer{Ticket: ticket, By: by, Via: "cli", Approve: approves, Reason: "seen", At: w.at}
	err := w.desk(w.anyBase(), func(s *ledger.State) (ledger.Draft, error) {
		t, ok := s.Tickets[ticket]
		if !ok {
			return ledger.Draft{}, ledger.ErrLost
		}
		recorded, err := approve.Record(*t, a, groups())
		if err != nil {
			return ledger.Draft{}, err
		}
		return ledger.AnswerDraft(s, recorded)
	})
	var refused *approve.Refusal
	switch {
	case errors.As(err, &refused):
		w.hit("answer refused: " + refused.Code)
		w.note("%s answers %s: refused, %s", by, ticket, refused.Code)
	case err == nil && approves:
		w.hit("answer approves")
	case err == nil:
		w.hit("answer denies")
	}
}

// settleAny: a person looks what became of an effect and says so, once the
// horizon has passed.
func (w *world) settleAny() {
	for i := range w.services {
		e, _ := w.chain.head.InFlight(serviceName(i), "")
		if e == nil || !e.InDoubt() && e.Effect != execute.Unknown || !w.at.After(e.Horizon().Add(w.promise())) {
			continue
		}
		as := execute.NotLanded
		if slices.ContainsFunc(w.act.journal, func(f effect) bool { return f.key == e.Claim.Key }) {
			as = execute.Landed
		}
		b := ledger.Settled{Key: e.Claim.Key, Effect: as, By: "os:alice", Reason: "looked"}
		if as == execute.Landed {
			b.AppliedAt = e.Horizon()
		}
		err := w.desk(w.anyBase(), func(s *ledger.State) (ledger.Draft, error) { return ledger.SettleDraft(s, b) })
		if err == nil {
			w.hit("settled by a person")
		}
		return
	}
}

// promise is how long after the horizon a person waits.
func (w *world) promise() time.Duration { return limits().PermitTTL }

// freeze writes the file first, on one host or on all, and then the entry.
func (w *world) freeze() {
	w.freezes++
	f := ledger.Freeze{ID: "f" + strconv.Itoa(w.freezes), By: "os:bob", Reason: "look", At: w.at}
	if w.roll(400) {
		f.Service = serviceName(w.pick(w.services))
	}
	only := w.pick(len(w.reps) + 1)
	for i := range w.reps {
		if only == len(w.reps) || only == i {
			w.reps[i].files = append(slices.Clip(w.reps[i].files), f)
		}
	}
	w.note("%s is written", f.ID)
	w.hit("freeze")
	if w.roll(500) {
		_ = w.desk(w.anyBase(), func(s *ledger.State) (ledger.Draft, error) { return ledger.FreezeDraft(s, f) })
	}
}

// thaw lifts the oldest freeze that stands.
func (w *world) thaw() {
	for n := 1; n <= w.freezes; n++ {
		id := "f" + strconv.Itoa(n)
		if _, lifted := w.chain.head.Thawed[id]; lifted {
			continue
		}
		err := w.desk(w.anyBase(), func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ThawDraft(s, ledger.Thaw{ID: id, By: "os:bob", Reason: "done"})
		})
		if err == nil {
			w.hit("thaw")
		}
		return
	}
}

// syncFreezes is what a host's writer does: files become entries, and files of
// lifted freezes go.
func (w *world) syncFreezes(r *replica) {
	var kept []ledger.Freeze
	for _, f := range r.files {
		if _, lifted := r.known.Thawed[f.ID]; lifted {
			continue
		}
		kept = append(kept, f)
		if _, recorded := r.known.Freezes[f.ID]; !recorded {
			_ = w.write(r, one(func(s *ledger.State) (ledger.Draft, error) { return ledger.FreezeDraft(s, f) }))
		}
	}
	r.files = kept
}

// resetAny: a named person resets the budget and suspension of an action, or
// the global budget.
func (w *world) resetAny() {
	d := ledger.Draft{Kind: ledger.KindReset, Body: ledger.Reset{By: "os:alice", Reason: "fixed"}}
	if w.roll(700) {
		i := w.pick(w.services)
		as := w.set.sites[w.services][0][i].Remediation.Actions
		d.Service = serviceName(i)
		d.Body = ledger.Reset{Action: as[w.pick(len(as))].Name, By: "os:alice", Reason: "fixed"}
	}
	_ = w.desk(w.anyBase(), func(*ledger.State) (ledger.Draft, error) { return d, nil })
}
