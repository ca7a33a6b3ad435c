package measure_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const sweep = 30 * time.Second

func hold(svc spec.Service) *measure.Held {
	return measure.Hold(measure.Compile([]spec.Service{svc}, nil).Service(svc.Name), nil)
}

func TestCadence(t *testing.T) {
	cases := map[time.Duration]time.Duration{
		5 * time.Minute: sweep, 30 * time.Minute: sweep, time.Hour: time.Minute, 6 * time.Hour: 6 * time.Minute,
		720 * time.Hour: 12 * time.Hour,
	}
	for window, want := range cases {
		if got := measure.Cadence(window, sweep); got != want {
			t.Errorf("a window of %s is asked every %s, want %s", window, got, want)
		}
	}
}

// A day of passes: each window costs what its sixtieth promises.
func TestCostOfADay(t *testing.T) {
	type kind struct {
		window    time.Duration
		totalOnly bool
		before    time.Duration
	}
	count := map[kind]int{}
	h, r, passes := hold(member(1)), rand.New(rand.NewSource(7)), 0
	var read, all time.Duration
	for at := now; at.Before(now.Add(24 * time.Hour)); passes++ {
		qs := append(h.Due(at, sweep), h.Shown(at, sweep)...)
		for _, q := range qs {
			count[kind{q.ID.Window, q.ID.TotalOnly, measure.Instant(at).Sub(q.ID.At)}]++
			read += q.ID.Window
		}
		for _, w := range objective().Windows() {
			all += w
		}
		h.Keep(qs, healthy(qs))
		if follow := h.Follow(at, sweep); len(follow) > 0 {
			t.Fatalf("a healthy service is asked %+v besides", follow)
		}
		at = at.Add(sweep + time.Duration(r.Intn(6001)-3000)*time.Millisecond)
	}
	m := time.Minute
	want := map[kind][2]int{
		{5 * m, false, 0}:            {passes, passes},
		{30 * m, false, 0}:           {passes * 9 / 10, passes},
		{60 * m, false, 0}:           {1430, 1441},
		{360 * m, false, 0}:          {240, 241},
		{43200 * m, false, 0}:        {2, 3},
		{5 * m, true, 55 * m}:        {144, 145}, // every 10 minutes
		{5 * m, true, 355 * m}:       {24, 25},   // every hour
		{5 * m, true, 43200*m - 5*m}: {4, 5},     // every 6 hours
	}
	for k, n := range count {
		if bounds, ok := want[k]; !ok || n < bounds[0] || n > bounds[1] {
			t.Errorf("%+v was asked %d times in %d passes, want %v", k, n, passes, bounds)
		}
		delete(want, k)
	}
	if len(want) > 0 {
		t.Errorf("never asked: %v", want)
	}
	if ratio := float64(read) / float64(all); ratio > 1.0/40 {
		t.Errorf("a day reads 1/%.0f of all windows at each pass, want 1/40 at most", 1/ratio)
	}
}

// After a start everything that decides is asked at once, and what is only
// shown within five minutes, and not for all at once.
func TestFirstPassesAfterAStart(t *testing.T) {
	services := members(1000)
	plans := measure.Compile(services, nil)
	helds := holdAll(plans, services, nil)
	perPass := map[int]int{}
	for pass := range 11 {
		at := now.Add(time.Duration(pass) * sweep)
		for i, svc := range services {
			h := helds[svc.Name]
			due, shown := h.Due(at, sweep), h.Shown(at, sweep)
			if pass == 0 && i%50 == 0 {
				want := []measure.ID{}
				for _, id := range ids(measure.Pass(svc, at)) {
					shows := id.Window == 720*time.Hour || id.At.Before(at.Add(-700*time.Hour)) || id.Window == time.Hour && id.TotalOnly
					if !shows {
						want = append(want, id)
					}
				}
				if diff := cmp.Diff(want, ids(due)); diff != "" {
					t.Fatalf("the first pass (-want +got):\n%s", diff)
				}
			}
			if len(shown) != 0 && len(shown) != 2 {
				t.Fatalf("shown: %+v, want the period and its coverage together", ids(shown))
			}
			perPass[pass] += len(shown) / 2
			h.Keep(due, healthy(due))
			h.Keep(shown, healthy(shown))
		}
	}
	total := 0
	for pass, n := range perPass {
		total += n
		if n > 400 {
			t.Errorf("pass %d asks the period of %d services", pass, n)
		}
	}
	if total != 1000 {
		t.Errorf("%d periods were asked within five minutes, want each once", total)
	}
}

