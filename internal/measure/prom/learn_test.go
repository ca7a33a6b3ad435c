package prom_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// fleet is a source of a fleet server, and a clock of its own.
type fleet struct {
	*prom.Source

	server  *fleetServer
	queries func(at time.Time) []measure.Query
	now     time.Time
}

func newFleet(t *testing.T, n int, edit ...func(*prom.Options)) *fleet {
	f := &fleet{server: &fleetServer{}, queries: fleetQueries(n), now: now}
	f.Source = serve(t, f.server, append(edit, func(o *prom.Options) {
		o.Now, o.Rand = func() time.Time { return f.now }, func() float64 { return 0.5 }
	})...)
	return f
}

// pass measures the judge window of all services. It returns how many are
// known, and what was asked, counted. The next one is 31 s later.
func (f *fleet) pass(t *testing.T) (known int, asked map[string]int, ms []measure.Measurement) {
	t.Helper()
	ms = f.Measure(t.Context(), f.queries(f.now))
	for _, m := range ms {
		if m.Known() {
			known++
		}
	}
	asked = map[string]int{}
	for _, a := range f.server.asked() {
		asked[a]++
	}
	f.now = f.now.Add(31 * time.Second)
	return known, asked, ms
}

// on fails whatever asks for the total of the broken service.
func on(status int, errorType, text string) func(http.ResponseWriter, *http.Request, []string) bool {
	return func(w http.ResponseWriter, r *http.Request, members []string) bool {
		if kind(r.FormValue("query")) != "total" || !slices.Contains(members, broken) {
			return false
		}
		refuse(w, status, errorType, text)
		return true
	}
}

// whole is what a fleet of 100 is asked for when all is well.
var whole = map[string]int{"good × 100": 1, "total × 100": 1, "newest × 100": 1, "resets × 100": 1}

func TestHundredServicesShareQueries(t *testing.T) {
	f := newFleet(t, 100)
	for range 3 {
		known, asked, _ := f.pass(t)
		if diff := cmp.Diff(whole, asked); diff != "" || known != 100 {
			t.Errorf("%d known (-want +got):\n%s", known, diff)
		}
	}
}

