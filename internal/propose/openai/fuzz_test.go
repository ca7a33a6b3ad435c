package openai_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// FuzzReply: whatever a server answers, there is no panic, no waiting and no
// code that nobody knows, and what is accepted is within the catalogue.
func FuzzReply(f *testing.F) {
	for _, rec := range loadCases(f) {
		f.Add(rec.Response.Status, rec.Response.Headers["Content-Type"], "Retry-After", rec.Response.Headers["Retry-After"], []byte(rec.Response.Body), byte(0))
	}
	f.Add(200, "application/json", "Content-Encoding", "gzip", []byte("\x1f\x8b"), byte(1))
	f.Add(302, "", "Location", "http://e1/", []byte(`{"error":"x"}`), byte(2))
	f.Add(200, "application/json", "", "", []byte(`{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"function":{"name":"propose","arguments":"{}"}}]}}]}`), byte(1))
	f.Add(200, "application/json", "", "", []byte(chosen(good)), byte(2))
	codes := openai.Codes()
	modes := []openai.Reply{openai.ReplySchema, openai.ReplyTool, openai.ReplyObject, openai.ReplyAuto}
	f.Fuzz(func(t *testing.T, status int, contentType, header, value string, body []byte, mode byte) {
		o := options(t, "http://e1", "http://e2")
		o.Reply = modes[int(mode)%len(modes)]
		o.Transport = puppet(func(*http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {contentType}}
			h.Set(header, value)
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: -1}, nil
		})
		c := client(t, o)
		start := time.Now()
		p, u := c.Propose(t.Context(), request())
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
		if len(u.Exchanges) == 0 || len(u.Exchanges) > 4 {
			t.Errorf("%d requests", len(u.Exchanges))
		}
		for _, x := range u.Exchanges {
			if !codes[x.Result] {
				t.Errorf("result %q", x.Result)
			}
		}
		code, _, _ := strings.Cut(p.Fault, ":")
		switch p.Kind {
		case propose.KindMalformed:
			if !codes[code] || code == openai.ResultOK || p.Action != "" {
				t.Errorf("%+v", p)
			}
		case propose.KindNone, propose.KindEscalate:
			if p.Action != "" || len(p.Parameters) > 0 {
				t.Errorf("%+v", p)
			}
		case propose.KindAction:
			it, ok := catalogue().Item(p.Action)
			if !ok {
				t.Fatalf("%+v", p)
			}
			if err := propose.Check(it, p.Parameters); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		default:
			t.Errorf("kind %q", p.Kind)
		}
		if p.Undo || p.Undoes != "" || p.Fallback != "" || p.Proposer.Kind != openai.Kind {
			t.Errorf("%+v", p)
		}
		if _, err := c.Probe(t.Context(), "e1"); err != nil {
			t.Error(err)
		}
	})
}
