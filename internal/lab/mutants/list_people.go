package mutants

const (
	slackPkg    = "./internal/approve/slack"
	escalatePkg = "./internal/escalate"
	peoplePkg   = "./internal/lab/people"
)

// peopleList breaks the way to people and back: whose click counts and when it
// counts, what a card goes on showing, and that somebody knows.
func peopleList() []Mutant {
	return append(clickList(),
		one("buttons-after-the-end", "a card whose ticket is over has no button", in("internal/approve/slack/blocks.go",
			`if !c.Open() || c.Ticket == approve.DigestCard`, `if c.Ticket == approve.DigestCard`), by(slackPkg, "TestBlocks$|TestAnyFactsAreValid$")),
		one("posted-without-looking", "a post whose end is not known is looked for before another one", in("internal/approve/posted.go",
			`	if age >= PostFor || age < 0 || process != "" && p.By == process {
		return Find`, `	if age >= PostFor || age < 0 || process != "" && p.By == process {
		return Post`), by(approvePkg, "TestChores$"), by(reconcilePkg, "TestCrashBetweenPostAndRecord$")),
		one("resolved-before-opened", "a page that nobody got is opened before it is ended", in("internal/escalate/sequence.go",
			`if p.EndedAt.IsZero() || !d.First.IsZero() {`, `if p.EndedAt.IsZero() || d.First.IsZero() {`), by(escalatePkg, "TestSequence$|TestOpenedBeforeEnded$")),
		one("no-second-receiver", "a receiver that fails is given up for the next", in("internal/escalate/due.go",
			`d.Failures >= FailuresToSkip || rule.Down && !o.holds(name) {`, `d.Failures >= 1_000_000 || rule.Down && !known {`), by(escalatePkg, "TestDue$|TestOutboxDelivers$"), by(peoplePkg, "TestPeopleKnow$")),
		one("channel-down-unpaged", "a card that cannot be posted is a page", in("internal/reconcile/cards.go",
			`case live, !may, p.Failures > 0, age >= askFor,`, `case live, !may, p.Failures > 1_000_000, age >= 1_000*askFor,`), by(reconcilePkg, "TestCardFaults$")),
		one("heartbeat-by-another-way", "a heartbeat goes the way of that receiver's pages", in("internal/escalate/heartbeat.go",
			`Receivers: []string{receiver}, Since: now,`, `Receivers: []string{"heartbeats"}, Since: now,`), by(escalatePkg, "TestHeartbeat$"), by(reconcilePkg, "TestHeartbeat$")),
		one("no-hysteresis", "what comes and goes is one page", in("internal/escalate/sequence.go",
			`lingers    = 5 * time.Minute`, `lingers    = time.Duration(0)`), by(escalatePkg, "TestLinger$"), by(reconcilePkg, "TestSquareWave$")),
		one("wait-begins-anew", "a ledger that is back does not make people wait again", in("internal/reconcile/notices.go",
			`same && since.After(late)`, `same && since.After(late) && seen.state == ""`), by(peoplePkg, "TestLedgerAway$")),
		one("acting-for-ever", "what nobody can judge keeps nobody from being told", in("internal/reconcile/notices.go",
			`	if !n.Now.Before(over) {`, `	if over.IsZero() {`), by(peoplePkg, "TestLedgerAway$")),
	)
}

// clickList breaks whose click counts.
func clickList() []Mutant {
	const verify, parse = "internal/approve/slack/verify.go", "internal/approve/slack/click_parse.go"
	signed := by(slackPkg, "TestOnlySlackIsBelieved$")
	return []Mutant{
		one("ack-before-record", "a click is acknowledged when it is durable", in("internal/approve/slack/http.go",
			`	if rc.clicks.Handle(r.Context(), []byte(payload)) == Failed {`, `	go rc.clicks.Handle(context.WithoutCancel(r.Context()), []byte(payload))
	if payload == "" {`), by(slackPkg, "TestFailureIsShown$")),
		one("signature-unchecked", "only Slack's own signature is believed", in(verify, `if v.Ensure() != nil {`, `if v.Ensure() != nil && len(body) == 0 {`), signed),
		one("replay-believed", "a request is five minutes old at most", in(verify,
			`		return Stale, false`, `		return "", true`), signed),
		{
			Name: "any-workspace", Breaks: "only people of the workspace are heard",
			Edits: []Edit{
				in(parse, `	if k.team != team {`, `	if k.team == "" {`),
				in(parse, `	case k.team != team:`, `	case k.team == "":`),
			},
			Catchers: []Catcher{by(slackPkg, "TestWhoseClickCounts$")},
		},
		one("other-bytes-clicked", "a click is for the bytes that were shown", in("internal/approve/record.go",
			`if a.Digest != "" && a.Digest != t.Digest {`, `if a.Digest != "" && t.Digest == "" {`), by(approvePkg, "TestAnswers$")),
	}
}
