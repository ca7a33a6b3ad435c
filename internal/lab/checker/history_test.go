package checker_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return base.Add(time.Duration(n * float64(time.Minute))) }

// entry is one entry to be: a name to find it by, when, and what.
type entry struct {
	name  string
	at    time.Time
	draft ledger.Draft
}

// history is a ledger and a journal to be. Entries are linked at the end, so
// that a test can change one and have a chain that verifies.
type history struct {
	t       testing.TB
	steps   []entry
	journal []executetest.Record
	o       checker.Options
	// noBlobs leaves the blobs out of the export.
	noBlobs bool
}

// add appends an entry and gives its number.
func (h *history) add(name string, at float64, kind ledger.Kind, service string, body any, blobs ...[]byte) uint64 {
	h.steps = append(h.steps, entry{name, minute(at), ledger.Draft{Kind: kind, Service: service, Body: body, Blobs: blobs}})
	return uint64(len(h.steps)) + 1
}

// spare is a place for what a test adds, so that the numbers of the others stay.
func (h *history) spare(name string, at float64) {
	h.add(name, at, ledger.KindGap, "", ledger.Gap{Why: name})
}

func (h *history) find(name string) *entry {
	i := slices.IndexFunc(h.steps, func(s entry) bool { return s.name == name })
	if i < 0 {
		h.t.Fatalf("no step %q", name)
	}
	return &h.steps[i]
}

// put writes another entry where one is.
func (h *history) put(name string, kind ledger.Kind, service string, body any) {
	h.find(name).draft = ledger.Draft{Kind: kind, Service: service, Body: body}
}

func (h *history) drop(name string) { h.put(name, ledger.KindGap, "", ledger.Gap{Why: "dropped"}) }

func edit[T any](h *history, name string, f func(*T)) {
	s := h.find(name)
	body := s.draft.Body.(T)
	f(&body)
	s.draft.Body = body
}

// record gives the journal's n-th record of a key.
func (h *history) record(key gate.Key) *executetest.Record {
	for i := range h.journal {
		if h.journal[i].Key == string(key) {
			return &h.journal[i]
		}
	}
	h.t.Fatalf("no record of %s", key)
	return nil
}

// export links the chain.
func (h *history) export() ledger.Exported {
	h.t.Helper()
	x := ledger.Exported{Blobs: map[string][]byte{}}
	var prev ledger.Position
	steps := slices.Concat([]entry{{"init", base, ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}}}}, h.steps)
	for _, s := range steps {
		e, err := ledger.Link(prev, s.at, s.draft)
		if err != nil {
			h.t.Fatalf("step %s: %v", s.name, err)
		}
		x.Entries = append(x.Entries, e)
		prev = e.Position()
		for _, b := range s.draft.Blobs {
			if !h.noBlobs {
				x.Blobs[ledger.BlobDigest(b)] = b
			}
		}
	}
	return x
}

func (h *history) check() checker.Report {
	h.t.Helper()
	return checker.Check(h.export(), h.journal, h.o)
}

// action is one key from its decision on.
type action struct {
	name, service string
	// at is the minute of the claim, window that of the window's start.
	at, window float64
	length     time.Duration
	verdict    gate.Verdict
	ticket     string
	undo       bool
	target     string
}

func (a action) key() gate.Key {
	return gate.KeyOf(a.service, gate.WindowAt(minute(a.window), max(a.length, 10*time.Minute)))
}

func (a action) spec() spec.Action {
	name := a.target
	if name == "" {
		name = a.service
	}
	return spec.Action{
		Name: "scale", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
		Target: spec.Target{URL: "http://127.0.0.1:9/" + name}, Timeout: 10 * time.Second, MaxLateness: 30 * time.Second,
	}
}

var parameters = propose.Parameters{"replicas": int64(6)}

