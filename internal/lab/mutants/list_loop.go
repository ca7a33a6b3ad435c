package mutants

// gateList breaks floors of the gate, approvals and what is measured.
func gateList() []Mutant {
	const passing, floors = "internal/gate/passing.go", "internal/gate/floors.go"
	floorTests := by(gatePkg, "TestDecideFloors$")
	return []Mutant{
		one("key-claimed-ignored", "one effect per key: the gate", in(passing, `if f.KeyClaimed {`, `if f.KeyClaimed && f.FreshReads < 0 {`), floorTests),
		one("in-flight-ignored", "one unsettled effect per service: the gate", in(passing, `if f.InFlight != "" {`, `if f.InFlight == "never" {`), floorTests),
		one("one-read", "two fresh reads after a start", in(passing, `if f.FreshReads < 2 {`, `if f.FreshReads < 1 {`), floorTests),
		one("cap-of-service", "effects per service and hour are capped", in(passing,
			`if f.SentService >= l.EffectsPerServicePerHour {`, `if f.SentService > 1_000_000 {`), floorTests),
		one("cap-of-fleet", "effects per hour are capped", in(passing, `if f.SentGlobal >= l.EffectsPerHour {`, `if f.SentGlobal > 1_000_000 {`), floorTests),
		one("no-spacing", "effects on a service keep their distance", in(passing, `f.LastSent.Add(l.MinSpacing)`, `f.LastSent`), floorTests),
		one("clocks-apart-ignored", "clocks that differ hold everything", in(passing, `if f.ClocksApart != "" {`, `if f.ClocksApart == "never" {`), floorTests),
		one("freeze-ignored", "a freeze holds", in(passing, `inForce(f.Freezes, f.Now)`, `inForce(nil, f.Now)`), floorTests),
		one("unknown-acts", "an unknown state is never acted on", in(passing,
			`	case a.Actionable():
		return Reason{}, false`, `	case a.State != "":
		return Reason{}, false`), floorTests),
		one("expired-permit-claims", "an expired permit is void", in(floors, `!f.Now.Before(f.PermitExpires)`, `f.Now.IsZero()`), floorTests),
		one("claimed-other-bytes", "the second gate is about the claimed bytes", in(floors, `f.PermitDigest != digest {`, `digest == "" {`), floorTests),
		one("spent-budget-acts", "an empty balance asks a person", in(floors, `cost >= 0 && b.Affords(cost)`, `cost >= 0`), floorTests),
		one("deny-loses", "the strictest rule wins", in("internal/gate/ceiling.go",
			`		v = min(v, f.Effect.cap())`, `		v = max(v, f.Effect.cap())`), by(gatePkg, "TestDecideRulings$")),
		quorumByClicks(),
		one("stale-sample", "an old sample is unknown", in("internal/compare/reading.go", `case age > limit:`, `case age > 1000*limit:`), by(comparePkg, "TestAssessObjective$")),
		one("no-traffic-is-health", "no events are unknown", in("internal/compare/reading.go",
			`if m.HasEvents && m.Total == 0 {`, `if m.HasEvents && m.Total < 0 {`), by(comparePkg, "TestAssessObjective$|TestAssessProperties$")),
	}
}

// loopList breaks the pass.
func loopList() []Mutant {
	const act, settle, pass = "internal/reconcile/act.go", "internal/reconcile/settle.go", "internal/reconcile/pass.go"
	return []Mutant{
		one("freeze-files-not-read", "the freeze files are read before the send", in(act,
			`holds := p.r.freezes(p.svc.Name, p.r.o.Now()); len(holds) > 0 {`, `holds := p.r.freezes(p.svc.Name, p.r.o.Now()); len(holds) > 1_000_000 {`),
			by(reconcilePkg, "TestFreezeAtTheLastMoment$")),
		one("unreadable-freeze", "freeze files that cannot be read hold everything", in("internal/reconcile/reconciler.go",
			`holds, err := r.o.Freezes.Frozen(service)
	if err != nil {`, `holds, err := r.o.Freezes.Frozen(service)
	if err != nil && len(holds) > 0 {`), by(reconcilePkg, "TestFreezeAtTheLastMoment$")),
		one("doubt-settled-early", "not landed is said after the horizon", in(settle,
			`now.Before(horizon) ||`, `now.Before(e.StartedAt) ||`), by(reconcilePkg, "TestLateEffect$")),
		one("no-answer-is-not-landed", "no answer about a key proves nothing", in(settle,
			`	case !o.Known:
		return ""`, `	case !o.Known:
		return execute.NotLanded`), by(reconcilePkg, "TestUnansweredDoubtPages$")),
		one("claim-never-void", "a claim that was never started ends", in(settle,
			`	return p.void(ctx, e.Claim.Key, gate.ReasonExpired)`, `	return nil`), crashes("auto")),
		askedTwice(),
		one("replica-overrules", "a reading does not overrule another replica's fresh one", in(pass,
			`&& p.overrules(known) {`, `&& p.overrules(known) && known.Reader == "" {`), by(reconcilePkg, "TestReplicasThatDiffer$")),
		one("documents-not-current", "edited documents stop a pass under way", in(act,
			`if !declared || svc.Digest != p.svc.Digest {`, `if !declared && svc.Digest != p.svc.Digest {`), by(reconcilePkg, "TestEditedDocumentsStopThePass$")),
		one("actuator-knows-the-key", "an actuator that knows the key is believed", in("internal/reconcile/facts.go",
			`f.KeyClaimed = p.foreign || key`, `f.KeyClaimed = key`), by(reconcilePkg, "TestActuatorKnowsTheKey$")),
		one("clock-step-ignored", "a clock that was moved holds everything", in("internal/reconcile/clocks.go",
			`if c.step != 0 &&`, `if c.step == 0 &&`), by(reconcilePkg, "TestMovedClock$")),
		one("clock-not-looked-at-last", "a clock that moves at the last moment stops the send", in(act,
			`if apart := p.r.clockNow(); apart != "" {`, `if apart := p.r.clockNow(); apart == "never" {`), by(reconcilePkg, "TestClockThatMovesAtTheLastMoment$")),
		one("other-moment-believed", "a source whose clock is apart is unknown", in("internal/reconcile/clocks.go",
			`d > 0 && m.Known() {`, `d > 0 && !m.Known() {`), by(reconcilePkg, "TestSourceApart$")),
		one("silent-until-the-future", "people are told although the ledger's times lie ahead", in("internal/reconcile/notices.go",
			`if ok && (since.After(n.Now) || same && since.After(late)) {`, `if ok && same && since.After(late) && since.Before(n.Now) {`), by(reconcilePkg, "TestClockSetBackTellsPeople$")),
		one("claims-do-not-count", "caps count what others have claimed", in("internal/ledger/effect.go",
			`if e.Effect == execute.Claimed && key != without`, `if e.Effect == execute.Void && key != without`), by(ledgerPkg, "TestClaimedCounts$")),
	}
}

