package cassette

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// maxBody bounds what is read of one body, in bytes. The client of a model takes
// far less, and a cassette is read by people.
const maxBody = 4 << 20

// Recorder sends requests on and writes down each exchange. It is safe for
// concurrent use; the lines then stand in the order in which the answers came.
type Recorder struct {
	base    http.RoundTripper
	secrets []string

	mu  sync.Mutex
	out io.Writer
	err error
}

// Record writes the head and gives the recorder. Secrets are cut out wherever
// they appear.
func Record(out io.Writer, h Head, base http.RoundTripper, secrets ...string) (*Recorder, error) {
	h.Format = Format
	b, err := line(h)
	if err != nil {
		return nil, fmt.Errorf("write the head of the cassette: %w", err)
	}
	if _, err := out.Write(b); err != nil {
		return nil, fmt.Errorf("write the head of the cassette: %w", err)
	}
	// The longest first: one may begin another.
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return &Recorder{base: base, secrets: secrets, out: out}, nil
}

// Err is why something could not be written down; nil: the file is whole.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// RoundTrip asks, and returns the answer as it is written down. An answer that
// cannot be written down is an error: a run that goes on would not be the one on
// the cassette.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x, body, err := r.ask(req)
	if err != nil {
		return nil, r.failed(err)
	}
	out := req.Clone(req.Context())
	out.Body, out.ContentLength, out.GetBody = newBody(body), int64(len(body)), nil
	resp, err := r.base.RoundTrip(out)
	if err == nil {
		err = r.answer(&x, req, resp)
	}
	if errors.Is(err, context.Canceled) {
		return nil, r.failed(err) // Somebody ended the run, which is nothing to replay.
	}
	if err != nil {
		x = exchange{Method: x.Method, Path: x.Path, Digest: x.Digest, Request: x.Request, Header: map[string]string{}}
		x.Fault = string(r.cut(req, []byte(innermost(err).Error())))
	}
	if err := r.write(x); err != nil {
		return nil, r.failed(err)
	}
	return x.response(req)
}

func (r *Recorder) cut(req *http.Request, b []byte) []byte { return cut(b, r.secrets, req.URL.Host) }

// ask reads the request: as it is sent, and as it is written down.
func (r *Recorder) ask(req *http.Request) (exchange, []byte, error) {
	body, err := readBody(req)
	if err != nil {
		return exchange{}, nil, err
	}
	text, digest, err := canonical(r.cut(req, body))
	return exchange{Method: req.Method, Path: req.URL.Path, Digest: digest, Request: text, Header: map[string]string{}}, body, err
}

// answer reads the response to its end.
func (r *Recorder) answer(x *exchange, req *http.Request, resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	x.Status = resp.StatusCode
	for name, v := range kept(resp.Header) {
		x.Header[name] = string(r.cut(req, []byte(v)))
	}
	x.keepReply(r.cut(req, body))
	return nil
}

func (r *Recorder) write(x exchange) error {
	b, err := line(x)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.out.Write(b)
	return err
}

func (r *Recorder) failed(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = fmt.Errorf("the cassette is not whole: %w", err)
	}
	return r.err
}

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return []byte("null"), nil
	}
	defer func() { _ = req.Body.Close() }()
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(b) == 0 {
		return []byte("null"), nil
	}
	return b, nil
}

func newBody(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// innermost leaves out the layers that repeat the URL.
func innermost(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}
