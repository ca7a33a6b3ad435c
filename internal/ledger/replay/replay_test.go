package replay_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Every way in which a recorded decision can fail to be judged again, by name.
func TestRunSaysWhatItCannotJudge(t *testing.T) {
	const decision = 3 // after init and policy
	own := policy(t, reversible)
	of := func(kind propose.Kind) func(*gate.Case) {
		return func(c *gate.Case) { c.Proposal = propose.Proposal{Kind: kind, Fault: "malformed: x"} }
	}
	drop := func(digest func(ledger.Decided) string) func(*past) {
		return func(p *past) {
			body, err := ledger.Decode(p.Entries[decision-1])
			if err != nil {
				t.Fatal(err)
			}
			delete(p.Blobs, digest(body.(ledger.Decided)))
		}
	}
	input := func(d ledger.Decided) string { return d.Decision.InputDigest }
	floors := func(d ledger.Decided) string { return d.Floors }
	revision := func(d ledger.Decided) string { return d.Decision.Ruling.Revision }
	changed := func(change func(*ledger.Decided)) func(*past) {
		return func(p *past) { p.tamper(decision, change) }
	}
	bundle := func(raw []byte) func(*past) {
		return func(p *past) {
			p.Blobs[ledger.BlobDigest(raw)] = raw
			p.tamper(decision, func(d *ledger.Decided) { d.Decision.Ruling.Revision = ledger.BlobDigest(raw) })
		}
	}
	tests := map[string]struct {
		reason string
		cases  func(*gate.Case)
		after  func(*past)
		want   replay.Status
		why    string
	}{
		"Whole":      {"nothing is missing", nil, nil, replay.Reproduced, ""},
		"Held":       {"floors and ruling are both kept", frozen, nil, replay.Reproduced, ""},
		"None":       {"nothing was proposed", of(propose.KindNone), nil, replay.NotReplayable, "there was nothing to rule on (none)"},
		"Malformed":  {"no reply that means anything", of(propose.KindMalformed), nil, replay.NotReplayable, "there was nothing to rule on (malformed)"},
		"Older":      {"floors were not always kept", nil, changed(func(d *ledger.Decided) { d.Floors = "" }), replay.NotReplayable, "an older version wrote it, which kept no floors"},
		"NoPolicy":   {"none was loaded", nil, changed(func(d *ledger.Decided) { d.Decision.Ruling = gate.Ruling{Fault: "policy-fault: x"} }), replay.NotReplayable, "no policy was loaded"},
		"Timeout":    {"a busy machine is no property of a policy", nil, changed(func(d *ledger.Decided) { d.Decision.Ruling.Fault = "timeout: 1s" }), replay.NotReplayable, "the policy was stopped (timeout)"},
		"Verdict":    {"somebody changed the verdict", nil, changed(func(d *ledger.Decided) { d.Decision.Verdict = gate.Deny }), replay.NotReproduced, `verdict: recorded "deny", its policy leads to "auto"`},
		"Hold":       {"or that it was held", nil, changed(func(d *ledger.Decided) { d.Decision.Hold = true }), replay.NotReproduced, `hold: recorded true, its policy leads to false`},
		"Reasons":    {"or why", nil, changed(func(d *ledger.Decided) { d.Decision.Reasons = d.Decision.Reasons[:0] }), replay.NotReproduced, `reasons: recorded nothing, its policy leads to {"code":"policy:reversible"`},
		"Needs":      {"or who was asked", nil, changed(func(d *ledger.Decided) { d.Decision.Needs = []gate.Need{{Quorum: 1}} }), replay.NotReproduced, `needs: recorded {"reason":"","approvers":null,"quorum":1,"expires":0}, its policy leads to nothing`},
		"Line":       {"or where the rule stands", nil, changed(func(d *ledger.Decided) { d.Decision.Ruling.Auto[0].Line = 99 }), replay.NotReproduced, `rules of auto: recorded {"reason":"reversible","package":"setpoint.gate","title":"A reversible action runs by itself","remedy":"freeze it","file":"gate.rego","line":99}, its policy leads to`},
		"Cost":       {"or what it was charged", nil, changed(func(d *ledger.Decided) { d.Decision.Cost = 0 }), replay.NotReproduced, `cost: recorded 0, its policy leads to 2`},
		"NoInput":    {"the input is gone", nil, drop(input), replay.NotReproduced, "its input (blob "},
		"NoFloors":   {"the floors are gone", nil, drop(floors), replay.NotReproduced, "its floors (blob "},
		"NoBundle":   {"the bundle is gone", nil, drop(revision), replay.NotReproduced, "its policy bundle (blob "},
		"NotABundle": {"what is kept is no bundle", nil, bundle([]byte("half")), replay.NotReproduced, "does not load with this version: not a packed policy bundle"},
		"Changed": {"a blob is not what its digest says", nil, func(p *past) {
			for d, b := range maps.Clone(p.Blobs) {
				if strings.Contains(string(b), `"version":"setpoint.dev/floors/v1"`) {
					p.Blobs[d] = []byte("{}")
				}
			}
		}, replay.NotReproduced, "was changed after it was written"},
		"NewerFloors": {"floors that this version would read by half", nil, func(p *past) {
			raw := []byte(`{"version":"setpoint.dev/floors/v2"}`)
			p.Blobs[ledger.BlobDigest(raw)] = raw
			p.tamper(decision, func(d *ledger.Decided) { d.Floors = ledger.BlobDigest(raw) })
		}, replay.NotReplayable, "this version cannot read its floors"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPast(t)
			p.rule(own)
			change := tt.cases
			if change == nil {
				change = func(*gate.Case) {}
			}
			if seq := p.decide(own, change); seq != decision {
				t.Fatalf("the decision is entry %d", seq)
			}
			if tt.after != nil {
				tt.after(p)
			}
			got := judged(t, p, replay.Options{With: policy(t, refuses)})
			if len(got) != 1 || got[0].Entry != decision || got[0].ID != "d3" {
				t.Fatalf("%s: judged %+v", tt.reason, got)
			}
			if got[0].Status != tt.want || !strings.Contains(got[0].Why, tt.why) || (tt.why == "") != (got[0].Why == "") {
				t.Errorf("%s: status %d, %q\nwant %d, %q", tt.reason, got[0].Status, got[0].Why, tt.want, tt.why)
			}
			if compared := got[0].Difference.Binding(); compared != (tt.want == replay.Reproduced) {
				t.Errorf("%s: compared %v: only what is reproduced is", tt.reason, compared)
			}
		})
	}
}

