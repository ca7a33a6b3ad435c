package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// glance is how often the demo looks: often enough to miss no pass.
const glance = 250 * time.Millisecond

// stage is what play keeps from one look to the next.
type stage struct {
	tracker *tracker
	// first is when the first fault came; zero before.
	first time.Time
	// asked are the tickets that were shown, paged the pages.
	asked, paged map[string]bool
	person       *person
	// withdraw ends an open question.
	withdraw map[string]context.CancelFunc
	answers  chan answered
	// dark is since when the agent does not answer; zero while it does.
	dark time.Time
}

// answered is what came back from the person.
type answered struct {
	service, ticket string
	answer          answer
	err             error
}

// play injects the faults, shows every pass that says something new, and asks
// the person, until there is nothing more to see or ctx ends.
func (d *demo) play(ctx context.Context) error {
	st := &stage{
		tracker: newTracker(), asked: map[string]bool{}, paged: map[string]bool{},
		person:   newPerson(d.paper, d.o.Yes, d.o.Terminal),
		withdraw: map[string]context.CancelFunc{}, answers: make(chan answered, 1),
	}
	d.paper.say(plain, "")
	d.paper.say(faint, "%s", header())
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.agent.gone:
			return d.agent.died()
		case err := <-d.world.failed:
			return err
		case a := <-st.answers:
			d.hand(ctx, a)
		case <-tick.C:
			done, err := d.glance(ctx, st)
			if done || err != nil {
				return err
			}
		}
	}
}

// silence is how long the agent may not answer: it starts, or the machine is
// busy.
const silence = 15 * time.Second

// glance is one look; done says that every episode came to its end.
func (d *demo) glance(ctx context.Context, st *stage) (done bool, err error) {
	now := time.Now()
	s, err := d.agent.look(ctx)
	if err != nil {
		if st.dark.IsZero() {
			st.dark = now
		}
		if ctx.Err() == nil && now.Sub(st.dark) > silence {
			return false, fmt.Errorf("the agent does not answer: %w", err)
		}
		return false, nil
	}
	st.dark = time.Time{}
	d.paper.rows(st.tracker.next(s, func(id string) *web.Judgement { return d.judgement(ctx, id) }))
	d.questions(ctx, st, s)
	d.pages(st, s)
	if err := d.inject(ctx, st, s); err != nil {
		return false, err
	}
	return d.over(s), nil
}

func (d *demo) judgement(ctx context.Context, id string) *web.Judgement {
	var detail web.DecisionDetail
	if err := d.agent.get(ctx, "decisions/"+id, &detail); err != nil {
		return nil // The line stays without numbers; the claims read the ledger.
	}
	return detail.Judgement
}

// inject breaks what is due. The first fault waits until every service was met
// for its holdFor and every long window is covered: before that, floors would
// ask a person for everything.
func (d *demo) inject(ctx context.Context, st *stage, s snapshot) error {
	if st.first.IsZero() {
		ready, err := d.ready(ctx, s)
		if !ready || err != nil {
			return err
		}
		st.first = time.Now()
	}
	for _, sc := range plot {
		if _, done := d.faults[sc.service]; done || time.Since(st.first) < sc.after {
			continue
		}
		d.faults[sc.service] = time.Now()
		d.world.shop.Inject(sc.fault)
		d.paper.event(sc.service, "FAULT %s: %s", sc.fault, sc.story)
	}
	return nil
}

func (d *demo) ready(ctx context.Context, s snapshot) (bool, error) {
	if len(s.services) < len(plot) || len(s.objectives) < len(plot) {
		return false, nil
	}
	for _, svc := range s.services {
		if svc.State != string(compare.Met) || svc.Episode != "" {
			return false, nil
		}
	}
	for _, o := range s.objectives {
		if o.WarmingUntil != nil {
			return false, nil
		}
	}
	state, _, err := readChain(ctx, d.site.path(ledgerFile))
	if err != nil {
		return false, err
	}
	for _, svc := range s.services {
		known, _ := state.Service(svc.Service)
		if !known.DocumentsSettled(d.site.holdFor()+time.Second, time.Now()) {
			return false, nil
		}
	}
	return true, nil
}