// Whatever is wrong with one series spoils its own service and no other.
func TestOneBadSeriesOfAHundred(t *testing.T) {
	value := func(text string) func(string, string) string {
		return func(labels, at string) string { return fmt.Sprintf(`{"metric":%s,"value":[%s,%q]}`, labels, at, text) }
	}
	twice := func(labels, at string) string { return value("90")(labels, at) + "," + value("91")(labels, at) }
	cases := map[string]struct {
		reason string
		kind   string
		sample func(labels, at string) string
		want   measure.Reason
	}{
		"absent":         {"no data", "total", func(string, string) string { return "" }, measure.NoData},
		"NaN":            {"no number", "total", value("NaN"), measure.NotFinite},
		"+Inf":           {"no number", "good", value("+Inf"), measure.NotFinite},
		"-Inf":           {"no number", "good", value("-Inf"), measure.NotFinite},
		"1e400":          {"cannot be held", "good", value("1e400"), measure.NotFinite},
		"subnormal":      {"dividing by it overflows", "total", value("5e-324"), measure.NotFinite},
		"negative zero":  {"no counter gives it", "good", value("-0"), measure.OutOfRange},
		"negative":       {"no count", "total", value("-5"), measure.OutOfRange},
		"good > total":   {"they do not belong together", "good", value("102"), measure.OutOfRange},
		"histogram":      {"no number", "good", func(labels, at string) string { return fmt.Sprintf(`{"metric":%s,"histogram":[%s,{}]}`, labels, at) }, measure.NotAVector},
		"duplicate":      {"which one?", "good", twice, measure.SeveralSeries},
		"no fresh one":   {"its series ended", "newest", func(string, string) string { return "" }, measure.NoData},
		"resets":         {"its counters are worth little", "resets", value("5"), measure.CounterResets},
		"time of nobody": {"no time", "newest", value("1e30"), measure.NotFinite},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 100)
			f.server.sample = func(kind, labels, at string) string {
				if kind == tc.kind {
					return tc.sample(labels, at)
				}
				return value(map[string]string{"good": "99", "total": "100", "resets": "0", "newest": at}[kind])(labels, at)
			}
			known, asked, ms := f.pass(t)
			if m := ms[42]; m.Reason != tc.want || known != 99 {
				t.Errorf("%s: %d known, and %+v; want 99, and %s", tc.reason, known, m, tc.want)
			}
			if diff := cmp.Diff(whole, asked); diff != "" {
				t.Errorf("%s: it costs queries (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// One member that the server refuses is found by halving; it does not cost that
// again, and nobody else is unknown for it, not even once.
func TestOneRefusedOfAHundred(t *testing.T) {
	f := newFleet(t, 100)
	refusals := 0
	bad := on(422, "execution", "many-to-many matching not allowed")
	f.server.set(func(w http.ResponseWriter, r *http.Request, members []string) bool {
		if !bad(w, r, members) {
			return false
		}
		refusals++
		return true
	})
	var got []int
	for i := range 6 {
		refusals = 0
		known, asked, ms := f.pass(t)
		if known != 99 || ms[42].Reason != measure.QueryError || !strings.Contains(ms[42].Detail, "many-to-many") {
			t.Fatalf("pass %d: %d known, and %+v", i, known, ms[42])
		}
		if i > 0 && asked["total × 100"]+asked["total × 50"] > 1 {
			t.Errorf("pass %d asks again what was refused: %v", i, asked)
		}
		got = append(got, refusals)
	}
	// 100, 50, 25, 12, 6, 3 and 1 or 2 and 1; then the culprit alone, ever more slowly.
	if diff := cmp.Diff([]int{8, 1, 0, 1, 0, 0}, got); diff != "" {
		t.Errorf("refusals in each pass (-want +got):\n%s", diff)
	}
	for i := range 60 {
		refusals = 0
		if _, asked, _ := f.pass(t); refusals > 1 || asked["total × 100"] > 0 {
			t.Fatalf("half an hour later, pass %d: %d refusals of %v", i, refusals, asked)
		}
	}
	// Mended, it is found when it is tried again, and the group is whole.
	f.server.set(nil)
	f.now = f.now.Add(5 * time.Minute)
	if known, _, _ := f.pass(t); known != 100 {
		t.Errorf("%d known after it was mended, want 100", known)
	}
	if _, asked, _ := f.pass(t); !cmp.Equal(whole, asked) {
		t.Errorf("a pass after it was mended asks %v", asked)
	}
}

// Where everybody's query is refused, all of them are told in time, and what
// else is asked is known all the while.
func TestAllRefused(t *testing.T) {
	f := newFleet(t, 300)
	f.server.set(func(w http.ResponseWriter, r *http.Request, members []string) bool {
		if kind(r.FormValue("query")) != "total" {
			return false
		}
		refuse(w, 400, "bad_data", "unknown function")
		return true
	})
	var refused []int
	for i := range 5 {
		_, asked, ms := f.pass(t)
		n, total := 0, 0
		for _, m := range ms {
			if m.Reason == measure.QueryError {
				n++
			} else if m.Reason != measure.SourceError || !strings.Contains(m.Detail, "one of which is refused: HTTP 400") {
				t.Fatalf("pass %d: got %+v", i, m)
			}
		}
		for what, times := range asked {
			if strings.HasPrefix(what, "total") {
				total += times
			}
		}
		if total > 303 {
			t.Errorf("pass %d sends %d queries that are refused, want 303 at most", i, total)
		}
		refused = append(refused, n)
	}
	if !slices.IsSorted(refused) || refused[0] < 60 || refused[4] != 300 {
		t.Errorf("%v were told in each pass, want all of 300 in the end", refused)
	}
}

// One service whose query takes too long ends alone, and last.
func TestOneHeavyOfAHundred(t *testing.T) {
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request, []string) bool{
		"timeout": on(503, "timeout", "query timed out in expression evaluation"),
		"size":    on(422, "execution", "query processing would load too many samples into memory in query execution"),
		"storage": on(422, "422", "cannot fetch query results"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 100)
			f.pass(t)
			f.server.set(fail)
			var got []int
			for range 9 {
				known, _, _ := f.pass(t)
				got = append(got, known)
			}
			if diff := cmp.Diff([]int{0, 50, 75, 87, 94, 97, 98, 99, 99}, got); diff != "" {
				t.Errorf("known in each pass (-want +got):\n%s", diff)
			}
			f.server.set(nil)
			f.now = f.now.Add(7 * time.Hour)
			if known, asked, _ := f.pass(t); known != 100 || !cmp.Equal(whole, asked) {
				t.Errorf("%d known, and %v asked after it was mended", known, asked)
			}
		})
	}
}

// A service of which every query takes too long, in each group that there is, is
// found all the same, and once found it takes nobody along again for long.
func TestOneHangsInAllGroups(t *testing.T) {
	f := newFleet(t, 100)
	sweep, services := 30*time.Second, make([]spec.Service, 100)
	for i := range services {
		o := member(serviceName(i))
		o.BurnRates = spec.DefaultBurnRates()
		services[i] = spec.Service{Name: serviceName(i), Objectives: []spec.Objective{o}}
	}
	plans, held := measure.Compile(services, nil), make([]*measure.Held, len(services))
	for i, svc := range services {
		held[i] = measure.Hold(plans.Service(svc.Name), nil)
	}
	f.server.set(func(w http.ResponseWriter, _ *http.Request, members []string) bool {
		if !slices.Contains(members, broken) {
			return false
		}
		refuse(w, 503, "timeout", "query timed out in expression evaluation")
		return true
	})
	var got []int
	for range 150 {
		var due []measure.Query
		var ends []int
		for _, h := range held {
			due = append(due, h.Due(f.now, sweep)...)
			ends = append(ends, len(due))
		}
		ms, begin, known := f.Measure(t.Context(), due), 0, 0
		for i, h := range held {
			h.Keep(due[begin:ends[i]], ms[begin:ends[i]])
			begin = ends[i]
			if !slices.ContainsFunc(h.Measured(f.now, sweep), func(m measure.Measurement) bool { return !m.Known() }) {
				known++
			}
		}
		got, f.now = append(got, known), f.now.Add(31*time.Second)
	}
	if slices.Max(got) != 99 || slices.Min(got[30:]) < 50 {
		t.Errorf("known in each pass: %v, want 99 in the end, and half of them always after a quarter of an hour", got)
	}
}

