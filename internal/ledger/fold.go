package ledger

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Apply folds one entry in, in order. It refuses one that does not follow
// (ErrCorrupt), an unreadable one (ErrCorrupt) and a kind that it does not
// know (ErrUnknownKind); then the state is unchanged.
//
// An entry that follows but contradicts (a second outcome of one key, an
// answer to a closed ticket) changes nothing and is listed in Skipped: what
// came first is final, and one needless entry must not stop every later start.
func (s *State) Apply(e Entry) error {
	if err := Verify(s.Head, e); err != nil {
		return err
	}
	if err := InTime(s.Time, e); err != nil {
		return err
	}
	if (e.Kind == KindInit) != (e.Seq == 1) {
		return fmt.Errorf("%w: entry %d is of kind %s; a chain begins with %s and holds no second one", ErrCorrupt, e.Seq, e.Kind, KindInit)
	}
	body, err := Decode(e)
	if err != nil {
		return err
	}
	if why := kinds[e.Kind].fold(s, e, body); why != "" {
		s.Skipped = append(s.Skipped, Skip{Seq: e.Seq, Kind: e.Kind, Why: why})
	}
	s.Head, s.Time = e.Position(), e.Time
	s.forget(e)
	return nil
}

// Fold applies entries in turn.
func Fold(entries []Entry) (*State, error) {
	s := NewState()
	for _, e := range entries {
		if err := s.Apply(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func foldInit(*State, Entry, Init) string { return "" }

func foldDocuments(s *State, e Entry, b Documents) string {
	s.Set = b.Set
	for name, digest := range b.Services {
		sv := s.edit(name)
		if sv.Documents != digest {
			sv.Documents, sv.DocumentsAt = digest, e.Time
			sv.EverMet, sv.QuietFor = false, 0
			s.put(sv)
		}
	}
	for name, sv := range s.Services {
		if _, named := b.Services[name]; !named && sv.Documents != "" {
			s.put(sv.forgotten(e))
		}
	}
	return ""
}

// forgotten is a service that no document names any more: it is not measured,
// so what was measured ends here. What was done to it stays.
func (sv *Service) forgotten(e Entry) *Service {
	return &Service{
		Name: sv.Name, DocumentsAt: e.Time, LastMet: sv.LastMet,
		Windows: sv.Windows, Mark: sv.Mark, Spent: sv.Spent, Actions: sv.Actions,
		Effects: sv.Effects, Tickets: sv.Tickets, Decision: sv.Decision,
	}
}

func foldGap(s *State, e Entry, _ Gap) string {
	for name, sv := range s.Services {
		// An entry of one service is a gap in watching that one alone.
		if sv.State != compare.Met || e.Service != "" && e.Service != name {
			continue
		}
		sv = s.edit(name)
		if sv.Episode == "" {
			// Watched at least until the entry before.
			sv.QuietFor = max(sv.QuietFor, sv.quiet(s.Time))
		}
		sv.HeldSince = e.Time
		s.put(sv)
	}
	return ""
}

func foldState(s *State, e Entry, b StateChange) string {
	sv := s.edit(e.Service)
	if sv.State != "" && b.From != sv.State {
		return fmt.Sprintf("the change is from %s, the service is %s", b.From, sv.State)
	}
	if b.To == compare.Met {
		sv.enterMet(e)
	} else {
		sv.missMet(e)
	}
	if b.To != sv.State {
		sv.Since = e.Time
	}
	sv.State, sv.Reason, sv.SourceFault, sv.ErrorRatio = b.To, b.Reason, b.SourceFault, b.ErrorRatio
	sv.Reader, sv.StateAt = b.By, e.Time
	s.put(sv)
	return ""
}

func (sv *Service) enterMet(e Entry) {
	sv.EverMet = true
	if sv.State == compare.Met {
		return
	}
	sv.HeldSince, sv.LastMet = e.Time, e.Time
	if sv.Episode == "" {
		sv.QuietSince = e.Time
	}
}

func (sv *Service) missMet(e Entry) {
	if sv.Episode == "" {
		sv.QuietFor = max(sv.QuietFor, sv.quiet(e.Time))
		sv.Episode, sv.EpisodeSince, sv.QuietSince = EpisodeID(e.Seq), e.Time, time.Time{}
	}
	if sv.State == compare.Met {
		sv.LastMet = e.Time
	}
	sv.HeldSince = time.Time{}
}

func foldRecovered(s *State, e Entry, b Recovered) string {
	sv := s.edit(e.Service)
	switch {
	case sv.Episode != b.Episode:
		return fmt.Sprintf("the service's episode is %q, not %s", sv.Episode, b.Episode)
	case sv.State != compare.Met:
		return fmt.Sprintf("the service is %s", sv.State)
	}
	sv.Episode, sv.EpisodeSince, sv.QuietSince = "", time.Time{}, e.Time
	s.put(sv)
	return ""
}

// window returns a copy of a window to change and to put back.
func (sv *Service) window(id string) *Window {
	if have, ok := sv.Windows[id]; ok {
		c := *have
		return &c
	}
	return &Window{ID: id}
}

// putWindow stores a window, raises the mark and drops the oldest windows.
func (sv *Service) putWindow(w *Window) {
	sv.Windows = maps.Clone(sv.Windows)
	if sv.Windows == nil {
		sv.Windows = map[string]*Window{}
	}
	sv.Windows[w.ID] = w
	for len(sv.Windows) > keptWindows {
		delete(sv.Windows, oldest(sv.Windows))
	}
	sv.mark(w.ID)
}

func (sv *Service) mark(id string) {
	if w := startOf(id); w.Start > sv.Mark.Start || sv.Mark == (gate.WindowID{}) {
		sv.Mark = w
	}
}

func oldest(ws map[string]*Window) string {
	first := ""
	for id := range ws {
		if first == "" || startOf(id).Start < startOf(first).Start ||
			startOf(id).Start == startOf(first).Start && id < first {
			first = id
		}
	}
	return first
}

// startOf is the window of a checked id.
func startOf(id string) gate.WindowID { return windowOf(gate.Key(":" + id)) }

func foldAsked(s *State, e Entry, b Asked) string {
	sv := s.edit(e.Service)
	w := sv.window(b.Window)
	if w.Asked != nil {
		return "the window was asked for already"
	}
	w.Asked, w.AskedAt = &b, e.Time
	sv.putWindow(w)
	s.put(sv)
	s.asks(e, b)
	return ""
}

func foldProposed(s *State, e Entry, b Proposed) string {
	sv := s.edit(e.Service)
	w := sv.window(b.Window)
	// An undo comes before any other proposal.
	if w.Proposed != nil && (!b.Proposal.Undo || w.Proposed.Proposal.Undo) {
		return "the window has a proposal already"
	}
	w.Proposed, w.ProposalAt, w.Final = &b, e.Time, ""
	switch b.Proposal.Kind {
	case propose.KindNone:
		w.Final = FinalNone
	case propose.KindMalformed:
		w.Final = FinalMalformed
	}
	sv.putWindow(w)
	sv.asked(b)
	s.put(sv)
	s.answered(e.Service, b)
	return ""
}

func foldDecided(s *State, e Entry, b Decided) string {
	id := DecisionID(e.Seq)
	s.Decisions[id] = &Decision{
		ID: id, Time: e.Time, Service: e.Service, Decided: b,
		Effect: execute.None, Outcome: compare.OutcomeNone,
	}
	s.DecisionOrder = append(s.DecisionOrder, id)
	s.refuseUndo(b)
	sv := s.edit(e.Service)
	w := sv.window(b.Window)
	w.Decision, sv.Decision = id, id
	if denied(b.Decision) {
		w.Final = FinalDenied
	}
	sv.putWindow(w)
	s.put(sv)
	return ""
}

// refuseUndo remembers that an undo was refused for good: it is not proposed
// again in the next window, and people have it.
func (s *State) refuseUndo(b Decided) {
	have, ok := s.Effects[gate.Key(b.Proposal.Undoes)]
	refused := denied(b.Decision) || b.Decision.Verdict == gate.Escalate
	if !b.Proposal.Undo || !ok || !refused || len(b.Decision.Reasons) == 0 {
		return
	}
	c := *have
	c.UndoRefused = b.Decision.Reasons[0].Text
	s.setEffect(&c)
}

// denied reports whether a decision is final for its window: a denial that
// neither time alone nor a repaired policy lifts.
func denied(d gate.Decision) bool {
	fault := d.Ruling.Fault != "" && !strings.HasPrefix(d.Ruling.Fault, gate.ReasonUndefined)
	return d.Verdict == gate.Deny && !d.Hold && !fault
}
