package demo_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/demo"
	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "write the golden files")

var t0 = time.Date(2100, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

const (
	rollback = gate.Key("checkout:1-20")
	first    = gate.Key("fulfilment:1-20")
	second   = gate.Key("fulfilment:2-20")
)

// good is a run in which everything was measured.
func good() *demo.Facts {
	s := ledger.NewState()
	add(s, rollback, "e10", gate.Auto, compare.Judgement{Outcome: compare.OutcomeRecovered, Before: 0.6, After: 0})
	add(s, first, "e20", gate.Auto, compare.Judgement{Outcome: compare.OutcomeNoChange, Before: 0.5, After: 0.49})
	add(s, second, "e20", gate.Approval, compare.Judgement{Outcome: compare.OutcomeRecovered, Before: 0.49, After: 0})
	s.Effects[first].Cost = 1
	s.Effects[second].Claim.Ticket = "t30"
	s.Services["fulfilment"] = &ledger.Service{Name: "fulfilment", Tickets: []string{"t30"}}
	s.Tickets["t30"] = &approve.Ticket{
		ID: "t30", Service: "fulfilment", Episode: "e20", State: approve.Approved,
		Reasons: []gate.Reason{{Code: "budget-spent"}, {Code: "policy:second-try"}},
		Answers: []approve.Answer{{By: "os:alice", Approve: true}},
	}
	f := &demo.Facts{Chain: s, You: "os:alice", Episodes: map[string]demo.EpisodeFacts{
		"checkout":   {ID: "e10", State: "breached", Reason: "burning", Began: at(0), Breached: at(0), Recovered: at(18)},
		"fulfilment": {ID: "e20", State: "breached", Reason: "burning", Began: at(10), Breached: at(10), Recovered: at(40)},
		"catalog":    {ID: "e25", State: "unknown", Reason: "no-data", Began: at(12)},
	}}
	for _, key := range []gate.Key{rollback, first, second} {
		ef := s.Effects[key]
		f.Journal = append(f.Journal, executetest.Record{
			Key: string(key), Digest: ef.Claim.Digest, Service: ef.Service, Action: ef.Claim.Action.Name,
			Signed: true, Applied: true, Result: execute.Applied,
		})
		f.Probes = append(f.Probes, demo.ProbeFacts{What: "before", Key: key, Recorded: ef.Judgement.Before, Answer: ef.Judgement.Before + 0.01, OK: true})
	}
	f.Pages = []pager.Page{
		{ID: "a", Labels: map[string]string{"service": "fulfilment", "episode": "e20", "reason": "approval-needed"}, OpenedAt: at(22), EndedAt: at(40)},
		{ID: "b", Labels: map[string]string{"service": "catalog", "episode": "e25", "reason": "blind"}, OpenedAt: at(32)},
	}
	return f
}

func add(s *ledger.State, key gate.Key, episode string, by gate.Verdict, j compare.Judgement) {
	service, action := "checkout", "rollback"
	if key != rollback {
		service, action = "fulfilment", "recycle-workers"
	}
	id, digest := "d"+string(key), "digest of "+string(key)
	s.Effects[key] = &ledger.Effect{
		Service: service, Effect: execute.Applied, Judgement: &j, Outcome: j.Outcome,
		Claim: ledger.Claim{
			Key: key, Decision: id, Episode: episode, Digest: digest, Action: spec.Action{Name: action},
			Verdict: by, State: compare.Breached, Costs: spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1},
		},
	}
	s.EffectOrder = append(s.EffectOrder, key)
	s.DecisionOrder = append(s.DecisionOrder, id)
	s.Decisions[id] = &ledger.Decision{ID: id, Decided: ledger.Decided{
		State: compare.Breached, Decision: gate.Decision{Digest: digest},
		Proposal: propose.Proposal{Kind: propose.KindAction, Action: action, Proposer: propose.Proposer{Kind: "openai", Model: model.Name}},
	}}
}