// An entry that a newer version wrote is not read by half.
func TestRunLeavesNewerEntriesAlone(t *testing.T) {
	own := policy(t, reversible)
	p := newPast(t)
	p.rule(own)
	p.decide(own)
	got := judged(t, newer{p}, replay.Options{With: own})
	if len(got) != 1 || got[0].Status != replay.NotReplayable || got[0].Why != "a newer version wrote it" {
		t.Errorf("judged %+v", got)
	}
}

// newer adds a field to each decision, and chains anew without the checks of Link.
type newer struct{ *past }

func (n newer) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	es, err := n.past.Read(ctx, after, limit)
	for i, e := range es {
		if e.Kind == ledger.KindDecision {
			es[i] = withBody(e, strings.Replace(string(e.Body), `{"window"`, `{"moon":"full","window"`, 1))
		}
	}
	return es, err
}

func TestRunBounds(t *testing.T) {
	own := policy(t, reversible)
	p := newPast(t)
	p.rule(own)
	for i := range 6 {
		p.decide(own, of([]string{"cart", "checkout"}[i%2]))
	}
	at := func(seq uint64) time.Time { return p.Entries[seq-1].Time }
	tests := map[string]struct {
		reason string
		o      replay.Options
		want   []uint64
	}{
		"All":     {"no bound", replay.Options{}, []uint64{3, 4, 5, 6, 7, 8}},
		"Since":   {"the first is in it", replay.Options{Since: at(6)}, []uint64{6, 7, 8}},
		"Until":   {"the last is not", replay.Options{Until: at(5)}, []uint64{3, 4}},
		"Service": {"one alone", replay.Options{Service: "cart"}, []uint64{3, 5, 7}},
		"Both":    {"together", replay.Options{Service: "cart", Since: at(4), Until: at(7)}, []uint64{5}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.o.With = own
			var got []uint64
			for _, j := range judged(t, p, tt.o) {
				got = append(got, j.Entry)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// slow lets early decisions take longest, so that only the order of the chain
// gives the order of the answers.
type slow struct {
	replay.Policy
	total       int
	seen        atomic.Int64
	inside, top atomic.Int64
}

func (s *slow) Evaluate(ctx context.Context, input []byte) gate.Ruling {
	n := s.seen.Add(1)
	if now := s.inside.Add(1); now > s.top.Load() {
		s.top.Store(now)
	}
	defer s.inside.Add(-1)
	select {
	case <-time.After(time.Duration(s.total-int(n)) * time.Second):
	case <-ctx.Done():
		return gate.Ruling{Fault: "cancelled: x"}
	}
	return s.Policy.Evaluate(ctx, input)
}

func (*slow) Revision() string { return "slow" }

func longPast(t *testing.T, n int) *past {
	own := policy(t, reversible)
	p := newPast(t)
	p.rule(own)
	for range n {
		p.decide(own)
	}
	return p
}

func TestRunAnswersInOrder(t *testing.T) {
	const n, workers = 40, 4
	p := longPast(t, n)
	synctest.Test(t, func(t *testing.T) {
		by := &slow{Policy: policy(t, refuses), total: n}
		for i, j := range judged(t, p, replay.Options{With: by, Workers: workers}) {
			if want := uint64(i + 3); j.Entry != want {
				t.Fatalf("answer %d is of entry %d, want %d", i, j.Entry, want)
			}
		}
		if by.top.Load() != workers {
			t.Errorf("%d were evaluated at a time, want %d", by.top.Load(), workers)
		}
	})
}

// What is read ahead is bounded while the first answer is awaited.
func TestRunReadsAheadByALittle(t *testing.T) {
	const n, workers = 3000, 2
	p := longPast(t, 1)
	one := p.Entries[2]
	for len(p.Entries) < n {
		body, err := ledger.Decode(one)
		if err != nil {
			t.Fatal(err)
		}
		p.append(ledger.Draft{Kind: one.Kind, Service: one.Service, Body: body})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		by := &slow{Policy: policy(t, refuses), total: 10_000}
		first := make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- replay.Run(ctx, p, replay.Options{With: by, Workers: workers, Load: load}, func(replay.Judged) error {
				close(first)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		<-first
		synctest.Wait()
		time.Sleep(24 * time.Hour)
		if seen := by.seen.Load(); seen > 20*workers {
			t.Errorf("%d were evaluated while the first one waited", seen)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a stopped replay ends with %v", err)
		}
	})
}

// stopping ends the replay from within its second evaluation.
type stopping struct {
	replay.Policy
	seen int
	stop context.CancelFunc
}

func (s *stopping) Evaluate(ctx context.Context, input []byte) gate.Ruling {
	if s.seen++; s.seen == 2 {
		s.stop()
		return gate.Ruling{Fault: "cancelled: x"}
	}
	return s.Policy.Evaluate(ctx, input)
}

func (*stopping) Revision() string { return "stopping" }

// A replay that is stopped gives no verdict of an evaluation that was, although
// it is done when the answer before it is taken.
func TestRunStops(t *testing.T) {
	p, by := longPast(t, 2), policy(t, refuses)
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			o := replay.Options{With: &stopping{Policy: by, stop: stop}, Workers: 1, Load: load}
			err := replay.Run(ctx, p, o, func(j replay.Judged) error {
				if f := j.New.Now.Ruling.Fault; f != "" {
					t.Errorf("%s: %s", j.ID, f)
				}
				<-ctx.Done()
				synctest.Wait()
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

func TestRunEndsWithTheErrorOfItsSource(t *testing.T) {
	own := policy(t, reversible)
	broken := errors.New("disk")
	for name, src := range map[string]func(*past) replay.Source{
		"Read": func(p *past) replay.Source { return failing{past: p, read: broken} },
		"Blob": func(p *past) replay.Source { return failing{past: p, blob: broken} },
		"Chain": func(p *past) replay.Source {
			p.Entries[1].Hash = "0"
			return p
		},
		"Bundle": func(p *past) replay.Source { return failing{past: p, bundle: broken} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPast(t)
			p.rule(own)
			p.decide(own)
			err := replay.Run(t.Context(), src(p), replay.Options{With: policy(t, refuses), Load: load}, func(replay.Judged) error { return nil })
			if !errors.Is(err, broken) && !errors.Is(err, ledger.ErrCorrupt) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	p := newPast(t)
	p.rule(own)
	p.decide(own)
	err := replay.Run(t.Context(), p, replay.Options{With: own, Load: load}, func(replay.Judged) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("an answer that is refused ends with %v", err)
	}
}

type failing struct {
	*past
	read, blob, bundle error
}

func (f failing) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	if after > 0 && f.read != nil {
		return nil, f.read
	}
	return f.past.Read(ctx, after, limit)
}

func (f failing) Blob(ctx context.Context, digest string) ([]byte, error) {
	raw, err := f.past.Blob(ctx, digest)
	switch {
	case f.blob != nil:
		return nil, f.blob
	case f.bundle != nil && strings.Contains(string(raw), "package setpoint.gate"):
		return nil, f.bundle
	}
	return raw, err
}

// Each recorded bundle is loaded once, whatever waits for it.
func TestRunLoadsABundleOnce(t *testing.T) {
	var loads atomic.Int64
	p := newPast(t)
	for _, rules := range []string{reversible, asksOne, asksTwo} {
		own := policy(t, rules)
		p.rule(own)
		for range 20 {
			p.decide(own)
		}
	}
	o := replay.Options{With: policy(t, asksTwo), Workers: 8, Load: func(raw []byte) (replay.Policy, error) {
		loads.Add(1)
		return load(raw)
	}}
	var report replay.Report
	for _, j := range judged(t, p, o) {
		report.Add(j)
	}
	// The third is the one to judge by, which is loaded already.
	if loads.Load() != 2 {
		t.Errorf("%d loads, want 2", loads.Load())
	}
	want := replay.Summary{Decisions: 60, Reproduced: 60, Changed: 40, Tightened: 40}
	if diff := cmp.Diff(want, report.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestReport(t *testing.T) {
	own, other := policy(t, reversible), policy(t, asksOne)
	p := newPast(t)
	p.rule(own)
	p.decide(own, of("cart"))
	p.decide(own)
	p.decide(own)
	p.decide(own, frozen)
	p.decide(own, owned)
	p.decide(own, func(c *gate.Case) { c.Service.Remediation.Actions[0].Class = "approval" })
	p.rule(other)
	p.decide(other)
	p.decide(other, func(c *gate.Case) { c.Proposal = propose.Proposal{Kind: propose.KindNone} })
	p.decide(other, func(c *gate.Case) { c.Proposal = propose.Proposal{Kind: propose.KindEscalate} })
	p.decide(other, func(c *gate.Case) { c.Proposal = propose.Proposal{Kind: propose.KindNone} })
	p.tamper(p.decide(own), func(d *ledger.Decided) { d.Decision.Verdict = gate.Escalate })

	var r replay.Report
	for _, j := range judged(t, p, replay.Options{With: policy(t, asksTwo)}) {
		r.Add(j)
	}
	want := replay.Summary{
		Decisions: 11, Reproduced: 7, NotReproduced: 1, NotReplayable: 3,
		Changed: 6, Tightened: 6, Hidden: 1,
	}
	if diff := cmp.Diff(want, r.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	var got []string
	for _, i := range r.Items(true) {
		got = append(got, text(i))
	}
	wantItems := []string{
		"cart scale auto>approval +approval two -auto reversible 1 d3 d3",
		"checkout scale auto>approval +approval two -auto reversible 2 d4 d5",
		"checkout scale deny(hold auto)>deny(hold approval) +approval two -auto reversible 1 d6 d6",
		"checkout scale deny>deny +approval two -auto reversible 1 d7 d7 hidden",
		"checkout scale approval>deny -auto reversible 1 d8 d8",
		"checkout scale approval>approval +approval two -approval one 1 d10 d10",
	}
	if diff := cmp.Diff(wantItems, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if n := len(r.Items(false)); n != 5 {
		t.Errorf("%d items bind, want 5", n)
	}
	wantSkips := []replay.Skipped{
		{Why: "there was nothing to rule on (none)", Count: 2, First: "d11", Last: "d13"},
		{Why: "there was nothing to rule on (escalate)", Count: 1, First: "d12", Last: "d12"},
	}
	if diff := cmp.Diff(wantSkips, r.Skips()); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	if len(r.Faults) != 1 || r.Faults[0].ID != "d14" {
		t.Errorf("faults %+v", r.Faults)
	}
}

// A policy that cannot rule any more shows by its fault.
func TestReportShowsFaults(t *testing.T) {
	own := policy(t, reversible)
	p := newPast(t)
	p.rule(own)
	p.decide(own)
	var r replay.Report
	for _, j := range judged(t, p, replay.Options{With: policy(t, reversible, divides)}) {
		r.Add(j)
	}
	items := r.Items(false)
	if len(items) != 1 || items[0].New.Fault != gate.FaultError || items[0].New.Lasting != gate.Deny || !items[0].Difference.Tightened {
		t.Errorf("items %+v", items)
	}
}

// A long past with many faults keeps a bounded number of them.
func TestReportIsBounded(t *testing.T) {
	var r replay.Report
	for i := range 5000 {
		r.Add(replay.Judged{ID: fmt.Sprintf("d%d", i), Status: replay.NotReproduced})
		r.Add(replay.Judged{ID: fmt.Sprintf("d%d", i), Status: replay.NotReplayable, Why: "x"})
	}
	if r.NotReproduced != 5000 || len(r.Faults) != 100 || len(r.Skips()) != 1 || r.Skips()[0].Count != 5000 {
		t.Errorf("%+v, %d faults, %+v", r.Summary, len(r.Faults), r.Skips())
	}
}

// text is an item in one line.
func text(i replay.Item) string {
	stand := func(s replay.Stand) string {
		if s.Hold {
			return fmt.Sprintf("%s(hold %s)", s.Verdict, s.Lasting)
		}
		return s.Verdict.String()
	}
	out := fmt.Sprintf("%s %s %s>%s", i.Service, i.Action, stand(i.Old), stand(i.New))
	for _, s := range i.Appeared {
		out += fmt.Sprintf(" +%s %s", s.Set, s.Rule.Reason)
	}
	for _, s := range i.Gone {
		out += fmt.Sprintf(" -%s %s", s.Set, s.Rule.Reason)
	}
	out += fmt.Sprintf(" %d %s %s", i.Count, i.First, i.Last)
	if i.Difference.Hidden {
		out += " hidden"
	}
	return out
}
