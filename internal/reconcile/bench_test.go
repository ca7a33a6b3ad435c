package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// BenchmarkQuietSweep prints what a sweep over healthy services costs beside
// the measurement and comparison that it cannot do without: "ratio" is the
// whole sweep over those two alone.
func BenchmarkQuietSweep(b *testing.B) {
	const services = 200
	w := newWorld(b)
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range services {
		svc := one
		svc.Name = fmt.Sprintf("s%03d", i)
		svc.Remediation.Service = svc.Name
		w.set.Services = append(w.set.Services, svc)
	}
	w.set.Digest = "set-bench"
	w.restart()
	sweep := func() {
		if got := len(w.r.Sweep(b.Context())); got != services {
			b.Fatalf("%d results", got)
		}
		w.pass(time.Second)
	}
	sweep()
	sweep()
	var whole, bare time.Duration
	for b.Loop() {
		began := time.Now()
		sweep()
		whole += time.Since(began)
		began = time.Now()
		bareSweep(b, w)
		bare += time.Since(began)
	}
	b.ReportMetric(float64(whole)/float64(bare), "ratio")
	b.ReportMetric(float64(whole.Microseconds())/float64(b.N)/services, "µs/service")
}

func bareSweep(b *testing.B, w *world) {
	var qs []measure.Query
	for _, svc := range w.set.Services {
		qs = append(qs, measure.Pass(svc, w.now)...)
	}
	ms := measure.NewSet(w.Measure(b.Context(), qs))
	limits := compare.Limits{MaxSampleAge: map[string]time.Duration{"": time.Minute, "main": time.Minute}, Sweep: 30 * time.Second}
	for _, svc := range w.set.Services {
		if a := compare.Assess(svc, ms, limits, w.now); a.State != compare.Met {
			b.Fatalf("%s is %s", svc.Name, a.State)
		}
	}
}
