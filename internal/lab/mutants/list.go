package mutants

import (
	"slices"
	"time"
)

// The packages whose tests catch most.
const (
	ledgerPkg    = "./internal/ledger"
	sqlitePkg    = "./internal/ledger/sqlite"
	postgresPkg  = "./internal/ledger/postgres"
	seenfilePkg  = "./internal/ledger/seenfile"
	gatePkg      = "./internal/gate"
	approvePkg   = "./internal/approve"
	comparePkg   = "./internal/compare"
	promPkg      = "./internal/measure/prom"
	webhookPkg   = "./internal/execute/webhook"
	commandPkg   = "./internal/execute/command"
	reconcilePkg = "./internal/reconcile"
	ownPkg       = "./internal/lab/mutants"
)

// List is every mutant of the product, in a fixed order: the eight of the
// robustness suite first, then those of the ledger, the gate, of measuring, the
// model, the loop, the executors and people. The text of an edit is short, so
// that it outlives most changes around it.
func List() []Mutant {
	return slices.Concat(eight(), ledgerList(), pastList(), storeList(), gateList(), brakeList(), policyList(), measureList(), modelList(), loopList(), sendList(), peopleList())
}

// one is a mutant with one edit.
func one(name, breaks string, edit Edit, catchers ...Catcher) Mutant {
	return Mutant{Name: name, Breaks: breaks, Edits: []Edit{edit}, Catchers: catchers}
}

func in(file, before, after string) Edit { return Edit{File: file, Old: before, New: after} }

func by(pkg, run string) Catcher { return Catcher{Package: pkg, Run: run} }

// crashes are the crash points of the real loop.
func crashes(scenario string) Catcher {
	return Catcher{Package: reconcilePkg, Run: "TestCrashPoints$/^(" + scenario + ")$", Short: true, Timeout: 3 * time.Minute}
}

// eight are the mutants that every robustness suite of such a loop should catch.
func eight() []Mutant {
	return []Mutant{
		{
			Name: "no-fsync", Breaks: "an acknowledged entry is on the disk",
			Edits: []Edit{
				{File: "internal/ledger/sqlite/schema.go", Old: `"synchronous(2)"`, New: `"synchronous(0)"`},
				{File: "internal/ledger/sqlite/sqlite.go", Old: `|| sync != 2`, New: `|| sync > 2`},
			},
			Catchers: []Catcher{by(ownPkg, "TestAppendIsOnTheDisk$")},
		},
		one("no-fsync-noticed", "a file that gives no durability is refused", in("internal/ledger/sqlite/schema.go",
			`"synchronous(2)"`, `"synchronous(1)"`), by(sqlitePkg, "TestInit$|TestOneWriter$")),
		one("no-fsync-postgres", "a server that gives no durability is refused", in("internal/ledger/postgres/postgres.go",
			`case fsync != "on":`, `case fsync == "never":`), by(postgresPkg, "TestDurable$")),
		claimAfterSend(),
		startAfterSend(),
		one("no-second-gate", "everything is asked again between claim and send", in("internal/reconcile/act.go",
			`if why := p.gateAgain(ctx, permit); why != "" {`, `if why := ""; why != "" {`), by(reconcilePkg, "TestSecondGateVoids$")),
		one("resend-timeout", "what may have been sent is never sent again", in("internal/execute/webhook/webhook.go",
			`	return e.send(req.WithContext(ctx), conn, a.MaxLateness), nil`,
			`	r := e.send(req.WithContext(ctx), conn, a.MaxLateness)
	if r.Effect == execute.InDoubt {
		if again, err := e.connect(ctx, p, req.URL); err == nil {
			req.Body = newBody(body)
			return e.send(req.WithContext(ctx), again, a.MaxLateness), nil
		}
	}
	return r, nil`), by(webhookPkg, "TestContract$"), by(webhookPkg, "TestWhenTheConnectionBreaks$")),
		resendStarted(),
		one("nan-as-zero", "NaN is unknown", in("internal/measure/reading.go",
			`	v := s.Value
`, `	v := s.Value
	if math.IsNaN(v) {
		v = 0
	}
`), by(promPkg, "TestMeasureEvents$|TestPublicCases$")),
		one("nan-compared", "NaN is compared with nothing", in("internal/compare/reading.go",
			`!math.IsNaN(v) && !math.IsInf(v, 0)`, `!math.IsInf(v, 0)`), by(comparePkg, "TestAssessObjective$|TestAssessProperties$")),
		one("undefined-allows", "where policy says nothing, nothing is done", in("internal/gate/decide.go",
			`finding{effectSilent, Reason{Code: ReasonUndefined`, `finding{effectAuto, Reason{Code: ReasonUndefined`), by(gatePkg, "TestDecideRulings$|TestZeroIsDeny$")),
		one("fault-ignored", "a fault of policy grants nothing", in("internal/gate/decide.go",
			`if fault != "" {`, `if fault == "never" {`), by(gatePkg, "TestDecideRulings$")),
		one("approval-other-bytes-ledger", "an approval is for one digest: the claim", in("internal/ledger/claim.go",
			` || t.Digest != c.Digest:`, `:`), by(ledgerPkg, "TestClaimAllowed$")),
		one("approval-other-bytes-gate", "an approval is for one digest: the gate", in("internal/gate/floors.go",
			`&& f.ApprovedDigest != digest {`, `&& f.ApprovedDigest == "" {`), by(gatePkg, "TestApprovedTicket$|TestDecideFloors$")),
		one("charge-forgotten-at-start", "a restart refills no budget", in("internal/ledger/fold.go",
			`func foldGap(s *State, e Entry, _ Gap) string {`, `func foldGap(s *State, e Entry, _ Gap) string {
	s.EffectOrder, s.Charged = nil, nil`), by(ledgerPkg, "TestBalanceSurvivesRestarts$"), crashes("useless")),
		one("charge-forgotten-at-checkpoint", "a start from a checkpoint refills no budget", in("internal/ledger/checkpoint.go",
			`	return f.State, nil`, `	f.State.EffectOrder, f.State.Charged = nil, nil
	return f.State, nil`), by(ledgerPkg, "Checkpoint|TestBalanceSurvivesRestarts$")),
	}
}

