package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

func TestClock(t *testing.T) {
	half := now.Add(500 * time.Millisecond)
	cases := map[string]struct {
		reason, body string
		// took is how long the question is under way, by this host's clock.
		took   time.Duration
		want   time.Time
		offset time.Duration
		err    string
	}{
		"scalar":    {reason: "Prometheus", body: scalar(half), want: half, offset: 500 * time.Millisecond},
		"vector":    {reason: "a server that evaluates 30 s ago still stamps its present", body: success(fmt.Sprintf(`{"resultType":"vector","result":[{"metric":{},"value":[%s,"%d"]}]}`, seconds(half), now.Unix()-30)), want: half, offset: 500 * time.Millisecond},
		"behind":    {reason: "the sign is the source's", body: scalar(now.Add(-9 * time.Second)), want: now.Add(-9 * time.Second), offset: -9 * time.Second},
		"slow":      {reason: "the middle of the way, not its beginning", body: scalar(now.Add(time.Second)), took: 2 * time.Second, want: now.Add(time.Second)},
		"too slow":  {reason: "a reading that may be wrong by much is none", body: scalar(now), took: 2*time.Second + 1, err: "longer than 2s"},
		"set back":  {reason: "a way that took less than nothing has no middle", body: scalar(now), took: -time.Second, err: "set back"},
		"several":   {reason: "which one?", body: vector("1", "2"), err: "2 samples"},
		"nothing":   {reason: "no time", body: vector(), err: "no-data: 0 samples"},
		"not whole": {reason: "no time", body: "<html>", err: "source-refused: not a Prometheus API"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var answered atomic.Int64
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("time") != "" {
					t.Error("the clock probe names an instant, so the answer would be ours")
				}
				answered.Add(1)
				_, _ = w.Write([]byte(tc.body))
			}), func(o *prom.Options) {
				o.Now = func() time.Time { return now.Add(time.Duration(answered.Load()) * tc.took) }
			})
			got := s.Clock(t.Context())
			if tc.err != "" {
				if got.Err == nil || !strings.Contains(got.Err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %q", tc.reason, got.Err, tc.err)
				}
				got.Err = nil
			}
			if diff := cmp.Diff(prom.ClockReading{Source: "main", Time: tc.want, Offset: tc.offset}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// hung never answers; it ends with the test.
func hung(t *testing.T, asked *atomic.Int32) string {
	t.Helper()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); server.Close() })
	return server.URL
}

// A source that hangs has no clock, and takes no other's.
func TestClocksAreReadAtOnce(t *testing.T) {
	var asked atomic.Int32
	fleet, err := prom.NewFleet(
		source(t, hung(t, &asked), func(o *prom.Options) { o.Name = "slow" }),
		serve(t, answers{"clock": scalar(now)}, func(o *prom.Options) {
			o.Now = func() time.Time { return now.Add(-7 * time.Second) }
		}),
		source(t, hung(t, &asked), func(o *prom.Options) { o.Name = "slow too" }),
	)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got := fleet.ClockReadings(t.Context())
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %s, want 2 s", took)
	}
	for _, i := range []int{0, 2} {
		if got[i].Err == nil || !strings.Contains(got[i].Err.Error(), "within 2s") {
			t.Errorf("a source that hangs: %+v", got[i])
		}
		got[i].Err = nil
	}
	want := []prom.ClockReading{{Source: "slow"}, {Source: "main", Time: now, Offset: 7 * time.Second}, {Source: "slow too"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whoever asks one source alone is not held by another, although that is asked
// at the same moment and hangs.
func TestASourceDoesNotWaitForAnother(t *testing.T) {
	var asked atomic.Int32
	fleet, err := prom.NewFleet(
		source(t, hung(t, &asked), func(o *prom.Options) { o.Name, o.Timeout = "slow", time.Hour }),
		serve(t, healthy()),
	)
	if err != nil {
		t.Fatal(err)
	}
	slow, quick := queriesOf("slow"), queriesOf("main")
	ended := make(chan struct{})
	go func() { defer close(ended); fleet.Measure(t.Context(), slow) }()
	eventually(t, 10*time.Second, func() bool { return asked.Load() > 0 }, func() any { return "the slow source was not asked" })
	for range 20 {
		if m := fleet.Measure(t.Context(), quick)[0]; m.ErrorRatio != 0.25 {
			t.Fatalf("%+v", m)
		}
	}
	select {
	case <-ended:
		t.Error("the slow source ended, so this proves nothing")
	default:
	}
}
