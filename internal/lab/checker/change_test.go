package checker_test

import (
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// effectOf gives the last effect of a key.
func (h *history) effectOf(key gate.Key) *executetest.Record {
	var found *executetest.Record
	for i := range h.journal {
		if h.journal[i].Key == string(key) && h.journal[i].Applied {
			found = &h.journal[i]
		}
	}
	return found
}

// unsend removes a key from the journal.
func (h *history) unsend(key gate.Key) {
	h.journal = slices.DeleteFunc(h.journal, func(r executetest.Record) bool { return r.Key == string(key) })
}

// whole appends an action from its breach to its void.
func (h *history) whole(a action) {
	h.state("breached."+a.name, a.service, a.at, compare.Breached)
	h.claim(a)
	h.add("void."+a.name, a.at+0.6, ledger.KindVoid, a.service, voided(a))
}

func replaceIn(r *executetest.Record, from, to string) { r.Body = strings.ReplaceAll(r.Body, from, to) }

func decides(h *history, name string, f func(*gate.Decision)) {
	edit(h, name, func(d *ledger.Decided) { f(&d.Decision) })
}

func rules(h *history, name string, f func(*gate.Ruling)) {
	decides(h, name, func(d *gate.Decision) { f(&d.Ruling) })
}

func frozenAt(at float64) ledger.Freeze {
	return ledger.Freeze{ID: "f0", By: "os:alice", Reason: "r", At: minute(at)}
}

func voided(a action) ledger.Void { return ledger.Void{Key: a.key(), Reason: "r"} }

func settled(a action) ledger.Settled {
	return ledger.Settled{Key: a.key(), Effect: execute.NotLanded, By: ledger.SettledByObservation}
}

func judgedOf(a action) ledger.Outcome {
	return ledger.Outcome{Key: a.key(), Judgement: compare.Judgement{Outcome: compare.OutcomeNoChange}, Cost: 1}
}

// ticketOfK2 is the id of the ticket that k2 was allowed by.
func ticketOfK2(h *history) string { return h.find("alice.k2").draft.Body.(approve.Answer).Ticket }

func ended(h *history) ledger.TicketEnd {
	return ledger.TicketEnd{Ticket: ticketOfK2(h), State: approve.Void, Reason: "too-late"}
}

func deny(h *history) approve.Answer {
	return approve.Answer{Ticket: ticketOfK2(h), By: "os:dora", At: minute(14), Satisfies: []int{0}}
}
