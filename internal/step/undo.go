package step

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// UndoKind is the kind of the loop itself as a proposer.
const UndoKind = "undo"

// UndoOf is the proposal that takes an effect back: the same action, with the
// state that was observed at the claim for each parameter that it set. One that
// was not observed, or was no value that a parameter can have, is missing, which
// the gate refuses: a list here would be an entry that no ledger takes.
func UndoOf(e ledger.Effect) propose.Proposal {
	back := propose.Parameters{}
	for name := range e.Claim.Parameters {
		switch was := e.Claim.Live[name].(type) {
		case int64, float64, string, bool:
			back[name] = was
		}
	}
	return propose.Proposal{
		Kind: propose.KindAction, Action: e.Claim.Action.Name, Parameters: back, Undo: true, Undoes: string(e.Claim.Key),
		Rationale: fmt.Sprintf("%s made things worse, so what it changed is put back", e.Claim.Key),
		Proposer:  propose.Proposer{Kind: UndoKind},
	}
}

// undo proposes to take back what made things worse, before anything else. No
// floor is looked at here: whatever is in the way is recorded as the decision's,
// because people must know of it at once.
func undo(s Situation) (Step, bool) {
	if s.Undo == nil || s.Ticket != nil && s.Ticket.Proposal.Undo {
		return Step{}, false
	}
	p := UndoOf(*s.Undo)
	return Step{Kind: Propose, Key: s.UndoKey, Recorded: &p, Reasons: []gate.Reason{{Code: ReasonUndo, Text: p.Rationale}}}, true
}
