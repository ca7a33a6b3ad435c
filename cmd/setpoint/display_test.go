package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// shownObjectives are one of each kind that needs a mark.
func shownObjectives() []web.Objective {
	ratio, day := 0.25, (24 * time.Hour).Seconds()
	three, covered, later := 3, 12*day, time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	return []web.Objective{
		{
			Service: "cart", Name: "latency", State: "breached", Reason: "burning", Target: 0.5, ErrorRatio: &ratio,
			Group: `host="a"`, Groups: 20, GroupsBreached: &three, WindowSeconds: 30 * day, CoveredSeconds: &covered,
			Sources: []string{"main", "probe"}, BurnRates: map[string]*float64{"1h": &ratio, "6h": &ratio, "3d": nil},
			Warming: map[string]*time.Time{"6h": &later}, WarmingUntil: &later,
		},
		{
			Service: "search", Name: "fast", State: "unknown", Reason: "source-refused", Target: 0.5, WindowSeconds: 30 * day,
			Sources: []string{"main"}, UnknownFrom: "main", Detail: "401 Unauthorized", CoveredSeconds: &covered,
		},
	}
}

func written(t *testing.T, tab *table) string {
	t.Helper()
	var out bytes.Buffer
	if err := tab.write(&out, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Join(lines, "\n")
}

func TestObjectivesTableMarksWhatIsNotWhole(t *testing.T) {
	tab, _ := objectivesTable(&lister{output: formatTable}, shownObjectives())
	want := `SERVICE OBJECTIVE STATE REASON TARGET ERRORS BUDGET LEFT GROUPS
cart latency breached burning 50% 25% (12d of 30d) unknown 3 of 20, worst host="a"
search fast unknown source-refused 50% unknown unknown -`
	if diff := cmp.Diff(want, written(t, tab)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tab, _ = objectivesTable(&lister{output: formatWide}, shownObjectives()[1:])
	want = `SERVICE OBJECTIVE STATE REASON TARGET ERRORS BUDGET LEFT JUDGE WINDOW BURN RATES SAMPLE AGE SOURCES DETAIL
search fast unknown source-refused 50% unknown unknown unknown - - main from main: 401 Unauthorized`
	if diff := cmp.Diff(want, written(t, tab)); diff != "" {
		t.Errorf("without groups there is no column of them (-want +got):\n%s", diff)
	}
	if got := burnRates(shownObjectives()[0]); got != "1h=0.25 6h=0.25(warming) 3d=-" {
		t.Errorf("a rate over six hours of which one holds data has no mark: %q", got)
	}
}

func TestExplanationTellsGroupsAndWindows(t *testing.T) {
	var out bytes.Buffer
	p := &paper{w: &out}
	p.measured(shownObjectives())
	want := `
measured
  latency: breached (burning), target 50%, seen from main and probe
    groups breached: 3 of 20, worst host="a"; the numbers are its
    errors in the judge window unknown, in the SLO's window 25%, error budget unknown left
    window truncated to 12d of 30d: there are no older data
    burn rates 1h=0.25 6h=0.25(warming) 3d=-
    warming until 2026-03-01 13:00:00Z
  fast: unknown (source-refused), target 50%
    errors in the judge window unknown, in the SLO's window unknown, error budget unknown left
    window truncated to 12d of 30d: there are no older data
    from main: 401 Unauthorized
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlanNamesTheWorstGroup(t *testing.T) {
	var errs bytes.Buffer
	a := &app{err: &errs}
	if err := a.planFaults([]web.PlanItem{{Service: "cart", Objectives: shownObjectives()}}); err != nil {
		t.Fatal(err)
	}
	want := `cart/latency: 3 of 20 groups are breached, worst host="a"
cart/fast: source-refused: from main: 401 Unauthorized
`
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServicesTableSaysAFaultOfASourceOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	next := now.Add(25 * time.Second)
	down := func(name string) web.Service {
		return web.Service{Service: name, State: "unknown", Reason: "source-error", NextTry: &next, LastError: "source-error from main: 503", LastErrorKind: "transient"}
	}
	broken := down("jobs")
	broken.LastError, broken.LastErrorKind = "late: query-error from main: bad_data", "persistent"
	l := &lister{app: &app{now: func() time.Time { return now }}, output: formatTable}
	tab, _ := servicesTable(l, []web.Service{down("cart"), broken, down("search"), {Service: "well", State: "met", LastError: "no fault of a source"}})
	want := []string{
		"jobs: persistent: late: query-error from main: bad_data; next try in 25s",
		"cart, search: transient: source-error from main: 503; next try in 25s",
	}
	if diff := cmp.Diff(want, tab.hints); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
