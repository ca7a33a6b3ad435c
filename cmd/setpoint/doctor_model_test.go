package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The ways in which honestModel answers.
const (
	// honest: what the schema demands, in each form.
	honest = iota
	// prose: every demand is accepted and answered with a sentence, and the front
	// of a prompt is lost.
	prose
	// toolsOnly: only tool calls are honoured.
	toolsOnly
)

var codeWord = regexp.MustCompile(`The code word is (\S+)\.`)

// completionRequest is as much of a request as this server reads.
type completionRequest struct {
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	Format struct {
		Type   string `json:"type"`
		Schema struct {
			Schema map[string]any `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Tools []struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

// honestModel is an OpenAI-compatible server without a model: it makes the
// smallest value that a schema allows.
func honestModel(way int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary {
			always(401, "application/json", `{"error":{"message":"who are you?"}}`)(w, r)
			return
		}
		var q completionRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			always(400, "application/json", `{"error":{"message":"not JSON"}}`)(w, r)
			return
		}
		text := ""
		for _, m := range q.Messages {
			text += m.Content + "\n"
		}
		counted := len(text) / 4
		if way == prose {
			counted = min(counted, 512)
		}
		message, finish := q.answer(way, text)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "r1", "object": "chat.completion", "model": "some-model-2026",
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
			"usage":   map[string]any{"prompt_tokens": counted, "completion_tokens": 40},
		})
	}
}

func (q completionRequest) answer(way int, text string) (message map[string]any, finish string) {
	said := func(s string) (map[string]any, string) {
		return map[string]any{"role": "assistant", "content": s}, "stop"
	}
	word := codeWord.FindStringSubmatch(text)
	switch {
	case way == prose:
		return said("I would have a look at the service first.")
	case len(q.Tools) > 0:
		arguments, _ := json.Marshal(smallestOf(q.Tools[0].Function.Parameters))
		call := map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": q.Tools[0].Function.Name, "arguments": string(arguments)}}
		return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	case word != nil:
		return said(word[1])
	case way == toolsOnly:
		return said("Let me call a tool.")
	case q.Format.Type == "json_schema":
		object, _ := json.Marshal(smallestOf(q.Format.Schema.Schema))
		return said(string(object))
	case strings.Contains(text, "kelp-4417"):
		return said(`{"action":"kelp-4417","parameters":{"mortise":"ub-71f"},"rationale":"vole-83"}`)
	}
	return said(`{"action":"none","parameters":{},"rationale":"nothing"}`)
}

// smallestOf is the first value that a schema allows.
func smallestOf(schema map[string]any) any {
	if c, ok := schema["const"]; ok {
		return c
	}
	if e, ok := schema["enum"].([]any); ok && len(e) > 0 {
		return e[0]
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if of, ok := schema[key].([]any); ok && len(of) > 0 {
			one, _ := of[0].(map[string]any)
			return smallestOf(one)
		}
	}
	kind, _ := schema["type"].(string)
	switch kind {
	case "object":
		out := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for name, p := range properties {
			if one, ok := p.(map[string]any); ok && slices.Contains(required, any(name)) {
				out[name] = smallestOf(one)
			}
		}
		return out
	case "integer", "number":
		if low, ok := schema["minimum"]; ok {
			return low
		}
		return 0
	case "boolean":
		return false
	case "array":
		return []any{}
	}
	return "something"
}
