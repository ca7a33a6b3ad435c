package approve

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Lead are the five lines that a card and a page begin with, in the order in
// which somebody who was just woken needs them. Each is one line of plain text.
type Lead struct {
	// Broken is what is broken, by how much and since when, as measured.
	Broken string `json:"broken"`
	// Step is what would be done to which target, or what was done and what was
	// measured after it.
	Step string `json:"step"`
	// Why is why a person is asked, or told.
	Why string `json:"why"`
	// Until is until when, and what happens then.
	Until string `json:"until"`
	// Do is what to do now.
	Do string `json:"do"`
}

// Lines are the five, in order.
func (l Lead) Lines() [5]string { return [5]string{l.Broken, l.Step, l.Why, l.Until, l.Do} }

// CardFacts are what a card is written from. All of it was measured, recorded or
// reviewed; the only words of a stranger are Ticket.Proposal.Rationale.
type CardFacts struct {
	Ticket Ticket
	// Service is the zero Service, but for its name, when no document has it.
	Service    spec.Service
	Assessment compare.Assessment
	// Since is the begin of the episode; zero when unknown.
	Since time.Time
	// Tried is oldest first: of the episode, and of the day before the question.
	Tried []propose.Tried
	// Balance is of the asked action; nil when there is none.
	Balance *budget.Balance
	// Course is what became of an approval.
	Course Course
	// Storm is why nothing can be approved just now; "" when it can.
	Storm string
	// PageURL and TraceURL lead to more; "" without.
	PageURL, TraceURL string
	// Now is the time of the pass.
	Now time.Time
}

// Course is what became of an approved ticket, as far as it is recorded.
type Course struct {
	// ClaimedAt, SentAt and JudgedAt are zero before.
	ClaimedAt time.Time
	SentAt    time.Time
	JudgedAt  time.Time
	// AppliedAt is from when its effect counts; zero while that is not known.
	AppliedAt time.Time
	// Effect is the actuator's word, Detail what it said of it, Outcome the
	// measured one; "" before. VoidReason is why a claim was never started.
	Effect, Detail, VoidReason string
	Outcome                    compare.Outcome
	// Before and After are error ratios; they count where the outcome is known.
	Before, After float64
	// Over: nothing more will happen to it.
	Over bool
}

// Card is what people see of one ticket. It exists while it should be shown;
// every pass reconciles what a channel holds with the cards that should exist.
type Card struct {
	// Ticket is its id, or DigestCard.
	Ticket  string `json:"ticket"`
	Service string `json:"service"`
	// Digest is that of the ticket: a click that names another one is refused.
	Digest string `json:"digest"`
	State  State  `json:"state"`
	// Title is one line, which is also the notification's text.
	Title string `json:"title"`
	Lead  Lead   `json:"lead"`
	// Sections come below the lead.
	Sections []Section `json:"sections"`
	// Exact is what an approval executes: the canonical JSON over which Digest
	// was made, or "" where NoClick says why it is not shown.
	Exact string `json:"exact"`
	// NoClick says why there is no button to approve although the ticket is open;
	// "" where there is one.
	NoClick string `json:"noClick"`
	// Words are the proposer's own, cleaned and short, and Speaker who it was.
	Words   string `json:"words"`
	Speaker string `json:"speaker"`
	// PageURL and TraceURL lead to more; "" without.
	PageURL  string `json:"pageURL"`
	TraceURL string `json:"traceURL"`
	// Expires is when an open ticket does.
	Expires time.Time `json:"expires,omitzero"`
	// Notes are what happened to it so far, oldest first; each is posted once,
	// below the card.
	Notes []Note `json:"notes"`
	// Final: nothing more will happen to it.
	Final bool `json:"final"`
	// Gist is a digest over the facts that make the card worth an update.
	// Numbers that move with each pass are not part of it.
	Gist string `json:"gist"`
}

// DigestCard is the id of the one card that lists the tickets for which there
// is no room in the channel.
const DigestCard = "digest"

// Open reports whether the card asks for an answer.
func (c Card) Open() bool { return c.State == Open }

// Section is a heading with its lines.
type Section struct {
	Heading string   `json:"heading"`
	Lines   []string `json:"lines"`
}

// Note is one line below a card.
type Note struct {
	// ID is the same however often it is derived.
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}
