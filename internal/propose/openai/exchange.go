package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// maxRetryAfter bounds how long a provider may ask us to wait.
const maxRetryAfter = time.Hour

// exchange is the transport of one request. It keeps the exact bytes of both
// directions, and refuses what the client library would accept or read without
// bound: redirects, any length, any content type, several documents. It also
// reads Retry-After, which the library's errors do not carry.
type exchange struct {
	base  http.RoundTripper
	limit int64
	now   func() time.Time
	scrub func([]byte) []byte

	sent           bool
	request, reply []byte
	status         int
	retryAfter     time.Duration
}

// RoundTrip sends the request once.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	if x.sent {
		return nil, errors.New("a request is sent only once")
	}
	out, err := x.outgoing(req)
	if err != nil {
		return nil, err
	}
	x.sent = true
	resp, err := x.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	x.status = resp.StatusCode
	x.retryAfter = retryAfter(resp.Header.Get("Retry-After"), x.now())
	if f := unread(resp, x.limit); f != nil {
		return nil, f
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, x.limit+1))
	if int64(len(body)) > x.limit {
		x.reply = x.scrub(body[:x.limit])
		return nil, tooLong(x.limit)
	}
	x.reply = x.scrub(body)
	if err != nil {
		x.status = 0
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if f := check(resp, x.reply); f != nil {
		return nil, f
	}
	resp.Body = io.NopCloser(bytes.NewReader(x.reply))
	resp.ContentLength = int64(len(x.reply))
	return resp, nil
}

// unread refuses what is not even read: a length that is too much, a compression
// that was not asked for, and other protocols, where the body would be the bare
// connection, which no deadline ends.
func unread(resp *http.Response, limit int64) *fault {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return faultf(propose.FaultProvider, "status 101: another protocol was not asked for")
	}
	if resp.ContentLength > limit {
		return tooLong(limit)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return faultf(propose.FaultProvider, "content encoding %s that was not asked for", quoted(coding))
	}
	return nil
}

func tooLong(limit int64) *fault {
	return faultf(propose.FaultProvider, "the response is longer than %d bytes", limit)
}

// The client library leaves a temperature of 0 out, and the provider's default
// is not 0; so it is given the smallest number, which is put right here. In
// the text of a message the quotes would be escaped, so only the field matches.
var (
	temperatureWritten = []byte(`"temperature":1e-45`)
	temperatureMeant   = []byte(`"temperature":0`)
)

func (x *exchange) outgoing(req *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	if err := req.Body.Close(); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	x.request = bytes.Replace(body, temperatureWritten, temperatureMeant, 1)
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(x.request))
	out.ContentLength = int64(len(x.request))
	out.Header.Set("Accept-Encoding", "identity")
	out.GetBody = nil // without it nothing below can replay the request
	return out, nil
}

// check refuses every response that is not one JSON document under status 200.
func check(resp *http.Response, body []byte) *fault {
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		return faultf(propose.FaultRateLimited, "status 429%s", providerMessage(body))
	case code >= 300 && code < 400:
		return faultf(propose.FaultProvider, "status %d: a redirect is not followed, put the final URL into baseURL", code)
	case code != http.StatusOK:
		return faultf(propose.FaultProvider, "status %d%s", code, providerMessage(body))
	}
	if ct := resp.Header.Get("Content-Type"); ct != "" && !isJSON(ct) {
		return faultf(propose.FaultProvider, "content type %s where JSON was asked for", quoted(ct))
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return faultf(propose.FaultProvider, "the response is not one JSON document")
	}
	if isError(body) {
		return faultf(propose.FaultProvider, "an error under status 200%s", providerMessage(body))
	}
	return nil
}

// isError reports an error in the place of an answer, which some gateways send
// under status 200.
func isError(body []byte) bool {
	var b struct {
		Error   json.RawMessage   `json:"error"`
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(body, &b) == nil && len(b.Choices) == 0 && len(b.Error) > 0 && string(b.Error) != "null"
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// providerMessage takes the words out of {"error":{"message":…}} or
// {"error":"…"}; anything else is not quoted.
func providerMessage(body []byte) string {
	var nested struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	var flat struct {
		Error string `json:"error"`
	}
	text := ""
	if json.Unmarshal(body, &nested) == nil {
		text = nested.Error.Message
	} else if json.Unmarshal(body, &flat) == nil {
		text = flat.Error
	}
	if text = propose.CleanText(text, 200); text == "" {
		return ""
	}
	return ", the provider says: " + text
}

// retryAfter reads seconds or an HTTP date.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0
	}
	if s, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(s)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
