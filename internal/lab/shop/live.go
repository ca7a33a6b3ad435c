package shop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of the real mode.
const (
	// inFlight is the most requests that one load generator has open; more are
	// left out, so that a slow service does not pile them up.
	inFlight = 8
	// queueLength is the most jobs that wait.
	queueLength    = 200
	requestTimeout = time.Second
	// beat is how often the core's clock is moved.
	beat = 50 * time.Millisecond
)

// Live is a shop in real time.
type Live struct {
	// Metrics are the exporters' URLs by service.
	Metrics map[string]string
	// ActuatorURL is the base URL of the actuator, without a slash at the end.
	ActuatorURL string
}

// Serve runs the services, their load, exporters and actuator on loopback
// until ctx ends. It returns as soon as all of them listen.
func (s *Shop) Serve(ctx context.Context) (Live, error) {
	if s.ctx.Err() != nil {
		return Live{}, errors.New("serve: the shop is closed")
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	live := Live{Metrics: map[string]string{}}
	queue := make(chan struct{}, queueLength)
	loads := map[string]string{}
	for _, name := range Names() {
		base, err := s.listen(ctx, s.service(name, queue))
		if err != nil {
			stop()
			cancel()
			return Live{}, fmt.Errorf("serve %s: %w", name, err)
		}
		live.Metrics[name] = base + "/metrics"
		loads[name] = base + "/"
	}
	var err error
	if live.ActuatorURL, err = s.listen(ctx, s.Actuator()); err != nil {
		stop()
		cancel()
		return Live{}, fmt.Errorf("serve the actuator: %w", err)
	}
	for name, url := range loads {
		s.running.Go(func() { load(ctx, url, s.core.traffic[name].rate) })
	}
	for range shards {
		s.running.Go(func() { s.worker(ctx, queue) })
	}
	s.running.Go(func() { s.clock(ctx) })
	return live, nil
}

// listen serves until ctx ends and gives the base URL.
func (s *Shop) listen(ctx context.Context, h http.Handler) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	s.running.Go(func() { _ = server.Serve(l) })
	s.running.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	return "http://" + l.Addr().String(), nil
}

// service is one service with its exporter.
func (s *Shop) service(name string, queue chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	page := promhttp.HandlerFor(s.core.registries[name], promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if s.core.dead(name) {
			http.Error(w, "the exporter is down", http.StatusServiceUnavailable)
			return
		}
		page.ServeHTTP(w, r)
	})
	if name == Fulfilment {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(s.enqueue(queue)) })
		return mux
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(s.core.request(name)) })
	return mux
}

// enqueue takes a job if there is room for it.
func (s *Shop) enqueue(queue chan<- struct{}) int {
	select {
	case queue <- struct{}{}:
		s.core.depth.Set(float64(len(queue)))
		return http.StatusAccepted
	default:
		return http.StatusTooManyRequests
	}
}

// worker is one shard: it takes a job, works on it for a while, counts it.
func (s *Shop) worker(ctx context.Context, queue <-chan struct{}) {
	each := time.NewTicker(time.Second / shardRate)
	defer each.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-queue:
			s.core.depth.Set(float64(len(queue)))
		}
		select {
		case <-ctx.Done():
			return
		case <-each.C:
			s.core.job()
		}
	}
}

// clock moves the core's clock with the real one.
func (s *Shop) clock(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			s.core.advance(now.Sub(last))
			last = now
		}
	}
}

// load sends rate requests a second until ctx ends.
func load(ctx context.Context, url string, rate float64) {
	transport := &http.Transport{MaxConnsPerHost: inFlight, MaxIdleConnsPerHost: inFlight}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: requestTimeout}
	ticker := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer ticker.Stop()
	slots := make(chan struct{}, inFlight)
	// Every slot is taken back at the end, so that nothing outlives the load.
	defer func() {
		for range inFlight {
			slots <- struct{}{}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				_ = visit(ctx, client, url)
			}()
		default:
		}
	}
}

// visit sends one request. What comes back is the service's to count.
func visit(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
