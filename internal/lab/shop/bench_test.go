package shop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

var (
	start  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	secret = []byte("the actuator's")
)

// bench is a shop in simulated time, scraped each second and measured with the
// queries of the documents that are shipped.
type bench struct {
	t      *testing.T
	shop   *shop.Shop
	engine *prom.Engine
	set    spec.Set
	now    time.Time
}

func shipped(t *testing.T) spec.Set {
	t.Helper()
	names, err := filepath.Glob("../../../slo/*.yaml")
	if err != nil || len(names) != len(shop.Names()) {
		t.Fatalf("%d documents, want %d (%v)", len(names), len(shop.Names()), err)
	}
	var files []spec.File
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Name: filepath.Base(n), Data: data})
	}
	set, err := spec.Load(files, []spec.Reader{openslo.Reader{}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func simulate(t *testing.T, seed uint64) *bench {
	t.Helper()
	b := &bench{t: t, now: start, set: shipped(t)}
	var err error
	if b.engine, err = prom.New(prom.Options{Dir: t.TempDir(), Now: func() time.Time { return b.now }}); err != nil {
		t.Fatal(err)
	}
	if b.shop, err = shop.New(shop.Options{Seed: seed, Secret: secret, Now: func() time.Time { return b.now }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.shop.Close(); err != nil {
			t.Error(err)
		}
		if err := b.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// pass lets time pass, with a scrape each second.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for ; d > 0; d -= time.Second {
		b.shop.Tick(time.Second)
		b.now = b.now.Add(time.Second)
		for _, name := range shop.Names() {
			if err := b.engine.Ingest(b.now, name, b.shop.Gatherer(name)); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// measured is how a service does over the last window.
type measured struct {
	ratio, total float64
	known        bool
}

func (b *bench) measure(service string, window time.Duration) measured {
	b.t.Helper()
	return measureAt(b.t, b.engine, b.set, service, window, b.now)
}

func measureAt(t *testing.T, e *prom.Engine, set spec.Set, service string, window time.Duration, at time.Time) measured {
	t.Helper()
	svc, ok := set.Service(service)
	if !ok {
		t.Fatalf("no document about %s", service)
	}
	batch := measure.NewBatch(measure.At(service, svc.Objectives[0], window, at))
	alone := func(string, time.Duration) int { return 1 }
	for rs := batch.Requests(alone); len(rs) > 0; rs = batch.Requests(alone) {
		for _, r := range rs {
			v, known, err := e.Value(t.Context(), r.Expr, r.At)
			if err != nil {
				t.Fatal(err)
			}
			var answer measure.Reading
			if known {
				answer.Series = []measure.Sample{{Value: v, At: r.At}}
			}
			batch.Put(r, answer)
		}
	}
	m := batch.Measurements()[0]
	return measured{ratio: m.ErrorRatio, total: m.Total, known: m.Known()}
}

// near fails unless the last window's share of failures is want.
func (b *bench) near(when, service string, window time.Duration, want float64) {
	b.t.Helper()
	m := b.measure(service, window)
	if !m.known || math.Abs(m.ratio-want) > 0.02 {
		b.t.Errorf("%s: %s in %s %+v, want %v", when, service, window, m, want)
	}
}

// act sends what the agent would send.
func act(t *testing.T, h http.Handler, service, action, path, parameters string) int {
	t.Helper()
	body := fmt.Appendf(nil, `{"apiVersion":%q,"key":"%s:%d","digest":"d","service":%q,"action":%q,"parameters":%s}`,
		spec.Group, service, time.Now().UnixNano(), service, action, parameters)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set(execute.HeaderSignature, execute.Sign(secret, start, body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func (b *bench) act(service, action, path, parameters string) {
	b.t.Helper()
	if code := act(b.t, b.shop.Actuator(), service, action, path, parameters); code != http.StatusOK {
		b.t.Fatalf("%s: %d", action, code)
	}
}

func (b *bench) rollback(version string) {
	b.act(shop.Checkout, "rollback", "/checkout/release", fmt.Sprintf(`{"version":%q}`, version))
}

func (b *bench) recycle() { b.act(shop.Fulfilment, "recycle-workers", "/fulfilment/workers", `{}`) }

func (b *bench) state(path string) map[string]any {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.shop.Actuator().ServeHTTP(w, httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, path+"?key=k", nil))
	var answer struct{ State map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		b.t.Fatalf("%s: %v", w.Body, err)
	}
	return answer.State
}
