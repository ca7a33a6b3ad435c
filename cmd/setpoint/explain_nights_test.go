package main

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// nights are what can be the matter at three o'clock.
var nights = map[string]func(n *night){
	"met": func(*night) {},
	"met-and-over": func(n *night) {
		n.measured(0.08) // not for long enough: no pair of burn rates burns
		n.a.State, n.a.Reason = compare.Met, ""
		n.a.Objectives[0].State, n.a.Objectives[0].Reason = compare.Met, ""
	},
	"met-later": func(n *night) {
		n.breached(55)
		n.tried(50, "restart", nil, compare.OutcomeRecovered, 0)
		n.metAt(40)
		n.over(35)
	},
	"met-again": func(n *night) { n.breached(25); n.tried(20, "scale", six, compare.OutcomeRecovered, 0); n.metAt(3) },
	"auto-next": func(n *night) { n.breached(4); n.wants("scale", six) },
	"awaiting":  func(n *night) { n.breached(12); n.answered(2, n.sent(2, "scale", six), execute.Applied) },
	"in-doubt":  func(n *night) { n.breached(12); n.answered(2, n.sent(2, "scale", six), execute.InDoubt) },
	"doubt-unknown": func(n *night) {
		n.breached(40)
		key := n.sent(30, "scale", six)
		n.answered(30, key, execute.InDoubt)
		n.add(18, ledger.KindSettled, "checkout", ledger.Settled{Key: key, Effect: execute.Unknown, By: "observation", Reason: "no answer"})
		n.page(17, escalate.InDoubt)
	},
	"budget-spent": func(n *night) {
		n.tried(3*24*60, "scale", six, compare.OutcomeWorsened, 2)
		n.breached(60)
		n.tried(55, "scale", propose.Parameters{"replicas": int64(9)}, compare.OutcomeNoChange, 1)
		n.wants("scale", propose.Parameters{"replicas": int64(12)})
	},
	"fleet-spent": func(n *night) { n.fleetSpends(); n.breached(4); n.wants("scale", six) },
	"ticket":      func(n *night) { n.breached(14); n.ticket(4); n.page(3, escalate.ApprovalNeeded) },
	"approved": func(n *night) {
		n.breached(14)
		id := n.ticket(4)
		n.answer(id, 1, true)
	},
	"denied": func(n *night) {
		n.breached(24)
		id := n.ticket(14)
		n.answer(id, 9, false)
		n.facts.PersonHold = id + " (scale) was denied by os:alice"
		n.wants("scale", six)
	},
	"unanswered": func(n *night) {
		n.breached(34)
		id := n.ticket(24)
		n.add(9, ledger.KindTicketEnd, "checkout", ledger.TicketEnd{Ticket: id, State: approve.Expired, Reason: "nobody answered"})
		n.facts.Unanswered = id + " (scale)"
		n.wants("scale", six)
	},
	"denied-now": func(n *night) {
		n.breached(24)
		n.answer(n.ticketIn(gate.KeyOf("checkout", gate.WindowAt(three, 10*time.Minute)), 2), 1, false)
	},
	"unanswered-now": func(n *night) {
		n.breached(24)
		id := n.ticketIn(gate.KeyOf("checkout", gate.WindowAt(three, 10*time.Minute)), 2)
		n.add(1, ledger.KindTicketEnd, "checkout", ledger.TicketEnd{Ticket: id, State: approve.Expired, Reason: "nobody answered"})
	},
	"observe-later": func(n *night) {
		n.svc.Remediation.Mode = spec.Observe
		n.breached(6)
		n.refusedNow("scale", six)
	},
	"suspended": func(n *night) {
		n.breached(100)
		n.tried(90, "scale", six, compare.OutcomeWorsened, 2)
		n.undone(75)
		n.tried(50, "scale", propose.Parameters{"replicas": int64(9)}, compare.OutcomeWorsened, 2)
		n.undone(35)
		n.page(20, escalate.Suspended)
		n.wants("scale", six)
		n.facts.Sent = nil
	},
	"undo-next": func(n *night) { n.breached(30); n.tried(15, "scale", six, compare.OutcomeWorsened, 2) },
	"foreign-change": func(n *night) {
		n.breached(30)
		n.tried(15, "scale", six, compare.OutcomeWorsened, 2)
		n.live = 12 // Somebody scaled it since.
		n.page(5, escalate.UndoHeld)
	},
	"storm": func(n *night) {
		n.breached(6)
		n.facts.Storm = "12 of 20 services are breached, 3 unknown by fault of their source"
	},
	"frozen":      func(n *night) { n.breached(6); n.freeze() },
	"frozen-met":  func(n *night) { n.freeze() },
	"maintenance": func(n *night) { n.breached(6); n.drill() },
	"drill-met":   func(n *night) { n.drill() },
	"blind": func(n *night) {
		n.add(14, ledger.KindState, "checkout", ledger.StateChange{From: compare.Met, To: compare.Unknown, Reason: measure.SourceError, SourceFault: "main", By: "me"})
		n.a = compare.Assessment{Service: "checkout", At: three, State: compare.Unknown, Reason: measure.SourceError, Objectives: []compare.Objective{{
			ID: "availability", State: compare.Unknown, Reason: measure.SourceError, Target: 0.99, Sources: []string{"main"}, UnknownFrom: "main", Detail: "503 Service Unavailable: starting up",
		}}}
		n.page(3, escalate.Blind)
	},
	"dependency": func(n *night) {
		n.add(8, ledger.KindState, "payments-db", ledger.StateChange{From: compare.Met, To: compare.Breached, Reason: compare.Burning, By: "me"})
		n.breached(6)
		n.facts.Dependencies["payments-db"] = compare.Breached
	},
	"observe": func(n *night) {
		n.svc.Remediation.Mode, n.max = spec.Observe, spec.Observe
		n.breached(6)
		n.wants("scale", six)
	},
	"suggest": func(n *night) { n.svc.Remediation.Mode = spec.Suggest; n.breached(6); n.wants("scale", six) },
	"demoted": func(n *night) {
		n.add(300, ledger.KindCeiling, "checkout", ledger.Ceiling{Action: "scale", To: gate.Escalate, By: "setpoint", Reason: "worsened 2 times in its period"})
		n.breached(6)
		n.wants("scale", six)
	},
	"cooldown": func(n *night) {
		n.breached(30)
		n.tried(12, "scale", six, compare.OutcomeNoChange, 1)
		n.facts.ActionSent = before(12)
		n.wants("scale", propose.Parameters{"replicas": int64(9)})
	},
	"repeat": func(n *night) {
		for _, minutes := range []int{700, 400} {
			n.breached(minutes + 5)
			n.tried(minutes, "restart", nil, compare.OutcomeRecovered, 0)
			n.metAt(minutes - 10)
			n.over(minutes - 15)
		}
		n.breached(5)
		n.wants("restart", nil)
	},
	"oscillation": func(n *night) {
		n.breached(70)
		n.tried(60, "scale", six, compare.OutcomeNoChange, 1)
		n.tried(40, "scale", propose.Parameters{"replicas": int64(3)}, compare.OutcomeNoChange, 1)
		n.wants("scale", six)
	},
	"fight": func(n *night) {
		n.breached(200)
		n.tried(190, "scale", six, compare.OutcomeNoChange, 1)
		n.live = 3 // Somebody else put it back.
		n.tried(150, "scale", six, compare.OutcomeNoChange, 0)
		n.live = 3
		n.page(100, escalate.HandedOver)
		n.wants("scale", six)
	},
	"spec-problem": func(n *night) { n.breached(6); n.facts.SpecProblem = "never met since its documents were loaded" },
	"policy": func(n *night) {
		n.breached(6)
		n.wants("rollback", nil)
		n.rules = gate.Ruling{Revision: "p", Deny: []gate.Rule{{Reason: "schema-migration", Title: "No rollback across a schema migration", Remedy: "roll forward, or ask the database team", File: "migrations.rego", Line: 9}}}
	},
	"reset": func(n *night) {
		n.tried(3*24*60, "scale", six, compare.OutcomeWorsened, 2)
		n.add(2*24*60, ledger.KindReset, "checkout", ledger.Reset{Action: "scale", By: "os:alice", Reason: "the scaler is fixed", Until: three.Add(48 * time.Hour)})
		n.breached(6)
		n.wants("scale", six)
	},
}
