package escalate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	cards "github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/escalate"
)

func askedCard(exact string) approve.Card {
	return approve.Card{
		Ticket: "t1", Service: "checkout", Digest: strings.Repeat("ab", 32), State: approve.Open, Title: "Approve rollback for checkout? t1",
		Lead:     approve.Lead{Broken: "broken", Step: "would do: rollback", Why: "why", Until: "until", Do: "do: approve or deny below"},
		Sections: []approve.Section{{Heading: "Measured", Lines: []string{"availability: breached"}}},
		Exact:    exact, Words: `"because"`, Speaker: "model m", Gist: "g",
		Notes: []approve.Note{{ID: "effect-failed", Text: `effect: failed, the target said "401"`}},
	}
}

// TestRedactCard: a secret that got into what others said is on no card, wherever it
// stands, and bytes that hold one are approved by no click.
func TestRedactCard(t *testing.T) {
	const secret = "canary-hunter2-value"
	places := map[string]func(*approve.Card){
		"title":    func(c *approve.Card) { c.Title += secret },
		"lead":     func(c *approve.Card) { c.Lead.Why += secret },
		"heading":  func(c *approve.Card) { c.Sections[0].Heading += secret },
		"line":     func(c *approve.Card) { c.Sections[0].Lines[0] += secret },
		"words":    func(c *approve.Card) { c.Words = `"use ` + secret + `"` },
		"speaker":  func(c *approve.Card) { c.Speaker += secret },
		"note":     func(c *approve.Card) { c.Notes[0].Text += secret },
		"no click": func(c *approve.Card) { c.NoClick = secret },
		"cut":      func(c *approve.Card) { c.Words = `"` + secret[:12] + `…"` },
		"exact":    func(c *approve.Card) { c.Exact = `{"note":"` + secret + `"}` },
	}
	for place, plant := range places {
		t.Run(place, func(t *testing.T) {
			c := askedCard(`{"key":"k"}`)
			plant(&c)
			got := escalate.RedactCard(c, []string{"short", secret})
			sent, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(sent), secret[:12]) {
				t.Errorf("the secret is on the card: %s", sent)
			}
			if got.Gist != c.Gist || got.Digest != c.Digest || got.Ticket != c.Ticket {
				t.Errorf("the channel knows it by something else: %+v", got)
			}
			blocks, _ := cards.Blocks(got)
			wire, _ := json.Marshal(blocks)
			if asks := strings.Contains(string(wire), `"setpoint-approve"`); asks != (place != "exact" && place != "no click") {
				t.Errorf("it can be approved by a click: %v", asks)
			}
		})
	}
	c := askedCard(`{"key":"k"}`)
	if diff := cmp.Diff(c, escalate.RedactCard(c, []string{secret, "a", ""})); diff != "" {
		t.Errorf("a card without secrets changed: -want +got:\n%s", diff)
	}
	n := approve.Note{ID: "answer-1", Text: "because " + secret}
	if got := escalate.RedactNote(n, []string{secret}); got.Text != "because <secret>" || got.ID != n.ID {
		t.Errorf("the note is %+v", got)
	}
}
