package wire

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"

	jsoniter "github.com/json-iterator/go"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// Words of errorType that mean something, beside the status they come with.
const (
	badData   = "bad_data"
	execution = "execution"
	timedOut  = "timeout"
)

// sizes are words with which servers refuse a query for its size: Prometheus,
// Thanos, Mimir and VictoriaMetrics. What is found in none of them is halved or
// given up like any other error, so a missing word costs time only.
var sizes = [...]string{
	"too many samples", "too many series", "too many chunks", "too many points", "too many bytes",
	"exceeded maximum", "exceeded the maximum", "exceeds the maximum", "maximum number of",
	"series limit", "samples limit", "bytes limit", "chunks limit", "limit exceeded", "exceeded limit",
	"larger than", "too large", "too long", "-search.max", "cannot select more than",
}

func readFailure(status int, header http.Header, body []byte) Fault {
	errorType, message, told := readError(body)
	f := Fault{Told: told, RetryAfter: header.Get("Retry-After")}
	if told {
		f.Detail = fmt.Sprintf("HTTP %d, %s: %s", status, errorType, message)
	} else {
		f.Detail = fmt.Sprintf("HTTP %d %s", status, http.StatusText(status))
		if what := describe(header, body); what != "" {
			f.Detail += " with " + what
		}
	}
	f.Kind, f.Reason = classify(status, errorType, told && isSize(message))
	if f.Kind == Failed && status == http.StatusServiceUnavailable && f.RetryAfter != "" {
		f.Kind = Busy
	}
	return f
}

// classify trusts a word only beside the status that it belongs to.
func classify(status int, errorType string, tooLarge bool) (Kind, measure.Reason) {
	own := status == http.StatusBadRequest && errorType == badData ||
		status == http.StatusUnprocessableEntity && errorType == execution
	switch {
	case own && tooLarge:
		return Size, measure.QueryError
	case own:
		return Query, measure.QueryError
	case tooLarge && status != http.StatusTooManyRequests:
		return Size, measure.SourceError
	}
	kind := kindOf(status, errorType)
	if kind == Refused {
		return kind, measure.SourceRefused
	}
	return kind, measure.SourceError
}

// kindOf is what the status says of the source.
func kindOf(status int, errorType string) Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusGone, http.StatusNotImplemented, http.StatusNetworkAuthenticationRequired:
		return Refused
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return Size
	case http.StatusTooManyRequests:
		return Busy
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return Slow
	case http.StatusServiceUnavailable:
		if errorType == timedOut {
			return Slow
		}
	}
	if status/100 == 3 {
		return Refused
	}
	return Failed
}

func isSize(message string) bool {
	message = strings.ToLower(message)
	for _, s := range sizes {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}

// readError reads the envelope of an error, if the body is one.
func readError(body []byte) (errorType, message string, ok bool) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return "", "", false
	}
	d := decoder{it: jsoniter.ConfigDefault.BorrowIterator(body)}
	defer jsoniter.ConfigDefault.ReturnIterator(d.it)
	d.envelope()
	if d.it.Error != nil || d.status != "error" {
		return "", "", false
	}
	return d.errorType, d.errorText, true
}

// maxLook is as much of a body as is looked at to describe it.
const maxLook = 64 << 10

var (
	title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	tag   = regexp.MustCompile(`<[^>]*>`)
)

// describe says what a body is that is no answer of the API.
func describe(header http.Header, body []byte) string {
	contentType := header.Get("Content-Type")
	if len(body) > maxLook {
		// Cut between words: half a secret would not be recognized as one.
		body = body[:max(bytes.LastIndexAny(body[:maxLook], " \t\r\n"), 0)]
	}
	page := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("<")) || strings.Contains(contentType, "html")
	switch {
	case page:
		if m := title.FindSubmatch(body); m != nil {
			return `the html page "` + plain(m[1]) + `"`
		}
		return "an html page"
	case len(body) == 0:
		return ""
	}
	// Not %q: what it escapes would not be recognized as a secret.
	return "a body (" + contentType + `) that begins "` + plain(body) + `"`
}

// plain is text without tags, on one line.
func plain(b []byte) string {
	return strings.Join(strings.Fields(html.UnescapeString(string(tag.ReplaceAll(b, nil)))), " ")
}
