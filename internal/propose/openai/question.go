package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"unicode/utf8"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// toolName is the one function that a model may call in reply mode tool.
const toolName = "propose"

// question is a request in the words and with the schema that a model gets.
type question struct {
	prompt   propose.Prompt
	reply    Reply
	schema   json.RawMessage
	tokens   int
	estimate int
}

func (c *Client) question(r propose.Request) (question, error) {
	q := question{reply: c.opts.Reply, tokens: c.opts.CompletionTokens}
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
	size := utf8.RuneCountInString(q.prompt.System) + utf8.RuneCountInString(q.prompt.User) + len(q.schema)
	q.estimate = propose.EstimateTokens(size)
	return q, nil
}

func (q question) request(model string) api.ChatCompletionRequest {
	req := api.ChatCompletionRequest{
		Model: model,
		Messages: []api.ChatCompletionMessage{
			{Role: api.ChatMessageRoleSystem, Content: q.prompt.System},
			{Role: api.ChatMessageRoleUser, Content: q.prompt.User},
		},
		MaxCompletionTokens: q.tokens,
		Temperature:         math.SmallestNonzeroFloat32, // sent as 0, see exchange
	}
	switch q.reply {
	case ReplySchema:
		req.ResponseFormat = &api.ChatCompletionResponseFormat{
			Type:       api.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &api.ChatCompletionResponseFormatJSONSchema{Name: toolName, Schema: q.schema, Strict: true},
		}
	case ReplyTool:
		req.Tools = []api.Tool{{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{
			Name: toolName, Description: "Propose one step.", Strict: true, Parameters: q.schema,
		}}}
		req.ToolChoice = api.ToolChoice{Type: api.ToolTypeFunction, Function: api.ToolFunction{Name: toolName}}
		req.ParallelToolCalls = false
	case ReplyObject:
		req.ResponseFormat = &api.ChatCompletionResponseFormat{Type: api.ChatCompletionResponseFormatTypeJSONObject}
	}
	if api.NewReasoningValidator().Validate(req) != nil {
		req.Temperature = 0 // reasoning models take none; 0 is left out
	}
	return req
}

func (c *Client) api(e Endpoint, x *exchange) *api.Client {
	cfg := api.DefaultConfig(string(e.Key))
	cfg.BaseURL = e.BaseURL
	cfg.HTTPClient = &http.Client{Transport: x, CheckRedirect: noRedirect}
	return api.NewClientWithConfig(cfg)
}
