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

// askedFor is the entry of the proposal that the flags mean. A proposal for which
// no model was asked has nothing to show.
func askedFor(ctx context.Context, past recorded, f promptFlags) (e ledger.Entry, body ledger.Proposed, err error) {
	service, window, until := f.service, "", uint64(0)
	if f.decision != "" {
		x := explaining{past: past}
		if err := x.find(ctx, f.decision); err != nil {
			return e, body, err
		}
		service, window, until = x.entry.Service, x.decided.Window, x.entry.Seq
	}
	found := false
	_, err = ledger.Walk(ctx, past, ledger.Position{}, func(next ledger.Entry) error {
		if until > 0 && next.Seq > until {
			return errEnough
		}
		if next.Kind != ledger.KindProposal || next.Service != service {
			return nil
		}
		decoded, err := ledger.Decode(next)
		if err != nil {
			return err
		}
		if p, ok := decoded.(ledger.Proposed); ok && len(p.Exchanges) > 0 && (window == "" || p.Window == window) {
			e, body, found = next, p, true
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return e, body, err
	case !found && f.decision != "":
		return e, body, fmt.Errorf("no model was asked for %s: it is of rules, an undo, or one that no endpoint was tried for", f.decision)
	case !found:
		return e, body, fmt.Errorf("no model was asked about %q in %s: `setpoint prompt render --service %s` shows what would be", service, past.name, service)
	}
	return e, body, nil
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
