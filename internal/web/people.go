package web

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Approval is one line of an ApprovalList: one question to people.
type Approval struct {
	ID         string             `json:"id"`
	Service    string             `json:"service"`
	Episode    string             `json:"episode"`
	Decision   string             `json:"decision"`
	Key        string             `json:"key"`
	Action     string             `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
	Digest     string             `json:"digest"`
	Asked      time.Time          `json:"asked"`
	Expires    time.Time          `json:"expires"`
	State      string             `json:"state"`
	Needs      []Need             `json:"needs"`
	Answers    []Answer           `json:"answers"`
	Reason     string             `json:"reason"`
	// Started is when its effect was started.
	Started *time.Time `json:"started,omitempty"`
	// Card is what the channel is known to hold of it; missing where nothing was
	// ever posted there.
	Card *Card `json:"card,omitempty"`
}

// Card is what a channel is known to hold of an approval.
type Card struct {
	Channel string `json:"channel"`
	// Link leads to the message; "" where it is not known.
	Link string `json:"link"`
	// State is posting, shown, failed, deleted or closed.
	State string `json:"state"`
	// LastError is why the last request about it failed; "" when it did not.
	LastError string `json:"lastError,omitempty"`
}

// cardOf is missing where there is none.
func cardOf(p *approve.Posted) *Card {
	if p == nil {
		return nil
	}
	c := &Card{State: "posting", LastError: p.LastError}
	m, live := p.Live()
	if n := len(p.Messages); !live && n > 0 {
		m = p.Messages[n-1]
	}
	c.Channel, c.Link = m.Channel, m.Link
	switch {
	case p.Closed:
		c.State = "closed"
	case live:
		c.State = "shown"
	case p.Failures > 0:
		c.State = "failed"
	case len(p.Messages) > 0:
		c.State = "deleted"
	}
	return c
}

// Answer is what one person said.
type Answer struct {
	By     string    `json:"by"`
	Via    string    `json:"via"`
	Answer string    `json:"answer"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
}

// The words of an answer.
const (
	WordApprove = "approve"
	WordDeny    = "deny"
)

// Approvals lists the tickets, oldest first.
func Approvals(v View, f Filter) List[Approval] {
	var items []Approval
	for _, id := range byNumber(slices.Collect(maps.Keys(v.State.Tickets))) {
		t := v.State.Tickets[id]
		if f.service(t.Service) && f.since(t.Asked) {
			a := approvalOf(*t)
			a.Card = cardOf(v.State.Cards[id])
			items = append(items, a)
		}
	}
	return listOf("ApprovalList", items)
}

func approvalOf(t approve.Ticket) Approval {
	a := Approval{
		ID: t.ID, Service: t.Service, Episode: t.Episode, Decision: t.Decision, Key: string(t.Key),
		Action: actionWord(t.Proposal), Parameters: parameters(t.Proposal.Parameters),
		Digest: t.Digest, Asked: t.Asked.UTC(), Expires: t.Expires.UTC(), State: string(t.State),
		Needs: needs(t.Needs), Answers: []Answer{}, Reason: t.Reason, Started: when(t.StartedAt),
	}
	for i, missing := range approve.Missing(t) {
		a.Needs[i].Missing = &missing
	}
	if a.Reason == "" && len(t.Reasons) > 0 {
		a.Reason = t.Reasons[0].Text // why people are asked
	}
	for _, an := range t.Answers {
		word := WordDeny
		if an.Approve {
			word = WordApprove
		}
		a.Answers = append(a.Answers, Answer{
			By: an.By, Via: an.Via, Answer: word, Time: an.At.UTC(), Reason: an.Reason,
		})
	}
	return a
}

