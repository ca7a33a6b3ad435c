package patience_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/patience"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

var start = time.Date(2026, 3, 1, 12, 3, 4, 0, time.UTC)

func middle() float64 { return 0.5 }

func fault(k wire.Kind) wire.Fault {
	f := wire.Fault{Kind: k, Reason: measure.SourceError, Detail: "it broke"}
	if k == wire.Refused {
		f.Reason = measure.SourceRefused
	}
	return f
}

// rests lets a source fail at once whenever it may be asked, and returns how
// long it was left alone each time.
func rests(h *patience.Health, f wire.Fault, times int) []time.Duration {
	now := start
	var out []time.Duration
	for range times {
		for h.Gate(now) != patience.Shut {
			h.Saw(f, now)
		}
		began := now
		for h.Gate(now) == patience.Shut {
			now = now.Add(100 * time.Millisecond)
		}
		out = append(out, now.Sub(began))
	}
	return out
}

func TestHealthRests(t *testing.T) {
	seconds := func(ss ...int) (ds []time.Duration) {
		for _, s := range ss {
			ds = append(ds, time.Duration(s)*time.Second)
		}
		return ds
	}
	later := func(header string) wire.Fault {
		f := fault(wire.Busy)
		f.RetryAfter = header
		return f
	}
	cases := map[string]struct {
		reason string
		fault  wire.Fault
		random float64
		want   []time.Duration
	}{
		"transient":   {"it heals by itself: half a minute at most", fault(wire.Failed), 0.5, seconds(5, 10, 20, 30, 30, 30)},
		"earliest":    {"replicas do not come back at once", fault(wire.Down), 0, seconds(15, 30, 60, 90, 90, 90)},
		"latest":      {"the jitter never exceeds the most", fault(wire.Slow), 1, seconds(25, 50, 100, 120, 120, 120)},
		"persistent":  {"people heal it: slowly, five minutes at most", fault(wire.Refused), 0.5, seconds(15, 30, 60, 120, 240, 300, 300)},
		"asked":       {"Retry-After is honoured", later("25"), 0.5, seconds(25, 25, 25, 30, 30)},
		"asked long":  {"five minutes at most", later("86400"), 0.5, seconds(300, 300)},
		"asked a day": {"a date is one too", later(start.Add(2 * time.Minute).Format(http.TimeFormat)), 0.5, seconds(120)},
		"asked badly": {"what is no number is nothing", later("soon"), 0.5, seconds(5)},
		"asked less":  {"nobody is asked sooner than it rests", later("-1"), 0.5, seconds(5)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if tc.random != 0.5 {
				for i := range want {
					want[i] /= 4 // given in quarters of a second
				}
			}
			got := rests(patience.NewHealth(func() float64 { return tc.random }), tc.fault, len(want))
			for i := range got {
				if d := got[i] - want[i]; d < 0 || d > 100*time.Millisecond {
					t.Errorf("%s: rests %v, want %v", tc.reason, got, want)
					break
				}
			}
		})
	}
}

// step is one thing that happens to a source.
type step struct {
	after time.Duration
	fault wire.Kind
	tried bool // the trivial query was answered
	gate  patience.Gate
	first bool
}

