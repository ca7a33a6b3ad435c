// Package cassette writes down what a model was asked and what it answered, and
// plays that again without a network. Record and Play give transports for the
// client of a model; a cassette is a file of JSON lines, a head and then one line
// for each exchange, in the order of asking.
//
// A cassette holds no secret: no header of a request is kept, and a configured
// key and the host are cut out of everything that is. What is recorded is also
// what the recording run itself gets to see, so that a replay can differ from it
// in nothing.
package cassette

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// Format opens a cassette; a new layout gets a new one.
const Format = "setpoint.dev/cassette/v1"

// Head says what was recorded. It is for people, but for Model and Reply: the
// requests of a replay name that model and ask in that form.
type Head struct {
	Format string `json:"format"`
	// Of is what was asked about, e.g. a scenario and its seed.
	Of string `json:"of"`
	// Model is its name at the endpoint, and Reply the mode in which it was asked.
	Model string `json:"model"`
	Reply string `json:"reply"`
	// Prompts names the templates. Other templates ask other questions.
	Prompts string `json:"prompts"`
	Note    string `json:"note,omitempty"`
}

// exchange is one line. The order of the fields is that of the file.
type exchange struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	// Digest is the SHA-256 of Request in canonical form (RFC 8785).
	Digest  string          `json:"digest"`
	Request json.RawMessage `json:"request"`
	Status  int             `json:"status"`
	// Header holds what decides how an answer is read.
	Header map[string]string `json:"header"`
	// Reply is the body; ReplyBase64 is, where it is no text.
	Reply       string `json:"reply"`
	ReplyBase64 string `json:"replyBase64,omitempty"`
	// Fault is why no whole answer came; then there is none in the line.
	Fault string `json:"fault,omitempty"`
}

// kept are the headers of a response that change what a client makes of it.
func kept(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"Content-Type", "Location", "Retry-After"} {
		if v := h.Get(name); v != "" {
			out[name] = v
		}
	}
	return out
}

// response is the line as the transport's answer.
func (x exchange) response(req *http.Request) (*http.Response, error) {
	switch x.Fault {
	case "":
	case context.DeadlineExceeded.Error():
		return nil, context.DeadlineExceeded // A client tells it from a broken line.
	default:
		return nil, errors.New(x.Fault)
	}
	body := []byte(x.Reply)
	if x.ReplyBase64 != "" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(x.ReplyBase64); err != nil {
			return nil, fmt.Errorf("the recorded reply: %w", err)
		}
	}
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		h.Set(name, x.Header[name])
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status)), StatusCode: x.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: req,
		Body: newBody(body), ContentLength: int64(len(body)),
	}, nil
}

func (x *exchange) keepReply(body []byte) {
	if utf8.Valid(body) {
		x.Reply = string(body)
		return
	}
	x.ReplyBase64 = base64.StdEncoding.EncodeToString(body)
}

// canonical is the form by which requests are told apart: how their JSON is laid
// out does not matter.
func canonical(body []byte) (text []byte, digest string, err error) {
	text, err = jcs.Transform(body)
	if err != nil {
		return nil, "", fmt.Errorf("the request is no JSON: %w", err)
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}

// secretWord and hostWord stand where something was cut out.
const (
	secretWord = "<secret>"
	hostWord   = "<host>"
)

// minSecret is the length from which a key is cut out. A shorter one is a
// placeholder for servers without keys, and would damage honest text.
const minSecret = 8

// cut takes keys and the host out of text.
func cut(text []byte, secrets []string, host string) []byte {
	for _, s := range secrets {
		if len(s) >= minSecret {
			text = bytes.ReplaceAll(text, []byte(s), []byte(secretWord))
		}
	}
	if host != "" {
		text = bytes.ReplaceAll(text, []byte(host), []byte(hostWord))
	}
	return text
}

// line is one line of a file, without escapes that only HTML needs.
func line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// FileName is where the cassette of one scenario and seed lies in its folder.
func FileName(scenario string, seed int) string {
	return fmt.Sprintf("%s-%d.jsonl", strings.ToLower(scenario), seed)
}
