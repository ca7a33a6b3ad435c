package tokens_test

import (
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/prompts"
)

// counters are the tokenizers by name. The first one is the one of B11.
var counters = []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase}

// perMessage is what the form of a chat adds to each message.
const perMessage = 4

// count is the most that a tokenizer makes of the texts, each of them a message.
func count(t testing.TB, texts ...string) int {
	t.Helper()
	most := 0
	for _, name := range counters {
		codec, err := tokenizer.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, text := range texts {
			n, err := codec.Count(text)
			if err != nil {
				t.Fatal(err)
			}
			sum += n + perMessage
		}
		most = max(most, sum)
	}
	return most
}

func shipped(t testing.TB) *propose.Prompts {
	t.Helper()
	p, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// question is what is sent: the prompt within a limit, and the reply's schema.
func question(t testing.TB, r propose.Request, limit int) (p propose.Prompt, schema string) {
	t.Helper()
	s, err := propose.WireSchema(r.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = shipped(t).Fit(r, limit, len(s)); err != nil {
		t.Fatal(err)
	}
	return p, string(s)
}
