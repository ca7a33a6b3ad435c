package sim

// mutant breaks the machine in one place, to show that the monitors can fail.
// The product has no such switch; only the tests of this package set one.
type mutant string

// The mutants; "" is none.
const (
	// claimAfterSend sends first and claims afterwards.
	claimAfterSend mutant = "claim after send"
	// noSecondGate starts whatever was claimed.
	noSecondGate mutant = "no second gate"
	// resend sends again when no answer came in time.
	resend mutant = "resend after a timeout"
	// noCharge claims without paying.
	noCharge mutant = "charge forgotten"
	// looseApproval runs what is proposed now by a ticket that is about something
	// else.
	looseApproval mutant = "approval not bound to its digest"
	// looseStart starts without looking at what became of the claim.
	looseStart mutant = "start not conditional"
	// lateVoid voids what was started already.
	lateVoid mutant = "void after start"
	// blindSend looks at neither permit nor freeze before the first byte.
	blindSend mutant = "no last look"
	// healthyUnknown reads no data as a breach.
	healthyUnknown mutant = "unknown read as breached"
	// twoClaims claims without asking what else is claimed.
	twoClaims mutant = "claim not conditional"
	// earlyProof believes "no such key" from started + timeout + maxLateness on,
	// by whatever clock: the permit may still be sent then.
	earlyProof mutant = "horizon counted from started alone"
	// sentOnly counts toward the global cap only what was sent, not what was
	// claimed and is about to be.
	sentOnly mutant = "cap blind to claims under way"
)

// mutants are all of them.
func mutants() []mutant {
	return []mutant{
		claimAfterSend, noSecondGate, resend, noCharge, looseApproval, looseStart, lateVoid,
		blindSend, healthyUnknown, twoClaims, earlyProof, sentOnly,
	}
}
