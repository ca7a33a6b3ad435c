package mutants

// ledgerList breaks the conditions of entries.
func ledgerList() []Mutant {
	const claim, drafts, fold = "internal/ledger/claim.go", "internal/ledger/drafts.go", "internal/ledger/fold_effect.go"
	return []Mutant{
		one("claim-unconditional", "a claim fails when anything moved since its decision", in(claim,
			`case s.ClaimsMoved > decidedAt.Seq:`, `case s.ClaimsMoved > decidedAt.Seq+1_000_000:`), by(ledgerPkg, "TestClaimsMoved$|TestClaimAllowed$")),
		one("claim-beside-in-flight", "one unsettled effect per service", in(claim,
			`case onService != nil:`, `case onService != nil && s == nil:`), by(ledgerPkg, "TestClaimAllowed$")),
		one("claim-same-target", "one unsettled effect per target", in(claim,
			`case onTarget != nil:`, `case onTarget != nil && s == nil:`), by(ledgerPkg, "TestClaimAllowed$")),
		one("claim-reserved-key", "the key of an open ticket is nobody else's", in(claim,
			`t, ok := s.OpenTicket(service); ok &&`, `t, ok := s.OpenTicket(service); !ok &&`), by(ledgerPkg, "TestClaimAllowed$")),
		one("claim-without-name", "the store itself refuses a second claim of a key", in(drafts,
			`Unique: "claim/" + string(c.Key)`, `Unique: ""`), by(ledgerPkg, "TestTransitions$|TestClaimAllowed$"), crashes("auto")),
		one("names-not-unique", "a name is given once", in("internal/ledger/sqlite/schema.go",
			`CREATE UNIQUE INDEX entries_unique_name`, `CREATE INDEX entries_unique_name`), by(sqlitePkg, "TestUniqueBacksTheClaim$|TestContract$")),
		one("start-without-ticket", "a deny that comes before the start stops it", in(drafts,
			`if id := ef.Claim.Ticket; id != "" {`, `if id := ef.Claim.Ticket; id == "never" {`), by(reconcilePkg, "TestDenyBetweenClaimAndStart$")),
		one("void-then-start", "what is void is never started", in("internal/execute/execute.go",
			`	Claimed: {Started, Void},`, `	Claimed: {Started, Void}, Void: {Started},`), by(ledgerPkg, "TestTransitions$|TestFoldEffect$")),
		one("start-then-start", "what was started is not started again", in("internal/execute/execute.go",
			`		Landed, NotLanded, Unknown,
	},`, `		Landed, NotLanded, Unknown, Started,
	},`), by(ledgerPkg, "TestTransitions$|TestFoldEffect$")),
		one("void-has-its-own-name", "the store itself refuses a start beside a void", in(drafts,
			`Unique: begun(key), Body: Void{`, `Unique: "void/" + string(key), Body: Void{`), by(ledgerPkg, "TestTransitions$"), crashes("auto")),
		one("outcome-twice", "an effect is judged once", in(fold,
			`case have.Judgement != nil:`, `case have.Judgement != nil && s == nil:`), by(ledgerPkg, "TestTransitions$|TestFoldEffect$")),
		one("doubt-does-not-lock", "an effect in doubt locks its service and target", in("internal/ledger/effect.go",
			`case execute.Claimed, execute.Started, execute.InDoubt, execute.Unknown:`, `case execute.Claimed, execute.Started, execute.Unknown:`),
			by(ledgerPkg, "TestClaimAllowed$|TestFoldEffect$|TestFoldInvariants$")),
		one("doubt-costs-nothing", "an effect in doubt keeps its charge", in("internal/ledger/effect.go",
			`case execute.Void, execute.NotLanded,`, `case execute.InDoubt, execute.Started, execute.Void, execute.NotLanded,`), by(ledgerPkg, "TestCharges$|TestFoldEffect$")),
	}
}

