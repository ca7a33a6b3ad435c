package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// Options are what a Server answers from. Tokens, Gatherer and Logger may be
// nil, everything else is required.
type Options struct {
	// View runs use with the present view; use keeps nothing of it, because the
	// loop goes on changing what it points at.
	View func(use func(View))
	// Files lists the freeze files of this host.
	Files func() ([]ledger.Freeze, error)
	Desk  *reconcile.Desk
	// WriteFreeze makes the file of a freeze durable; RemoveFreeze deletes it.
	WriteFreeze  func(ledger.Freeze) error
	RemoveFreeze func(id string) error
	// Ready says why the agent is not ready; "" when it is.
	Ready  func() string
	Reload func(context.Context) error
	// Hint asks for an early pass of a service.
	Hint func(service string)
	// PagerDuty are the receivers whose acknowledgements are taken; none: there is
	// no /hooks/pagerduty.
	PagerDuty []PagerDuty
	// Tokens are those of web.tokensFile; none: no writes over TCP.
	Tokens   func() Tokens
	Gatherer prometheus.Gatherer
	Logger   *slog.Logger
	Now      func() time.Time
}

func (o Options) validate() error {
	switch {
	case o.View == nil || o.Ready == nil || o.Reload == nil || o.Hint == nil || o.Now == nil:
		return errors.New("web: View, Ready, Reload, Hint and Now are required")
	case o.Desk == nil || o.Files == nil || o.WriteFreeze == nil || o.RemoveFreeze == nil:
		return errors.New("web: Desk, Files, WriteFreeze and RemoveFreeze are required")
	}
	return nil
}

// Server answers HTTP on any number of listeners.
type Server struct {
	o   Options
	mux *http.ServeMux
	// known are the routes, as "POST /api/v1/freezes".
	known []string
	// changes bounds what is posted to the ledger.
	changes *rate.Limiter
}

// New checks the options and returns a Server that listens nowhere yet.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Tokens == nil {
		o.Tokens = func() Tokens { return Tokens{} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Gatherer == nil {
		o.Gatherer = prometheus.NewRegistry()
	}
	s := &Server{
		o: o, mux: http.NewServeMux(),
		changes: rate.NewLimiter(rate.Every(time.Minute/MaxChangesAMinute), MaxChangesAMinute),
	}
	s.routes()
	return s, nil
}

// The bounds on one request. A slow or endless client costs one connection for
// that long and never the loop.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeader         = 16 << 10
	drain             = 5 * time.Second
)

// Serve answers on a TCP listener until ctx ends. Writes need a bearer token.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, &http.Server{Handler: s.TCP()})
}

// ServeSocket answers on a unix listener until ctx ends. The actor is the
// peer's operating-system user.
func (s *Server) ServeSocket(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, &http.Server{Handler: s.socket(), ConnContext: withPeer})
}

func serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	srv.ReadHeaderTimeout, srv.ReadTimeout = readHeaderTimeout, readTimeout
	srv.WriteTimeout, srv.IdleTimeout = writeTimeout, idleTimeout
	srv.MaxHeaderBytes = maxHeader
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// The request that asked last is still answered; what hangs is cut.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close() // Shutdown's error is the one that says what hung.
		return err
	}
	return nil
}

// TCP is the handler of the TCP listener: the actor is a token's name.
func (s *Server) TCP() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := s.o.Tokens().actor(r); ok {
			r = withActor(r, "token:"+name)
		}
		s.mux.ServeHTTP(w, r)
	})
}

// socket is the handler of the unix listener.
func (s *Server) socket() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if by, ok := peerActor(r.Context()); ok {
			r = withActor(r, by)
		}
		s.mux.ServeHTTP(w, r)
	})
}
