package openai

import (
	"strconv"
	"strings"
	"unicode/utf8"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// read is readAnswer with the keys cut out of what a model may say freely.
func (c *Client) read(resp api.ChatCompletionResponse, mode Reply, cat propose.Catalogue) (propose.Proposal, *fault) {
	p, f := readAnswer(resp, mode, cat)
	if f != nil {
		return propose.Proposal{}, f
	}
	for _, v := range p.Parameters {
		if s, ok := v.(string); ok && c.scrubText(s) != s {
			return propose.Proposal{}, faultf(propose.FaultMalformed, "a parameter holds an API key")
		}
	}
	p.Rationale = c.clean(p.Rationale, propose.MaxRationale)
	return p, nil
}

// readAnswer looks at what the provider says about the answer before at the
// answer: half a reply can be valid JSON. It never infers an action from prose.
func readAnswer(resp api.ChatCompletionResponse, mode Reply, cat propose.Catalogue) (propose.Proposal, *fault) {
	switch n := len(resp.Choices); {
	case n == 0:
		return propose.Proposal{}, faultf(propose.FaultEmpty, "the completion has no choices")
	case n > 1:
		return propose.Proposal{}, faultf(propose.FaultMalformed, "the completion has %d choices where one was asked for", n)
	}
	choice := resp.Choices[0]
	if text := choice.Message.Refusal; text != "" {
		return propose.Proposal{}, faultf(propose.FaultRefusal, "%s", text)
	}
	if f := checkFinish(choice.FinishReason, mode); f != nil {
		return propose.Proposal{}, f
	}
	text, f := answerText(choice.Message, mode)
	if f != nil {
		return propose.Proposal{}, f
	}
	p, err := propose.Parse([]byte(text), cat)
	if err != nil {
		return propose.Proposal{}, faultf(propose.FaultMalformed, "%s", err)
	}
	return p, nil
}

func checkFinish(reason api.FinishReason, mode Reply) *fault {
	switch {
	case reason == api.FinishReasonStop, reason == api.FinishReasonToolCalls && mode == ReplyTool:
		return nil
	case reason == api.FinishReasonLength:
		return faultf(propose.FaultTruncated, "finish_reason length: the reply was cut off")
	case reason == api.FinishReasonContentFilter:
		return faultf(propose.FaultFiltered, "finish_reason content_filter: the provider withheld the reply")
	default:
		return faultf(propose.FaultMalformed, "finish_reason %s is not stop", quoted(string(reason)))
	}
}

// answerText takes the reply from the one place where the mode puts it.
func answerText(m api.ChatCompletionMessage, mode Reply) (string, *fault) {
	text := m.Content
	switch {
	case m.FunctionCall != nil:
		return "", faultf(propose.FaultMalformed, "a function_call was not asked for")
	case mode != ReplyTool && len(m.ToolCalls) > 0:
		return "", faultf(propose.FaultMalformed, "a tool call was not asked for")
	case mode == ReplyTool && len(m.ToolCalls) != 1:
		return "", faultf(propose.FaultMalformed, "%d tool calls where exactly one was asked for", len(m.ToolCalls))
	case mode == ReplyTool && m.ToolCalls[0].Function.Name != toolName:
		return "", faultf(propose.FaultMalformed, "a call of %s where %s was asked for", quoted(m.ToolCalls[0].Function.Name), toolName)
	case mode == ReplyTool:
		text = m.ToolCalls[0].Function.Arguments
	}
	if strings.TrimSpace(text) == "" {
		return "", faultf(propose.FaultEmpty, "the message has no content")
	}
	if strings.ContainsRune(text, utf8.RuneError) {
		// Decoding the envelope put it in the place of something broken.
		return "", faultf(propose.FaultMalformed, "the reply holds a character that could not be decoded")
	}
	return text, nil
}

// quoted shows a stranger's word in a message, short and harmless.
func quoted(s string) string { return strconv.QuoteToASCII(propose.CleanText(s, 60)) }