func TestHealth(t *testing.T) {
	const s = time.Second
	ok, slow, failed, down, refused := wire.None, wire.Slow, wire.Failed, wire.Down, wire.Refused
	open, shut, ajar := patience.Open, patience.Shut, patience.Ajar
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"three in a row": {"one or two may be the query's", []step{
			{0, ok, false, open, false}, {s, slow, false, open, true}, {s, failed, false, open, false}, {s, slow, false, shut, false},
		}},
		"not in a row": {"an answer in between shows that it works", []step{
			{0, slow, false, open, true}, {s, slow, false, open, false}, {s, ok, false, open, false}, {s, slow, false, open, true},
			{s, wire.Query, false, open, false}, {s, slow, false, open, true}, {s, slow, false, open, false},
			{s, wire.Unusable, false, open, false}, {s, slow, false, open, true},
		}},
		"down at once":       {"nobody is there to be asked", []step{{0, ok, false, open, false}, {s, down, false, shut, false}}},
		"busy at once":       {"it says so itself", []step{{0, ok, false, open, false}, {s, wire.Busy, false, shut, false}}},
		"refused at first":   {"nothing ever worked", []step{{0, refused, false, shut, false}}},
		"refused in between": {"one query may be forbidden, and not the source", []step{{0, ok, false, open, false}, {s, refused, false, open, true}, {s, refused, false, open, false}, {s, refused, false, shut, false}}},
		"tried again": {"one trivial query first, which decides", []step{
			{0, down, false, shut, false}, {4 * s, down, false, shut, false}, {s, down, false, shut, false},
			{9 * s, ok, true, shut, false}, {s, slow, false, open, true}, {s, slow, false, open, false}, {s, slow, false, shut, false},
		}},
		"one success":  {"it ends all", []step{{0, down, false, shut, false}, {s, ok, false, open, false}, {s, slow, false, open, true}}},
		"nobody asked": {"who went away says nothing", []step{{0, wire.Ended, false, open, false}, {0, wire.Ended, false, open, false}, {0, wire.Ended, false, open, false}}},
		"set back":     {"a clock that was set back prolongs nothing", []step{{0, down, false, shut, false}, {-time.Hour, wire.Ended, false, ajar, false}}},
		"size":         {"a limit is no fault, and always the query's", []step{{0, wire.Size, false, open, true}, {s, wire.Size, false, open, true}, {s, wire.Size, false, open, true}, {s, wire.Size, false, open, true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, now := patience.NewHealth(middle), start
			for i, x := range tc.steps {
				now = now.Add(x.after)
				var first bool
				if x.tried {
					h.Answered()
				} else {
					first = h.Saw(fault(x.fault), now)
				}
				if got := h.Gate(now); got != x.gate || first != x.first {
					t.Fatalf("%s: step %d: gate %d, want %d; first %t, want %t", tc.reason, i, got, x.gate, first, x.first)
				}
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	h := patience.NewHealth(middle)
	h.Saw(fault(wire.Refused), start)
	a, shut := h.Refuse(start)
	f := a.Fault
	want := "not asked until 12:03:19Z after 1 failure: it broke"
	if !shut || f.Detail != want || f.Reason != measure.SourceRefused || f.Kind != wire.Ended {
		t.Errorf("got %+v, want %q", f, want)
	}
	h = patience.NewHealth(middle)
	for range 3 {
		h.Saw(fault(wire.Failed), start)
	}
	if a, _ := h.Refuse(start); !strings.Contains(a.Fault.Detail, "until 12:03:09Z after 3 failures") || a.Fault.Reason != measure.SourceError {
		t.Errorf("got %+v", a)
	}
	if a, shut := h.Refuse(start.Add(time.Minute)); shut {
		t.Errorf("after its rest: %+v", a)
	}
}

func TestMemory(t *testing.T) {
	k := patience.KeyOf("sum(a)", start, start)
	m := patience.NewMemory()
	// Each refusal is looked at again when it no longer holds.
	now := start
	var got []time.Duration
	for range 6 {
		m.Learn(k, patience.Refused, "no", now)
		began := now
		for m.Look(k, now).Holds {
			now = now.Add(time.Second)
		}
		got = append(got, now.Sub(began))
	}
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a refused query (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(patience.Memo{Verdict: patience.Refused, Text: "no"}, m.Look(k, now)); diff != "" {
		t.Errorf("it is remembered after it no longer holds (-want +got):\n%s", diff)
	}
	m.Forget(k)
	if got := m.Look(k, now); got != (patience.Memo{}) {
		t.Errorf("a forgotten query: %+v", got)
	}
	m.Part(k, now)
	if got := m.Look(k, now.Add(14*time.Minute)); !got.Holds || got.Verdict != patience.Refused {
		t.Errorf("a group with a culprit: %+v", got)
	}
	m.Touch(k, now.Add(14*time.Minute))
	if got := m.Look(k, now.Add(28*time.Minute)); !got.Holds {
		t.Errorf("a group whose culprit was seen again: %+v", got)
	}
	m.Learn(k, patience.Heavy, "", now)
	if !m.Look(k, now.Add(9*time.Minute)).Holds || m.Look(k, now.Add(11*time.Minute)).Holds {
		t.Error("a heavy query does not rest for ten minutes at first")
	}
	if m.Look(k, now.Add(-time.Second)).Holds {
		t.Error("a clock that was set back prolongs it")
	}
}

func TestKeyOf(t *testing.T) {
	key := func(ago, late time.Duration) patience.Key {
		now := start.Add(late)
		return patience.KeyOf("sum(a)", now.Add(-ago-late), now)
	}
	if key(0, 0) != key(0, 40*time.Second) {
		t.Error("a query of now is another one a little later in the pass")
	}
	if key(0, 0) == key(time.Hour, 0) {
		t.Error("a query of an hour ago is that of now")
	}
	if patience.KeyOf("a", start, start) == patience.KeyOf("b", start, start) {
		t.Error("two expressions are one")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := patience.NewMemory()
	key := func(i int) patience.Key { return patience.KeyOf(fmt.Sprint(i), start, start) }
	for i := range 10000 {
		m.Learn(key(i), patience.Refused, "", start)
		m.Touch(key(0), start)
	}
	kept := 0
	for i := range 10000 {
		if m.Look(key(i), start).Holds {
			kept++
		}
	}
	if kept != 8192 || !m.Look(key(0), start).Holds || m.Look(key(1), start).Holds {
		t.Errorf("%d are kept, want 8192, the first because it was touched", kept)
	}
}

func TestSizes(t *testing.T) {
	k := patience.SizeKey{Shape: "a", Window: time.Hour}
	bad := func(members int) patience.Tally {
		return patience.Tally{Sent: 4, Failed: 3, Members: members, Blamed: true}
	}
	good := patience.Tally{Sent: 4}
	cases := map[string]struct {
		reason  string
		tallies []patience.Tally
		want    []int
	}{
		"halved":      {"most groups are too large", []patience.Tally{bad(100), bad(50), bad(25), bad(12)}, []int{50, 25, 12, 6}},
		"one of many": {"that one is taken apart by itself", []patience.Tally{{Sent: 4, Failed: 2, Members: 100, Blamed: true}}, []int{100}},
		"alone":       {"so is a single group", []patience.Tally{{Sent: 1, Failed: 1, Members: 100, Blamed: true}}, []int{100}},
		"down":        {"that is the source's fault", []patience.Tally{{Sent: 4, Failed: 4, Members: 100}}, []int{100}},
		"at least 1":  {"single queries are not made smaller", []patience.Tally{bad(2), bad(1)}, []int{1, 1}},
		"grows":       {"slowly", []patience.Tally{bad(100), good, good, good, good, good}, []int{50, 50, 50, 50, 50, 100}},
		"hesitates":   {"the longer the more often it failed", append([]patience.Tally{bad(100), good, good, good, good, good, bad(100)}, repeat(good, 10)...), []int{50, 50, 50, 50, 50, 100, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 100}},
		"half":        {"neither good nor bad", []patience.Tally{bad(100), {Sent: 4, Failed: 2}, good, good, good, good, good}, []int{50, 50, 50, 50, 50, 50, 100}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := patience.NewSizes(100)
			var got []int
			for _, x := range tc.tallies {
				s.Learn(map[patience.SizeKey]*patience.Tally{k: &x})
				got = append(got, s.Of(k.Shape, k.Window))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := s.Of(k.Shape, time.Minute); got != 100 {
				t.Errorf("another window has groups of %d", got)
			}
		})
	}
}

func repeat(t patience.Tally, n int) []patience.Tally {
	out := make([]patience.Tally, n)
	for i := range out {
		out[i] = t
	}
	return out
}

func TestSizesAreBounded(t *testing.T) {
	s := patience.NewSizes(100)
	for i := range 5000 {
		k := patience.SizeKey{Shape: fmt.Sprint(i)}
		s.Learn(map[patience.SizeKey]*patience.Tally{k: {Sent: 2, Failed: 2, Members: 100, Blamed: true}})
	}
	if first, last := s.Of("0", 0), s.Of("4999", 0); first != 50 || last != 100 {
		t.Errorf("groups of %d and %d, want 50 and, where there was no room, 100", first, last)
	}
}

// TestHealthProperties holds, for any course of things, that a rest never
// exceeds five minutes, and that a source that works again is asked again.
func TestHealthProperties(t *testing.T) {
	kinds := []wire.Kind{wire.None, wire.Query, wire.Size, wire.Slow, wire.Failed, wire.Down, wire.Busy, wire.Refused, wire.Unusable, wire.Ended}
	rapid.Check(t, func(t *rapid.T) {
		h := patience.NewHealth(func() float64 { return rapid.Float64Range(0, 1).Draw(t, "random") })
		now := start
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			f := fault(rapid.SampledFrom(kinds).Draw(t, "kind"))
			f.RetryAfter = rapid.SampledFrom([]string{"", "1", "100000", "x"}).Draw(t, "after")
			if h.Gate(now) == patience.Shut {
				continue // nothing is sent
			}
			h.Saw(f, now)
			if h.Gate(now.Add(5*time.Minute)) == patience.Shut {
				t.Fatalf("still resting five minutes after %+v", f)
			}
		}
		h.Saw(wire.Fault{}, now)
		if h.Gate(now) != patience.Open {
			t.Fatal("shut after a success")
		}
	})
}
