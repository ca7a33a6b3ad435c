package compare_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// What a pass spends on judging a healthy service, once it is measured: the set
// of what is held, and the assessment.
func BenchmarkAssess(b *testing.B) {
	const sweep = 30 * time.Second
	services := make([]spec.Service, 1000)
	for i := range services {
		services[i] = service(fmt.Sprintf("s%04d", i), objective("a"))
	}
	plans := measure.Compile(services, nil)
	held := make([][]measure.Measurement, len(services))
	for i, svc := range services {
		h := measure.Hold(plans.Service(svc.Name), nil)
		qs := append(h.Due(now, sweep), h.Shown(now.Add(5*time.Minute), sweep)...)
		h.Keep(qs, answer(qs))
		held[i] = h.Measured(now, sweep)
	}
	b.ReportAllocs()
	i, set := 0, measure.NewSet(nil) // one for all, as a pass has it
	for b.Loop() {
		i = (i + 1) % len(services)
		set.Refill(held[i])
		if a := compare.Assess(services[i], set, limits, now); a.State != compare.Met {
			b.Fatalf("%s(%s)", a.State, a.Reason)
		}
	}
}
