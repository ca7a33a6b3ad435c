package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

func askModel(window string) ledger.Asked {
	return ledger.Asked{Window: window, Episode: "e1", Proposer: propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}, Deadline: minute(2)}
}

// A limit counts questions from the moment that they are put, whoever puts them,
// and what they cost from the moment that it is known.
func TestAskWithinLimits(t *testing.T) {
	ch := newChain(t)
	limits := propose.Limits{CallsPerHour: 5, CallsPerServicePerHour: 3, TokensPerDay: 2000}
	ask := func(at int, service string) error {
		d, err := ledger.AskDraft(ch.state, service, askModel(windowAt(at)), limits, minute(at))
		if err == nil {
			ch.add(step{at, d})
		}
		return err
	}
	answered := func(at int, service string, n, tokens int) {
		body := ledger.Proposed{Window: windowAt(at), Episode: "e1", Proposal: propose.Proposal{Kind: propose.KindNone}}
		for range n {
			body.Exchanges = append(body.Exchanges, ledger.Exchange{Endpoint: "main", Result: "ok", InputTokens: tokens})
		}
		ch.add(step{at, ledger.Draft{Kind: ledger.KindProposal, Service: service, Body: body}})
	}
	for i := range 5 {
		if err := ask(0, fmt.Sprint("s", i)); err != nil {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	if err := ask(0, "s5"); !errors.Is(err, ledger.ErrLimit) {
		t.Errorf("a sixth question beside five without an answer: %v", err)
	}
	if d, err := ledger.AskDraft(ch.state, "s5", ledger.Asked{Window: windowAt(0), Proposer: propose.Proposer{Kind: "rules"}}, limits, minute(0)); err != nil {
		t.Errorf("rules have no limit: %v %v", d, err)
	}
	if err := ask(60, "s0"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	answered(60, "s0", 3, 100)
	if err := ask(70, "s0"); !errors.Is(err, ledger.ErrLimit) {
		t.Errorf("a question of three requests uses up three: %v", err)
	}
	if err := ask(130, "s0"); err != nil {
		t.Errorf("two hours later: %v", err)
	}
	answered(130, "s0", 0, 0)
	if err := ask(140, "s0"); err != nil {
		t.Errorf("nothing was sent, for every endpoint was left alone: %v", err)
	}
	answered(140, "s0", 1, 1700)
	if err := ask(200, "s1"); !errors.Is(err, ledger.ErrLimit) {
		t.Errorf("the day's tokens are used: %v", err)
	}
	sv, _ := ch.state.Service("s0")
	if diff := cmp.Diff(ledger.Asking{Episode: "e1", Requests: 4, InputTokens: 2000}, sv.Asked); diff != "" {
		t.Errorf("what the episode cost (-want +got):\n%s", diff)
	}
	ch.noSkips()
}

func TestChanges(t *testing.T) {
	ch := newChain(t)
	post := func(at int, version string) error {
		d, err := ledger.ChangeDraft(ch.state, "checkout", ledger.Changed{At: minute(at), What: "deploy", Version: version, By: "token:ci"})
		if err == nil {
			ch.add(step{40, d})
		}
		return err
	}
	for i := range 30 {
		if err := post((i*7)%30, fmt.Sprint("v", i)); err != nil {
			t.Fatal(err)
		}
	}
	sv, _ := ch.state.Service("checkout")
	if len(sv.Changes) != 20 || !sv.Changes[0].At.Equal(minute(29)) || !sv.Changes[19].At.Equal(minute(10)) {
		t.Errorf("the newest 20 are kept, newest first: %v", sv.Changes)
	}
	if err := post(29, sv.Changes[0].Version); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("posted twice: %v", err)
	}
}
