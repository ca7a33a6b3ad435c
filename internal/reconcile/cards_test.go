package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

var errLost = errors.New("the reply was lost")

// TestCardAsks: the card is posted with the ticket, nobody is woken while it
// stands there, and a sweep that changes nothing writes nothing.
func TestCardAsks(t *testing.T) {
	w, ch := boarded(t)
	asked := w.asks()
	ch.stands(t, asked.ID, 1, approve.Open)
	before := len(w.entries())
	w.run(5 * time.Minute)
	if n := len(w.entries()) - before; n != 0 {
		t.Errorf("%d entries while nothing changed:\n%s", n, w.dump())
	}
	if n := ch.called("look"); n < 3 || n > 6 {
		t.Errorf("looked %d times in five minutes whether it still stands there", n)
	}
	if w.page() != "" {
		t.Errorf("somebody was woken: %s", w.pager.reasons())
	}
	p := w.card(asked.ID)
	if m, ok := p.Live(); !ok || m.Link != "https://chat.example/"+asked.ID || p.Closed {
		t.Errorf("recorded: %+v", p)
	}
}

// TestCardLinks: from the card people reach what was decided, and the trace of the
// pass that asked.
func TestCardLinks(t *testing.T) {
	w, ch := boarded(t)
	w.cfg.Web.ExternalURL, w.cfg.Telemetry.TraceURL = "https://setpoint.example/", "https://traces.example/{trace}"
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample())).Tracer("test")
	asked := w.asks()
	got := ch.of(asked.ID)[0].card
	if want := "https://setpoint.example/api/v1/decisions/" + asked.Decision; got.PageURL != want {
		t.Errorf("page at %q, want %q", got.PageURL, want)
	}
	if want := "https://traces.example/" + asked.Trace; len(asked.Trace) != 32 || got.TraceURL != want {
		t.Errorf("trace at %q, want %q", got.TraceURL, want)
	}
}

// TestShownCardEscalates: promise 8 holds whatever the channel shows.
func TestShownCardEscalates(t *testing.T) {
	w, _ := boarded(t)
	w.set.Services[0].Remediation.EscalateWithin = 6 * time.Minute
	began := w.asks()
	w.run(5 * time.Minute)
	if w.page() != "" {
		t.Fatalf("woken before escalateWithin: %s", w.pager.reasons())
	}
	w.run(2 * time.Minute)
	if got := w.page(); got != escalate.ApprovalNeeded {
		t.Errorf("page %q, want %s after escalateWithin", got, escalate.ApprovalNeeded)
	}
	w.run(12 * time.Minute)
	if got, t7 := w.page(), w.ticket(began.ID); got != escalate.ApprovalExpired || t7.State != approve.Expired {
		t.Errorf("page %q, ticket %s, want an expiry that pages", got, t7.State)
	}
}

// TestCardTellsTheCourse: what happened is said in order, once each, whatever is
// restarted in between, and the card ends with it.
func TestCardTellsTheCourse(t *testing.T) {
	w, ch := boarded(t)
	asked := w.asks()
	w.said(asked, true)
	for i := range 40 {
		w.sweep()
		if i%3 == 1 {
			w.restart()
		}
		if w.card(asked.ID).Closed {
			break
		}
	}
	ch.stands(t, asked.ID, 1, approve.Approved)
	b := ch.of(asked.ID)[0]
	want := []string{"answer-1", "claim", "sent", "effect-applied", "outcome-no-change"}
	if diff := cmp.Diff(want, b.notes); diff != "" {
		t.Errorf("notes, -want +got:\n%s", diff)
	}
	if !b.card.Final || !w.card(asked.ID).Closed {
		t.Errorf("the card is not over: %+v", w.card(asked.ID))
	}
	about := ch.called("update "+asked.ID) + ch.called("look "+b.m.ID)
	w.run(5 * time.Minute)
	if n := ch.called("update "+asked.ID) + ch.called("look "+b.m.ID) - about; n != 0 || len(b.notes) != len(want) {
		t.Errorf("%d requests about a closed card: %v", n, ch.calls)
	}
}

// TestCrashBetweenPostAndRecord: the process dies when the card stands in the
// channel and before the ledger knows. The next one finds it; it posts nothing,
// and where the ticket is over by then its buttons go.
func TestCrashBetweenPostAndRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		ends bool
		want approve.State
	}{"StillOpen": {false, approve.Open}, "OverMeanwhile": {true, approve.Denied}} {
		t.Run(name, func(t *testing.T) {
			w, ch := boarded(t)
			ch.fault = func(op, _ string) (error, error) {
				if op == "post" {
					w.faulty.fill(errors.New("killed")) // nothing more is written by this process
				}
				return nil, nil
			}
			asked := w.asks()
			ch.well()
			if p := w.card(asked.ID); p.Begun.IsZero() || len(p.Messages) != 0 {
				t.Fatalf("recorded %+v: nothing is tried", p)
			}
			w.restart()
			if tc.ends {
				w.said(asked, false)
			}
			w.run(2 * time.Minute)
			ch.stands(t, asked.ID, 1, tc.want)
			if ch.called("post") != 1 || ch.called("find") == 0 {
				t.Errorf("requests %v", ch.calls)
			}
		})
	}
}

// TestNoCardWithoutALedger: a click could not be recorded, so nothing is asked.
func TestNoCardWithoutALedger(t *testing.T) {
	w, ch := boarded(t)
	ch.failing("post", &approve.Refused{Code: "not_in_channel"})
	w.asks()
	ch.well()
	posts := ch.called("post")
	w.faulty.fill(errors.New("disk full"))
	w.run(5 * time.Minute)
	if n := ch.called("post") - posts; n != 0 {
		t.Errorf("%d posts while nothing can be recorded", n)
	}
	w.faulty.fill(nil)
	w.run(6 * time.Minute)
	if n := ch.called("post") - posts; n != 1 {
		t.Errorf("%d posts when it could be again", n)
	}
}

