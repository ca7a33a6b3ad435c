package checker

// Invariant is the name of one.
type Invariant string

// The invariants. A name is stable.
const (
	OneEffect      Invariant = "INV-1"
	ClaimedFirst   Invariant = "INV-2"
	DecidedFirst   Invariant = "INV-3"
	BeforeExpiry   Invariant = "INV-5"
	OneInFlight    Invariant = "INV-7"
	MinSpacing     Invariant = "INV-8"
	NotFrozen      Invariant = "INV-9"
	Caps           Invariant = "INV-10"
	NeverResent    Invariant = "INV-12"
	KnownBreach    Invariant = "INV-13"
	BalanceLeft    Invariant = "INV-18"
	ChargedAtClaim Invariant = "INV-20"
	RefundMeasured Invariant = "INV-21"
	TicketOnce     Invariant = "INV-22"
	DenyStops      Invariant = "INV-25"
	Granted        Invariant = "INV-27"
	NothingLost    Invariant = "INV-33"
	ChainWhole     Invariant = "INV-34"
	WindowsRise    Invariant = "INV-35"
	StateMachine   Invariant = "state-machine"
	OncePerWindow  Invariant = "once-per-window"
	JournalAgrees  Invariant = "journal-agrees"
	VoidButSent    Invariant = "void-but-sent"
	NotInStorm     Invariant = "not-in-storm"
	UndoOnce       Invariant = "undo-once"
)

// invariants is every invariant in the order in which they are shown, with a
// word for its number and what it says.
var invariants = []struct {
	name       Invariant
	word, says string
}{
	{OneEffect, "one-effect", "a key has at most one effect"},
	{ClaimedFirst, "claimed-and-started-first", "what is sent was claimed, with the bytes that were sent, and started before"},
	{DecidedFirst, "decided-first", "a claim rests on an earlier decision that allows it, and whose input is kept"},
	{BeforeExpiry, "before-expiry", "nothing takes effect after its permit expired"},
	{OneInFlight, "one-in-flight", "nothing is claimed on a service or target where something is unsettled"},
	{MinSpacing, "min-spacing", "two starts on a service are minSpacing apart"},
	{NotFrozen, "not-frozen", "nothing is started between a freeze and its end"},
	{Caps, "caps", "starts per rolling hour stay within the caps"},
	{NeverResent, "never-resent", "a key is started, sent and settled once"},
	{KnownBreach, "known-breach", "only a known breach is acted on"},
	{BalanceLeft, "balance-left", "an auto claim finds something left in both balances"},
	{ChargedAtClaim, "charged-at-claim", "an auto claim is charged its dearest outcome, and the balances hold that much"},
	{RefundMeasured, "refund-measured", "an outcome refunds no more than was measured"},
	{TicketOnce, "ticket-once", "a ticket is good for one claim of its bytes and key, in its time"},
	{DenyStops, "deny-stops", "what was denied before its start is not started"},
	{Granted, "granted", "policy granted what was claimed, and nothing in it refused"},
	{NothingLost, "nothing-acknowledged-lost", "what was acknowledged is in the ledger"},
	{ChainWhole, "chain-whole", "the chain verifies, and time does not run back"},
	{WindowsRise, "windows-rise", "a service's claimed windows rise, and none is claimed twice"},
	{StateMachine, "state-machine", "the entries of a key follow the order of an effect's life"},
	{OncePerWindow, "once-per-window", "a window is asked for once and has one proposal"},
	{JournalAgrees, "journal-agrees", "what the ledger says of an effect is what the actuator says"},
	{VoidButSent, "void-but-sent", "what the ledger calls void was not sent"},
	{NotInStorm, "not-in-storm", "nothing is claimed or approved while the storm brake is on"},
	{UndoOnce, "undo-once", "an undo takes back an effect that was judged worsened, of an action that can be, and is sent once"},
}

// Word is a short name beside the number.
func (i Invariant) Word() string {
	if at := rank(i); at < len(invariants) {
		return invariants[at].word
	}
	return string(i)
}

// Says is the invariant in a sentence.
func (i Invariant) Says() string {
	if at := rank(i); at < len(invariants) {
		return invariants[at].says
	}
	return ""
}

// Invariants are all of them, in the order of a report.
func Invariants() []Invariant {
	out := make([]Invariant, len(invariants))
	for at, i := range invariants {
		out[at] = i.name
	}
	return out
}

func rank(i Invariant) int {
	for at, known := range invariants {
		if known.name == i {
			return at
		}
	}
	return len(invariants)
}
