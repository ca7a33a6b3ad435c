package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// promptRecord is the answer of `prompt render --recorded -o json`.
type promptRecord struct {
	web.Meta
	Time     time.Time        `json:"time"`
	Service  string           `json:"service"`
	Window   string           `json:"window"`
	Episode  string           `json:"episode"`
	Proposal propose.Proposal `json:"proposal"`
	// Exchanges are all requests, in order, with what came back.
	Exchanges []promptExchange `json:"exchanges"`
}

type promptExchange struct {
	ledger.Exchange
	// RequestDigest and ReplyDigest are the SHA-256 of the bytes, "" where there
	// were none; Missing says that the ledger no longer has some of them.
	RequestDigest string `json:"requestDigest"`
	ReplyDigest   string `json:"replyDigest"`
	Request       string `json:"request"`
	Reply         string `json:"reply"`
	Missing       bool   `json:"missing,omitempty"`
}

func (a *app) promptRecorded(ctx context.Context, f promptFlags) (err error) {
	past, err := a.recorded(ctx, f.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, past.close()) }()
	e, body, err := askedFor(ctx, past, f)
	if err != nil {
		return err
	}
	out := promptRecord{
		Meta: web.Meta{APIVersion: spec.Group, Kind: "PromptRecord"}, Time: e.Time.UTC(), Service: e.Service,
		Window: body.Window, Episode: body.Episode, Proposal: body.Proposal,
	}
	for _, x := range body.Exchanges {
		shown, err := exchangeOf(ctx, past, x)
		if err != nil {
			return err
		}
		out.Exchanges = append(out.Exchanges, shown)
	}
	return a.showRecord(out, f.output)
}

// askedFor is the entry of the proposal that the flags mean. A proposal for
// which no model was asked has nothing to show.
func askedFor(ctx context.Context, past recorded, f promptFlags) (ledger.Entry, ledger.Proposed, error) {
	q := sought{service: f.service}
	if f.decision != "" {
		x := explaining{past: past}
		if err := x.find(ctx, f.decision); err != nil {
			return ledger.Entry{}, ledger.Proposed{}, err
		}
		q = sought{service: x.entry.Service, window: x.decided.Window, until: x.entry.Seq}
	}
	_, err := ledger.Walk(ctx, past, ledger.Position{}, q.look)
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return q.entry, q.body, err
	case q.entry.Seq > 0:
		return q.entry, q.body, nil
	case f.decision != "":
		return q.entry, q.body, fmt.Errorf("no model was asked for %s: it is of rules, an undo, or one that no endpoint was tried for", f.decision)
	}
	return q.entry, q.body, fmt.Errorf("no model was asked about %q in %s: `setpoint prompt render %s` shows what would be", q.service, past.name, q.service)
}

// sought is the newest proposal of a service, and of a window unless that is "",
// for which a model was asked, up to an entry unless that is 0.
type sought struct {
	service, window string
	until           uint64

	entry ledger.Entry
	body  ledger.Proposed
}

func (q *sought) look(e ledger.Entry) error {
	switch {
	case q.until > 0 && e.Seq > q.until:
		return errEnough
	case e.Kind != ledger.KindProposal || e.Service != q.service:
		return nil
	}
	body, err := ledger.Decode(e)
	if err != nil {
		return err
	}
	if p, ok := body.(ledger.Proposed); ok && len(p.Exchanges) > 0 && (q.window == "" || p.Window == q.window) {
		q.entry, q.body = e, p
	}
	return nil
}

// errEnough ends a walk.
var errEnough = errors.New("enough was read")

func exchangeOf(ctx context.Context, past recorded, x ledger.Exchange) (promptExchange, error) {
	out := promptExchange{Exchange: x, RequestDigest: x.Request, ReplyDigest: x.Reply}
	for digest, into := range map[string]*string{x.Request: &out.Request, x.Reply: &out.Reply} {
		if digest == "" {
			continue
		}
		raw, err := past.Blob(ctx, digest)
		switch {
		case errors.Is(err, ledger.ErrNoBlob):
			out.Missing = true
		case err != nil:
			return out, err
		}
		*into = string(raw)
	}
	return out, nil
}

func (a *app) showRecord(r promptRecord, output string) error {
	if output != formatTable {
		return emit(a.out, output, r)
	}
	w := &promptPaper{}
	w.line("%s, window %s, %s: %s", r.Service, r.Window, clock(r.Time), cameOf(r.Proposal))
	for i, x := range r.Exchanges {
		what := "question"
		if x.Repair {
			what = "repair turn"
		}
		w.line("")
		w.line("%d. %s to %s (%s), %s: %s, status %d, %.3g s, %d tokens in, %d out",
			i+1, what, x.Endpoint, x.Model, x.Mode, x.Result, x.Status, x.TookSeconds, x.InputTokens, x.OutputTokens)
		if x.Missing {
			w.line("   the ledger no longer has all of its bytes")
		}
		w.part("request "+short(x.RequestDigest), x.Request)
		w.part("reply "+short(x.ReplyDigest), x.Reply)
	}
	return a.print("%s", w.text.String())
}

// cameOf is what came of it.
func cameOf(p propose.Proposal) string {
	switch {
	case p.Kind == propose.KindAction:
		return fmt.Sprintf("%s %s", p.Action, parametersText(p.Parameters))
	case p.Fault != "":
		return p.Fault
	}
	return string(p.Kind)
}