// questions shows every new ticket with everything that asks for a person, and
// asks the person who is here.
func (d *demo) questions(ctx context.Context, st *stage, s snapshot) {
	for _, t := range s.approvals {
		if t.State != "open" {
			if cancel := st.withdraw[t.ID]; cancel != nil {
				cancel()
			}
			continue
		}
		if st.asked[t.ID] {
			continue
		}
		st.asked[t.ID] = true
		d.explain(ctx, t)
		asking, cancel := context.WithCancel(ctx)
		st.withdraw[t.ID] = cancel
		go func() {
			defer cancel()
			a, err := st.person.decide(asking, t.ID, t.Action+parameters(t.Parameters)+" of "+t.Service)
			select {
			case st.answers <- answered{t.Service, t.ID, a, err}:
			case <-ctx.Done():
			}
		}()
	}
}

// explain shows why a person is asked: each rule of policy, and each floor.
func (d *demo) explain(ctx context.Context, t web.Approval) {
	d.paper.event(t.Service, "ASKS A PERSON (%s): %s%s", t.ID, t.Action, parameters(t.Parameters))
	var detail web.DecisionDetail
	if err := d.agent.get(ctx, "decisions/"+t.Decision, &detail); err != nil {
		d.paper.more("why is not known: %v", err)
		return
	}
	for _, line := range because(detail) {
		d.paper.more("%s", line)
	}
}

// because lists what asks for a person: rules of policy, then floors.
func because(detail web.DecisionDetail) []string {
	var out []string
	for _, r := range detail.Rules {
		if r.Set == "approval" {
			out = append(out, fmt.Sprintf("policy   %s: %s (%s:%d)", r.Reason, r.Title, r.File, r.Line))
		}
	}
	for _, r := range detail.Details {
		if r.Code == byBalance {
			out = append(out, wrapped(fmt.Sprintf("balance  %s: %s", r.Code, r.Text), "         ")...)
		}
	}
	return out
}

// hand gives a person's answer to the agent, as that person.
func (d *demo) hand(ctx context.Context, a answered) {
	switch {
	case errors.Is(a.err, errNobody):
		d.paper.event(a.service, "nobody can type here, so it waits for you; in another terminal:")
		d.paper.more("%s", d.command(fmt.Sprintf("approve %s --reason '…'", a.ticket)))
		return
	case a.err != nil:
		return // The question is closed: answered elsewhere, or no longer open.
	}
	verb := "approve"
	if !a.answer.approve {
		verb = "deny"
	}
	out, err := d.agent.command(ctx, verb, a.ticket, "--reason", a.answer.reason)
	if err != nil {
		// Somebody else was faster, or the service recovered: the pass shows it.
		d.paper.event(a.service, "%v", err)
		return
	}
	d.paper.event(a.service, "$ setpoint %s %s --reason %q", verb, a.ticket, a.answer.reason)
	d.paper.more("%s", strings.TrimSpace(out))
}

// pages shows what people were told.
func (d *demo) pages(st *stage, s snapshot) {
	for _, p := range s.pages {
		if st.paged[p.ID+p.State] || p.Service == "" {
			continue
		}
		st.paged[p.ID+p.State] = true
		switch p.State {
		case "open":
			lines := wrapped(fmt.Sprintf("PAGE %s: %s", p.Reason, p.Summary), "")
			d.paper.event(p.Service, "%s", lines[0])
			for _, line := range lines[1:] {
				d.paper.more("%s", line)
			}
		case "ended":
			d.paper.event(p.Service, "page %s ended: %s", p.Reason, p.EndReason)
		}
	}
}

// over: checkout and fulfilment are judged and their episodes closed, and the
// pager holds the blind page. A person who said no ends it too.
func (d *demo) over(s snapshot) bool {
	if len(d.faults) < len(plot) {
		return false
	}
	blind := slices.ContainsFunc(d.world.pager.Pages(), func(p pager.Page) bool {
		return p.Labels["service"] == shop.Catalog && p.Labels["reason"] == escalate.Blind
	})
	return blind && ended(s, shop.Checkout) && ended(s, shop.Fulfilment)
}

// ended reports whether nothing more will happen to a broken service.
func ended(s snapshot, service string) bool {
	for _, t := range s.approvals {
		if t.Service == service && t.State != "open" && t.State != "approved" {
			return true
		}
	}
	var last *web.Decision
	for i, x := range s.decisions {
		if x.Service == service {
			last = &s.decisions[i]
		}
	}
	i := slices.IndexFunc(s.services, func(v web.Service) bool { return v.Service == service })
	return i >= 0 && last != nil && final(last.Outcome) &&
		s.services[i].State == string(compare.Met) && s.services[i].Episode == ""
}
