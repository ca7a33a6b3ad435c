package prom_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

// pipes is a network in memory, so that time stands still unless all wait.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
	dials atomic.Int32
	down  atomic.Pointer[func() error] // nil: somebody listens
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.dials.Add(1)
	if down := p.down.Load(); down != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: (*down)()}
	}
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9090} }

// inMemory is a source of a server on a network in memory, in a bubble where
// time is simulated.
func inMemory(t *testing.T, h http.Handler, edit ...func(*prom.Options)) (*prom.Source, *pipes) {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	go server.Serve(p)
	t.Cleanup(func() { _ = server.Close() })
	return source(t, "http://prometheus.test:9090", append(edit, func(o *prom.Options) {
		o.Dial, o.Rand = p.dial, func() float64 { return 0.5 }
	})...), p
}

// passes measures every 30 s for a while, and returns what was asked in each.
func passes(t *testing.T, s *prom.Source, f *fleetServer, n int) (asked [][]string, last []measure.Measurement) {
	t.Helper()
	queries := fleetQueries(20)
	for range n {
		began := time.Now()
		last = s.Measure(t.Context(), queries(measure.Instant(began)))
		asked = append(asked, f.asked())
		time.Sleep(30*time.Second - time.Since(began))
	}
	return asked, last
}

func TestBackoff(t *testing.T) {
	good := []string{"good × 20", "newest × 20", "resets × 20", "total × 20"}
	fail := func(status int, header ...string) func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			http.Error(w, "no", status)
			return true
		}
	}
	cases := map[string]struct {
		reason string
		fail   func(w http.ResponseWriter, _ *http.Request, _ []string) bool
		// asked is how many were sent in each pass, every 30 s.
		asked []int
		why   measure.Reason
	}{
		// Rests of 5, 10, 20 and 30 s.
		"500":              {"three faults, then one query after each rest", fail(500), []int{3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, measure.SourceError},
		"429":              {"left alone at once", fail(429), []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, measure.SourceError},
		"503 and a minute": {"left alone as long as it asks", fail(503, "Retry-After", "60"), []int{1, 0, 1, 0, 1, 0, 1}, measure.SourceError},
		"503 and an hour":  {"five minutes at most", fail(503, "Retry-After", "3600"), []int{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, measure.SourceError},
		// Rests of 15, 30, 60, 120, 240 and 300 s.
		"401": {"people heal it, so slowly", fail(401), []int{3, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, measure.SourceRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleetServer{}
				s, _ := inMemory(t, f, func(o *prom.Options) { o.MaxConcurrency = 1 })
				asked, _ := passes(t, s, f, 1)
				if diff := cmp.Diff([][]string{good}, asked); diff != "" {
					t.Fatalf("before (-want +got):\n%s", diff)
				}
				f.set(tc.fail)
				asked, ms := passes(t, s, f, len(tc.asked))
				var got []int
				for _, a := range asked {
					got = append(got, len(a))
				}
				if diff := cmp.Diff(tc.asked, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				for _, m := range ms {
					if m.Reason != tc.why {
						t.Fatalf("got %+v, want %s", m, tc.why)
					}
				}
				// Mended, everything is asked after the rest, and nothing remains.
				f.set(nil)
				time.Sleep(5 * time.Minute)
				passes(t, s, f, 1)
				asked, ms = passes(t, s, f, 1)
				if len(asked[0]) > 6 || !ms[0].Known() {
					t.Errorf("after it was mended %v is asked, and %+v", asked[0], ms[0])
				}
			})
		})
	}
}

// While a source is left alone its clock is not asked either.
func TestClockDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetServer{}
		s, _ := inMemory(t, f)
		f.now = time.Now
		if c := s.Clock(t.Context()); c.Err != nil {
			t.Fatal(c.Err)
		}
		f.set(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			http.Error(w, "", http.StatusTooManyRequests)
			return true
		})
		f.asked()
		began := time.Now()
		first, second := s.Clock(t.Context()), s.Clock(t.Context())
		if first.Err == nil || second.Err == nil || !strings.Contains(second.Err.Error(), "not asked until") || len(f.asked()) != 1 {
			t.Errorf("got %v, then %v, want one query and a refusal at once", first.Err, second.Err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
		// An answer to the clock lets the next pass ask.
		f.set(nil)
		time.Sleep(6 * time.Second)
		if c := s.Clock(t.Context()); c.Err != nil {
			t.Error(c.Err)
		}
		f.asked()
		asked, ms := passes(t, s, f, 1)
		if len(asked[0]) != 4 || !ms[0].Known() {
			t.Errorf("after the clock was read again %v is asked", asked[0])
		}
	})
}