func (h *history) digest(a action) string {
	d, err := gate.Digest(a.service, a.key(), a.spec(), parameters)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// decide appends a decision and gives its id.
func (h *history) decide(name string, a action) string {
	blob := []byte("input of " + name)
	ruling := gate.Ruling{Revision: "p1", Auto: []gate.Rule{{Reason: "allowed", Package: "setpoint.gate"}}}
	if a.verdict == gate.Approval {
		ruling = gate.Ruling{Revision: "p1", Approval: []gate.Rule{{Reason: "ask", Package: "setpoint.gate"}}}
	}
	d := ledger.Decided{
		Window: gate.WindowAt(minute(a.window), 10*time.Minute).String(), Episode: "e4", Key: a.key(), Step: "execute",
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: parameters, Undo: a.undo},
		Decision: gate.Decision{
			Verdict: a.verdict, Key: a.key(), Digest: h.digest(a), InputDigest: ledger.BlobDigest(blob), Cost: 2, Ruling: ruling,
		},
		State: compare.Breached, Mode: spec.Auto,
	}
	return ledger.DecisionID(h.add(name, a.at, ledger.KindDecision, a.service, d, blob))
}

// claim appends decision and claim, with a spare place after each.
func (h *history) claim(a action) {
	id := h.decide("decided."+a.name, a)
	h.spare("before."+a.name, a.at)
	s, charge := a.spec(), 2.0
	if a.verdict != gate.Auto || a.undo {
		charge = 0
	}
	h.add("claim."+a.name, a.at, ledger.KindClaim, a.service, ledger.Claim{
		Key: a.key(), Decision: id, Episode: "e4", Ticket: a.ticket, Digest: h.digest(a), Target: s.Canonical(), Action: s,
		Parameters: parameters, Undo: a.undo, Verdict: a.verdict, Charge: charge,
		Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}, Expires: minute(a.at + 0.5), State: compare.Breached,
	})
	h.spare("after."+a.name, a.at+0.1)
}

func (h *history) start(a action) {
	h.add("start."+a.name, a.at+0.1, ledger.KindStarted, a.service, ledger.Started{Key: a.key()})
	h.spare("sending."+a.name, a.at+0.1)
}

