package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// probePrompt names the probe's own questions in traces.
const probePrompt = "probe"

// The words of the question about the form. Nobody says them by himself, and
// the prompt does not hold them where a schema does: who answers with them has
// read the schema. All of it is finite, so that a server which enforces it
// comes to an end whatever its model would say.
const (
	probeRationale = "vole-83"
	probeParameter = "mortise"
	probeSchema    = `{"type":"object","properties":{` +
		`"action":{"type":"string","enum":["kelp-4417","dune-0952"]},` +
		`"parameters":{"type":"object","properties":{"mortise":{"type":"string","enum":["ub-71f","qe-30a"]}},"required":["mortise"],"additionalProperties":false},` +
		`"rationale":{"type":"string","enum":["vole-83"]}},` +
		`"required":["action","parameters","rationale"],"additionalProperties":false}`
	probeSystem = "You are part of a check of whether replies come in the form that was demanded. Nothing is done with what you say."
	probeUser   = "Propose one step, in the form that was demanded."
	probeWords  = " That is one JSON object and nothing else: its key action is kelp-4417 or dune-0952, its key parameters is an" +
		` object with the one key mortise, which is ub-71f or qe-30a, and its key rationale is vole-83. All of these are strings.`
)

// probeCatalogue is that schema for the strict parser.
func probeCatalogue() propose.Catalogue {
	p := []spec.Parameter{{Name: probeParameter, Type: spec.String, Enum: []string{"ub-71f", "qe-30a"}}}
	return propose.Catalogue{
		{Action: spec.Action{Name: "kelp-4417", Parameters: p}},
		{Action: spec.Action{Name: "dune-0952", Parameters: p}},
	}
}

// formTurn asks for a form.
func (c *Client) formTurn(e *endpoint, mode Reply, note *string) turn {
	user := probeUser
	if mode == ReplyObject {
		user += probeWords
	}
	req := chat(e.Model, probeSystem, user, c.opts.CompletionTokens)
	demand(&req, mode, json.RawMessage(probeSchema))
	return turn{mode: mode, request: req, prompt: probePrompt, judge: func(resp api.ChatCompletionResponse) *fault {
		p, f := readAnswer(resp, mode, probeCatalogue())
		switch {
		case f != nil:
			return c.instead(resp, mode, f)
		case p.Kind != propose.KindAction || p.Rationale != probeRationale:
			return faultf(propose.FaultMalformed, "an object whose values are not those of the schema")
		}
		if strings.HasPrefix(echoOf(resp, mode), "```") {
			*note = "inside a fence, which is accepted"
		}
		return nil
	}}
}

// instead says what came in the place of the form, in words that tell a server
// which ignores the demand from one that refuses it.
func (c *Client) instead(resp api.ChatCompletionResponse, mode Reply, f *fault) *fault {
	text := echoOf(resp, mode)
	if mode == ReplyTool && len(resp.Choices) == 1 && len(resp.Choices[0].Message.ToolCalls) == 0 {
		return faultf(f.code, "no tool call; the content is %s", c.shown(text))
	}
	switch {
	case f.code != propose.FaultMalformed || text == "":
		return f
	case strings.HasPrefix(text, "```"):
		return faultf(f.code, "a fence that is not taken off: %s", f.text)
	case text[0] != '{':
		return faultf(f.code, "prose: %s", c.shown(text))
	}
	return faultf(f.code, "an object of another form: %s", f.text)
}

// shown is the start of a stranger's words.
func (c *Client) shown(text string) string {
	if text == "" {
		return "empty"
	}
	return fmt.Sprintf("%q", c.clean(text, 60))
}

// canaryTurn asks for the word at the front of a prompt of so many tokens.
func (c *Client) canaryTurn(e *endpoint, word string, tokens int, lost *bool) (turn, int) {
	const ask = "Reply with the code word that the first line of the first message gives, and nothing else."
	var front strings.Builder
	fmt.Fprintf(&front, "The code word is %s.\nWhat follows are notes that mean nothing:\n", word)
	estimate := propose.EstimateText(front.String()) + propose.EstimateText(ask)
	for i := 1; estimate < tokens; i++ {
		note := fmt.Sprintf("Note %d: this line is here to fill the space that a real question would take.\n", i)
		front.WriteString(note)
		estimate += propose.EstimateText(note)
	}
	req := chat(e.Model, front.String(), ask, c.opts.CompletionTokens)
	return turn{request: req, prompt: probePrompt, judge: func(resp api.ChatCompletionResponse) *fault {
		if len(resp.Choices) == 0 {
			return faultf(propose.FaultEmpty, "the completion has no choices")
		}
		m := resp.Choices[0].Message
		*lost = !strings.Contains(m.Content, word) && !strings.Contains(m.ReasoningContent, word)
		return nil
	}}, estimate
}

// typical is a proposal like any other, about a service that does not exist.
func typical(now time.Time) propose.Request {
	low, high := 2.0, 12.0
	return propose.Request{
		Service: spec.Service{Name: probePrompt}, Now: now, Since: now.Add(-5 * time.Minute),
		Assessment: compare.Assessment{
			Service: probePrompt, At: now, State: compare.Breached, Reason: compare.Burning,
			Objectives: []compare.Objective{{ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.999}},
		},
		Catalogue: propose.Catalogue{
			{Action: spec.Action{Name: "scale", Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &low, Maximum: &high}}}},
			{Action: spec.Action{Name: "restart"}},
		},
	}
}
