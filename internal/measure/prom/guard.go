package prom

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// errPartial: the answer itself says that it is incomplete.
var errPartial = errors.New("isPartial: the source says that its answer is incomplete")

// guard reads each body to its end, within a limit, before anything parses it,
// and looks at what the typed client drops: VictoriaMetrics marks an incomplete
// answer with a top-level isPartial, which Prometheus' own clients ignore
// (VictoriaMetrics #4721).
type guard struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip returns the response with its whole, bounded, decoded body.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := g.read(resp)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		if err := checkEnvelope(body, resp.Header.Get("Content-Type")); err != nil {
			return nil, err
		}
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = int64(len(body))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// read decodes at most limit bytes, so that neither a huge body nor a small one
// that unpacks into a huge one fills the memory.
func (g *guard) read(resp *http.Response) ([]byte, error) {
	var r io.Reader = resp.Body
	switch enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("gzip body: %w", err)
		}
		r = zr
	default:
		return nil, errors.New("body in a content encoding that was not asked for")
	}
	body, err := io.ReadAll(io.LimitReader(r, g.limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(body)) > g.limit {
		return nil, fmt.Errorf("answer is larger than %d bytes: aggregate in the query", g.limit)
	}
	return body, nil
}

// checkEnvelope refuses a successful answer that is none.
func checkEnvelope(body []byte, contentType string) error {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return errors.New("body is gzip without Content-Encoding: a proxy on the way drops the header")
	}
	var e struct {
		Status    string          `json:"status"`
		IsPartial json.RawMessage `json:"isPartial"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("body (%q) is no Prometheus answer: %w", contentType, err)
	}
	if e.Status != "success" && e.Status != "error" {
		return fmt.Errorf("body is no Prometheus answer: its status is %q", e.Status)
	}
	// Anything but a plain false leaves it open whether the answer is whole.
	if p := string(e.IsPartial); p != "" && p != "false" && p != "null" {
		return errPartial
	}
	return nil
}
