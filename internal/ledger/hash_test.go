package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

var update = flag.Bool("update", false, "write the golden chain anew; every ledger that exists stops verifying")

const golden = "testdata/chain.jsonl"

// everyKind is a chain with each kind, with every field of its body set.
func everyKind(t testing.TB) *chain {
	const c = "checkout"
	k0, k1, k2 := keyAt(c, 0), keyAt(c, 10), keyAt(c, 20)
	settledBody := ledger.Settled{Key: k1, Effect: execute.Landed, AppliedAt: minute(14), By: "os:alice", Reason: "seen in its journal"}
	ch := newChain(t,
		at(0, documents(map[string]string{c: "d1", "search": "d2"})),
		at(0, gap()),
		at(1, ledger.Draft{Kind: ledger.KindState, Service: c, Body: ledger.StateChange{
			To: breached, Reason: compare.Burning, SourceFault: "main", SampleAt: minute(0), ErrorRatio: 0.25,
		}}),
		at(1, ledger.Draft{Kind: ledger.KindAsked, Service: c, Unique: "asked/" + string(k0), Body: ledger.Asked{
			Window: windowAt(0), Episode: "e4", Proposer: propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}, Deadline: minute(2),
		}}),
		at(1, ledger.Draft{Kind: ledger.KindProposal, Service: c, Body: ledger.Proposed{
			Window: windowAt(0), Episode: "e4", Request: "r1", Reply: "r2",
			Exchanges: []ledger.Exchange{{
				Endpoint: "main", Model: "m", Mode: "tool", Repair: true, Result: "ok", Status: 200, TookSeconds: 1.5,
				InputTokens: 900, OutputTokens: 40, Request: "r1", Reply: "r2",
			}},
			Proposal: propose.Proposal{
				Kind: propose.KindAction, Action: "scale", Fallback: "timeout: t", Parameters: propose.Parameters{"replicas": int64(6), "share": 1.0, "on": true, "to": "<b> & ü"},
				Rationale: "load", Proposer: propose.Proposer{Kind: "rules"}, Fault: "",
			},
		}}),
		at(1, ledger.Draft{Kind: ledger.KindDecision, Service: c, Body: ledger.Decided{
			Window: windowAt(0), Episode: "e4", Key: k0, Step: "execute", State: breached, Reason: compare.Burning,
			Decision: gate.Decision{Verdict: gate.Auto, Key: k0, Digest: "digest", InputDigest: "i", Cost: 2,
				Reasons: []gate.Reason{{Code: "policy:restart", Text: "t", At: minute(3)}},
				Ruling:  gate.Ruling{Revision: "p1", Auto: []gate.Rule{{Reason: "restart", Package: "setpoint.gate", File: "a.rego", Line: 3}}}},
		}}),
		at(1, claim(c, claimOf(k0, func(c *ledger.Claim) { c.Decision, c.Episode = "d7", "e4" }))),
		at(1, started(c, k0)), at(2, receipt(c, k0, execute.Applied, 2)),
		at(9, ledger.Draft{Kind: ledger.KindOutcome, Service: c, Unique: "outcome/" + string(k0), Body: ledger.Outcome{
			Key: k0, Cost: 1, Judgement: compare.Judgement{Outcome: "no-change", Objective: "checkout/availability", Before: 0.25, After: 1e-7, Decided: true},
		}}),
	)
	ch.add(
		at(10, ticket(c, k1)), at(11, answer("t12", "slack:T1/U1", true, 11)),
		at(12, claim(c, claimOf(k1, func(c *ledger.Claim) { c.Ticket, c.Verdict = "t12", gate.Approval }))),
		at(12, started(c, k1)), at(20, ledger.Draft{Kind: ledger.KindSettled, Service: c, Body: settledBody}),
		at(20, outcome(c, k1, "recovered", 0)),
		at(21, claim(c, claimOf(k2, func(c *ledger.Claim) { c.Undo = true }))), at(22, void(c, k2)),
		at(22, ticket(c, keyAt(c, 30))), at(23, ticketEnd("t20", approve.Withdrawn)),
		at(23, ledger.Draft{Kind: ledger.KindFreeze, Body: ledger.Freeze{ID: "f1", Service: c, By: "os:alice", Reason: "look", Until: minute(60), At: minute(23)}}),
		at(24, ledger.Draft{Kind: ledger.KindThaw, Body: ledger.Thaw{ID: "f1", By: "os:alice", Reason: "looked"}}),
		at(24, ledger.Draft{Kind: ledger.KindPage, Service: c, Body: escalate.Page{
			ID: "e4", Service: c, Episode: "e4", Reason: "blind", Now: "blind", Severity: "critical", Summary: "s", Text: "t\n", Receivers: []string{"a"}, Since: minute(24),
		}}),
		at(24, ledger.Draft{Kind: ledger.KindDelivery, Body: escalate.Delivery{
			Page: "e4", Receiver: "a", First: minute(24), Sent: minute(24), Tried: minute(24), Digest: "x", Ref: "1.2",
			Begun: minute(24), By: "host/1", Failures: 1, LastError: "e",
		}}),
		at(25, ledger.Draft{Kind: ledger.KindAck, Body: ledger.Ack{Page: "e4", By: "os:alice", Via: "slack"}}),
		at(26, ledger.Draft{Kind: ledger.KindPageEnd, Body: ledger.PageEnd{Page: "e4", Reason: "recovered"}}),
		at(26, reset(c, "scale")),
		at(27, state(c, breached, met)), at(32, recovered(c, "e4")),
	)
	ch.add(
		at(33, ceiling(c, "scale", gate.Approval, 60)), at(33, adopted()), at(33, lowered(c, windowAt(0))),
		at(33, ledger.Draft{Kind: ledger.KindPolicy, Body: ledger.Policy{Revision: "p1", Data: "d1", Shadow: true}}),
		at(33, ledger.Draft{Kind: ledger.KindStorm, Body: ledger.Storm{Phase: ledger.StormOn, Loaded: 10, Breached: 5, Unknown: 1, Sources: []string{"main"}}}),
		at(33, ledger.Draft{Kind: ledger.KindChange, Service: c, Body: ledger.Changed{At: minute(30), What: "deploy", Version: "v2", By: "token:ci"}}),
		at(33, card("t12", 1, func(p *approve.Posted) {
			p.Messages = []approve.Message{{Channel: "C1", ID: "1.1", Shows: "gist", Gone: true, Link: "https://chat.example/1"}}
			p.Begun, p.By, p.Noted, p.Tried, p.Failures, p.LastError = minute(33), "host/1", []string{"answer-1"}, minute(33), 1, "e"
			p.NotBefore, p.Closed = minute(34), true
		})),
		at(33, ledger.Draft{Kind: ledger.KindCheckpoint, Body: ledger.Checkpoint{At: ch.entries[2].Position(), State: "digest"}}),
	)
	return ch
}

