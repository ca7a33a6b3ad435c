package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/setpoint-dev/setpoint/internal/propose/openai"
)

// escapedKey spells a text as JSON may.
func escapedKey(s string) string {
	out := ""
	for _, r := range s {
		out += fmt.Sprintf(`\u%04x`, r)
	}
	return out
}

// Whatever a server does with the key that it was sent, it comes out nowhere.
func TestKeyIsNowhere(t *testing.T) {
	t.Parallel()
	key := string(canary)
	head := func(name, value string, code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(name, value)
			status(code, `{"error":{"message":"x"}}`)(w, r)
		}
	}
	said := func(content string) http.HandlerFunc { return completion(content) }
	whole := func(body string) http.HandlerFunc { return status(200, body) }
	rationale := func(s string) string {
		return `{"action":"restart","parameters":{"deployment":"checkout"},"rationale":"` + s + `"}`
	}
	cases := map[string]http.HandlerFunc{
		"ErrorText":       status(401, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`),
		"ErrorCutInTwo":   status(401, `{"error":{"message":"`+strings.Repeat("x", 190)+key+`"}}`),
		"ErrorJoined":     status(401, `{"error":{"message":"bad `+key[:6]+"\u200b"+key[6:]+`"}}`),
		"ErrorEscaped":    status(401, `{"error":{"message":"bad `+escapedKey(key)+`"}}`),
		"ErrorJoinedEsc":  status(401, `{"error":{"message":"bad `+key[:6]+`\u200b`+key[6:]+`"}}`),
		"ErrorHTML":       status(500, "<p>"+key+"</p>"),
		"Authenticate":    head("WWW-Authenticate", "Bearer "+key, 401),
		"RetryAfter":      head("Retry-After", key, 429),
		"ContentType":     head("Content-Type", "text/"+key, 200),
		"ContentEncoding": head("Content-Encoding", key, 200),
		"Location":        head("Location", "https://example.com/?key="+key, 302),
		"Rationale":       said(rationale(key)),
		"RationaleSpelt":  said(rationale(escapedKey(key))),
		"RationaleJoined": said(rationale(key[:6] + "\u200d" + key[6:])),
		"Prose":           said(key),
		"Action":          said(`{"action":"` + key + `","parameters":{},"rationale":""}`),
		"UnknownKey":      said(`{"` + key + `":1}`),
		"Parameter":       said(`{"action":"scale","parameters":{"deployment":"` + key + `","replicas":3},"rationale":""}`),
		"Refusal":         reply(map[string]any{"refusal": key}, "stop"),
		"Finish":          reply(map[string]any{"content": good}, key),
		"Words":           whole(`{"id":"` + key + `","model":"` + key + `","choices":[]}`),
		"Shape":           whole(`{"choices":"` + key + `"}`),
		"Role":            reply(map[string]any{"role": key, "content": good}, "stop"),
	}
	for name, h := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := tracetest.NewSpanRecorder()
			o := options(t, server(t, h))
			o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
			o.CaptureContent = true
			c := client(t, o)
			p, u := c.Propose(t.Context(), request())
			if len(u.Exchanges) == 0 {
				t.Fatal("nothing was sent")
			}
			probed, _ := c.Probe(t.Context(), "e1")
			var out bytes.Buffer
			for _, v := range []any{p, u, probed, o, o.Endpoints[0], *c, c, &o} {
				fmt.Fprintf(&out, "%v\n%+v\n%#v\n%q\n%s\n", v, v, v, v, v)
				slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
				slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
				if b, err := json.Marshal(v); err == nil {
					out.Write(b)
				}
			}
			for _, x := range u.Exchanges {
				out.Write(x.Request)
				out.Write(x.Reply)
				// What reads the reply later decodes it.
				var decoded any
				if json.Unmarshal(x.Reply, &decoded) == nil {
					fmt.Fprintf(&out, "%v", decoded)
				}
			}
			for _, s := range recorder.Ended() {
				fmt.Fprintf(&out, "%v %v %v %v\n", s.Name(), s.Attributes(), s.Status(), s.Events())
				for _, a := range s.Attributes() {
					out.WriteString(a.Value.String())
				}
			}
			for _, bad := range []string{key, key[:12], key[len(key)-12:], fmt.Sprintf("%x", key)} {
				if i := strings.Index(out.String(), bad); i >= 0 {
					t.Fatalf("the key is in what comes out: …%s", out.String()[max(0, i-200):min(i+60, out.Len())])
				}
			}
		})
	}
}

// A key that begins another one leaves no rest of it.
func TestKeyThatBeginsAnother(t *testing.T) {
	t.Parallel()
	const short, tail = "sk-team-0001", "-tail-of-the-longer"
	o := options(t, server(t, status(401, `{"error":{"message":"bad `+short+tail+`, not `+short+`"}}`)))
	o.Endpoints[0].Key = short
	longer := o.Endpoints[0]
	longer.Name, longer.Key = "e2", short+tail
	o.Endpoints = append(o.Endpoints, longer)
	p, u := client(t, o).Propose(t.Context(), request())
	if len(u.Exchanges) != 2 || !strings.Contains(p.Fault, "bad <secret>, not <secret>") {
		t.Errorf("%d exchanges, fault %q", len(u.Exchanges), p.Fault)
	}
	for _, x := range u.Exchanges {
		if strings.Contains(string(x.Reply), tail) {
			t.Errorf("a part of a key is kept: %s", x.Reply)
		}
	}
}

// Of an answer that breaks off in a key, or is too long there, nothing of the key
// is kept.
func TestKeyThatBreaksOff(t *testing.T) {
	t.Parallel()
	begun := `{"error":{"message":"bad ` + string(canary)[:14]
	cases := map[string]func(o *openai.Options) http.HandlerFunc{
		"Broken": func(*openai.Options) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "4000")
				_, _ = w.Write([]byte(begun))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		},
		"TooLong": func(o *openai.Options) http.HandlerFunc {
			o.MaxBody = int64(len(begun))
			return func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(begun + string(canary)[14:]))
				_ = http.NewResponseController(w).Flush() // No length is announced.
			}
		},
	}
	for name, handler := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			h := handler(&o)
			o.Endpoints = options(t, server(t, h)).Endpoints
			_, u := client(t, o).Propose(t.Context(), request())
			if len(u.Exchanges) == 0 {
				t.Fatal("nothing was sent")
			}
			if diff := cmp.Diff(`{"error":{"message":"bad <secret>`, string(u.Exchanges[0].Reply)); diff != "" {
				t.Errorf("the reply: -want, +got:\n%s", diff)
			}
		})
	}
}