// claimAfterSend: the pass sends first, and claims when the answer is there.
func claimAfterSend() Mutant {
	m := early("claim-after-send", "the claim is durable before anything is sent",
		`	if err := p.claim(ctx, permit); err != nil {`)
	m.Catchers = []Catcher{crashes("auto")}
	return m
}

// startAfterSend: the pass claims, but sends before it says so.
func startAfterSend() Mutant {
	m := early("start-after-send", "started is durable before the first byte",
		`	err := p.r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.StartDraft(s, key) })`)
	m.Catchers = []Catcher{crashes("auto")}
	return m
}

// early sends before a line, and only keeps the receipt until its place.
func early(name, breaks, before string) Mutant {
	return Mutant{
		Name: name, Breaks: breaks,
		Edits: []Edit{
			{File: "internal/reconcile/pass.go", Old: "\tdisputed string\n", New: "\tdisputed string\n\tearly    execute.Receipt\n"},
			{File: "internal/reconcile/act.go", Old: before, New: "\tp.early = p.sendOnce(ctx, permit)\n" + before},
			{File: "internal/reconcile/act.go", Old: `{ receipt = p.sendOnce(ctx, permit) }`, New: `{ receipt = p.early }`},
		},
	}
}

// resendStarted: an effect without a receipt is sent again, once the gate says
// that the same bytes would be allowed.
func resendStarted() Mutant {
	const resolve = `func (p *pass) resolve(ctx context.Context, e *ledger.Effect) error {`
	const ledgerImport = `	"github.com/setpoint-dev/setpoint/internal/ledger"`
	return Mutant{
		Name: "resend-started", Breaks: "what was started without a receipt is never sent again",
		Edits: []Edit{
			{File: "internal/reconcile/settle.go", Old: ledgerImport, New: ledgerImport + "\n" + `	"github.com/setpoint-dev/setpoint/internal/propose"`},
			{File: "internal/reconcile/settle.go", Old: resolve, New: resolve + `
	if e.Effect == execute.Started {
		item := propose.Item{Action: e.Claim.Action, Live: e.Claim.Live, LiveKnown: true}
		f := p.facts(item, e.Claim.Key, e.Claim.Key)
		f.LastSent, f.ActionSent, f.SentService = time.Time{}, time.Time{}, 0
		again := propose.Proposal{Kind: propose.KindAction, Action: e.Claim.Action.Name, Parameters: e.Claim.Parameters}
		c := gate.Case{Service: p.svc, Proposal: again, Key: e.Claim.Key, Facts: f, Limits: p.r.limits()}
		input, _ := gate.BuildInput(c)
		if permit, ok := gate.Decide(c, p.r.rules().policy.Evaluate(ctx, input)).Permit(); ok {
			p.sendOnce(ctx, permit)
		}
	}`},
		},
		Catchers: []Catcher{crashes("replicas")},
	}
}
