package mutants

// policyList breaks how policy is loaded, asked, kept and compared.
func policyList() []Mutant {
	const (
		regoPkg   = "./internal/gate/rego"
		reloadPkg = "./internal/gate/rego/reload"
		reload    = "internal/gate/rego/reload/load.go"
		policies  = "internal/reconcile/policies.go"
	)
	return []Mutant{
		one("floors-unbound", "policy cannot lift a floor", in("internal/gate/join.go",
			`	fs := slices.Concat(f.Bound, ruled)
`, `	fs := ruled
	f.Bound = nil
`), by(gatePkg, "TestDecideFloors$|TestFloorsTable$")),
		one("team-grants", "a team's package only tightens", in("internal/gate/ruling.go",
			`return !strings.HasPrefix(rule.Package, teamPrefix) })`, `return strings.HasPrefix(rule.Package, "setpoint.") })`),
			by(gatePkg, "TestDecideRulings$")),
		one("replay-sees-no-loosening", "a replay says what is loosened", in("internal/gate/compare.go",
			`freedom(is.Verdict) > freedom(was.Verdict)`, `freedom(is.Verdict) > 1+freedom(was.Verdict)`), by(gatePkg, "TestCompare$")),
		one("input-open", "an input is what its schema says", in("internal/gate/rego/input.go",
			`s.fields != nil && len(v) != len(s.fields)`, `s.fields != nil && len(v) > 10*len(s.fields)`), by(regoPkg, "FuzzParseInput$|TestFaults$")),
		one("any-element-grants", "a result grants by a known rule of its set alone", in("internal/gate/rego/evaluate.go",
			`if !ok || known.set != set {`, `if !ok && known.set == set {`), by(regoPkg, "TestPropertyResultShapes$|FuzzLoad$")),
		one("bundle-by-names", "a revision names every byte of a bundle", in("internal/gate/rego/pack.go",
			`		out = append(out, f.Data...)`, `		out = append(out, f.Data[:len(f.Data)/2]...)`), by(regoPkg, "TestPack$|TestDataDigest$")),
		one("reload-untested", "a bundle whose tests fail does not rule", in(reload,
			`	case failed != nil && r.Lenient:`, `	case failed != nil:`), by(reloadPkg, "TestLoad$|TestFaultsKeepTheLastGoodPolicy$")),
		one("policy-unrecorded", "a policy rules when the ledger holds it", in(policies,
			`	if err := r.recordPolicy(ctx, policy, false); err != nil {`, `	if err := r.recordPolicy(ctx, policy, false); err != nil && policy == nil {`),
			by(reconcilePkg, "TestUnrecordedPolicyDoesNotRule$")),
		one("shadow-binds", "a shadow policy binds nobody", in("internal/reconcile/judge.go",
			`		ruling = rules.policy.Evaluate(ctx, prepared.Input)`, `		ruling = rules.policy.Evaluate(ctx, prepared.Input)
		if rules.shadow != nil {
			ruling = rules.shadow.Evaluate(ctx, prepared.Input)
		}`), by(reconcilePkg, "TestShadowBindsNobody$")),
	}
}
