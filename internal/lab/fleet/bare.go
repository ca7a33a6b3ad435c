package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/common/config"
)

// Bare sends queries and reads the answers, and does nothing with them: what a
// pass costs when it decides nothing. It has the transport and the concurrency
// of a source.
type Bare struct {
	url         string
	client      *http.Client
	concurrency int
}

// NewBare returns a client of the server at the URL.
func NewBare(url string, concurrency int) (*Bare, error) {
	// The same transport as a source, so that neither has faster connections.
	rt, err := config.NewRoundTripperFromConfig(config.DefaultHTTPClientConfig, "bare")
	if err != nil {
		return nil, fmt.Errorf("bare client: %w", err)
	}
	return &Bare{url: url, client: &http.Client{Transport: rt}, concurrency: max(1, concurrency)}, nil
}

// Send sends the calls in their order, so many at once, and reads each answer
// to its end. It gives the bytes that came back.
func (b *Bare) Send(ctx context.Context, calls []Call) (int64, error) {
	next := make(chan Call, len(calls))
	for _, c := range calls {
		next <- c
	}
	close(next)
	var total atomic.Int64
	errs := make([]error, b.concurrency)
	var wg sync.WaitGroup
	for w := range b.concurrency {
		wg.Go(func() {
			for c := range next {
				n, err := b.post(ctx, c)
				total.Add(n)
				if err != nil && errs[w] == nil {
					errs[w] = err
				}
			}
		})
	}
	wg.Wait()
	return total.Load(), errors.Join(errs...)
}

func (b *Bare) post(ctx context.Context, c Call) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+c.Path, strings.NewReader(c.Form))
	if err != nil {
		return 0, fmt.Errorf("bare client: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("bare client: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		return n, fmt.Errorf("bare client: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return n, fmt.Errorf("bare client: %s for %s", resp.Status, c.Expr())
	}
	return n, nil
}

// Close closes the connections that are idle.
func (b *Bare) Close() { b.client.CloseIdleConnections() }
