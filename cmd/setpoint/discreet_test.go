package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// overheard keeps all that a channel is told.
type overheard struct {
	reconcile.Board
	all strings.Builder
}

func (o *overheard) Post(_ context.Context, c approve.Card) (approve.Message, error) {
	_, _ = fmt.Fprintf(&o.all, "%+v\n", c)
	return approve.Message{Channel: "C1", ID: "1.1"}, nil
}

func (o *overheard) Update(_ context.Context, _ approve.Message, c approve.Card) error {
	_, _ = fmt.Fprintf(&o.all, "%+v\n", c)
	return nil
}

func (o *overheard) Say(_ context.Context, _ approve.Message, n approve.Note) error {
	_, _ = fmt.Fprintf(&o.all, "%+v\n", n)
	return nil
}

// TestDiscreet: what an actuator or a model repeats of a secret reaches no channel.
func TestDiscreet(t *testing.T) {
	const secret = "canary-of-an-actuator"
	heard := &overheard{}
	board := discreet{heard, tellingSite(t, "http://127.0.0.1:1").secretValues}
	n := approve.Note{ID: "effect-failed", Text: `effect: failed, the target said "401 for ` + secret + `"`}
	c := approve.Card{Ticket: "t1", State: approve.Open, Words: `"` + secret + `"`, Notes: []approve.Note{n}}
	if _, err := board.Post(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := board.Update(t.Context(), approve.Message{}, c); err != nil {
		t.Fatal(err)
	}
	if err := board.Say(t.Context(), approve.Message{}, n); err != nil {
		t.Fatal(err)
	}
	if got := heard.all.String(); strings.Contains(got, secret) || strings.Count(got, "<secret>") != 5 {
		t.Errorf("the channel heard %s", got)
	}
}