// pastList breaks what a state keeps of the past.
func pastList() []Mutant {
	return []Mutant{
		one("started-though-frozen", "what was frozen after its claim is not started", in("internal/ledger/drafts.go",
			`s.FrozenAt[ef.Service]) > ef.ClaimSeq {`, `s.FrozenAt[ef.Service]) > ef.ClaimSeq+1_000_000 {`), by(ledgerPkg, "TestStartAfterFreeze$")),
		one("claim-on-another-state", "a claim rests on the newest recorded state", in("internal/ledger/claim.go",
			`sv.State != compare.Breached && !c.Undo:`, `sv.State == compare.Breached && c.Undo:`), by(ledgerPkg, "TestClaimAllowed$")),
		one("conflict-unnoticed", "other bytes under a claimed key are told", in("internal/ledger/claim.go",
			`have.Claim.Digest != c.Digest {`, `have.Claim.Digest == "" {`), by(ledgerPkg, "TestConflict$")),
		one("horizon-from-started", "a stopped sender may wake until its permit expires", in("internal/ledger/effect.go",
			`later(e.StartedAt, e.Claim.Expires.Add(maxSkew))`, `e.StartedAt`), by(ledgerPkg, "TestHorizon$")),
		one("mark-goes-back", "window ids never decrease", in("internal/ledger/state.go",
			`	return sv.Mark
`, `	return gate.WindowAt(now, length)
`), by(ledgerPkg, "Window")),
		one("spent-in-checkpoint", "a checkpoint keeps which windows are spent", in("internal/ledger/state.go",
			"\tSpent gate.WindowID\n", "\tSpent gate.WindowID `json:\"-\"`\n"), by(ledgerPkg, "Checkpoint|TestForgetting|TestGolden"), by(sqlitePkg, "Checkpoint")),
		one("spent-not-marked", "keys older than what is kept stay spent", in("internal/ledger/fold_effect.go",
			`		sv.Spent = w
`, `		_ = w
`), by(ledgerPkg, "TestForgetting$|TestKeyClaimed$|TestClaimAllowed$")),
		one("forgets-charges", "forgotten effects keep their charge", in("internal/ledger/forget.go",
			`if charge := e.charged(); charge.Cost > 0 {`, `if charge := e.charged(); charge.Cost > 1_000_000 {`), by(ledgerPkg, "TestForgottenCharges$|TestForgetting$")),
		one("forgets-keys-to-come", "a key that a fast clock claimed stays claimed", in("internal/ledger/forget.go",
			` || windowOf(key).Start > sv.Spent.Start {`, ` {`), by(ledgerPkg, "TestForg|TestLowered")),
		one("forgets-ticket-under-way", "the ticket of an effect under way is kept", in("internal/ledger/forget.go",
			` || locked[id] ||`, ` ||`), by(ledgerPkg, "TestForgettingKeepsWhatIsUnderWay$")),
		one("worsened-row-lost", "two Worsened in a row suspend the action", in("internal/ledger/record.go",
			`if n := r.Worsened.counting(now); n >= 2 {`, `if n := r.Worsened.counting(now); n >= 3 {`), by(ledgerPkg, "TestSuspended$")),
		one("worsened-in-checkpoint", "a checkpoint keeps rows of Worsened", in("internal/ledger/record.go",
			"\tWorsened, Nothing Row\n", "\tWorsened, Nothing Row `json:\"-\"`\n"), by(ledgerPkg, "Checkpoint|TestForgetting|TestGolden"), by(sqlitePkg, "Checkpoint")),
	}
}

// storeList breaks the chain and its stores.
func storeList() []Mutant {
	return []Mutant{
		one("chain-not-verified", "the chain is verified at open", in("internal/ledger/sqlite/verify.go",
			`if err := ledger.Verify(head, e); err != nil {`, `if err := ledger.Verify(head, e); err != nil && r == nil {`), by(sqlitePkg, "TestOpenRefuses$|TestVerify$")),
		one("hash-not-checked", "a changed entry is noticed", in("internal/ledger/chain.go",
			`case e.Hash != hashOf(e):`, `case e.Hash == "":`), by(ledgerPkg, "TestVerify$")),
		one("writes-after-disk-failure", "nothing is written after a failed sync", in("internal/ledger/sqlite/append.go",
			`		s.failed = err
`, `		_ = s
`), by(sqlitePkg, "TestDiskFailsInCommit$|TestDiskFaults$")),
		one("two-writers", "one writer per file", in("internal/ledger/sqlite/lock.go",
			`syscall.LOCK_EX|syscall.LOCK_NB`, `syscall.LOCK_SH|syscall.LOCK_NB`), by(sqlitePkg, "TestOneWriter$")),
		one("newer-fields-ignored", "an entry of a newer version is refused", in("internal/ledger/kinds.go",
			`	dec.DisallowUnknownFields()`, `	_ = dec`), by(ledgerPkg, "TestApplyIsAllOrNothing$|TestLinkRefuses$|TestVerify$|TestDecode")),
		one("seen-not-checked", "an older copy of the ledger is noticed", in("internal/ledger/seenfile/seenfile.go",
			`ledger.Anchor(ctx, s.Store, at)`, `ledger.Anchor(ctx, s.Store, ledger.Position{})`), by(seenfilePkg, "TestOlderCopy$")),
		one("seen-after-send", "what was seen is written before the send", in("internal/ledger/seenfile/seenfile.go",
			`case ledger.KindStarted, ledger.KindTicket,`, `case ledger.KindReceipt, ledger.KindTicket,`), by(seenfilePkg, "TestWhatMattersIsRemembered$|TestOlderCopy$")),
		one("postgres-no-lock", "appends of all replicas are one at a time", in("internal/ledger/postgres/append.go",
			`FROM ledger_head FOR UPDATE`, `FROM ledger_head`), by(postgresPkg, "TestContract$|TestContendedNames$")),
	}
}
