package replay_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var start = time.Date(2026, 11, 2, 3, 12, 0, 0, time.UTC)

// granted is a case in which every floor says yes.
func granted() gate.Case {
	a := spec.Action{
		Name: "scale", Uses: "webhook.post", Class: spec.ClassAuto, Reversal: spec.Restore,
		Target:     spec.Target{URL: "http://scaler.internal/checkout", StatusURL: "http://scaler.internal/checkout"},
		Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer}},
	}
	judge := measure.Measurement{Good: 900, Total: 1000, HasEvents: true, ErrorRatio: 0.1, SampleAt: start}
	return gate.Case{
		Service: spec.Service{Name: "checkout", Remediation: spec.Remediation{
			Owner: "team-payments", Mode: spec.Auto, Approvers: []string{"@payments-oncall"}, ApprovalFor: 15 * time.Minute,
			Actions: []spec.Action{a}, Budget: spec.Budget{Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1}},
		}},
		Proposal: propose.Proposal{
			Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6)},
			Proposer: propose.Proposer{Kind: "rules"},
		},
		Key: gate.KeyOf("checkout", gate.WindowAt(start, 10*time.Minute)),
		Facts: gate.Facts{
			Now: start, Since: start.Add(-time.Minute), Episode: "e1", FreshReads: 2, Ceiling: gate.Auto,
			Assessment: compare.Assessment{State: compare.Breached, Reason: compare.Burning, Objectives: []compare.Objective{
				{ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.99, Judge: judge, Period: judge},
			}},
			Balance: budget.Balance{Remaining: 3, Capacity: 3, GlobalRemaining: 10, GlobalCapacity: 10},
			Item:    propose.Item{Action: a, Live: propose.Live{"replicas": int64(4)}, LiveKnown: true},
		},
		Limits: gate.Limits{MaxMode: spec.Auto, EffectsPerHour: 6, EffectsPerServicePerHour: 2, OpenApproval: 5, PermitTTL: time.Minute},
	}
}

