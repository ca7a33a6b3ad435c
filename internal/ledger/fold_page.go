package ledger

import (
	"fmt"
	"maps"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// foldPage keeps what receivers know a page by: while it is open its reason
// and its begin are those it was opened with, and an acknowledgement stands.
func foldPage(s *State, _ Entry, b escalate.Page) string {
	old, ok := s.Pages[b.ID]
	switch {
	case ok && old.EndedAt.IsZero():
		b.Reason, b.Since = old.Reason, old.Since
		if old.AckedBy != "" {
			b = b.Acknowledged(*old)
		}
	case ok:
		s.forgetEnded(b.ID)
	}
	s.Pages[b.ID] = &b
	return ""
}

// forgetEnded drops the deliveries whose end was delivered: those receivers
// hold nothing of a page that is opened again.
func (s *State) forgetEnded(page string) {
	kept := maps.Clone(s.Deliveries[page])
	maps.DeleteFunc(kept, func(_ string, d escalate.Delivery) bool { return d.Ended })
	s.Deliveries[page] = kept
	if len(kept) == 0 {
		delete(s.Deliveries, page)
	}
}

func foldPageEnd(s *State, e Entry, b PageEnd) string {
	old, ok := s.Pages[b.Page]
	if !ok || !old.EndedAt.IsZero() {
		return fmt.Sprintf("page %s is not open", b.Page)
	}
	c := *old
	c.EndedAt, c.EndReason = e.Time, b.Reason
	s.Pages[c.ID] = &c
	return ""
}

func foldDelivery(s *State, _ Entry, b escalate.Delivery) string {
	if _, ok := s.Pages[b.Page]; !ok {
		return "there is no page " + b.Page
	}
	held := maps.Clone(s.Deliveries[b.Page])
	if held == nil {
		held = map[string]escalate.Delivery{}
	}
	held[b.Receiver] = b
	s.Deliveries[b.Page] = held
	return ""
}

func foldAck(s *State, e Entry, b Ack) string {
	old, ok := s.Pages[b.Page]
	if !ok || !old.EndedAt.IsZero() || old.AckedBy != "" {
		return fmt.Sprintf("page %s is not open, or acknowledged already", b.Page)
	}
	c := *old
	c.AckedBy, c.AckedVia, c.AckedAt = b.By, b.Via, e.Time
	s.Pages[c.ID] = &c
	return ""
}
