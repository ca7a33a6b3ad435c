// Package prom measures over the Prometheus HTTP API, as Prometheus, Thanos,
// Mimir and VictoriaMetrics serve it. It takes measure's queries and gives one
// measurement for each, in order; whatever goes wrong on the way becomes the
// reason why that measurement is unknown, never an error of the pass.
package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"golang.org/x/time/rate"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// The defaults of setpoint.yaml's sources. Two calls at once: monitoring tools
// have brought Prometheus down from both sides of that number.
const (
	DefaultTimeout          = 10 * time.Second
	DefaultMaxConcurrency   = 2
	DefaultQueriesPerSecond = 20
	DefaultMaxBytes         = 10 << 20
)

// giveUpAfter faults of the source in a row end the asking for one call of
// Measure: a source that is down must not hold a pass for as many timeouts as
// there are queries, nor be given more load while it is overloaded.
const giveUpAfter = 3

// Options describe one source.
type Options struct {
	Name string
	URL  string
	HTTP config.HTTPClientConfig
	// Params are added to each query, e.g. dedup or partial_response.
	Params map[string]string
	// Timeout bounds each call, body included.
	Timeout          time.Duration
	MaxConcurrency   int
	QueriesPerSecond float64
	// MaxBytes bounds one decoded answer.
	MaxBytes int64
	// OnQuery is told the result of each call: "ok" or a measure.Reason.
	OnQuery func(source, result string)
	// Now is this host's clock, with which the source's is compared; nil is
	// time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxConcurrency <= 0 {
		o.MaxConcurrency = DefaultMaxConcurrency
	}
	if o.QueriesPerSecond <= 0 {
		o.QueriesPerSecond = DefaultQueriesPerSecond
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.OnQuery == nil {
		o.OnQuery = func(string, string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Source is one Prometheus-compatible server. It is safe for concurrent use.
type Source struct {
	opts    Options
	api     v1.API
	slots   chan struct{}
	limiter *rate.Limiter
	redact  redactor
}

// New returns a Source; nothing is sent yet.
func New(opts Options) (*Source, error) {
	opts = opts.withDefaults()
	u, err := url.Parse(opts.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		// The URL may hold a password, so it is not repeated.
		return nil, fmt.Errorf("source %q: url is not http(s)://host[:port][/path]: correct it in sources", opts.Name)
	}
	if err := opts.HTTP.Validate(); err != nil {
		return nil, fmt.Errorf("source %q: http: %w", opts.Name, err)
	}
	q := u.Query()
	for name, value := range opts.Params {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	base, err := config.NewRoundTripperFromConfig(opts.HTTP, "setpoint_"+opts.Name, config.WithUserAgent("setpoint"))
	if err != nil {
		return nil, fmt.Errorf("source %q: http: %w", opts.Name, err)
	}
	client, err := api.NewClient(api.Config{
		Address: u.String(),
		Client: &http.Client{
			Transport:     &guard{next: base, limit: opts.MaxBytes},
			CheckRedirect: redirectPolicy(opts.HTTP.FollowRedirects),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("source %q: url cannot be used: correct it in sources", opts.Name)
	}
	return &Source{
		opts: opts, api: v1.NewAPI(client),
		slots:   make(chan struct{}, opts.MaxConcurrency),
		limiter: rate.NewLimiter(rate.Limit(opts.QueriesPerSecond), max(1, int(opts.QueriesPerSecond))),
		redact:  newRedactor(u, opts),
	}, nil
}

// Name is the name of the source in setpoint.yaml.
func (s *Source) Name() string { return s.opts.Name }

// query asks one expression at one instant.
func (s *Source) query(ctx context.Context, expr string, at time.Time) reading {
	return s.call(ctx, func(ctx context.Context) reading {
		v, warnings, infos, err := s.api.Query(ctx, expr, at, v1.WithTimeout(s.opts.Timeout))
		if err != nil {
			return s.fault(ctx, err, s.opts.Timeout)
		}
		return checkInstant(interpret(v, warnings, infos), at)
	})
}

// call runs one request when a slot and the rate allow it, under its own
// deadline: waiting for a turn is not the source's slowness.
func (s *Source) call(ctx context.Context, do func(context.Context) reading) reading {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return notAsked(ctx.Err())
	}
	if err := s.limiter.Wait(ctx); err != nil {
		return notAsked(err)
	}
	callCtx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	r := do(callCtx)
	r.detail = s.redact.clean(r.detail)
	for i := range r.notes {
		r.notes[i] = s.redact.clean(r.notes[i])
	}
	result := "ok"
	if r.reason != "" {
		result = string(r.reason)
	}
	s.opts.OnQuery(s.opts.Name, result)
	return r
}

func notAsked(err error) reading {
	return reading{reason: measure.SourceError, detail: "not asked, the pass ended first: " + err.Error()}
}

// redirectPolicy follows redirects within one host only: the query carries the
// credentials of a source, and another host is another source.
func redirectPolicy(follow bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		from := via[0].URL
		switch {
		case !follow:
			return http.ErrUseLastResponse
		case req.URL.Host != from.Host || (from.Scheme == "https" && req.URL.Scheme != "https"):
			return errors.New("redirect to another host or scheme refused: set the final url in sources")
		case len(via) >= 3:
			return errors.New("more than 3 redirects: set the final url in sources")
		default:
			return nil
		}
	}
}
