package crash

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// clicked are the episodes in which a person approves in Slack: over HTTP, over
// Socket Mode, and with an actuator whose answer is lost.
var clicked = []world.Options{
	{Class: "approval", Mode: executetest.ModeOK, Slack: "http"},
	{Class: "approval", Mode: executetest.ModeOK, Slack: "socket"},
	{Class: "approval", Mode: executetest.ModeDropReply, Slack: "http"},
}

// slowly is when somebody answers who is late: after a post that was begun by a
// process that is gone has been looked for.
const slowly = approve.PostFor + 8*time.Second

// posting are the points around the first post of a card.
var posting = []string{"before card#1", "after card#1", "before card#2", "after card#2"}

// clickPatience is longer than it takes until a post that was begun by a process
// that is gone is looked for.
const clickPatience = slowly + patience

// clickCases kill an agent at each point from the asking to the effect, and
// before each system call by which the click is recorded.
func clickCases(ctx context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, o := range clicked {
		if p.short && o != clicked[0] {
			continue
		}
		points, err := p.clickPoints(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("a dry run of clicks over %s: %w", o.Slack, err)
		}
		for _, point := range points {
			if p.short && !slices.Contains([]string{"before answer#1", "after answer#1"}, point) {
				continue
			}
			cases = append(cases, clickKills(o, point, p.short)...)
		}
	}
	if p.short {
		return cases, nil
	}
	inside, err := clickedInside(ctx, p)
	return append(cases, inside...), err
}

// clickKills kill at one point; around the first post of a card with somebody who
// is late, too.
func clickKills(o world.Options, point string, short bool) []Case {
	into := func(ctx context.Context, r *run) bool { return r.runInto(ctx, world.Rig{At: point, Do: "kill"}) }
	cases := []Case{clickCase(o, "kill at "+point, 0, into)}
	if o == clicked[0] && !short && slices.Contains(posting, point) {
		cases = append(cases, clickCase(o, "kill at "+point+", clicked late", slowly, into))
	}
	return cases
}

// clickName names an episode on the command line.
func clickName(o world.Options) string { return o.Slack + "/" + string(o.Mode) }

// clickCase runs an agent into its end while a person clicks, and another one to
// the end of the episode.
func clickCase(o world.Options, what string, after time.Duration, into func(ctx context.Context, r *run) bool) Case {
	return Case{Name: clickName(o) + "/" + what, run: func(ctx context.Context, s *world.Slot) Result {
		w, err := s.New(ctx, o)
		if err != nil {
			return failed(err)
		}
		r := begin(w)
		watched, stop := context.WithCancel(ctx)
		defer stop()
		person := w.Click(watched, after)
		r.result.Reached = into(ctx, r)
		return r.clickEnd(ctx, person)
	}}
}

// clickEnd lets a clean agent run on until the episode is over and the channel
// shows it, and judges.
func (r *run) clickEnd(ctx context.Context, person *world.Clicker) Result {
	agent, err := r.Start(world.Rig{})
	if err != nil {
		return r.giveUp(err)
	}
	err = r.Until(ctx, agent, clickPatience, func() bool { return r.over(ctx) })
	if err != nil {
		r.broke("the episode never ended: %v", err)
	}
	shown := r.Until(ctx, agent, clickPatience, func() bool { return err != nil || r.shown(ctx) })
	if err := agent.Stop(patience); err != nil {
		r.broke("%v", err)
	}
	r.judge(ctx)
	r.judgeClicks(ctx, person.Presses(), shown)
	return r.result
}

// shown reports whether no button approves a ticket that is over.
func (r *run) shown(ctx context.Context) bool {
	open, err := r.OpenTickets(ctx)
	return err == nil && !slices.ContainsFunc(r.Buttons(), func(b world.LiveButton) bool { return !slices.Contains(open, b.Ticket()) })
}

// clickPoints are the points of an episode from its ticket on.
func (p *planner) clickPoints(ctx context.Context, o world.Options) ([]string, error) {
	w, err := p.New(ctx, o)
	if err != nil {
		return nil, err
	}
	r := begin(w)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	result := r.clickEnd(ctx, w.Click(watched, 0))
	if len(result.Violations) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(result.Violations, "; "))
	}
	passed, err := w.Points()
	if err != nil {
		return nil, err
	}
	var points []string
	for _, at := range passed {
		if len(points) > 0 || strings.HasPrefix(at.Point, "before ") && strings.Contains(at.Point, string(ledger.KindTicket)) {
			points = append(points, at.Point)
		}
	}
	for _, want := range []string{"before answer#1", "after answer#1", "sent#1"} {
		if !slices.Contains(points, want) {
			return nil, fmt.Errorf("there is no %q in it, only %s", want, strings.Join(points, ", "))
		}
	}
	return points, nil
}

