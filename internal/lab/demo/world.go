package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
)

// world is everything around the agent, all of it on loopback.
type world struct {
	shop   *shop.Shop
	engine *prom.Engine
	pager  *pager.Pager
	places places
	// stop ends the services, their load and scraping.
	stop    context.CancelFunc
	servers []*http.Server
	// failed gives the error of scraping that could not begin.
	failed chan error
}

// newWorld starts the shop, scrapes it, and opens the doors that the agent
// needs.
func newWorld(ctx context.Context, s *site, book *rules.Rules) (*world, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &world{stop: stop, pager: pager.New(time.Now), failed: make(chan error, 1)}
	err := w.start(ctx, s, book)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) start(ctx context.Context, s *site, book *rules.Rules) (err error) {
	w.shop, err = shop.New(shop.Options{Seed: 1, Secret: s.secret, JournalDir: s.path(journalDir), Now: time.Now})
	if err != nil {
		return fmt.Errorf("shop: %w", err)
	}
	live, err := w.shop.Serve(ctx)
	if err != nil {
		return fmt.Errorf("shop: %w", err)
	}
	if w.engine, err = prom.New(prom.Options{Dir: s.path(engineDir)}); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	var targets []prom.Target
	for _, name := range shop.Names() {
		targets = append(targets, prom.Target{Job: name, URL: live.Metrics[name]})
	}
	go func() {
		if err := w.engine.Scrape(ctx, targets, scrape); err != nil && ctx.Err() == nil {
			w.failed <- err
		}
	}()
	w.places.actuator = live.ActuatorURL
	for _, door := range []struct {
		url     *string
		handler http.Handler
	}{
		{&w.places.source, w.engine.Handler()},
		{&w.places.model, model.Handler(book)},
		{&w.places.pager, w.pager.Handler()},
	} {
		if *door.url, err = w.open(ctx, door.handler); err != nil {
			return err
		}
	}
	return nil
}

// open serves a handler on a free port of loopback.
func (w *world) open(ctx context.Context, h http.Handler) (url string, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen on loopback: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(l) }() // It ends with close, and its error is that.
	return "http://" + l.Addr().String(), nil
}

// close ends everything. It may be called after a start that failed.
func (w *world) close() error {
	w.stop()
	var errs []error
	for _, server := range slices.Backward(w.servers) {
		errs = append(errs, server.Close())
	}
	if w.engine != nil {
		errs = append(errs, w.engine.Close())
	}
	if w.shop != nil {
		errs = append(errs, w.shop.Close())
	}
	return errors.Join(errs...)
}
