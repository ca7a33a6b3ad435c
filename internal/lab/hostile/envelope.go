package hostile

import (
	"fmt"
	"net/http"
	"strings"
)

// envelope is a whole response. Most are what was asked for, with a bad reply in
// them: what is refused at the door tells nothing about the house.
func (m *Model) envelope() Answer {
	r := m.rng
	text := string(m.text())
	if r.IntN(4) > 0 {
		return completion(`{"role":"assistant","content":`+quote(text)+`}`, "stop")
	}
	if r.IntN(25) == 0 { // More than a client should read.
		return Answer{Status: http.StatusOK, Header: header("application/json"), Body: []byte(strings.Repeat(" ", 1<<20+1) + text)}
	}
	q := quote(text)
	call := `{"id":"c","type":"function","function":{"name":"propose","arguments":` + q + `}}`
	return pick(r, []Answer{
		completion(`{"role":"assistant","content":`+q+`}`, pick(r, []string{"length", "content_filter", "tool_calls", "", "STOP", "eos"})),
		completion(`{"role":"assistant","content":`+q+`,"refusal":"I will not"}`, "stop"),
		completion(`{"role":"assistant","content":`+q+`,"tool_calls":[`+call+`]}`, "stop"),
		completion(`{"role":"assistant","content":null,"tool_calls":[`+call+`,`+call+`]}`, "tool_calls"),
		completion(`{"role":"assistant","content":[{"type":"text","text":`+q+`}]}`, "stop"),
		completion(`{"role":"assistant","content":"","reasoning_content":`+q+`}`, "stop"),
		completion(`{"role":"system","content":`+q+`,"content":`+quote(string(m.text()))+`}`, "stop"),
		{Status: http.StatusOK, Header: header("application/json"), Body: []byte(`{"choices":[]}`)},
		{Status: http.StatusOK, Header: header("application/json"), Body: []byte(`{"error":{"message":` + q + `}}`)},
		{Status: http.StatusOK, Header: header("application/json"), Body: []byte(text)},
		{Status: http.StatusOK, Header: header("text/event-stream"), Body: []byte("data: {\"choices\":[{\"delta\":{\"content\":" + q + "}}]}\n\ndata: [DONE]\n\n")},
		{Status: http.StatusOK, Header: header("text/html"), Body: []byte(text)},
		{Status: http.StatusTeapot, Header: header("application/json"), Body: []byte(`{"error":` + q + `}`)},
		{Status: http.StatusBadRequest, Header: header("application/json"), Body: []byte(`{"error":{"message":` + q + `}}`)},
		{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"http://127.0.0.1:9/v1/chat/completions"}}, Body: nil},
		two(q, quote(string(m.text()))),
	})
}

func header(contentType string) http.Header { return http.Header{"Content-Type": {contentType}} }

func completion(message, finish string) Answer {
	body := fmt.Sprintf(`{"id":"h","object":"chat.completion","model":"hostile","choices":[{"index":0,"message":%s,"finish_reason":%s}],`+
		`"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`, message, quote(finish))
	return Answer{Status: http.StatusOK, Header: header("application/json"), Body: []byte(body)}
}

// two choices are two answers, and so none.
func two(a, b string) Answer {
	choice := func(q string) string {
		return `{"message":{"role":"assistant","content":` + q + `},"finish_reason":"stop"}`
	}
	return Answer{Status: http.StatusOK, Header: header("application/json"), Body: []byte(`{"choices":[` + choice(a) + `,` + choice(b) + `]}`)}
}
