package mutants

const (
	proposePkg = "./internal/propose"
	openaiPkg  = "./internal/propose/openai"
	webPkg     = "./internal/web"
)

// modelList breaks what keeps a model at arm's length: what it is told, what is
// taken from it, and how often it is asked.
func modelList() []Mutant {
	const names, faults, rest = "internal/propose/evidence_names.go", "internal/propose/openai/faults.go", "internal/propose/openai/rest.go"
	replies := by(openaiPkg, "TestRecordedReplies$|TestWhatFollows$|TestFaults$")
	return []Mutant{
		one("label-values-shown", "a label's value is shown where its document says so", in(names, `case show && len(value)`, `case len(value)`), by(proposePkg, "TestRegister$|TestShownValues$")),
		one("forged-placeholder", "nothing that others wrote passes for a placeholder", in(names, ` && !n.likePlaceholder(value):`, `:`), by(proposePkg, "TestRegister$|TestForgedPlaceholder$")),
		one("sentence-is-a-word", "a word that is shown is no sentence", in("internal/propose/text.go", "`^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}$`", "`^[A-Za-z0-9][A-Za-z0-9 ._:@/+-]{0,127}$`"), by(proposePkg, "TestGuards$|TestPromptHoldsNoForeignText$|TestRegister$")),
		one("limit-uncounted", "a question counts from the moment that it is put", in("internal/ledger/fold_ask.go", `if b.Proposer.Endpoint == "" {`, `if b.Window != "" {`), by(ledgerPkg, "TestAskWithinLimits$")),
		one("repairs-uncounted", "each request counts", in("internal/ledger/fold_ask.go", `c.Requests, c.Tokens = len(b.Exchanges),`, `c.Requests, c.Tokens = min(1, len(b.Exchanges)),`), by(ledgerPkg, "TestAskWithinLimits$")),
		one("refusal-goes-round", "a model that declines has answered", in(faults, `propose.FaultRefusal:     {health: well},`, `propose.FaultRefusal:     {next: true, health: well},`), replies),
		one("rules-after-refusal", "rules speak only where no model answered", in("internal/propose/fault.go", `case FaultRateLimited, FaultProvider,`, `case FaultRefusal, FaultRateLimited, FaultProvider,`), by(proposePkg, "TestNoModel$")),
		one("half-an-answer", "an answer that was cut off is none", in("internal/propose/openai/answer.go", `case reason == api.FinishReasonLength:`, `case reason == api.FinishReasonLength && mode == "":`), replies),
		one("wait-forgotten", "an endpoint that asks to wait is left alone", in(rest, `length := min(asked, maxRetryAfter)`, `length := min(asked, 0)`), by(openaiPkg, "TestRetryAfterIsKept$|TestEndpointsStates$")),
		one("all-try-at-once", "one question tries an endpoint that was down", in(rest, `case r.trying:`, `case r.trying && r.failures < 0:`), by(openaiPkg, "TestBreakerOpens$|TestEndpointsStates$")),
		one("last-key-wins", "a key that is given twice is no answer", in("internal/propose/strict.go", `if seen[m.key] {`, `if seen[m.key] && m.key == "" {`), by(proposePkg, "TestParse$")),
		one("key-echoed", "no key of an endpoint is in any output", in("internal/propose/openai/secrets.go", `s = strings.ReplaceAll(s, k, secretWord)`, `s = strings.ReplaceAll(s, k, k)`), by(openaiPkg, "TestKeyIsNowhere$")),
		one("change-of-tomorrow", "a change has happened when it is posted", in("internal/web/changes.go", `case ahead > measure.ChangeAhead:`, `case ahead > 1000*measure.ChangeAhead:`), by(webPkg, "TestChangeRefusals$")),
	}
}
