package executetest_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

func TestLate(t *testing.T) {
	accepted := fact{Key: "k", Digest: "d", Result: execute.None, Late: true}
	effect := func(of int) fact {
		return fact{Key: "k", Digest: "d", Result: execute.Applied, Applied: true, Late: true, Of: of}
	}
	again := fact{Key: "k", Digest: "d", Result: execute.None, Duplicate: true}
	cases := map[string]struct {
		reason string
		dedup  bool
		sends  int
		want   []fact
	}{
		"Once":       {"one acceptance, one effect", false, 1, []fact{accepted, effect(1)}},
		"Twice":      {"two acceptances are two effects, and both show", false, 2, []fact{accepted, accepted, effect(1), effect(2)}},
		"TwiceDedup": {"a key is taken when it is accepted, not when it is done", true, 2, []fact{accepted, again, effect(1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			synctest.Test(t, func(t *testing.T) {
				a := open(t, executetest.ActuatorOptions{Journal: path, Dedup: tc.dedup, Now: time.Now})
				a.Treat(executetest.Treatment{Mode: executetest.ModeLate, Delay: time.Minute})
				begin := time.Now()
				for range tc.sends {
					post(t, a, "k", "")
					// Nobody waits for the second to be due later.
					time.Sleep(time.Second)
				}
				time.Sleep(57 * time.Second)
				synctest.Wait()
				if o := status(t, a, "k"); len(a.Effects()) != 0 || !o.Known || o.KeyKnown || o.State["replicas"] != int64(4) {
					t.Errorf("%s: before it is due: %d effects, %+v", tc.reason, len(a.Effects()), o)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, facts(a.Journal())); diff != "" {
					t.Fatalf("%s: -want +got:\n%s", tc.reason, diff)
				}
				if o := status(t, a, "k"); o.Result != execute.Applied || o.State["replicas"] != int64(6) {
					t.Errorf("%s: at last: %+v", tc.reason, o)
				}
				rs := a.Journal()
				if r := rs[tc.sends]; !rs[0].Due.Equal(begin.Add(time.Minute)) || !r.Time.Equal(rs[0].Due) || r.Body != "" {
					t.Errorf("%s: announced for %s, done at %s with body %q", tc.reason, rs[0].Due, r.Time, r.Body)
				}
			})
		})
	}
}

func TestRevert(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		var foreign []map[string]any
		a := open(t, executetest.ActuatorOptions{
			Journal: path, Now: time.Now, OnForeign: func(c map[string]any) { foreign = append(foreign, c) },
		})
		a.Treat(executetest.Treatment{Mode: executetest.ModeRevert, Delay: time.Minute})
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(`{"key":"k","digest":"d","parameters":{"replicas":8,"new":true}}`)))
		if diff := cmp.Diff(map[string]any{"replicas": int64(8), "new": true}, a.State()); diff != "" {
			t.Errorf("after the effect: %s", diff)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(map[string]any{"replicas": 4}, a.State()); diff != "" {
			t.Errorf("after the revert, -want +got:\n%s", diff)
		}
		want := []fact{
			{Key: "k", Digest: "d", Result: execute.Applied, Applied: true}, {Result: execute.None, Foreign: true, Of: 1},
		}
		if diff := cmp.Diff(want, facts(a.Journal())); diff != "" || len(a.Effects()) != 1 {
			t.Errorf("a foreign change counts for the key: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]map[string]any{{"replicas": 4, "new": nil}}, foreign); diff != "" {
			t.Errorf("the target was told: %s", diff)
		}
		if o := status(t, a, "k"); o.Result != execute.Applied {
			t.Errorf("the key forgot what it did: %+v", o)
		}
	})
}

// A process that is killed between acceptance and effect does it later.
func TestWhatWasAnnouncedSurvivesARestart(t *testing.T) {
	four, six := int64(4), int64(6)
	cases := map[string]struct {
		reason string
		mode   executetest.Mode
		after  time.Duration
		// want is the target at the start, after the restart and an hour later.
		want [3]any
	}{
		"LateDue":   {"what is due is done at the start", executetest.ModeLate, 2 * time.Minute, [3]any{four, six, six}},
		"LateEarly": {"what is not due waits", executetest.ModeLate, time.Second, [3]any{four, four, six}},
		"Revert":    {"a revert likewise", executetest.ModeRevert, time.Second, [3]any{six, six, four}},
		"RevertDue": {"a revert that is due is done at the start", executetest.ModeRevert, 2 * time.Minute, [3]any{six, four, four}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			synctest.Test(t, func(t *testing.T) {
				o := executetest.ActuatorOptions{Journal: path, State: map[string]any{"replicas": four}, Now: time.Now}
				killed := o
				killed.After = func(time.Duration, func()) {}
				a := open(t, killed)
				a.Treat(executetest.Treatment{Mode: tc.mode, Delay: time.Minute})
				post(t, a, "k", "")
				got := [3]any{a.State()["replicas"]}
				time.Sleep(tc.after)
				b := open(t, o)
				got[1] = b.State()["replicas"]
				time.Sleep(time.Hour)
				synctest.Wait()
				got[2] = b.State()["replicas"]
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
				// A third start finds nothing left to do.
				if c := open(t, o); len(c.Journal()) != 2 || len(c.Effects()) != 1 {
					t.Errorf("%s: %d records, %d effects after the third start", tc.reason, len(c.Journal()), len(c.Effects()))
				}
			})
		})
	}
}