// request is what the actuator writes down of a send.
func (h *history) request(a action, change ...func(*executetest.Record)) {
	body, err := json.Marshal(execute.Envelope{
		APIVersion: spec.Group, Key: a.key(), Digest: h.digest(a), Service: a.service, Action: "scale", Parameters: parameters,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	rec := executetest.Record{
		Time: minute(a.at + 0.1).Add(time.Second), Key: string(a.key()), Digest: h.digest(a), Service: a.service, Action: "scale",
		Header: http.Header{}, Body: string(body), Signed: true, Result: execute.Applied, Applied: true,
	}
	for _, f := range change {
		f(&rec)
	}
	h.journal = append(h.journal, rec)
}

func unapplied(result execute.Effect) func(*executetest.Record) {
	return func(r *executetest.Record) { r.Result, r.Applied = result, false }
}

func (h *history) receipt(a action, effect execute.Effect) {
	h.add("receipt."+a.name, a.at+0.2, ledger.KindReceipt, a.service,
		ledger.Receipt{Key: a.key(), Receipt: execute.Receipt{Effect: effect, At: minute(a.at + 0.2)}})
	h.spare("sent."+a.name, a.at+0.2)
}

func (h *history) settle(name string, a action, at float64, effect execute.Effect, by string) {
	h.add(name+"."+a.name, at, ledger.KindSettled, a.service, ledger.Settled{Key: a.key(), Effect: effect, By: by, Reason: "asked"})
}

func (h *history) judge(a action, at float64, o compare.Outcome, cost float64) {
	h.add("outcome."+a.name, at, ledger.KindOutcome, a.service,
		ledger.Outcome{Key: a.key(), Judgement: compare.Judgement{Outcome: o, Decided: true}, Cost: cost})
}

// undoes names what the undo of the history takes back.
func (h *history) undoes(key gate.Key) {
	edit(h, "claim.k3", func(c *ledger.Claim) { c.Undoes = key })
}

func (h *history) state(name, service string, at float64, to compare.State) {
	h.add(name, at, ledger.KindState, service, ledger.StateChange{To: to})
}

// ask opens a ticket for two people and gives its id.
func (h *history) ask(a action, decision string, expires float64) string {
	return ledger.TicketID(h.add("ticket."+a.name, a.at, ledger.KindTicket, a.service, approve.Ticket{
		Service: a.service, Decision: decision, Key: a.key(), Digest: h.digest(a), Asked: minute(a.at), Expires: minute(expires),
		Needs: []gate.Need{{Reason: "ask", Approvers: []string{"@oncall"}, Quorum: 2}},
	}))
}

func (h *history) answer(name, ticket, by string, at float64, yes bool) {
	h.add(name, at, ledger.KindAnswer, "checkout",
		approve.Answer{Ticket: ticket, By: by, Via: "cli", Approve: yes, At: minute(at), Satisfies: []int{0}})
}

// The actions of the good history.
var (
	k1   = action{name: "k1", service: "checkout", at: 1, window: 0, verdict: gate.Auto}
	k2   = action{name: "k2", service: "checkout", at: 14, window: 10, verdict: gate.Approval}
	k3   = action{name: "k3", service: "checkout", at: 40, window: 40, verdict: gate.Auto, undo: true}
	k4   = action{name: "k4", service: "checkout", at: 61, window: 60, verdict: gate.Auto}
	k5   = action{name: "k5", service: "checkout", at: 91, window: 90, verdict: gate.Auto}
	s1   = action{name: "s1", service: "search", at: 3, window: 0, verdict: gate.Approval}
	s2   = action{name: "s2", service: "search", at: 62, window: 60, verdict: gate.Auto}
	s3   = action{name: "s3", service: "search", at: 71, window: 70, verdict: gate.Auto}
	s4   = action{name: "s4", service: "search", at: 82, window: 80, verdict: gate.Auto}
	last = action{name: "last", service: "search", at: 121, window: 120, verdict: gate.Auto}
)

// good is a history in which everything happens that the checker knows of, as
// it should.
func good(t testing.TB) *history {
	h := &history{t: t, o: checker.Options{
		Slack: time.Second, MinSpacing: 2 * time.Minute, Sweep: 30 * time.Second, EffectsPerHour: 6, EffectsPerServicePerHour: 3,
		Budget: checker.Budget{Period: 28 * 24 * time.Hour, Capacity: 3}, Global: checker.Budget{Period: 28 * 24 * time.Hour, Capacity: 10},
	}}
	h.add("documents", 0, ledger.KindDocuments, "", ledger.Documents{Set: "s", Services: map[string]string{"checkout": "c", "search": "s"}})
	h.state("checkout.breached", "checkout", 0.5, compare.Breached)
	h.add("asked.k1", 1, ledger.KindAsked, "checkout", ledger.Asked{Window: "1767225600-600", Episode: "e3"})
	h.add("proposed.k1", 1, ledger.KindProposal, "checkout", ledger.Proposed{Window: "1767225600-600", Proposal: propose.Proposal{Kind: propose.KindAction}})
	// An auto action that helps nothing and is paid for.
	h.claim(k1)
	h.start(k1)
	h.request(k1)
	h.receipt(k1, execute.Applied)
	// Somebody says no to search.
	h.state("search.breached", "search", 2, compare.Breached)
	no := h.ask(s1, h.decide("decided.s1", s1), 18)
	h.answer("denied.s1", no, "os:alice", 4, false)
	h.judge(k1, 9, compare.OutcomeNoChange, 1)
	approvals(h)
	h.add("undo.k3", 40, ledger.KindProposal, "checkout", ledger.Proposed{
		Window: gate.WindowAt(minute(40), 10*time.Minute).String(), Proposal: propose.Proposal{Kind: propose.KindAction, Undo: true},
	})
	// The undo.
	h.claim(k3)
	h.undoes(k2.key())
	h.start(k3)
	h.request(k3)
	h.receipt(k3, execute.Applied)
	h.judge(k3, 48, compare.OutcomeImproved, 0)
	pauses(h)
	lateOnes(h)
	ends(h)
	return h
}

// approvals is an action that two people allow, whose answer is lost, and that
// a third person settles.
func approvals(h *history) {
	asking := k2
	asking.at = 11
	id := h.ask(asking, h.decide("asked.k2", asking), 26)
	h.answer("alice.k2", id, "os:alice", 12, true)
	h.answer("bob.k2", id, "os:bob", 13, true)
	a := k2
	a.ticket = id
	h.claim(a)
	h.start(a)
	h.request(a)
	h.receipt(a, execute.InDoubt)
	h.settle("unknown", a, 25, execute.Unknown, "setpoint")
	h.settle("found", a, 30, execute.Landed, "os:carol")
	h.judge(a, 36, compare.OutcomeWorsened, 0)
}

// pauses are freezes that nothing is started in.
func pauses(h *history) {
	h.add("freeze", 50, ledger.KindFreeze, "", ledger.Freeze{ID: "f1", By: "os:alice", Reason: "r", At: minute(50)})
	h.add("thaw", 55, ledger.KindThaw, "", ledger.Thaw{ID: "f1", By: "os:alice", Reason: "r"})
	h.add("freeze.until", 56, ledger.KindFreeze, "checkout",
		ledger.Freeze{ID: "f2", Service: "checkout", By: "os:alice", Reason: "r", At: minute(56), Until: minute(60)})
}

// lateOnes end otherwise: accepted and late, void, never sent, and lost.
func lateOnes(h *history) {
	h.claim(k4)
	h.start(k4)
	h.request(k4, unapplied(execute.None), func(r *executetest.Record) { r.Late, r.Due = true, minute(61.5) })
	h.request(k4, func(r *executetest.Record) { r.Late, r.Of, r.Time, r.Body = true, 4, minute(61.5), "" })
	h.receipt(k4, execute.Applied)
	h.claim(s2)
	h.add("void.s2", 62, ledger.KindVoid, "search", ledger.Void{Key: s2.key(), Reason: "budget-spent"})
	h.find("void.s2").at = minute(62.1)
	h.judge(k4, 70, compare.OutcomeRecovered, 0)
	h.claim(s3)
	h.start(s3)
	h.receipt(s3, execute.Failed)
	h.claim(s4)
	h.start(s4)
	h.request(s4, unapplied(execute.None))
	h.settle("settled", s4, 84, execute.NotLanded, ledger.SettledByObservation)
}

// ends are the newer kinds, and a last claim.
func ends(h *history) {
	h.add("checkpoint", 90, ledger.KindCheckpoint, "", ledger.Checkpoint{At: ledger.Position{Seq: 3, Hash: "h"}, State: "b"})
	h.add("ceiling", 90, ledger.KindCeiling, "search", ledger.Ceiling{To: gate.Approval, By: "os:alice", Reason: "r"})
	h.claim(k5)
	h.start(k5)
	h.request(k5)
	h.receipt(k5, execute.Applied)
	h.judge(k5, 99, compare.OutcomeRecovered, 0)
	h.add("reset", 100, ledger.KindReset, "checkout", ledger.Reset{Action: "scale", By: "os:alice", Reason: "r"})
	h.add("lowered", 100, ledger.KindLowered, "checkout", ledger.Lowered{
		To: gate.WindowAt(minute(100), 10*time.Minute).String(), By: "os:alice", Reason: "r",
	})
	h.add("adopted", 101, ledger.KindAdopted, "", ledger.Adopted{Seen: ledger.Position{Seq: 9, Hash: "h"}, By: "os:alice", Reason: "r"})
	h.add("page", 102, ledger.KindPage, "search", escalate.Page{ID: "p", Service: "search"})
	h.claim(last)
	h.add("void.last", 121.6, ledger.KindVoid, "search", ledger.Void{Key: last.key(), Reason: "permit-expired"})
	h.state("checkout.met", "checkout", 122, compare.Met)
	h.add("recovered", 130, ledger.KindRecovered, "checkout", ledger.Recovered{Episode: "e3"})
	for _, e := range h.export().Entries {
		h.o.Acknowledged = append(h.o.Acknowledged, e.Position())
	}
}