// byNumber sorts ids such as t9 and t10 by their number.
func byNumber(ids []string) []string {
	num := func(id string) (int64, bool) {
		n, err := strconv.ParseInt(strings.TrimLeft(id, "abcdefghijklmnopqrstuvwxyz"), 10, 64)
		return n, err == nil
	}
	slices.SortFunc(ids, func(a, b string) int {
		x, okX := num(a)
		y, okY := num(b)
		if okX && okY && x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return ids
}

// Page is one line of a PageList: one thing that people should know.
type Page struct {
	ID        string     `json:"id"`
	Service   string     `json:"service"`
	Episode   string     `json:"episode"`
	State     string     `json:"state"`
	Reason    string     `json:"reason"`
	Now       string     `json:"now"`
	Severity  string     `json:"severity"`
	Summary   string     `json:"summary"`
	Text      string     `json:"text"`
	Since     time.Time  `json:"since"`
	Ended     *time.Time `json:"ended"`
	EndReason string     `json:"endReason"`
	AckedBy   string     `json:"ackedBy"`
	// AckedVia is where AckedBy said so: cli, web, slack or the name of a receiver.
	AckedVia  string     `json:"ackedVia,omitempty"`
	AckedAt   *time.Time `json:"ackedAt,omitempty"`
	Receivers []Delivery `json:"receivers"`
}

// Delivery is what one receiver is known to hold of a page.
type Delivery struct {
	Receiver  string     `json:"receiver"`
	Sent      *time.Time `json:"sent"`
	Ended     bool       `json:"ended"`
	Failures  int        `json:"failures"`
	LastError string     `json:"lastError,omitempty"`
}

// Pages lists the pages, open ones and ended ones, oldest first. A heartbeat is
// no page: nobody has to read it.
func Pages(v View, f Filter) List[Page] {
	var items []Page
	for _, id := range slices.Sorted(maps.Keys(v.State.Pages)) {
		p := v.State.Pages[id]
		if p.Reason != escalate.Heartbeat && f.service(p.Service) && (p.EndedAt.IsZero() || f.since(p.EndedAt)) {
			items = append(items, pageOf(*p, v.State.Deliveries[id]))
		}
	}
	slices.SortStableFunc(items, func(a, b Page) int { return a.Since.Compare(b.Since) })
	return listOf("PageList", items)
}

func pageOf(p escalate.Page, held map[string]escalate.Delivery) Page {
	p = p.Over() // one that ended says so, and not what is to be done
	out := Page{
		ID: p.ID, Service: p.Service, Episode: p.Episode, State: "open", Reason: p.Reason, Now: p.Now,
		Severity: p.Severity, Summary: p.Summary, Text: p.Text, Since: p.Since.UTC(),
		Ended: when(p.EndedAt), EndReason: p.EndReason, AckedBy: p.AckedBy, AckedVia: p.AckedVia, AckedAt: when(p.AckedAt),
		Receivers: []Delivery{},
	}
	switch {
	case !p.EndedAt.IsZero():
		out.State = "ended"
	case p.AckedBy != "":
		out.State = "acked"
	}
	for _, name := range p.Receivers {
		d := held[name]
		out.Receivers = append(out.Receivers, Delivery{
			Receiver: name, Sent: when(d.Sent), Ended: d.Ended,
			Failures: d.Failures, LastError: d.LastError,
		})
	}
	return out
}

// Freeze is one line of a FreezeList.
type Freeze struct {
	ID      string     `json:"id"`
	Service string     `json:"service"`
	By      string     `json:"by"`
	Reason  string     `json:"reason"`
	At      *time.Time `json:"at"`
	Until   *time.Time `json:"until"`
	// Active: it binds now.
	Active bool `json:"active"`
	// File: its file is on this host. Recorded: the ledger knows it.
	File     bool `json:"file"`
	Recorded bool `json:"recorded"`
}

// Freezes joins the files of this host with what the ledger knows.
func Freezes(v View, f Filter) List[Freeze] {
	all := map[string]Freeze{}
	for id, fr := range v.State.Freezes {
		one := freezeOf(fr, v.Now)
		one.Recorded = true
		all[id] = one
	}
	for _, fr := range v.Files {
		one := freezeOf(fr, v.Now)
		one.File = true
		_, one.Recorded = v.State.Freezes[fr.ID]
		all[fr.ID] = one
	}
	var items []Freeze
	for _, id := range slices.Sorted(maps.Keys(all)) {
		one := all[id]
		if !f.service(one.Service) && one.Service != "" {
			continue
		}
		if one.Active || (one.At != nil && f.since(*one.At)) {
			items = append(items, one)
		}
	}
	return listOf("FreezeList", items)
}

func freezeOf(fr ledger.Freeze, now time.Time) Freeze {
	return Freeze{
		ID: fr.ID, Service: fr.Service, By: fr.By, Reason: fr.Reason, At: when(fr.At),
		Until: when(fr.Until), Active: fr.Until.IsZero() || now.Before(fr.Until),
	}
}