func TestClaims(t *testing.T) {
	cases := map[string]struct {
		reason string
		spoil  func(*demo.Facts)
		want   []string
	}{
		"Good": {"everything was measured", func(*demo.Facts) {}, nil},
		"Asked": {"a rollback that a person had to allow is not by itself", func(f *demo.Facts) {
			f.Chain.Effects[rollback].Claim.Verdict = gate.Approval
		}, []string{"checkout: one rollback", "checkout: measured before and after"}},
		"NotSent": {"the agent's word without the journal is no effect", func(f *demo.Facts) {
			f.Journal = f.Journal[1:]
		}, []string{"checkout: one rollback", "checkout: measured before and after"}},
		"Double": {"the journal has one key twice", func(f *demo.Facts) {
			f.Journal = append(f.Journal, f.Journal[0])
		}, []string{"checkout: one rollback", "checkout: measured before and after", "no effect was doubled: 1, first under checkout:1-20"}},
		"NotOver": {"recovered is what measurement says for holdFor", func(f *demo.Facts) {
			ep := f.Episodes["checkout"]
			ep.Recovered = time.Time{}
			f.Episodes["checkout"] = ep
		}, []string{"checkout: measured before and after"}},
		"Helped": {"a first try that helped shows nothing of the budget", func(f *demo.Facts) {
			f.Chain.Effects[first].Outcome = compare.OutcomeImproved
		}, []string{"fulfilment: the first recycle-workers"}},
		"Free": {"an action that cost nothing", func(f *demo.Facts) {
			f.Chain.Effects[first].Cost = 0
		}, []string{"fulfilment: the autonomy budget paid"}},
		"PolicyAlone": {"the balance must ask too", func(f *demo.Facts) {
			f.Chain.Tickets["t30"].Reasons = f.Chain.Tickets["t30"].Reasons[1:]
		}, []string{"fulfilment: for the second, policy (second-try) and balance (budget-spent) both asked for a person: t30 does not name budget-spent"}},
		"BalanceAlone": {"the policy must ask too", func(f *demo.Facts) {
			f.Chain.Tickets["t30"].Reasons = f.Chain.Tickets["t30"].Reasons[:1]
		}, []string{"fulfilment: for the second, policy (second-try)"}},
		"Stranger": {"somebody else approved", func(f *demo.Facts) {
			f.Chain.Tickets["t30"].Answers[0].By = "os:mallory"
		}, []string{"fulfilment: you approved it"}},
		"Denied": {"a person said no", func(f *demo.Facts) {
			f.Chain.Tickets["t30"].State = approve.Denied
			f.Chain.EffectOrder = f.Chain.EffectOrder[:2]
			delete(f.Chain.Effects, second)
			f.Journal, f.Probes = f.Journal[:2], f.Probes[:2]
		}, []string{"fulfilment: you approved it; it ran once, cost nothing, and measurement says it recovered: t30 is denied, and nothing was sent for it"}},
		"ActedBlind": {"something was sent to catalog", func(f *demo.Facts) {
			f.Journal = append(f.Journal, executetest.Record{Key: "x", Service: "catalog", Signed: true})
		}, []string{"catalog: unknown (no-data)", "what reached the actuator"}},
		"NeverUnknown": {"the exporter lived", func(f *demo.Facts) {
			delete(f.Episodes, "catalog")
		}, []string{"catalog: unknown (no-data)", "catalog: the on-call's pager"}},
		"OtherPage": {"a page of another reason is not blind", func(f *demo.Facts) {
			f.Pages[1].Labels["reason"] = "cannot-act"
		}, []string{"catalog: the on-call's pager holds a page that says blind: the pager holds none"}},
		"PageGone": {"an ended page is not held", func(f *demo.Facts) { f.Pages[1].EndedAt = at(33) },
			[]string{"catalog: the on-call's pager"}},
		"OtherBytes": {"the actuator got other bytes than were gated", func(f *demo.Facts) { f.Journal[1].Digest = "other" },
			[]string{"what reached the actuator"}},
		"Unsigned": {"anybody may have sent it", func(f *demo.Facts) { f.Journal[1].Signed = false },
			[]string{"what reached the actuator"}},
		"EngineDiffers": {"what was recorded is not what Prometheus says", func(f *demo.Facts) { f.Probes[0].Answer = 0.57 },
			[]string{"Prometheus's engine, asked in other words, gives the recorded before and after: before of checkout:1-20: recorded 60.0 %, the engine says 57.0 %"}},
		"EngineSilent": {"no answer is no agreement", func(f *demo.Facts) { f.Probes[0].OK = false },
			[]string{"Prometheus's engine"}},
		"NothingJudged": {"no numbers, no agreement", func(f *demo.Facts) { f.Probes = nil },
			[]string{"Prometheus's engine"}},
		"OtherProposer": {"rules inside the agent are not the endpoint", func(f *demo.Facts) {
			f.Chain.Decisions["d"+string(first)].Proposal.Proposer = propose.Proposer{Kind: "rules"}
		}, []string{"every proposal came from"}},
		"ActOnUnknown": {"a claim that was recorded on unknown", func(f *demo.Facts) {
			f.Chain.Effects[first].Claim.State = compare.Unknown
		}, []string{"nothing was done on unknown"}},
		"DecidedOnUnknown": {"a decision that was recorded on unknown", func(f *demo.Facts) {
			f.Chain.Decisions["d"+string(first)].State = compare.Unknown
		}, []string{"nothing was done on unknown: 1, first under fulfilment:1-20"}},
		"Nothing": {"an agent that does nothing shows nothing", func(f *demo.Facts) {
			*f = demo.Facts{Chain: ledger.NewState(), You: "os:alice"}
		}, []string{
			"checkout: one", "checkout: measured", "fulfilment: the first", "fulfilment: the autonomy", "fulfilment: for", "fulfilment: you",
			"catalog: unknown", "catalog: the", "what", "Prometheus", "every",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := good()
			tc.spoil(f)
			got := f.Missing()
			if len(got) != len(tc.want) {
				t.Fatalf("%s: missing are\n  %s\nwant %d", tc.reason, strings.Join(got, "\n  "), len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s: got %q, want %q", tc.reason, got[i], want)
				}
			}
		})
	}
}