// Clicks is what became of the clicks of one run, or of many.
type Clicks struct {
	// Pressed are all; Acknowledged those that showed no warning; Recorded the
	// answers in the ledger; Lost are acknowledged ones that are not among them.
	Pressed      int `json:"pressed"`
	Acknowledged int `json:"acknowledged"`
	Recorded     int `json:"recorded"`
	Lost         int `json:"lost"`
	Twice        int `json:"twice"`
	// Tickets were asked, Cards posted for them; Dead are buttons that approve
	// what is over.
	Tickets int `json:"tickets"`
	Cards   int `json:"cards"`
	Dead    int `json:"dead"`
}

func (c Clicks) add(o Clicks) Clicks {
	return Clicks{
		Pressed: c.Pressed + o.Pressed, Acknowledged: c.Acknowledged + o.Acknowledged, Recorded: c.Recorded + o.Recorded,
		Lost: c.Lost + o.Lost, Twice: c.Twice + o.Twice, Tickets: c.Tickets + o.Tickets, Cards: c.Cards + o.Cards, Dead: c.Dead + o.Dead,
	}
}

// write prints the line of clicks below the table, where there were any.
func (c Clicks) write(w io.Writer) {
	if c.Pressed == 0 {
		return
	}
	fmt.Fprintf(w, "clicks: %d, of which %d acknowledged; %d recorded, %d lost, %d twice; %d tickets with %d cards, %d live buttons of what is over\n",
		c.Pressed, c.Acknowledged, c.Recorded, c.Lost, c.Twice, c.Tickets, c.Cards, c.Dead)
}

// asked is what the ledger says of tickets.
type asked struct {
	tickets map[string]approve.Ticket
	answers map[string][]approve.Answer
	ended   map[string]bool
}

// judgeClicks holds the ledger and the channel against what the person did. shown
// is nil when no button was left that approves what is over.
func (r *run) judgeClicks(ctx context.Context, presses []world.Press, shown error) {
	said, err := r.asked(ctx)
	if err != nil {
		r.broke("%v", err)
		return
	}
	c := Clicks{Pressed: len(presses), Tickets: len(said.tickets)}
	acknowledged := map[string]world.Press{}
	for _, p := range presses {
		if p.Acknowledged {
			c.Acknowledged++
			acknowledged[p.Ticket] = p
		}
	}
	for ticket, p := range acknowledged {
		if len(said.answers[ticket]) == 0 {
			c.Lost++
			r.broke("the click on %s at %s was acknowledged, and the ledger has no answer", ticket, p.At.Format(time.StampMilli))
		}
	}
	r.judgeAnswers(&c, said, presses)
	for ticket, n := range r.Posts() {
		if c.Cards += n; n > 1 && ticket != approve.DigestCard {
			r.broke("%s has %d cards in the channel: what may have been posted was not looked for", ticket, n)
		}
	}
	for _, b := range r.Buttons() {
		if said.over(b.Ticket()) {
			c.Dead++
			r.broke("message %s still has a button that approves %s, which is over (waited: %v)", b.TS, b.Ticket(), shown)
		}
	}
	r.result.Clicks = c
}

// judgeAnswers: each recorded answer is the person's, is one for its ticket, and
// is of bytes that were shown and clicked.
func (r *run) judgeAnswers(c *Clicks, said asked, presses []world.Press) {
	for ticket, answers := range said.answers {
		c.Recorded += len(answers)
		if len(answers) > 1 {
			c.Twice++
			r.broke("%s has %d recorded answers, want one", ticket, len(answers))
		}
		for _, a := range answers {
			clicked := slices.ContainsFunc(presses, func(p world.Press) bool {
				return p.Ticket == ticket && p.Digest == said.tickets[ticket].Digest
			})
			if a.By != world.Person || !a.Approve || !clicked {
				r.broke("%s was answered by %s (approve: %t), and the person clicked %v", ticket, a.By, a.Approve, presses)
			}
		}
	}
}

// over reports whether a ticket is no longer open.
func (t asked) over(ticket string) bool {
	return t.ended[ticket] || len(t.answers[ticket]) > 0
}

// asked reads the exported ledger.
func (r *run) asked(ctx context.Context) (asked, error) {
	exported, err := r.Export(ctx)
	if err != nil {
		return asked{}, err
	}
	t := asked{tickets: map[string]approve.Ticket{}, answers: map[string][]approve.Answer{}, ended: map[string]bool{}}
	for _, e := range exported.Entries {
		body, err := ledger.Decode(e)
		if err != nil {
			return asked{}, err
		}
		switch b := body.(type) {
		case approve.Ticket:
			t.tickets[fmt.Sprintf("t%d", e.Seq)] = b
		case approve.Answer:
			t.answers[b.Ticket] = append(t.answers[b.Ticket], b)
		case ledger.TicketEnd:
			t.ended[b.Ticket] = true
		}
	}
	return t, nil
}
