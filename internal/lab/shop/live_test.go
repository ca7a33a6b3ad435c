package shop_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("did not happen: " + what)
		case <-tick.C:
		}
	}
}

// TestServe breaks and mends all three services in real time, over real HTTP,
// seen through the scrape manager and the shipped queries.
func TestServe(t *testing.T) {
	s, err := shop.New(shop.Options{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	e, err := prom.New(prom.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	live, err := s.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var targets []prom.Target
	for name, url := range live.Metrics {
		targets = append(targets, prom.Target{Job: name, URL: url})
	}
	scraped := make(chan error, 1)
	go func() { scraped <- e.Scrape(ctx, targets, 100*time.Millisecond) }()

	set := shipped(t)
	const window = 500 * time.Millisecond
	share := func(service string, low, high float64) func() bool {
		return func() bool {
			m := measureAt(t, e, set, service, window, time.Now())
			return m.known && m.total > 3 && m.ratio >= low && m.ratio <= high
		}
	}
	send := func(path, parameters string) {
		t.Helper()
		body := []byte(`{"key":"` + path + time.Now().String() + `","parameters":` + parameters + `}`)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, live.ActuatorURL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(execute.HeaderSignature, execute.Sign(secret, time.Now(), body))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, resp.StatusCode)
		}
	}
	for _, name := range shop.Names() {
		eventually(t, name+" is well", share(name, 0, 0.1))
	}
	s.Inject(shop.BadRelease)
	s.Inject(shop.PoisonedWorkers)
	s.Inject(shop.DeadExporter)
	eventually(t, "checkout is broken", share(shop.Checkout, 0.4, 0.8))
	eventually(t, "fulfilment is broken", share(shop.Fulfilment, 0.4, 0.6))
	eventually(t, "catalog is not known", func() bool { return !measureAt(t, e, set, shop.Catalog, window, time.Now()).known })

	send("/checkout/release", `{"version":"v41"}`)
	send("/fulfilment/workers", `{}`)
	eventually(t, "checkout is mended", share(shop.Checkout, 0, 0.1))
	if !share(shop.Fulfilment, 0.4, 0.6)() {
		t.Error("one recycle changed fulfilment")
	}
	send("/fulfilment/workers", `{}`)
	eventually(t, "fulfilment is mended", share(shop.Fulfilment, 0, 0.1))
	if n := len(s.Journal()); n != 3 || s.Journal()[0].Time.IsZero() {
		t.Errorf("%d records, want 3 with their times", n)
	}

	cancel()
	if err := <-scraped; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Serve(t.Context()); err == nil {
		t.Error("a closed shop serves")
	}
	for name, url := range live.Metrics {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s still answers after its context ended", name)
		}
	}
}

// TestServeRate holds that the load is what the demo's windows need, and that
// the queue does not grow.
func TestServeRate(t *testing.T) {
	s, err := shop.New(shop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.Serve(ctx); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, family := range map[string]string{
		shop.Catalog: "shop_http_requests_total", shop.Checkout: "shop_http_requests_total", shop.Fulfilment: "shop_jobs_total",
	} {
		families, err := s.Gatherer(name).Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := 0.0
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == family {
					n += m.GetCounter().GetValue()
				}
				if f.GetName() == "shop_queue_depth" && m.GetGauge().GetValue() > 20 {
					t.Errorf("%v jobs wait", m.GetGauge().GetValue())
				}
			}
		}
		// Half of what is meant, for a busy machine.
		if n < 26 {
			t.Errorf("%s: %v in 2s, want more than 13 a second", name, n)
		}
	}
}