func TestSummary(t *testing.T) {
	for name, f := range map[string]*demo.Facts{"good": good(), "nothing": {Chain: ledger.NewState()}} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := f.Summary(&out); err != nil {
				t.Fatal(err)
			}
			if strings.Count(out.String(), "\n") != 1 {
				t.Errorf("the summary is not one line: %q", out.String())
			}
			golden(t, "summary-"+name+".json", out.Bytes())
		})
	}
}

func TestEndingNamesTheOutcome(t *testing.T) {
	f := good()
	broken := good()
	ep := broken.Episodes["checkout"]
	ep.Recovered = time.Time{}
	broken.Episodes["checkout"] = ep
	cases := map[string]struct {
		facts   *demo.Facts
		service string
		want    string
		good    bool
	}{
		"Recovered": {f, "checkout", "recovered in 18 s: rollback (auto) recovered, 60.0 % then 0.0 % errors", true},
		"Approved": {f, "fulfilment", "recovered in 30 s: recycle-workers (auto) no-change, 50.0 % then 49.0 % errors; " +
			"recycle-workers (approved by os:alice) recovered, 49.0 % then 0.0 % errors; the pager rang (approval-needed) after 12 s", true},
		"Blind":    {f, "catalog", "unknown (no-data): nothing was done; the pager rang (blind) after 20 s", true},
		"StillBad": {broken, "checkout", "not recovered (breached): rollback (auto) recovered, 60.0 % then 0.0 % errors", false},
		"Nothing":  {&demo.Facts{Chain: ledger.NewState()}, "checkout", "no episode began", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := tc.facts.Ending(tc.service)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.good {
				t.Errorf("good = %v, want %v (-want +got):\n%s", ok, tc.good, diff)
			}
		})
	}
}

// golden compares with a file of testdata, which -update writes.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
