// Package prom measures over the Prometheus HTTP API, as Prometheus, Thanos,
// Mimir and VictoriaMetrics serve it. It takes measure's queries and gives one
// measurement for each, in order; whatever goes wrong on the way becomes the
// reason why that measurement is unknown, never an error of the pass.
//
// Its own memory is short, bounded and only a hint: a restart forgets it.
//
//	what happens                         reason           what follows
//	400 bad_data, 422 execution          query-error      halved to the one culprit, which rests 30 s to 5 min
//	too many samples, 413, a huge body   source-error     asked in smaller groups from the next pass on
//	no answer in time, after another     source-error     likewise; a single one comes last from then on
//	5xx, reset, broken body, 3 in a row  source-error     nothing is sent for 5 s to 30 s
//	429, Retry-After, no connection      source-error     likewise at once, Retry-After up to 5 min
//	401, 403, 404, html, TLS, no host    source-refused   nothing is sent for 15 s to 5 min
//	a warning, isPartial                 partial          nothing
//	a cached answer, a matrix            source-error, …  nothing
//
// After such a rest one trivial query is sent first. One success ends it all.
package prom

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"golang.org/x/time/rate"

	"github.com/setpoint-dev/setpoint/internal/measure/prom/patience"
)

// The defaults of setpoint.yaml's sources. Two calls at once: monitoring tools
// have brought Prometheus down from both sides of that number.
const (
	DefaultTimeout          = 10 * time.Second
	DefaultMaxConcurrency   = 2
	DefaultQueriesPerSecond = 20
	DefaultMaxBytes         = 10 << 20
	DefaultChunk            = 100
)

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
	// Chunk is how many services share a query at most.
	Chunk int
	// MaxBytes bounds one decoded answer.
	MaxBytes int64
	// OnQuery is told the result of each call: "ok" or a measure.Reason. Both may
	// be called from several goroutines.
	OnQuery func(source, result string)
	// OnNote is told once of each remark on queries that stops nothing.
	OnNote func(source, text string)
	// Now is this host's clock, with which the source's is compared; nil is
	// time.Now.
	Now func() time.Time
	// Rand spreads what is sent again; nil is math/rand. It gives 0 to 1.
	Rand func() float64
	// Dial opens connections; nil is the network's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
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
	if o.Chunk <= 0 {
		o.Chunk = DefaultChunk
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return o.withFuncs()
}

func (o Options) withFuncs() Options {
	if o.OnQuery == nil {
		o.OnQuery = func(string, string) {}
	}
	if o.OnNote == nil {
		o.OnNote = func(string, string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// Source is one Prometheus-compatible server. It is safe for concurrent use.
type Source struct {
	opts    Options
	client  api.Client
	status  v1.API
	slots   chan struct{}
	aside   chan struct{} // bounds what is no measurement within slots
	limiter *rate.Limiter
	redact  redactor

	health  *patience.Health
	probing chan struct{} // holds one token while the source is tried again
	memory  *patience.Memory
	sizes   *patience.Sizes
	notes   notes
	useGET  atomic.Bool
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
	client, err := newClient(u, opts)
	if err != nil {
		return nil, err
	}
	return &Source{
		opts: opts, client: client, status: v1.NewAPI(client),
		slots:   make(chan struct{}, opts.MaxConcurrency),
		aside:   make(chan struct{}, max(1, opts.MaxConcurrency-1)),
		limiter: rate.NewLimiter(rate.Limit(opts.QueriesPerSecond), max(1, int(opts.QueriesPerSecond))),
		redact:  newRedactor(u, opts),
		health:  patience.NewHealth(opts.Rand), probing: make(chan struct{}, 1),
		memory: patience.NewMemory(), sizes: patience.NewSizes(opts.Chunk),
	}, nil
}

func newClient(u *url.URL, opts Options) (api.Client, error) {
	with := []config.HTTPClientOption{config.WithUserAgent("setpoint")}
	if opts.Dial != nil {
		with = append(with, config.WithDialContextFunc(opts.Dial))
	}
	base, err := config.NewRoundTripperFromConfig(opts.HTTP, "setpoint_"+opts.Name, with...)
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
	return client, nil
}

// Name is the name of the source in setpoint.yaml.
func (s *Source) Name() string { return s.opts.Name }

// errRedirect: the source points elsewhere, where a query does not follow.
var errRedirect = errors.New("redirect refused")

// redirectPolicy follows redirects within one host only: the query carries the
// credentials of a source, and another host is another source.
func redirectPolicy(follow bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		from := via[0].URL
		switch {
		case !follow:
			return http.ErrUseLastResponse
		case req.URL.Host != from.Host || (from.Scheme == "https" && req.URL.Scheme != "https"):
			return fmt.Errorf("%w, it leads to another host or scheme: set the final url in sources", errRedirect)
		case req.Method != via[0].Method:
			return fmt.Errorf("%w, it would drop the query: set the final url in sources", errRedirect)
		case len(via) >= 3:
			return fmt.Errorf("%w after three others: set the final url in sources", errRedirect)
		default:
			return nil
		}
	}
}