// sendList breaks the executors.
func sendList() []Mutant {
	const classify = "internal/execute/webhook/send.go"
	return []Mutant{
		one("expiry-before-ready", "the permit's expiry is looked at last", in("internal/execute/execute.go",
			`	if !p.Valid(now()) {`, `	if p.Digest() == "" {`), by(webhookPkg, "TestContract$|TestExpiresBetweenCheckAndSend$|TestHandshakeHangsPastTheExpiry$"), by(commandPkg, "TestLastMoment$|TestContract$")),
		one("ready-not-asked", "a freeze at the last moment stops the send", in("internal/execute/execute.go",
			`	if ready != nil {`, `	if ready == nil {
		ready = func() error { return nil }
	} else if p.Digest() == "" {`), by(webhookPkg, "TestContract$|TestReadyIsAskedAfterTheHandshake$")),
		one("server-error-is-failed", "a 5xx may have been done", in(classify, `	case 3, 4:`, `	case 3, 4, 5:`), by(webhookPkg, "TestStatus$")),
		one("lost-answer-is-failed", "a lost answer is in doubt", in(classify,
			`if err != nil && !connected.Load() {`, `if err != nil {`), by(webhookPkg, "TestWhenTheConnectionBreaks$|TestContract$")),
		one("webhook-anywhere", "only listed URLs are reached", in("internal/execute/webhook/webhook.go",
			`execute.CheckURL(a.Target.URL, e.allow)`, `execute.CheckURL(a.Target.URL, []string{a.Target.URL})`), by(webhookPkg, "TestRefusals$")),
		one("group-not-killed", "a program's whole group is killed at the deadline", in("internal/execute/command/run.go",
			`syscall.Kill(-leader,`, `syscall.Kill(leader,`), by(commandPkg, "TestDeadlineKillsTheGroup$")),
		one("leading-dash", "a value is not read as an option", in("internal/execute/command/argv.go",
			`strings.HasPrefix(text, "-")`, `strings.HasPrefix(text, "--never")`), by(commandPkg, "TestParametersAreArguments$")),
		one("any-program", "only listed programs run", in("internal/execute/command/run.go",
			`listed, file, err := e.program(argv[0])`, `listed, file, err := argv[0], argv[0], error(nil)`), by(commandPkg, "TestAllowList$|TestRefusals$")),
	}
}

// askedTwice: neither the fold nor the store keeps a second question back.
func askedTwice() Mutant {
	const drafts = "internal/ledger/drafts.go"
	return Mutant{
		Name: "asked-twice", Breaks: "a proposer is asked once in a window",
		Edits: []Edit{
			{File: drafts, Old: `(w.Asked != nil || w.Proposed != nil)`, New: `w.Proposed != nil`},
			{File: drafts, Old: `Unique: "asked/" + service`, New: `Unique: "asked/" + fmt.Sprint(s.Head.Seq) + service`},
		},
		Catchers: []Catcher{by(ledgerPkg, "TestTransitions$"), crashes("replicas")},
	}
}

// quorumByClicks: one person is asked twice, and counted twice.
func quorumByClicks() Mutant {
	return Mutant{
		Name: "quorum-by-clicks", Breaks: "a quorum counts people, not clicks",
		Edits: []Edit{
			{File: "internal/approve/approve.go", Old: `by[a.By] = true`, New: `by[a.By+a.At.String()] = true`},
			{File: "internal/approve/record.go", Old: `if old.By == a.By &&`, New: `if old.By == a.By && old.At.Equal(a.At) &&`},
		},
		Catchers: []Catcher{by(approvePkg, "TestAnswers$|TestApprovedOnlyByQuorum$")},
	}
}