// A connection that cannot be made says nothing about any query, and ends the
// pass at once.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetServer{}
		s, p := inMemory(t, f)
		lost := func() error { return &net.DNSError{Err: "no answer", IsTemporary: true} }
		p.down.Store(&lost)
		_, ms := passes(t, s, f, 1)
		if n := p.dials.Swap(0); n > 2 || ms[0].Reason != measure.SourceError {
			t.Errorf("%d dials, and %+v", n, ms[0])
		}
		silent := func() error { time.Sleep(15 * time.Second); return net.ErrClosed }
		p.down.Store(&silent)
		_, ms = passes(t, s, f, 1)
		if n := p.dials.Load(); n != 1 || !strings.Contains(ms[0].Detail, "no connection within 10s") {
			t.Errorf("%d dials, and %+v, want one that ends by its deadline", n, ms[0])
		}
		p.down.Store(nil)
		asked, ms := passes(t, s, f, 1)
		if diff := cmp.Diff([]string{"clock × 0", "good × 20", "newest × 20", "resets × 20", "total × 20"}, asked[0]); diff != "" || !ms[0].Known() {
			t.Errorf("after it is back (-want +got):\n%s", diff)
		}
	})
}

// A source that hangs costs three timeouts, one for each slot at a time, then
// one query now and then; what times out ends by its deadline.
func TestHungSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetServer{}
		hang := func(_ http.ResponseWriter, r *http.Request, _ []string) bool { <-r.Context().Done(); return true }
		s, _ := inMemory(t, f, func(o *prom.Options) { o.MaxConcurrency = 1 })
		passes(t, s, f, 1)
		f.set(hang)
		began := time.Now()
		ms := s.Measure(t.Context(), fleetQueries(20)(measure.Instant(began)))
		if took, n := time.Since(began), len(f.asked()); took != 30*time.Second || n != 3 {
			t.Errorf("%d queries in %s, want 3 in 30s", n, took)
		}
		if m := ms[0]; m.Reason != measure.SourceError || !strings.Contains(m.Detail, "no whole answer within 10s") {
			t.Errorf("got %+v", m)
		}
		began = time.Now()
		s.Measure(t.Context(), fleetQueries(20)(measure.Instant(began)))
		if took, n := time.Since(began), len(f.asked()); took != 0 || n != 0 {
			t.Errorf("%d queries in %s while it is left alone", n, took)
		}
		time.Sleep(10 * time.Second)
		if clock := s.Clock(t.Context()); clock.Err == nil || !strings.Contains(clock.Err.Error(), "within 2s") {
			t.Errorf("a clock that hangs: %+v", clock)
		}
		f.set(nil)
		asked, ms := passes(t, s, f, 2)
		if !ms[0].Known() {
			t.Errorf("after it is back %v is asked, and %+v", asked, ms[0])
		}
	})
}

// That the clock takes longer than it may, however often, says nothing about
// what else is asked.
func TestSlowClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetServer{}
		s, _ := inMemory(t, f)
		f.set(func(_ http.ResponseWriter, r *http.Request, members []string) bool {
			if members == nil {
				<-r.Context().Done()
			}
			return members == nil
		})
		for range 5 {
			began := time.Now()
			if c := s.Clock(t.Context()); c.Err == nil || time.Since(began) != 2*time.Second {
				t.Errorf("got %+v after %s", c, time.Since(began))
			}
		}
		f.asked()
		if asked, ms := passes(t, s, f, 1); len(asked[0]) != 4 || !ms[0].Known() {
			t.Errorf("%v is asked, and %+v", asked[0], ms[0])
		}
	})
}

// Whoever waits for a turn while the source fails is not sent.
func TestWaitingIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetServer{}
		s, _ := inMemory(t, f, func(o *prom.Options) { o.MaxConcurrency = 1 })
		f.set(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			time.Sleep(time.Second)
			http.Error(w, "", http.StatusTooManyRequests)
			return true
		})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { s.Ask(t.Context(), "x", time.Now()) })
		}
		all.Wait()
		if asked := f.asked(); len(asked) != 1 {
			t.Errorf("%d were sent, want 1", len(asked))
		}
	})
}

// One service whose query hangs delays nobody else's.
func TestHungServiceDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetServer{}
		s, _ := inMemory(t, f, func(o *prom.Options) { o.Chunk = 1 })
		passes(t, s, f, 1)
		f.set(func(_ http.ResponseWriter, r *http.Request, members []string) bool {
			if len(members) == 1 && members[0] == "svc-007" {
				<-r.Context().Done()
				return true
			}
			return false
		})
		for range 5 {
			began := time.Now()
			var known int
			for _, m := range s.Measure(t.Context(), fleetQueries(20)(measure.Instant(began))) {
				if m.Known() {
					known++
				}
			}
			if took := time.Since(began); known != 19 || took > 30*time.Second {
				t.Errorf("%d known after %s, want 19 within 30s", known, took)
			}
			time.Sleep(30 * time.Second)
		}
	})
}
