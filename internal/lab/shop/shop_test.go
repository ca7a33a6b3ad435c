package shop_test

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
)

// TestHealthy holds that a shop in which nothing is wrong is within every
// target, in the smallest window that the demo judges by too, and whatever the
// seed.
func TestHealthy(t *testing.T) {
	for seed := range uint64(5) {
		b := simulate(t, seed)
		b.pass(12 * time.Second)
		for range 30 {
			b.pass(5 * time.Second)
			for _, name := range shop.Names() {
				svc, _ := b.set.Service(name)
				m := b.measure(name, 10*time.Second)
				if !m.known || m.total < 100 || m.ratio > 1-svc.Objectives[0].Target {
					t.Errorf("seed %d, %s: %s %+v, want more than 100 events within %v", seed, b.now, name, m, svc.Objectives[0].Target)
				}
			}
		}
		for _, name := range shop.Names() {
			if m := b.measure(name, 150*time.Second); m.ratio == 0 || m.ratio > 0.003 {
				t.Errorf("%s: a share of %v fails in the best of times, want about 0.002", name, m.ratio)
			}
		}
		if b.shop.Harm() != 0 {
			t.Errorf("%d failures are an action's, and there was none", b.shop.Harm())
		}
	}
}

func TestBadRelease(t *testing.T) {
	b := simulate(t, 1)
	b.pass(time.Minute)
	b.shop.Inject(shop.BadRelease)
	b.pass(30 * time.Second)
	b.near("v42", shop.Checkout, 20*time.Second, 0.6)
	b.near("v42", shop.Catalog, 20*time.Second, 0.002)
	if diff := cmp.Diff(map[string]any{"version": "v42", "previousVersion": "v41"}, b.state("/checkout/release")); diff != "" {
		t.Errorf("what the agent observes (-want +got):\n%s", diff)
	}
	versions := func() float64 {
		v, _, err := b.engine.Value(t.Context(), `sum(rate(shop_http_requests_total{service="checkout",version="v42"}[10s]))`, b.now)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := versions(); v < 20 {
		t.Errorf("the evidence shows %v requests a second on v42", v)
	}

	b.act(shop.Checkout, "scale", "/checkout/scale", `{"replicas":8}`)
	b.pass(30 * time.Second)
	b.near("scaled", shop.Checkout, 20*time.Second, 0.6)
	if harm := b.shop.Harm(); harm == 0 {
		t.Error("scaling what does not help dropped nothing")
	}
	if diff := cmp.Diff(map[string]any{"replicas": 8.0}, b.state("/checkout/scale")); diff != "" {
		t.Error(diff)
	}
	b.rollback("v40")
	b.pass(30 * time.Second)
	b.near("another version", shop.Checkout, 20*time.Second, 0.6)

	harm := b.shop.Harm()
	b.rollback("v41")
	b.pass(30 * time.Second)
	b.near("v41", shop.Checkout, 20*time.Second, 0.002)
	if b.shop.Harm() != harm {
		t.Error("the rollback that mends did harm")
	}
	if diff := cmp.Diff(map[string]any{"version": "v41", "previousVersion": "v40"}, b.state("/checkout/release")); diff != "" {
		t.Error(diff)
	}
	if v := versions(); v != 0 {
		t.Errorf("%v requests a second still on v42", v)
	}
	b.rollback("v42")
	b.pass(30 * time.Second)
	b.near("v42 again", shop.Checkout, 20*time.Second, 0.6)
}

func TestPoisonedWorkers(t *testing.T) {
	b := simulate(t, 2)
	b.pass(time.Minute)
	// The turn is somewhere: a healthy shard was recycled before.
	b.recycle()
	b.pass(30 * time.Second)
	harm := b.shop.Harm()
	if harm == 0 {
		t.Error("recycling a healthy shard lost no job")
	}
	b.shop.Inject(shop.PoisonedWorkers)
	b.pass(30 * time.Second)
	b.near("both", shop.Fulfilment, 10*time.Second, 0.5)
	before := b.measure(shop.Fulfilment, 10*time.Second).ratio
	b.recycle()
	b.pass(30 * time.Second)
	after := b.measure(shop.Fulfilment, 10*time.Second).ratio
	// Closer than what is judged as a change, for any draw of traffic.
	if math.Abs(after-before) > 0.05*before {
		t.Errorf("one recycled: %v, before %v, want the same", after, before)
	}
	b.recycle()
	b.pass(30 * time.Second)
	b.near("both recycled", shop.Fulfilment, 10*time.Second, 0.002)
	if b.shop.Harm() != harm {
		t.Error("recycling what is poisoned did harm")
	}
	depth, ok, err := b.engine.Value(t.Context(), `shop_queue_depth{service="fulfilment"}`, b.now)
	if err != nil || !ok || depth > 100 {
		t.Errorf("%v jobs wait (%v, %v)", depth, ok, err)
	}
}

func TestDeadExporter(t *testing.T) {
	b := simulate(t, 3)
	b.pass(time.Minute)
	b.shop.Inject(shop.DeadExporter)
	b.pass(10 * time.Second)
	if g := b.shop.Gatherer(shop.Catalog); g != nil {
		t.Error("the exporter is dead and answers")
	}
	up := func(service string) float64 {
		v, _, err := b.engine.Value(t.Context(), `up{job="`+service+`"}`, b.now)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if up(shop.Catalog) != 0 || up(shop.Checkout) != 1 {
		t.Error("up does not say which exporter is dead")
	}
	if m := b.measure(shop.Catalog, 5*time.Second); m.known {
		t.Errorf("catalog is known: %+v", m)
	}
	b.near("the others", shop.Checkout, 10*time.Second, 0.002)
	// Nothing that the actuator can do brings it back.
	b.act(shop.Catalog, "restart", "/catalog/restart", `{}`)
	b.pass(20 * time.Second)
	if b.shop.Gatherer(shop.Catalog) != nil || b.shop.Harm() < 60 {
		t.Errorf("a restart of what is fine dropped %d requests, want about 90, and left the exporter alone", b.shop.Harm())
	}
}

func TestSelfHealing(t *testing.T) {
	b := simulate(t, 4)
	b.pass(time.Minute)
	b.shop.Inject(shop.SelfHealing)
	b.pass(30 * time.Second)
	b.rollback("v40")
	b.pass(30 * time.Second)
	b.near("after a rollback", shop.Checkout, 20*time.Second, 0.6)
	b.pass(29 * time.Second)
	b.near("at its end", shop.Checkout, 10*time.Second, 0.6)
	b.pass(20 * time.Second)
	b.near("alone", shop.Checkout, 15*time.Second, 0.002)
}

func TestUnfixable(t *testing.T) {
	b := simulate(t, 5)
	b.pass(time.Minute)
	b.shop.Inject(shop.Unfixable)
	for _, version := range []string{"v40", "v41"} {
		b.rollback(version)
		b.act(shop.Checkout, "scale", "/checkout/scale", `{"replicas":6}`)
		b.pass(30 * time.Second)
		b.near(version, shop.Checkout, 20*time.Second, 0.6)
	}
}

// TestSeeds holds that a seed is a run, and another seed another one.
func TestSeeds(t *testing.T) {
	run := func(seed uint64) string {
		b := simulate(t, seed)
		b.shop.Inject(shop.BadRelease)
		b.pass(20 * time.Second)
		families, err := b.shop.Gatherer(shop.Checkout).Gather()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, f := range families {
			// As a page, since in memory a counter has its birth by the real clock.
			if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
				t.Fatal(err)
			}
		}
		return text.String()
	}
	first, again, other := run(1), run(1), run(2)
	if first != again {
		t.Errorf("one seed gave two runs:\n%s", cmp.Diff(first, again))
	}
	if first == other {
		t.Error("two seeds gave one run")
	}
}

// TestJournal holds the oracle: in order of time over all paths, every send
// counted, on disk.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	now := start
	s, err := shop.New(shop.Options{Secret: secret, JournalDir: dir, Now: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Actuator()
	act(t, h, shop.Fulfilment, "recycle-workers", "/fulfilment/workers", `{}`)
	act(t, h, shop.Checkout, "rollback", "/checkout/release", `{"version":"v40"}`)
	act(t, h, shop.Catalog, "restart", "/catalog/restart", `{}`)
	act(t, h, shop.Fulfilment, "recycle-workers", "/fulfilment/workers", `{}`)

	unsigned := httptest.NewRecorder()
	h.ServeHTTP(unsigned, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/catalog/restart", strings.NewReader(`{"key":"k"}`)))
	nowhere := httptest.NewRecorder()
	h.ServeHTTP(nowhere, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments/restart", strings.NewReader(`{}`)))
	if unsigned.Code != http.StatusUnauthorized || nowhere.Code != http.StatusNotFound {
		t.Errorf("without a signature %d, at another path %d, want 401 and 404", unsigned.Code, nowhere.Code)
	}

	var got []string
	for _, r := range s.Journal() {
		got = append(got, fmt.Sprintf("%s %t", r.Path, r.Applied))
	}
	want := []string{
		"/fulfilment/workers true", "/checkout/release true", "/catalog/restart true", "/fulfilment/workers true", "/catalog/restart false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the journal (-want +got):\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rs, err := executetest.ReadJournal(filepath.Join(dir, "fulfilment-workers.jsonl"))
	if err != nil || len(rs) != 2 {
		t.Errorf("%d records on disk, %v", len(rs), err)
	}
	if _, err := shop.New(shop.Options{JournalDir: filepath.Join(dir, "nosuch")}); err == nil {
		t.Error("a journal in no directory was opened")
	}
}

// TestDoubleSend holds that a second send of one key shows as two effects.
func TestDoubleSend(t *testing.T) {
	b := simulate(t, 6)
	body := []byte(`{"key":"k","digest":"d","parameters":{}}`)
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/catalog/restart", bytes.NewReader(body))
		r.Header.Set(execute.HeaderSignature, execute.Sign(secret, start, body))
		b.shop.Actuator().ServeHTTP(httptest.NewRecorder(), r)
	}
	applied := 0
	for _, r := range b.shop.Journal() {
		if r.Key == "k" && r.Applied {
			applied++
		}
	}
	if applied != 2 {
		t.Errorf("%d effects of two sends, want 2", applied)
	}
}
