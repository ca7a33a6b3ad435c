package mutants

// The packages that measure.
const measurePkg = "./internal/measure"

// measureList breaks what is known, and for how long.
func measureList() []Mutant {
	const held, answer = "internal/measure/held.go", "internal/measure/answer.go"
	const assess, views, judge = "internal/compare/assess.go", "internal/compare/views.go", "internal/reconcile/look.go"
	return []Mutant{
		one("held-for-ever", "a held value is never called fresh beyond its cadence", in(held,
			`&& age <= s.cadence(m, sweep)`, `&& age <= 1000*s.cadence(m, sweep)`), by(measurePkg, "TestHeldProperties$")),
		one("failure-not-kept", "a window that was due and failed is unknown", in(held,
			`				m := ms[i]
`, `				m := ms[i]
				if !m.Known() && h.values[j][q.slot].Known() {
					continue
				}
`), by(measurePkg, "TestWhatFailedIsUnknown$|TestHeldProperties$")),
		one("judge-window-held", "the judge window is measured in each pass", in(held,
			`	case o.isJudge(s):
		return true`, `	case o.isJudge(s):
		return held.ID.Window == 0`), by(measurePkg, "TestHeldProperties$|TestCostOfADay$")),
		one("absent-good-is-zero", "an absent good is no outage", in(answer,
			`total == 0 || a.q.o.bad != nil && a.q.o.in.AbsentBadZero`, `total == 0 || a.q.o.in.AbsentBadZero || a.q.o.good != nil`),
			by(measurePkg, "TestAnswerOfCounts$")),
		one("good-above-total", "more good than total is unknown", in(answer, `part.number > total.number*(1+tolerance)`, `part.number > total.number*1e9`),
			by(measurePkg, "TestAnswerOfCounts$")),
		one("group-of-another", "an answer for many is split by the values of each", in("internal/measure/batch.go",
			`parts = r.grouped.Split(answer.Series)`, `parts = r.grouped.Split(answer.Series)
		if len(parts) > 1 {
			parts[0], parts[1] = parts[1], parts[0]
		}`), by(measurePkg, "TestFleetIsMeasuredAsItIs$")),
		one("disagreement-averaged", "vantage points that disagree are unknown", in(views,
			`	case len(unknown) > 0 || len(breached) > 0 && len(breached) < len(views):`, `	case len(unknown) > 0:`),
			by(comparePkg, "TestVantagePointsAgree$")),
		one("vanished-group-recovers", "a group that vanished did not recover", in(views,
			`if r := j.one(m.Of(g.Name), w); !r.known() {`, `if r := j.one(m.Of(g.Name), w); !r.known() && r.reason == Stale {`),
			by(comparePkg, "TestEffectOnGroups$")),
		one("jumps-believed", "a recorded ratio that jumps is unknown", in(assess, `case r.known() && jumps(`, `case !r.known() && jumps(`),
			by(comparePkg, "TestUnstable$")),
		one("any-group-is-aimed-at", "auto aims at the worst group", in("internal/gate/floors.go", `if aimed != o.Group {`, `if aimed == "" {`),
			by(gatePkg, "TestGroupedNeedsAnAim$")),
		one("state-from-held", "a change of state rests on fresh values", in(judge, `held.Refresh(now)`, `held.Refresh(now)[:0]`),
			by(reconcilePkg, "TestReplicasDoNotTakeTurns$")),
	}
}
