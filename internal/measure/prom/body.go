package prom

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// errTooLarge: an answer is larger than the source's may be.
var errTooLarge = errors.New("answer is too large")

// guard bounds each body before anything parses it: neither a huge one nor a
// small one that unpacks into a huge one fills the memory.
type guard struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip returns the response with its decoded body, which fails where it
// exceeds the limit.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := g.decoded(resp)
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	resp.Body = body
	resp.Header.Del("Content-Encoding")
	return resp, nil
}

func (g *guard) decoded(resp *http.Response) (io.ReadCloser, error) {
	var r io.Reader = resp.Body
	switch enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		if resp.ContentLength > g.limit {
			return nil, g.tooLarge()
		}
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("gzip body: %w", err)
		}
		r = zr
	default:
		return nil, errors.New("body in a content encoding that was not asked for")
	}
	return &bounded{from: r, Closer: resp.Body, left: g.limit, guard: g}, nil
}

func (g *guard) tooLarge() error {
	return fmt.Errorf("%w, more than %d bytes: aggregate in the query", errTooLarge, g.limit)
}

// bounded is a body that may not exceed a limit.
type bounded struct {
	io.Closer

	from  io.Reader
	left  int64
	guard *guard
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	if int64(n) > b.left {
		return int(b.left), b.guard.tooLarge()
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read the answer: %w", err)
	}
	return n, err
}
