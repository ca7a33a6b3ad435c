package mutants

const (
	stepPkg   = "./internal/step"
	budgetPkg = "./internal/budget"
)

// brakeList breaks the budget, the storm brake, the undo and what stops a loop
// that feeds on itself.
func brakeList() []Mutant {
	const dynamics, past, storm = "internal/gate/dynamics.go", "internal/ledger/past.go", "internal/step/storm.go"
	floorTests := by(gatePkg, "TestDecideFloors$")
	return []Mutant{
		one("oscillates", "what was done a moment ago is not turned round", in(dynamics, `add(ReasonOscillation, oscillation(c, writes))`, `add(ReasonOscillation, oscillation(c, nil))`), floorTests),
		one("fights", "a change that somebody keeps reverting is not made again", in(dynamics, `if len(found) < MaxFoughtOver {`, `if len(found) < 100*MaxFoughtOver {`), floorTests),
		one("buys-time-for-ever", "a remedy that keeps buying time is handed over", in(dynamics, `if len(when) < MaxBought {`, `if len(when) < 100*MaxBought {`), floorTests),
		one("takes-back-others", "an undo takes back what we wrote, and nothing else", in(dynamics, `!known || !equal(have, u.Wrote[name])`, `known && have == nil`), floorTests),
		one("undone-twice", "an undo is sent once", in(past, `|| s.UndoOf(e) != nil ||`, `||`), by(ledgerPkg, "TestUndoable$"), by(reconcilePkg, "TestUndo$")),
		one("undo-after-no", "a refused undo is refused for good", in(past, `e.UndoRefused != "" ||`, `e.UndoRefused == "never" ||`), by(ledgerPkg, "TestUndoable$"), by(reconcilePkg, "TestUndoOfAForeignChange$|TestUndoByApproval$")),
		one("undo-of-help", "only what was judged worsened is taken back", in(past, `e.Outcome != compare.OutcomeWorsened ||`, `e.Outcome == compare.OutcomeNone ||`), by(ledgerPkg, "TestUndoable$"), by(reconcilePkg, "TestActsOnceAndIsJudgedByMeasurement$|TestUselessActionsSpendPermission$")),
		one("undo-takes-a-spent-key", "an undo has a key of its own", in(past, `for s.KeyClaimed(service, w) ||`, `for`), by(reconcilePkg, "TestUndoTakesTheFirstFreeKey$")),
		one("no-storm", "so many at once have one cause", in(storm, `return red >= l.Min &&`, `return red >= 1000*l.Min &&`), by(stepPkg, "TestBrake$")),
		one("storm-over-at-once", "a storm is over after its cooldown", in(storm, `now.Sub(known.At) >= l.Cooldown:`, `now.Sub(known.At) >= 0:`), by(stepPkg, "TestBrake$")),
		one("storm-not-seen", "the brake holds every service", in("internal/gate/passing.go", `if f.Storm != "" {`, `if f.Storm == "never" {`), floorTests),
		one("storm-approves", "nothing is approved in a storm", in("internal/reconcile/desk.go", `if a.Approve && s.Storm.Holds() {`, `if a.Approve && s.Storm.Holds() && a.By == "" {`), by(reconcilePkg, "TestStormAnswers$")),
		one("storm-of-maintenance", "what people work on is no weather", in("internal/reconcile/storm.go", `if worked[svc.Name] {`, `if worked[svc.Name] && svc.Name == "" {`), by(reconcilePkg, "TestNoStormOfMaintenance$")),
		one("not-demoted", "two outcomes worsened cost a rung", in("internal/budget/demote.go", `return n >= MaxWorsened`, `return n > 10*MaxWorsened`), by(budgetPkg, "TestDemoted$")),
		one("charges-age-early", "a charge leaves one period after its claim", in("internal/budget/budget.go", `!now.Before(c.At.Add(p.Period)):`, `!now.Before(c.At.Add(p.Period / 2)):`), by(budgetPkg, "TestOf$")),
		one("harm-is-free-in-luck", "harm is charged, whatever the trend was", in("internal/budget/budget.go",
			`	case compare.OutcomeWorsened:
		return costs.Worsened`, `	case compare.OutcomeWorsened:
		if recovering {
			return 0
		}
		return costs.Worsened`), by(budgetPkg, "TestCost$")),
		one("unseen-restores", "what cannot be observed cannot be restored", in(dynamics, `if a.Reversal != spec.Restore || isUndo(c) {`, `if a.Reversal == spec.Restore || isUndo(c) {`), floorTests),
		one("drill-pages", "a drill wakes nobody", in("internal/step/notices.go", `if !n.Grouped && n.Planned == "" {`, `if !n.Grouped {`), by(stepPkg, "TestNotices$")),
	}
}