func TestWhatFailedIsUnknown(t *testing.T) {
	svc := member(1)
	hour := measure.ID{Service: svc.Name, Objective: "availability", Window: time.Hour}
	cases := map[string]struct {
		reason string
		then   func(h *measure.Held, at time.Time) time.Time // a later pass, which asks what is due
		want   measure.Reason
	}{
		"held": {"within its cadence", func(h *measure.Held, at time.Time) time.Time {
			return at.Add(20 * time.Second)
		}, ""},
		"failed": {"an older good value does not stand in for it", func(h *measure.Held, at time.Time) time.Time {
			return at.Add(time.Minute)
		}, measure.SourceError},
		"never answered": {"what was due and not answered is not known", func(h *measure.Held, at time.Time) time.Time {
			return at.Add(61 * time.Second)
		}, measure.NotMeasured},
		"a little ahead": {"another look at the service may just have ended", func(h *measure.Held, at time.Time) time.Time {
			return at.Add(-4 * time.Second)
		}, ""},
		"clock set back": {"a value from the future is none", func(h *measure.Held, at time.Time) time.Time {
			return at.Add(-6 * time.Second)
		}, measure.NotMeasured},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := hold(svc)
			qs := h.Due(now, sweep)
			h.Keep(qs, healthy(qs))
			at := tc.then(h, now)
			if tc.want == measure.SourceError {
				qs = h.Due(at, sweep)
				failed := healthy(qs)
				for i := range failed {
					failed[i].Reason = measure.SourceError
				}
				h.Keep(qs, failed)
			}
			id := hour
			id.At = measure.Instant(at)
			if got := measure.NewSet(h.Measured(at, sweep)).Get(id).Reason; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A window that failed is asked again sooner than one that is known.
func TestFailuresAreAskedAgainSoon(t *testing.T) {
	svc := member(1)
	cases := map[string]struct {
		reason string
		fail   measure.Reason
		want   map[time.Duration]time.Duration // by the span back to the start of the window
	}{
		"known": {"at its cadence", "", map[time.Duration]time.Duration{
			6 * time.Hour: 6 * time.Minute, 12 * time.Hour: time.Hour,
		}},
		"source": {"six times as often", measure.SourceError, map[time.Duration]time.Duration{
			6 * time.Hour: time.Minute, 12 * time.Hour: time.Minute,
		}},
		"no data": {"a window fills up in its own time", measure.NoData, map[time.Duration]time.Duration{
			6 * time.Hour: time.Minute, 12 * time.Hour: 6 * time.Minute,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := hold(svc)
			last, longest := map[time.Duration]time.Time{}, map[time.Duration]time.Duration{}
			for at := now; at.Before(now.Add(4 * time.Hour)); at = at.Add(10 * time.Second) {
				qs := h.Due(at, 10*time.Second)
				ms := healthy(qs)
				for i, q := range qs {
					key := q.ID.Window
					if q.ID.TotalOnly { // the coverage of six hours
						key = q.ID.Window + at.Sub(q.ID.At) + 6*time.Hour
					}
					ms[i].Reason = tc.fail
					if was, ok := last[key]; ok {
						longest[key] = max(longest[key], at.Sub(was))
					}
					last[key] = at
				}
				h.Keep(qs, ms)
			}
			for key, want := range tc.want {
				if got := longest[key]; got != want {
					t.Errorf("%s: %s is asked every %s, want %s", tc.reason, key, got, want)
				}
			}
		})
	}
}

// An answer to an earlier look that comes late does not replace a later one.
func TestLateAnswersAreOfThePast(t *testing.T) {
	svc := member(1)
	for late, want := range map[time.Duration]measure.Reason{
		time.Second: measure.SourceError, 5 * time.Second: measure.SourceError,
		// The clock was set back: what was kept is not of now.
		6 * time.Second: "",
	} {
		h := hold(svc)
		first, second := h.Due(now.Add(-late), sweep), h.Due(now, sweep)
		failed := healthy(second)
		for i := range failed {
			failed[i].Reason = measure.SourceError
		}
		h.Keep(second, failed)
		h.Keep(first, healthy(first))
		id := measure.ID{Service: svc.Name, Objective: "availability", Window: 5 * time.Minute, At: now}
		if got := measure.NewSet(h.Measured(now, sweep)).Get(id).Reason; got != want {
			t.Errorf("an answer that is %s late leaves %q, want %q", late, got, want)
		}
	}
}

func TestAppendMeasuredLeavesWhatIsThere(t *testing.T) {
	h := hold(member(1))
	qs := h.Due(now, sweep)
	h.Keep(qs, healthy(qs))
	own := h.Measured(now, sweep)
	other := measure.Measurement{ID: measure.ID{Service: "other"}}
	got := h.AppendMeasured([]measure.Measurement{other}, now, sweep)
	if diff := cmp.Diff(append([]measure.Measurement{other}, own...), got); diff != "" || len(own) != len(qs) {
		t.Errorf("%d of %d are held (-want +got):\n%s", len(own), len(qs), diff)
	}
}

func TestRefreshAsksWhatDecidesTheState(t *testing.T) {
	cases := map[string]struct {
		reason string
		groups []string
		want   []measure.ID
	}{
		"one series": {"totals tell of coverage and traffic only", nil, []measure.ID{
			is(30*time.Minute, 0, false), is(time.Hour, 0, false), is(6*time.Hour, 0, false),
		}},
		"groups": {"the hour before shows which of them vanished", []string{"host"}, []measure.ID{
			is(30*time.Minute, 0, false), is(time.Hour, 0, false), is(6*time.Hour, 0, false), is(time.Hour, 5*time.Minute, true),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective()
			o.GroupBy = tc.groups
			h := hold(service(o))
			before := now.Add(-10 * time.Second)
			all := measure.Pass(service(o), before)
			h.Keep(all, healthy(all))
			judge := h.Due(now, sweep)[:1]
			h.Keep(judge, healthy(judge))
			if diff := cmp.Diff(tc.want, ids(h.Refresh(now))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRenewAsksAllThatDecides(t *testing.T) {
	h := hold(member(1))
	all := measure.Pass(member(1), now)
	if diff := cmp.Diff(ids(all), ids(h.Renew(now, sweep))); diff != "" {
		t.Errorf("with nothing held (-want +got):\n%s", diff)
	}
	h.Keep(all, healthy(all))
	var want []measure.ID
	for _, id := range ids(measure.Pass(member(1), now.Add(time.Second))) {
		if id.Window != 720*time.Hour && now.Sub(id.At) < 700*time.Hour {
			want = append(want, id)
		}
	}
	if diff := cmp.Diff(want, ids(h.Renew(now.Add(time.Second), sweep))); diff != "" {
		t.Errorf("with all held (-want +got):\n%s", diff)
	}
}

// A group that appeared since the longer windows were measured is no reason to
// know nothing of the objective until their next turn.
func TestFollowLooksForANewGroup(t *testing.T) {
	o := objective()
	o.GroupBy = []string{"host"}
	svc := service(o)
	h := hold(svc)
	answer := func(qs []measure.Query, hosts ...string) []measure.Measurement {
		ms := healthy(qs)
		for i := range ms {
			for _, host := range hosts {
				g := ms[i]
				g.Groups = nil
				ms[i].Groups = append(ms[i].Groups, measure.NamedGroup{Name: host, Measurement: g})
			}
		}
		return ms
	}
	qs := h.Due(now, sweep)
	h.Keep(qs, answer(qs, "a"))
	at := now.Add(2 * time.Minute)
	qs = h.Due(at, sweep)
	h.Keep(qs, answer(qs, "a"))
	if follow := h.Follow(at, sweep); len(follow) != 0 {
		t.Errorf("nothing is new, but asked %+v", ids(follow))
	}
	h.Keep(qs, answer(qs, "a", "b"))
	var want []measure.ID
	for _, q := range measure.Pass(svc, at) {
		if q.ID.Window == 6*time.Hour {
			want = append(want, q.ID)
		}
	}
	if diff := cmp.Diff(want, ids(h.Follow(at, sweep))); diff != "" {
		t.Errorf("b is new (-want +got):\n%s", diff)
	}
}

// What is only shown of an objective that misses its target is asked every few
// minutes: a budget from before the incident would be read as one of now.
func TestShownIsHastenedWhileMissed(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(q measure.Query, m *measure.Measurement)
		atMost time.Duration // between two readings of the period
		least  time.Duration
	}{
		"well":    {"twice a day", func(measure.Query, *measure.Measurement) {}, 12 * time.Hour, 2 * time.Hour},
		"missing": {"people look at it now", func(_ measure.Query, m *measure.Measurement) { m.ErrorRatio = 0.5 }, 6 * time.Minute, 4 * time.Minute},
		"failed": {"the source may be back", func(q measure.Query, m *measure.Measurement) {
			if q.Shown {
				m.Reason = measure.SourceError
			}
		}, 6 * time.Minute, 4 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := hold(member(1))
			var last time.Time
			longest := time.Duration(0)
			for at := now; at.Before(now.Add(3 * time.Hour)); at = at.Add(sweep) {
				qs := append(h.Due(at, sweep), h.Shown(at, sweep)...)
				ms := healthy(qs)
				for i, q := range qs {
					tc.edit(q, &ms[i])
					if q.ID.Window != 720*time.Hour || q.ID.TotalOnly {
						continue
					}
					if !last.IsZero() {
						longest = max(longest, at.Sub(last))
					}
					last = at
				}
				h.Keep(qs, ms)
			}
			longest = max(longest, now.Add(3*time.Hour).Sub(last))
			if longest > tc.atMost || longest < tc.least {
				t.Errorf("%s: %s between two readings, want %s to %s", tc.reason, longest, tc.least, tc.atMost)
			}
		})
	}
}
