// Package escalate is the hand-over to people. It takes what should be known
// by whom (Pages) and what receivers hold, and gives what must be sent now.
// Sending is at least once, with a stable dedup key for each episode.
package escalate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// Reasons that page, as labels and codes.
const (
	// CannotAct: a breach on which Setpoint cannot or may not act.
	CannotAct = "cannot-act"
	// Acting and Recovering are what an open page says while something is under
	// way, or once the service is met again and not for long enough.
	Acting     = "acting"
	Recovering = "recovering"
	// HandedOver: policy or the action's class escalates, or the proposer did.
	HandedOver  = "handed-over"
	Blind       = "blind"
	TrafficLost = "traffic-lost"
	SourceDown  = "source-down"
	InDoubt     = "in-doubt"
	PolicyFault = "policy-fault"
	LedgerFault = "ledger-fault"
	// KeyConflict: two writers wanted different bytes under one key.
	KeyConflict      = "key-conflict"
	ApprovalExpired  = "approval-expired"
	ApprovalVoid     = "approval-void"
	ApprovalNeeded   = "approval-needed"
	DependencyDown   = "dependency-down"
	Suspended        = "suspended"
	DocumentsRemoved = "documents-removed"
	// Storm: so many services at once that one page tells of all.
	Storm = "storm"
	// UndoHeld: an action made things worse and is not taken back.
	UndoHeld = "undo-held"
	// SpecProblem: never met since the documents were loaded, which is for whoever
	// owns them.
	SpecProblem = "spec-problem"
	// ExceptionExpired: an exception ended and is still in the documents.
	ExceptionExpired = "exception-expired"
	// ReceiverDown: a receiver takes no pages; the others are told.
	ReceiverDown = "receiver-down"
	// Heartbeat is no page: it shows that the way to a receiver is open.
	Heartbeat = "heartbeat"
)

// The severities, which are labels that people route by.
const (
	SeverityCritical = "critical"
	SeverityWarning  = "warning"
	// SeverityNone is that of a heartbeat: nobody is to be woken.
	SeverityNone = "none"
)

// Severity is that of a page opened for the reason. Critical is what is known
// or likely to hurt users now (a breach without a step, traffic that is gone,
// a target whose state nobody can tell) and a ledger that would lose the next
// page. Warning is what is not known to hurt: a measurement that is missing, a
// policy that does not load; each service that is breached meanwhile has its
// own critical page. A service that goes blind during a breach keeps the page,
// and the severity, of the breach. Any other word is critical.
func Severity(reason string) string {
	switch reason {
	case Blind, SourceDown, PolicyFault, DocumentsRemoved, SpecProblem, ExceptionExpired, ReceiverDown:
		return SeverityWarning
	case Heartbeat:
		return SeverityNone
	}
	return SeverityCritical
}

// Page is one thing that people should know. It exists while it should be
// open; every pass reconciles what receivers hold with the pages that should
// exist.
type Page struct {
	// ID is the dedup key: the episode's id for a service, or the subject for
	// a fault without one ("source/main", "policy", "ledger").
	ID      string `json:"id"`
	Service string `json:"service"`
	// Owner is the service's, as its documents say; "" without.
	Owner   string `json:"owner,omitempty"`
	Episode string `json:"episode"`
	// Reason is the one it was opened for. It is part of the receivers'
	// identity and never changes; Now holds the present one.
	Reason   string `json:"reason"`
	Now      string `json:"now"`
	Severity string `json:"severity"`
	// Lead is what somebody who was just woken needs first. Text begins with it.
	Lead approve.Lead `json:"lead,omitzero"`
	// Summary is one line; Text is the body: the five lines of the lead, then what
	// is measured, what was tried, what else can be run.
	Summary string `json:"summary"`
	Text    string `json:"text"`
	// Gist is a digest over the facts that make the page worth sending again.
	// Numbers that move with each pass are not part of it. Empty: Summary and
	// Text stand for it.
	Gist string `json:"gist,omitempty"`
	// Receivers by name, in order.
	Receivers []string  `json:"receivers"`
	Since     time.Time `json:"since"`
	// EndedAt is zero while open; EndReason is recovered, document-removed or
	// ended-by-<principal>.
	EndedAt   time.Time `json:"endedAt,omitzero"`
	EndReason string    `json:"endReason"`
	// AckedBy is who took it; AckedVia says where (cli, web, slack or the name of a
	// receiver) and AckedAt when.
	AckedBy  string    `json:"ackedBy"`
	AckedVia string    `json:"ackedVia,omitempty"`
	AckedAt  time.Time `json:"ackedAt,omitzero"`
}

// Acknowledged is the page with what is known of who took the other one.
func (p Page) Acknowledged(known Page) Page {
	p.AckedBy, p.AckedVia, p.AckedAt = known.AckedBy, known.AckedVia, known.AckedAt
	return p
}

// Receiver delivers pages by one technology. Send is idempotent by Page.ID; a
// page with EndedAt set ends what the receiver holds. ref is what an earlier Send
// of that page returned, "" before: the receiver's own name of what it holds,
// which is kept for it. A receiver that tells pages by their id returns "".
type Receiver interface {
	Name() string
	Send(ctx context.Context, p Page, ref string) (newRef string, err error)
}

// ContentDigest is over what a receiver shows, as far as a change of it is
// worth a delivery: reason, present reason, severity, gist and end. It knows
// nothing of delivery times, acknowledgements and receivers.
func (p Page) ContentDigest() string {
	content := struct {
		ID, Service, Reason, Now, Severity, Gist, Summary, Text, EndReason string
		Ended                                                              bool
	}{
		ID: p.ID, Service: p.Service, Reason: p.Reason, Now: p.Now, Severity: p.Severity, Gist: p.Gist,
		EndReason: p.EndReason, Ended: !p.EndedAt.IsZero(),
	}
	if p.Gist == "" {
		content.Summary, content.Text = p.Summary, p.Text
	}
	return digest(content)
}

// digest is the SHA-256 (hex) of the JSON of plain values.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// A number that JSON cannot hold. The type's own text serves as well.
		b = []byte(err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// AlertName is the label alertname of pages at Alertmanager.
const AlertName = "SetpointEscalation"

// HeartbeatName is that of heartbeats: a route that wakes people for every page,
// by AlertName, must not wake them for a sign of life.
const HeartbeatName = "SetpointHeartbeat"

// Labels are the identity of the page at Alertmanager. They do not change
// during an episode.
func (p Page) Labels() map[string]string {
	name := AlertName
	if p.Reason == Heartbeat {
		name = HeartbeatName
	}
	return map[string]string{
		"alertname": name, "service": p.Service, "episode": p.ID,
		"severity": p.Severity, "reason": p.Reason,
	}
}

// Annotations are what receivers of Alertmanager's kind show and may change.
func (p Page) Annotations() map[string]string {
	as := map[string]string{"summary": p.Summary, "description": p.Text, "now": p.Now}
	if !p.EndedAt.IsZero() {
		as["ended"] = p.EndReason
	}
	return as
}