// TestHungBoardHoldsUpNobody: a channel that answers nobody delays neither a pass
// nor a page, of its own service or of another.
func TestHungBoardHoldsUpNobody(t *testing.T) {
	w := live(t)
	ch := w.board()
	ch.hang = make(chan struct{})
	stop := w.loop()
	w.broken()
	for _, service := range []string{"a", "b"} {
		w.soon("ticket of "+service, func(s *ledger.State) bool { _, ok := s.OpenTicket(service); return ok })
		w.soon("page of "+service+" while the channel hangs", paged(w, service))
	}
	asked := w.openTicket("a")
	w.soon("card that is on its way", func(s *ledger.State) bool { p := s.Cards[asked.ID]; return p != nil && !p.Begun.IsZero() })
	w.said(asked, true)
	w.soon("approved effect", func(*ledger.State) bool { return len(w.actuator.Effects()) == 1 })
	close(ch.hang)
	stop()
}

// TestManyTickets: two hundred questions are five cards, the oldest, and one
// digest; what is listed there pages. As cards are answered, others take their
// place.
func TestManyTickets(t *testing.T) {
	const n = 200
	broken := map[string]float64{}
	w := manyOf(t, n, broken)
	ch := w.board()
	w.cfg.Limits.OpenApprovals, w.cfg.Limits.StormMin = n, 2*n
	w.start()
	w.sweeps(12 * time.Minute)
	for i := range n {
		broken[fmt.Sprintf("s%d", i)] = 0.3
	}
	w.sweeps(3 * time.Minute)
	open := 0
	w.r.View(func(s *ledger.State) { open = s.OpenTickets() })
	if open != n {
		t.Fatalf("%d open tickets: nothing is tried", open)
	}
	if got := ch.called("post"); got != 6 || ch.called("post digest") != 1 {
		t.Errorf("%d posts, want five cards and one digest", got)
	}
	digest := ch.of(approve.DigestCard)[0].card
	if !digest.Open() || !strings.Contains(digest.Title, "195") {
		t.Errorf("the digest says %q", digest.Title)
	}
	if pages := len(w.pager.open()); pages != n-5 {
		t.Errorf("%d pages, want one for each that no card asks", pages)
	}
	var first approve.Ticket
	w.r.View(func(s *ledger.State) {
		for _, ticket := range s.Tickets {
			if s.Cards[ticket.ID] != nil {
				first = *ticket
			}
		}
	})
	w.said(first, false)
	w.sweeps(time.Minute)
	if got := ch.called("post"); got != 7 {
		t.Errorf("%d posts when one card was answered, want one more", got)
	}
}

// TestStormTakesNoNewCards: while nothing can be approved no card is added, those
// that stand show it, and what is asked waits in the digest.
func TestStormTakesNoNewCards(t *testing.T) {
	broken := map[string]float64{"s0": 0.3}
	w := manyOf(t, 10, broken)
	delete(broken, "s0")
	ch := w.board()
	w.cfg.Limits.OpenApprovals = 10
	w.start()
	w.sweeps(12 * time.Minute)
	broken["s0"] = 0.3
	w.sweeps(3 * time.Minute)
	own := w.openTicket("s0")
	ch.stands(t, own.ID, 1, approve.Open)
	ch.failing("post", &approve.Refused{Code: "not_in_channel"})
	broken["s1"] = 0.3
	w.sweeps(3 * time.Minute)
	second := w.openTicket("s1")
	for i := range 7 {
		broken[fmt.Sprintf("s%d", i)] = 0.3
	}
	w.sweeps(3 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormOn {
		t.Fatalf("brake %+v: nothing is tried", at)
	}
	ch.well()
	w.sweeps(6 * time.Minute)
	b := ch.of(own.ID)[0]
	if b.live() || !strings.Contains(b.card.NoClick, "storm") || !b.card.Open() {
		t.Errorf("the card of %s can be approved in a storm: %q", own.ID, b.card.NoClick)
	}
	if n := len(ch.of(second.ID)); n != 0 {
		t.Errorf("%d cards were added in a storm", n)
	}
	if n := len(ch.of(approve.DigestCard)); n != 1 {
		t.Errorf("%d digests", n)
	}
	// A deny can only stop something.
	w.said(own, false)
	w.sweeps(time.Minute)
	ch.stands(t, own.ID, 1, approve.Denied)
}

// TestSighted: what is clicked is brought up to date, and nothing else is
// remembered.
func TestSighted(t *testing.T) {
	w, ch := boarded(t)
	asked := w.asks()
	known := ch.of(asked.ID)[0].m
	before := len(w.entries())
	for _, m := range []approve.Message{{}, {Channel: "C1"}, known} {
		if err := w.r.Sighted(t.Context(), asked.ID, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.r.Sighted(t.Context(), "t99999", approve.Message{Channel: "C1", ID: "9.9"}); err != nil {
		t.Errorf("an unknown ticket: %v", err)
	}
	if n := len(w.entries()) - before; n != 0 {
		t.Errorf("%d entries of nothing new:\n%s", n, w.dump())
	}
	for i := range 50 {
		if err := w.r.Sighted(t.Context(), asked.ID, approve.Message{Channel: "C1", ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.card(asked.ID).Messages); n != 10 {
		t.Errorf("%d messages are remembered", n)
	}
}