func frozen(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f1"}} }
func owned(c *gate.Case)  { c.Facts.Ownership = "argo-rollouts" }

func of(service string) func(*gate.Case) {
	return func(c *gate.Case) {
		c.Service.Name = service
		c.Key = gate.KeyOf(service, gate.WindowAt(start, 10*time.Minute))
	}
}

// The rules that policies of these tests are made of.
const (
	reversible = `
# METADATA
# title: A reversible action runs by itself
# custom: {remedy: freeze it}
auto contains "reversible" if input.action.reversal == "restore"
`
	asksTwo = `
# METADATA
# title: Two people agree
# custom: {remedy: ask them}
approval contains {"reason": "two", "approvers": ["@payments-oncall"], "quorum": 2} if input.action.class == "auto"
`
	asksOne = `
# METADATA
# title: One person agrees
# custom: {remedy: ask them}
approval contains "one" if input.action.class == "auto"
`
	refuses = `
# METADATA
# title: Nothing may happen
# custom: {remedy: act by hand}
deny contains "never" if input.action.class == "auto"
`
	divides = `
# METADATA
# title: Nobody divides by nothing
# custom: {remedy: mend it}
deny contains "divides" if 1 / count(input.tried) > 0
`
)

// policy loads a bundle of one file with these rules.
func policy(t testing.TB, rules ...string) *rego.Policy {
	t.Helper()
	text := "package setpoint.gate\n"
	for _, r := range rules {
		text += r
	}
	p, err := rego.Load(fstest.MapFS{"gate.rego": {Data: []byte(text)}}, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// load is what the command line does with a recorded bundle.
func load(raw []byte) (replay.Policy, error) {
	b, err := rego.Unpack(raw)
	if err != nil {
		return nil, err
	}
	p, err := b.Load(rego.Options{Deadline: time.Minute})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// past is a chain in the making, an entry a minute.
type past struct {
	t    testing.TB
	head ledger.Position
	replay.Export
}

func newPast(t testing.TB) *past {
	p := &past{t: t, Export: replay.Export{Exported: ledger.Exported{Blobs: map[string][]byte{}}}}
	p.append(ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:alice"}})
	return p
}

// append links an entry and gives its number.
func (p *past) append(d ledger.Draft) uint64 {
	p.t.Helper()
	e, err := ledger.Link(p.head, start.Add(time.Duration(p.head.Seq)*time.Minute), d)
	if err != nil {
		p.t.Fatal(err)
	}
	p.head = e.Position()
	p.Entries = append(p.Entries, e)
	for _, b := range d.Blobs {
		p.Blobs[ledger.BlobDigest(b)] = b
	}
	return e.Seq
}

func (p *past) rule(by *rego.Policy) {
	p.t.Helper()
	p.append(ledger.Draft{
		Kind: ledger.KindPolicy, Body: ledger.Policy{Revision: by.Revision(), Data: by.DataDigest()}, Blobs: [][]byte{by.Pack()},
	})
}

// decide records a decision as the loop does.
func (p *past) decide(by *rego.Policy, changes ...func(*gate.Case)) uint64 {
	p.t.Helper()
	c := granted()
	for _, change := range changes {
		change(&c)
	}
	prepared := gate.Prepare(c)
	ruling := gate.Ruling{}
	if prepared.Input != nil {
		ruling = gate.Ruling{Fault: "policy-fault: no policy was given"}
		if by != nil {
			ruling = by.Evaluate(p.t.Context(), prepared.Input)
		}
	}
	return p.record(prepared, c, ruling)
}

func (p *past) record(prepared gate.Prepared, c gate.Case, ruling gate.Ruling) uint64 {
	p.t.Helper()
	window, err := c.Key.Window(c.Service.Name)
	if err != nil {
		p.t.Fatal(err)
	}
	body := ledger.Decided{
		Window: window.String(), Key: c.Key, Step: "hold", Proposal: c.Proposal, Decision: prepared.Decide(ruling),
		State: compare.Breached, Reason: compare.Burning, Mode: spec.Auto,
	}
	d := ledger.Draft{Kind: ledger.KindDecision, Service: c.Service.Name}
	if prepared.Input != nil {
		floors, err := json.Marshal(prepared.Floors)
		if err != nil {
			p.t.Fatal(err)
		}
		body.Floors, d.Blobs = ledger.BlobDigest(floors), [][]byte{prepared.Input, floors}
	}
	d.Body = body
	return p.append(d)
}

// tamper changes one recorded decision and chains everything anew, as who could
// write the ledger would.
func (p *past) tamper(seq uint64, change func(*ledger.Decided)) {
	p.t.Helper()
	old := p.Entries
	p.head, p.Entries = ledger.Position{}, nil
	for _, e := range old {
		body, err := ledger.Decode(e)
		if err != nil {
			p.t.Fatal(err)
		}
		if d, ok := body.(ledger.Decided); ok && e.Seq == seq {
			change(&d)
			body = d
		}
		p.append(ledger.Draft{Kind: e.Kind, Service: e.Service, Unique: e.Unique, Body: body})
	}
}

// judged replays everything.
func judged(t testing.TB, src replay.Source, o replay.Options) []replay.Judged {
	t.Helper()
	var out []replay.Judged
	if o.Load == nil {
		o.Load = load
	}
	if err := replay.Run(t.Context(), src, o, func(j replay.Judged) error {
		out = append(out, j)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// withBody is the entry with another body, hashed as package ledger describes.
func withBody(e ledger.Entry, body string) ledger.Entry {
	e.Body = json.RawMessage(body)
	h := sha256.New()
	for _, f := range []string{
		"setpoint.dev/ledger/v1", strconv.FormatUint(e.Seq, 10), e.Prev,
		e.Time.UTC().Format(time.RFC3339Nano), string(e.Kind), e.Service, e.Unique, body,
	} {
		fmt.Fprintf(h, "%d:%s\n", len(f), f)
	}
	e.Hash = hex.EncodeToString(h.Sum(nil))
	return e
}
