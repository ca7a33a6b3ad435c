package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// toolName is the one function that a model may call in reply mode tool.
const toolName = "propose"

// question is a request in the words and with the schema that a model gets.
type question struct {
	prompt  propose.Prompt
	version string
	reply   Reply
	schema  json.RawMessage
	tokens  int
}

func (c *Client) question(r propose.Request, mode Reply) (question, error) {
	q := question{reply: mode, tokens: c.opts.CompletionTokens, version: c.opts.Prompts.Version()}
	if q.reply != ReplyObject {
		schema, err := propose.WireSchema(r.Catalogue)
		if err != nil {
			return question{}, fmt.Errorf("make the reply's schema: %w", err)
		}
		q.schema = schema
	}
	var err error
	if q.prompt, err = c.opts.Prompts.Fit(r, c.opts.PromptTokens, len(q.schema)); err != nil {
		return question{}, err
	}
	return q, nil
}

// turn is the first one.
func (q question) turn(model string) turn {
	req := chat(model, q.prompt.System, q.prompt.User, q.tokens)
	demand(&req, q.reply, q.schema)
	return turn{mode: q.reply, request: req, prompt: q.version}
}

// maxEcho bounds how much of its own answer a model is shown again, in bytes.
const maxEcho = 2000

// again is the repair turn: the conversation so far, and what was wrong. One
// that was cut off may be longer this time.
func (q question) again(first turn, s said, prompts *propose.Prompts) (turn, error) {
	words, err := prompts.Repair(s.fault.Error())
	if err != nil {
		return turn{}, err
	}
	t := first
	t.repair = true
	t.request.Messages = slices.Clone(first.request.Messages)
	if echo := echoOf(s.response, first.mode); echo != "" {
		t.request.Messages = append(t.request.Messages,
			api.ChatCompletionMessage{Role: api.ChatMessageRoleAssistant, Content: echo},
			api.ChatCompletionMessage{Role: api.ChatMessageRoleUser, Content: words})
	} else {
		// Some servers refuse two messages of one role in a row.
		t.request.Messages[len(t.request.Messages)-1].Content += "\n\n" + words
	}
	if rules[s.fault.code].longer {
		t.request.MaxCompletionTokens *= 2
	}
	return t, nil
}

// echoOf is what the model said, as plain content whatever the mode: an
// assistant's tool call without its result is refused by some servers.
func echoOf(resp api.ChatCompletionResponse, mode Reply) string {
	if len(resp.Choices) != 1 {
		return ""
	}
	m := resp.Choices[0].Message
	text := m.Content
	if mode == ReplyTool && len(m.ToolCalls) > 0 {
		text = m.ToolCalls[0].Function.Arguments
	}
	text = strings.TrimSpace(text)
	if len(text) > maxEcho {
		text = strings.ToValidUTF8(text[:maxEcho], "")
	}
	return text
}

// chat is a request without a demand on its form.
func chat(model, system, user string, tokens int) api.ChatCompletionRequest {
	req := api.ChatCompletionRequest{
		Model: model,
		Messages: []api.ChatCompletionMessage{
			{Role: api.ChatMessageRoleSystem, Content: system},
			{Role: api.ChatMessageRoleUser, Content: user},
		},
		MaxCompletionTokens: tokens,
		Temperature:         math.SmallestNonzeroFloat32, // sent as 0, see exchange
	}
	if api.NewReasoningValidator().Validate(req) != nil {
		req.Temperature = 0 // reasoning models take none; 0 is left out
	}
	return req
}

// demand makes a request ask for the form of a schema.
func demand(req *api.ChatCompletionRequest, mode Reply, schema json.RawMessage) {
	switch mode {
	case ReplySchema:
		req.ResponseFormat = &api.ChatCompletionResponseFormat{
			Type:       api.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &api.ChatCompletionResponseFormatJSONSchema{Name: toolName, Schema: schema, Strict: true},
		}
	case ReplyTool:
		req.Tools = []api.Tool{{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{
			Name: toolName, Description: "Propose one step.", Strict: true, Parameters: schema,
		}}}
		req.ToolChoice = api.ToolChoice{Type: api.ToolTypeFunction, Function: api.ToolFunction{Name: toolName}}
		req.ParallelToolCalls = false
	case ReplyObject:
		req.ResponseFormat = &api.ChatCompletionResponseFormat{Type: api.ChatCompletionResponseFormatTypeJSONObject}
	}
}