// Where all groups are too large, all of them become smaller, and larger again
// only slowly.
func TestGroupsThatAreTooLarge(t *testing.T) {
	f := newFleet(t, 400)
	f.server.set(func(w http.ResponseWriter, r *http.Request, members []string) bool {
		if kind(r.FormValue("query")) != "total" || len(members) <= 30 {
			return false
		}
		refuse(w, 422, "execution", "query processing would load too many samples into memory in query execution")
		return true
	})
	var known []int
	var totals []string
	for range 4 {
		n, asked, _ := f.pass(t)
		known = append(known, n)
		for what, times := range asked {
			if strings.HasPrefix(what, "total") {
				totals = append(totals, fmt.Sprintf("%d %s", times, what))
			}
		}
	}
	if diff := cmp.Diff([]int{0, 0, 400, 400}, known); diff != "" {
		t.Errorf("known in each pass (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"4 total × 100", "8 total × 50", "16 total × 25", "16 total × 25"}, totals); diff != "" {
		t.Errorf("asked in each pass (-want +got):\n%s", diff)
	}
	f.server.set(nil)
	for i := 0; ; i++ {
		_, asked, _ := f.pass(t)
		if asked["total × 100"] == 4 {
			break
		}
		if i > 40 {
			t.Fatalf("groups are still small after %d good passes: %v", i, asked)
		}
	}
}

// The same where they take too long: the source is left alone after three of
// them, so all groups have to learn from those.
func TestGroupsThatAreTooSlow(t *testing.T) {
	f := newFleet(t, 160, func(o *prom.Options) { o.Chunk, o.MaxConcurrency = 8, 1 })
	f.pass(t)
	f.server.set(func(w http.ResponseWriter, r *http.Request, members []string) bool {
		if kind(r.FormValue("query")) != "total" || len(members) <= 2 {
			return false
		}
		refuse(w, 503, "timeout", "query timed out in expression evaluation")
		return true
	})
	var got []int
	for range 3 {
		known, _, _ := f.pass(t)
		got = append(got, known)
	}
	if diff := cmp.Diff([]int{0, 0, 160}, got); diff != "" {
		t.Errorf("known in each pass (-want +got):\n%s", diff)
	}
}

// A proxy may forbid one service's query. The source is not blamed for it.
func TestOneForbiddenOfAHundred(t *testing.T) {
	f := newFleet(t, 100, func(o *prom.Options) { o.MaxConcurrency = 1 })
	f.pass(t)
	f.server.set(on(403, "prom-label-proxy", "not yours"))
	var known int
	var ms []measure.Measurement
	for range 9 {
		known, _, ms = f.pass(t)
	}
	if known != 99 || ms[42].Reason != measure.SourceRefused {
		t.Errorf("%d known, and %+v", known, ms[42])
	}
}

// What timed out before comes last: the answers that can be had are there
// first, and a pass does not wait for many timeouts.
func TestHeavyComesLast(t *testing.T) {
	var order []string
	f := newFleet(t, 10, func(o *prom.Options) { o.Chunk, o.MaxConcurrency = 1, 1 })
	f.pass(t)
	heavy := []string{"svc-000", "svc-001", "svc-002", "svc-003", "svc-004"}
	f.server.set(func(w http.ResponseWriter, r *http.Request, members []string) bool {
		k := kind(r.FormValue("query"))
		order = append(order, k+" "+strings.Join(members, ","))
		if k != "good" || !slices.Contains(heavy, members[0]) {
			return false
		}
		refuse(w, 503, "timeout", "query timed out in expression evaluation")
		return true
	})
	for range 5 {
		f.pass(t) // one after the other is blamed, none of them takes the others along
	}
	order = nil
	known, _, ms := f.pass(t)
	if known != 5 {
		t.Errorf("%d known, want 5", known)
	}
	last := order[len(order)-3:]
	for _, what := range last {
		if !strings.HasPrefix(what, "good svc-00") || what > "good svc-004" {
			t.Errorf("the last ones are %q, want the heavy ones", last)
		}
	}
	if len(order) != 4*10-2 {
		t.Errorf("%d queries, want all but two: three timeouts are enough", len(order))
	}
	if m := ms[4]; !strings.Contains(m.Detail, "not asked, the source was too slow several times in this pass") {
		t.Errorf("the one that was left out: %+v", m)
	}
}