// TestGoldenChain pins what is written to disk: the hash, and each field of
// each body. When a field is added, keep the old file as chain-<version>.jsonl,
// which must fold for ever, and write this one anew with -update.
func TestGoldenChain(t *testing.T) {
	ch := everyKind(t)
	ch.noSkips()
	kinds := map[ledger.Kind]bool{}
	var out bytes.Buffer
	for _, e := range ch.entries {
		kinds[e.Kind] = true
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != 32 {
		t.Errorf("the chain has %d kinds, want all 32", len(kinds))
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("the chain differs from %s, -want +got:\n%s", golden, diff)
	}
}

// rehashed computes a hash from its written definition alone.
func rehashed(e ledger.Entry) string {
	h := sha256.New()
	for _, field := range []string{
		"setpoint.dev/ledger/v1", fmt.Sprint(e.Seq), e.Prev, e.Time.Format(time.RFC3339Nano),
		string(e.Kind), e.Service, e.Unique, string(e.Body),
	} {
		fmt.Fprintf(h, "%d:%s\n", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestGoldenChainsFold reads the pinned chains as old ledgers.
func TestGoldenChainsFold(t *testing.T) {
	files, err := filepath.Glob("testdata/chain*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pinned chains: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := ledger.NewState()
			for _, e := range pinned(t, file) {
				if got := rehashed(e); got != e.Hash {
					t.Errorf("entry %d hashes to %s, want %s", e.Seq, got, e.Hash)
				}
				if err := s.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			got := s.Effects[keyAt("checkout", 0)].Claim.Parameters
			if diff := cmp.Diff(propose.Parameters{"replicas": int64(6), "share": 1.0}, got); diff != "" {
				t.Errorf("parameters changed their type on disk, -want +got:\n%s", diff)
			}
		})
	}
}

func pinned(t testing.TB, file string) []ledger.Entry {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var es []ledger.Entry
	for line := range bytes.Lines(b) {
		var e ledger.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	return es
}

func TestVerify(t *testing.T) {
	c := newChain(t, at(1, gap()), at(2, gap()))
	prev, e := c.entries[1].Position(), c.entries[2]
	if err := ledger.Verify(prev, e); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(*ledger.Entry){
		"seq":       func(e *ledger.Entry) { e.Seq++ },
		"prev":      func(e *ledger.Entry) { e.Prev = c.entries[0].Hash },
		"hash":      func(e *ledger.Entry) { e.Hash = c.entries[0].Hash },
		"time":      func(e *ledger.Entry) { e.Time = e.Time.Add(time.Microsecond) },
		"kind":      func(e *ledger.Entry) { e.Kind = ledger.KindAck },
		"service":   func(e *ledger.Entry) { e.Service = "checkout" },
		"unique":    func(e *ledger.Entry) { e.Unique = "x" },
		"body":      func(e *ledger.Entry) { e.Body = json.RawMessage(`{"why":"other"}`) },
		"body size": func(e *ledger.Entry) { e.Body = append(e.Body[:len(e.Body):len(e.Body)], ' ') },
		"shifted":   func(e *ledger.Entry) { e.Unique, e.Service = e.Service, ""; e.Service, e.Unique = "x", "" },
	}
	for name, change := range changes {
		changed := e
		change(&changed)
		if err := ledger.Verify(prev, changed); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("a changed %s gave %v", name, err)
		}
	}
	if err := ledger.Verify(c.entries[0].Position(), e); !errors.Is(err, ledger.ErrCorrupt) {
		t.Error("a dropped entry was not noticed")
	}
	if err := ledger.Verify(ledger.Position{Seq: prev.Seq, Hash: e.Hash}, e); !errors.Is(err, ledger.ErrCorrupt) {
		t.Error("an entry of another chain was not noticed")
	}
}

func TestLinkTimes(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	at := time.Date(2026, 1, 1, 0, 0, 0, 123456789, berlin)
	e, err := ledger.Link(ledger.Position{Seq: 1, Hash: "h"}, at, gap())
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Time.Format(time.RFC3339Nano); got != "2025-12-31T23:00:00.123456Z" {
		t.Errorf("time %s, want UTC in microseconds", got)
	}
	if err := ledger.Verify(ledger.Position{Seq: 1, Hash: "h"}, e); err != nil {
		t.Error(err)
	}
}

func TestLinkRefuses(t *testing.T) {
	const c = "checkout"
	claimed := func(change func(*ledger.Claim)) ledger.Draft { return claim(c, claimOf(keyAt(c, 0), change)) }
	tests := map[string]struct {
		draft ledger.Draft
		want  string
	}{
		"unknown kind":      {ledger.Draft{Kind: "weather", Body: ledger.Gap{}}, `entry 2 (weather): entry of an unknown kind "weather"`},
		"no body":           {ledger.Draft{Kind: ledger.KindGap}, `entry 2 (gap): body is <nil>, want ledger.Gap`},
		"other body":        {ledger.Draft{Kind: ledger.KindGap, Body: ledger.Ack{}}, `entry 2 (gap): body is ledger.Ack, want ledger.Gap`},
		"pointer":           {ledger.Draft{Kind: ledger.KindGap, Body: &ledger.Gap{}}, `entry 2 (gap): body is *ledger.Gap, want ledger.Gap`},
		"init":              {ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: 1}}, `entry 2 (init): a chain begins with init and holds no second one`},
		"newer chain":       {ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: 2}}, `entry 2 (init): entry of an unknown kind: chain version 2, this setpoint knows 1; run the version that wrote it`},
		"no service":        {state("", met, breached), `entry 2 (state): service is empty`},
		"no state":          {state(c, met, ""), `entry 2 (state): to "" is no state`},
		"not a number":      {ledger.Draft{Kind: ledger.KindState, Service: c, Body: ledger.StateChange{To: met, ErrorRatio: math.NaN()}}, `entry 2 (state): errorRatio is NaN`},
		"bad window":        {asked(c, "x"), `entry 2 (asked): window id "x": want <unix start>-<length seconds>`},
		"foreign key":       {started("search", keyAt(c, 0)), `entry 2 (started): key "checkout:1795939200-600" is none of service "search"`},
		"claim, no target":  {claimed(func(c *ledger.Claim) { c.Target = "" }), `entry 2 (claim): target is empty`},
		"claim, negative":   {claimed(func(c *ledger.Claim) { c.Charge = -1 }), `entry 2 (claim): charge -1 is negative`},
		"claim, for ever":   {claimed(func(c *ledger.Claim) { c.Expires = time.Time{} }), `entry 2 (claim): claim without expiry`},
		"claim, bad value":  {claimed(func(c *ledger.Claim) { c.Parameters = propose.Parameters{"n": int(3)} }), ""},
		"ticket, for ever":  {ledger.Draft{Kind: ledger.KindTicket, Service: c, Body: approve.Ticket{Key: keyAt(c, 0)}}, `entry 2 (ticket): ticket without expiry`},
		"ticket end":        {ticketEnd("t2", approve.Approved), `entry 2 (ticket-end): a ticket does not end as "approved"`},
		"receipt":           {receipt(c, keyAt(c, 0), execute.Landed, 1), `entry 2 (receipt): "landed" is no effect of a receipt`},
		"receipt, no time":  {ledger.Draft{Kind: ledger.KindReceipt, Service: c, Body: ledger.Receipt{Key: keyAt(c, 0), Receipt: execute.Receipt{Effect: "applied"}}}, `entry 2 (receipt): receipt without time`},
		"settled":           {settled(c, keyAt(c, 0), execute.Applied, "x"), `entry 2 (settled): an in-doubt effect is not settled as "applied"`},
		"settled by nobody": {settled(c, keyAt(c, 0), execute.Landed, ""), `entry 2 (settled): by is empty`},
		"outcome":           {outcome(c, keyAt(c, 0), "pending", 0), `entry 2 (outcome): "pending" is no outcome that is recorded`},
		"outcome, credit":   {outcome(c, keyAt(c, 0), "improved", -1), `entry 2 (outcome): cost -1 is negative`},
		"reset":             {reset("", "scale"), `entry 2 (reset): reset of action "scale" without its service`},
		"documents":         {documents(map[string]string{"a": ""}), `entry 2 (documents): service "a" has digest ""`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ledger.Link(ledger.Position{Seq: 1, Hash: "h"}, start, tt.draft)
			if err == nil || tt.want != "" && err.Error() != tt.want {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := ledger.Link(ledger.Position{}, start, gap()); err == nil {
		t.Error("a chain began without its first entry")
	}
}
