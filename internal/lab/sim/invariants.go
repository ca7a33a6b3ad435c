package sim

// OneEffectPerKey is the invariant of a second effect under one key.
const OneEffectPerKey = "one-effect-per-key"

// invariants are the names that a Violation may bear, sorted.
var invariants = [...]string{
	"a-deny-stops-it",
	"approval-binds-bytes",
	"approval-is-needed",
	"approved-is-free",
	"balance-never-negative",
	"caps",
	"claim-before-effect",
	"claim-before-send",
	"claims-are-charged",
	"dependencies-first",
	"effect-is-what-was-claimed",
	"everything-settles",
	"fails-toward-people",
	"gated-again-before-start",
	"min-spacing",
	"never-resend",
	"no-claim-on-unknown",
	"no-claim-while-frozen",
	"no-claim-with-clocks-apart",
	"no-send-after-expiry",
	"no-send-while-frozen",
	"no-start-while-frozen",
	"one-claim-per-key",
	"one-claim-per-ticket",
	"one-effect-per-key",
	"one-outcome",
	"one-unsettled-effect",
	"outcomes-cost",
	"permission",
	"permits-are-short",
	"receipt-follows-start",
	"refund-needs-proof",
	"sent-bytes-were-claimed",
	"settled-once",
	"started-before-send",
	"started-follows-claim",
	"suspended-actions-wait",
	"tickets-reserve-their-key",
	"two-fresh-reads",
	"void-before-start-only",
	"windows-never-decrease",
}

// Invariants is how many invariants the monitors hold the world against.
const Invariants = len(invariants)
