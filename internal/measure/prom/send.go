package prom

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/patience"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// Ask asks one expression at one instant, by itself.
func (s *Source) Ask(ctx context.Context, expr string, at time.Time) measure.Reading {
	a, _ := s.ask(ctx, expr, at, false)
	return reading(a)
}

func reading(a wire.Answer) measure.Reading {
	return measure.Reading{Series: a.Series, Reason: a.Fault.Reason, Detail: a.Fault.Detail}
}

// ask sends one query when the source is open. It reports whether a fault may
// be the query's own, because the source had just answered. That a heavy query
// times out again says nothing about the source.
func (s *Source) ask(ctx context.Context, expr string, at time.Time, heavy bool) (wire.Answer, bool) {
	s.tryAgain(ctx)
	var blamed bool
	a := s.turn(ctx, func(ctx context.Context) wire.Answer {
		a := s.call(ctx, s.opts.Timeout, func(ctx context.Context) wire.Answer {
			return s.query(ctx, expr, at, s.opts.Timeout).At(at)
		})
		if heavy && a.Fault.Kind == wire.Slow {
			blamed = true
		} else {
			blamed = s.health.Saw(a.Fault, s.opts.Now())
		}
		return a
	})
	return a, blamed
}

// tryAgain sends one trivial query after a source's rest, one at a time,
// whoever comes first: an overloaded source is not met by a whole pass, and its
// answer tells a source that is down from a query that is too heavy.
func (s *Source) tryAgain(ctx context.Context) {
	if s.health.Gate(s.opts.Now()) != patience.Ajar {
		return
	}
	select {
	case s.probing <- struct{}{}:
		defer func() { <-s.probing }()
	case <-ctx.Done():
		return
	}
	if s.health.Gate(s.opts.Now()) != patience.Ajar {
		return // somebody else tried
	}
	s.turn(ctx, func(ctx context.Context) wire.Answer {
		a := s.call(ctx, s.opts.Timeout, func(ctx context.Context) wire.Answer {
			return s.query(ctx, "time()", time.Time{}, s.opts.Timeout)
		})
		if a.Fault.Is() {
			s.health.Saw(a.Fault, s.opts.Now())
		} else {
			s.health.Answered()
		}
		return a
	})
}

// turn runs what sends one request when a slot and the rate allow it. Waiting
// for a turn is not the source's slowness. A source that is left alone is sent
// nothing, not even by who waited while it failed.
func (s *Source) turn(ctx context.Context, do func(context.Context) wire.Answer) wire.Answer {
	if a, shut := s.health.Refuse(s.opts.Now()); shut {
		return a
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ended("not asked, the pass ended first")
	}
	if s.limiter.Wait(ctx) != nil {
		return ended("not asked, the pass ended first") // or would, before it is its turn
	}
	if a, shut := s.health.Refuse(s.opts.Now()); shut {
		return a
	}
	return do(ctx)
}

func ended(detail string) wire.Answer {
	return wire.Answer{Fault: wire.Fault{Kind: wire.Ended, Reason: measure.SourceError, Detail: detail}}
}

// call runs one request under its own deadline, makes the source's words fit to
// be shown, and counts it.
func (s *Source) call(ctx context.Context, limit time.Duration, do func(context.Context) wire.Answer) wire.Answer {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	callCtx, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, trace), limit)
	defer cancel()
	a := do(callCtx)
	if f := &a.Fault; f.Kind == wire.Slow || f.Kind == wire.Ended {
		switch {
		case ctx.Err() != nil:
			*f = ended("the pass ended before the answer came").Fault
		case f.Kind == wire.Ended && connected.Load():
			f.Kind, f.Detail = wire.Slow, fmt.Sprintf("no whole answer within %s", limit)
		case f.Kind == wire.Ended:
			f.Kind, f.Detail = wire.Down, fmt.Sprintf("no connection within %s", limit)
		}
	}
	a.Fault.Detail = s.redact.clean(a.Fault.Detail)
	for _, n := range a.Notes {
		if s.notes.fresh(n) {
			s.opts.OnNote(s.opts.Name, position.ReplaceAllString(s.redact.clean(n), ""))
		}
	}
	result := "ok"
	if a.Fault.Is() {
		result = string(a.Fault.Reason)
	}
	s.opts.OnQuery(s.opts.Name, result)
	return a
}

// query asks one expression; the zero time is the source's present.
func (s *Source) query(ctx context.Context, expr string, at time.Time, limit time.Duration) wire.Answer {
	u := s.client.URL("/api/v1/query", nil)
	form := u.Query()
	form.Set("query", expr)
	// Whole seconds: Prometheus does not take 4.9s for a duration.
	form.Set("timeout", (limit + time.Second - 1).Truncate(time.Second).String())
	if !at.IsZero() {
		form.Set("time", strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64))
	}
	if s.useGET.Load() {
		return s.get(ctx, u, form)
	}
	a, status := s.exchange(ctx, http.MethodPost, u, form)
	switch status {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		// A proxy that lets nothing but reading through.
		if a = s.get(ctx, u, form); a.Fault.Kind != wire.Refused {
			s.useGET.Store(true)
		}
	}
	return a
}

func (s *Source) get(ctx context.Context, u *url.URL, form url.Values) wire.Answer {
	with := *u
	with.RawQuery = form.Encode()
	a, _ := s.exchange(ctx, http.MethodGet, &with, nil)
	return a
}

func (s *Source) exchange(ctx context.Context, method string, u *url.URL, form url.Values) (wire.Answer, int) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return wire.Answer{Fault: transport(err)}, 0
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		// Queries change nothing, so one that met a connection which was just
		// closed may be sent again. Nil: the header itself is not sent.
		req.Header["Idempotency-Key"] = nil
	}
	resp, body, err := s.client.Do(ctx, req) //nolint:bodyclose // the client reads and closes it
	if err != nil {
		return wire.Answer{Fault: transport(err)}, 0
	}
	return wire.Read(resp.StatusCode, resp.Header, body), resp.StatusCode
}

// transport classifies what went wrong before there was an answer.
func transport(err error) wire.Fault {
	// The text of a url.Error holds the URL with its parameters.
	inner := err
	for e, ok := errors.AsType[*url.Error](inner); ok; e, ok = errors.AsType[*url.Error](inner) {
		inner = e.Err
	}
	f := wire.Fault{Kind: wire.Failed, Reason: measure.SourceError, Detail: inner.Error()}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		f.Kind = wire.Ended // whose deadline it was, the caller knows
	case errors.Is(err, errTooLarge):
		f.Kind = wire.Size
	case isRefused(err):
		f.Kind, f.Reason = wire.Refused, measure.SourceRefused
	case isDown(err):
		f.Kind = wire.Down
	}
	return f
}

// isRefused: only people heal an unknown host, a redirect, a certificate, the
// wrong scheme, or a file of credentials that is not there.
func isRefused(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	return errors.Is(err, errRedirect) || errors.Is(err, http.ErrSchemeMismatch) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		strings.Contains(err.Error(), "oauth2: ") && !strings.Contains(err.Error(), "cannot fetch token: 5")
}

func isDown(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	return dns || ok && op.Op == "dial"
}
