package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Version is the version of the chain that this package writes.
const Version = 1

func checkInit(_ string, b Init) error {
	if b.Version != Version {
		return fmt.Errorf("%w: chain version %d, this setpoint knows %d; run the version that wrote it", ErrUnknownKind, b.Version, Version)
	}
	return nil
}

func checkDocuments(_ string, b Documents) error {
	for name, digest := range b.Services {
		if name == "" || digest == "" {
			return fmt.Errorf("service %q has digest %q", name, digest)
		}
	}
	return nil
}

func anyGap(string, Gap) error { return nil }

func checkState(service string, b StateChange) error {
	if !slices.Contains([]compare.State{compare.Met, compare.Breached, compare.Unknown}, b.To) {
		return fmt.Errorf("to %q is no state", b.To)
	}
	return errors.Join(named("service", service), finite("errorRatio", b.ErrorRatio))
}

func checkRecovered(service string, b Recovered) error {
	return errors.Join(named("service", service), named("episode", b.Episode))
}

func checkAsked(service string, b Asked) error {
	return errors.Join(named("service", service), window(b.Window))
}

func checkProposed(service string, b Proposed) error {
	return errors.Join(named("service", service), window(b.Window), named("proposal kind", string(b.Proposal.Kind)))
}

func checkDecided(service string, b Decided) error {
	return errors.Join(named("service", service), window(b.Window))
}

func checkTicket(service string, b approve.Ticket) error {
	if b.Expires.IsZero() {
		return errors.New("ticket without expiry")
	}
	return errors.Join(keyed(service, b.Key), named("digest", b.Digest))
}

func checkAnswer(_ string, b approve.Answer) error {
	return errors.Join(named("ticket", b.Ticket), named("by", b.By))
}

func checkTicketEnd(_ string, b TicketEnd) error {
	if !slices.Contains([]approve.State{approve.Expired, approve.Withdrawn, approve.Void}, b.State) {
		return fmt.Errorf("a ticket does not end as %q", b.State)
	}
	return named("ticket", b.Ticket)
}

func checkClaim(service string, b Claim) error {
	if b.Charge < 0 {
		return fmt.Errorf("charge %v is negative", b.Charge)
	}
	if b.Expires.IsZero() {
		return errors.New("claim without expiry")
	}
	return errors.Join(keyed(service, b.Key), named("digest", b.Digest), named("target", b.Target),
		named("action", b.Action.Name), finite("charge", b.Charge))
}

func checkStarted(service string, b Started) error { return keyed(service, b.Key) }

func checkVoid(service string, b Void) error {
	return errors.Join(keyed(service, b.Key), named("reason", b.Reason))
}

func checkReceipt(service string, b Receipt) error {
	switch b.Receipt.Effect {
	case execute.Applied, execute.AppliedWithError, execute.NoOp, execute.Failed, execute.NotNow, execute.InDoubt:
	default:
		return fmt.Errorf("%q is no effect of a receipt", b.Receipt.Effect)
	}
	if b.Receipt.At.IsZero() {
		return errors.New("receipt without time")
	}
	return keyed(service, b.Key)
}

func checkSettled(service string, b Settled) error {
	switch b.Effect {
	case execute.Landed, execute.NotLanded, execute.NoOp, execute.Failed, execute.NotNow, execute.Unknown:
	default:
		return fmt.Errorf("an in-doubt effect is not settled as %q", b.Effect)
	}
	return errors.Join(keyed(service, b.Key), named("by", b.By))
}

func checkOutcome(service string, b Outcome) error {
	switch b.Judgement.Outcome {
	case compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened, compare.OutcomeUnknown:
	default:
		return fmt.Errorf("%q is no outcome that is recorded", b.Judgement.Outcome)
	}
	if b.Cost < 0 {
		return fmt.Errorf("cost %v is negative", b.Cost)
	}
	return errors.Join(keyed(service, b.Key), finite("cost", b.Cost))
}

func checkFreeze(_ string, b Freeze) error {
	return errors.Join(named("freeze id", b.ID), named("by", b.By))
}

func checkThaw(_ string, b Thaw) error {
	return errors.Join(named("freeze id", b.ID), named("by", b.By))
}

func checkPage(_ string, b escalate.Page) error { return named("page id", b.ID) }

func checkPageEnd(_ string, b PageEnd) error {
	return errors.Join(named("page", b.Page), named("reason", b.Reason))
}

func checkDelivery(_ string, b escalate.Delivery) error {
	return errors.Join(named("page", b.Page), named("receiver", b.Receiver))
}

func checkAck(_ string, b Ack) error {
	return errors.Join(named("page", b.Page), named("by", b.By))
}

func checkReset(service string, b Reset) error {
	if b.Action != "" && service == "" {
		return fmt.Errorf("reset of action %q without its service", b.Action)
	}
	return named("by", b.By)
}

func checkCheckpoint(_ string, b Checkpoint) error {
	if b.At.Seq == 0 {
		return errors.New("checkpoint of nothing")
	}
	return errors.Join(named("hash", b.At.Hash), named("state", b.State))
}

func checkLowered(service string, b Lowered) error {
	err := errors.Join(named("by", b.By), named("reason", b.Reason))
	switch {
	case service != "":
		return errors.Join(err, window(b.To))
	case b.To != "":
		return errors.Join(err, fmt.Errorf("window %q is of no service", b.To))
	}
	return err
}

func checkAdopted(_ string, b Adopted) error {
	return errors.Join(named("by", b.By), named("reason", b.Reason))
}

func checkCeiling(service string, b Ceiling) error {
	if b.To < gate.Deny || b.To > gate.Auto {
		return fmt.Errorf("%v is no verdict", b.To)
	}
	return errors.Join(named("service", service), named("by", b.By), named("reason", b.Reason))
}

func checkPolicy(_ string, b Policy) error {
	return errors.Join(named("revision", b.Revision), named("data", b.Data))
}

func named(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	return nil
}

func finite(what string, v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%s is %v", what, v)
	}
	return nil
}

func window(id string) error {
	_, err := gate.ParseWindowID(id)
	return err
}

// keyed reports whether the key is one of this service's.
func keyed(service string, k gate.Key) error {
	id, ok := strings.CutPrefix(string(k), service+":")
	if !ok || service == "" {
		return fmt.Errorf("key %q is none of service %q", k, service)
	}
	return window(id)
}

// windowOf is the window of a checked key.
func windowOf(k gate.Key) gate.WindowID {
	w, err := gate.ParseWindowID(string(k[strings.LastIndexByte(string(k), ':')+1:]))
	if err != nil {
		return gate.WindowID{}
	}
	return w
}
