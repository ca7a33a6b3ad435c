package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// request is the part of a chat completion request that matters here. Unknown
// keys pass, as they do at other servers.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	Stream bool `json:"stream"`
	N      *int `json:"n"`
	Tools  []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Format struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// content is text, or a list of parts of which the texts count.
type content string

// UnmarshalJSON reads both forms; null is no text.
func (c *content) UnmarshalJSON(b []byte) error {
	var text *string
	if json.Unmarshal(b, &text) == nil {
		if text != nil {
			*c = content(*text)
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return errors.New("a message's content is neither text nor a list of parts")
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return fmt.Errorf("a part of type %q, where only text is read", propose.CleanText(p.Type, 40))
		}
		all.WriteString(p.Text)
	}
	*c = content(all.String())
	return nil
}

// check refuses what would be answered wrongly, instead of ignoring it.
func (q request) check() error {
	switch {
	case q.Model != Name:
		return refuse(http.StatusNotFound, "model_not_found", "the model %q does not exist here: ask for %s", propose.CleanText(q.Model, 60), Name)
	case q.Stream:
		return refuse(http.StatusBadRequest, "unsupported_value", "streaming is not supported: leave stream out")
	case q.N != nil && *q.N != 1:
		return refuse(http.StatusBadRequest, "unsupported_value", "n is %d, and only one choice is given", *q.N)
	case len(q.Tools) > 1, len(q.Tools) == 1 && (q.Tools[0].Type != "function" || q.Tools[0].Function.Name == ""):
		return refuse(http.StatusBadRequest, "unsupported_value", "want no tool, or one of type function with a name")
	case q.question() == "":
		return refuse(http.StatusBadRequest, "invalid_value", "there is no message of role user with text")
	}
	return nil
}

// question is the last message of role user that evidence can be read from: a
// repair turn follows it, and says only what was wrong. Without one it is the
// last message of role user.
func (q request) question() string {
	last := ""
	for _, m := range slices.Backward(q.Messages) {
		if m.Role != "user" {
			continue
		}
		if _, err := Read(string(m.Content)); err == nil {
			return string(m.Content)
		}
		last = cmp.Or(last, string(m.Content))
	}
	return last
}

// evident reports that some message of role user has a JSON object: evidence, or
// what is left of it.
func (q request) evident() bool {
	for _, m := range q.Messages {
		if m.Role == "user" && strings.Contains(string(m.Content), "{") {
			return true
		}
	}
	return false
}

// schema is the form that is demanded; ok is false where none is.
func (q request) schema() (raw json.RawMessage, ok bool) {
	switch {
	case len(q.Tools) > 0:
		return q.Tools[0].Function.Parameters, true
	case q.Format.Type == "json_schema":
		return q.Format.Schema.Schema, true
	}
	return nil, false
}

// plain answers a question that holds no evidence as a server that honours
// schemas would: with the first instance of the one that is demanded. Where none
// is, it repeats the first line of the first message, which shows that this line
// arrived.
func (q request) plain() (message, string, error) {
	raw, ok := q.schema()
	if !ok {
		line, _, _ := strings.Cut(string(q.Messages[0].Content), "\n")
		return message{Role: "assistant", Content: &line}, "stop", nil
	}
	b, err := instance(raw)
	if err != nil {
		return message{}, "", err
	}
	m, finish := q.formed(string(b))
	return m, finish, nil
}

// formed puts an object where the request wants it.
func (q request) formed(object string) (message, string) {
	if len(q.Tools) == 0 {
		return message{Role: "assistant", Content: &object}, "stop"
	}
	one := toolCall{ID: "call_0", Type: "function", Function: call{Name: q.Tools[0].Function.Name, Arguments: object}}
	return message{Role: "assistant", ToolCalls: []toolCall{one}}, "tool_calls"
}

// usage is an estimate, like ours.
func (q request) usage(m message) usage {
	var u usage
	for _, in := range q.Messages {
		u.Prompt += propose.EstimateText(string(in.Content))
	}
	for _, text := range []*string{m.Content, m.Refusal} {
		if text != nil {
			u.Completion += propose.EstimateText(*text)
		}
	}
	for _, c := range m.ToolCalls {
		u.Completion += propose.EstimateText(c.Function.Arguments)
	}
	u.Total = u.Prompt + u.Completion
	return u
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   usage    `json:"usage"`
}

type choice struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function call   `json:"function"`
}

type call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type list struct {
	Object string  `json:"object"`
	Data   []entry `json:"data"`
}

type entry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// refusal is an error with its HTTP status and OpenAI's code.
type refusal struct {
	status     int
	code, text string
}

// Error returns the words.
func (r *refusal) Error() string { return r.text }

func refuse(status int, code, format string, args ...any) error {
	return &refusal{status: status, code: code, text: fmt.Sprintf(format, args...)}
}

func notAllowed(w http.ResponseWriter, req *http.Request, want string) {
	w.Header().Set("Allow", want)
	fail(w, refuse(http.StatusMethodNotAllowed, "method_not_supported", "%s is not allowed here: use %s", req.Method, want))
}

// fail answers with an error as OpenAI's servers do.
func fail(w http.ResponseWriter, err error) {
	r := &refusal{status: http.StatusInternalServerError, code: "internal_error", text: err.Error()}
	errors.As(err, &r)
	kind := "invalid_request_error"
	if r.status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	answer(w, r.status, map[string]any{"error": map[string]any{"message": r.text, "type": kind, "param": nil, "code": r.code}})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away is not told.
	_ = json.NewEncoder(w).Encode(v)
}
