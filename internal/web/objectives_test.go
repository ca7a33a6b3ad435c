package web_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// TestObjectiveShows holds what is added to an objective of the contract.
func TestObjectiveShows(t *testing.T) {
	const day = 24 * time.Hour
	until := start.Add(time.Hour)
	cases := map[string]struct {
		reason string
		o      compare.Objective
		want   string
	}{
		"groups": {
			reason: "the numbers are those of the worst group, so it is named, and how many share its fate",
			o:      compare.Objective{Group: `host="a"`, Groups: 20, GroupsBreached: 3},
			want:   `{"group":"host=\"a\"","groups":20,"groupsBreached":3}`,
		},
		"groups that are all well": {
			reason: "none of twenty is a number, not a gap",
			o:      compare.Objective{Group: `host="a"`, Groups: 20},
			want:   `{"group":"host=\"a\"","groups":20,"groupsBreached":0}`,
		},
		"truncated": {
			reason: "an error budget of 12 days is no budget of 30",
			o: compare.Objective{
				Period:  measure.Measurement{ID: measure.ID{Window: 30 * day}, Reason: measure.NoData},
				Covered: 12*day + 400*time.Millisecond,
			},
			want: `{"windowSeconds":2592000,"coveredSeconds":1036800}`,
		},
		"warming": {
			reason: "a rate over an hour of which 20 minutes hold data is marked at that window",
			o: compare.Objective{Burns: []compare.Burn{
				{BurnRate: spec.DefaultBurnRates()[0], Known: true},
				{BurnRate: spec.DefaultBurnRates()[1], Known: true, CoveredAt: until},
			}},
			want: `{"warmingUntil":"2026-03-01T13:00:00Z","warming":{"6h":"2026-03-01T13:00:00Z"}}`,
		},
		"not known, so not warming": {
			reason: "a window without a value needs no mark",
			o:      compare.Objective{Burns: []compare.Burn{{BurnRate: spec.DefaultBurnRates()[0], CoveredAt: until}}},
			want:   `{}`,
		},
		"unknown": {
			reason: "who looks for the fault begins at the source",
			o: compare.Objective{
				State: compare.Unknown, Reason: measure.SourceRefused, Detail: "401", UnknownFrom: "main",
			},
			want: `{"detail":"401","unknownFrom":"main"}`,
		},
	}
	added := []string{"detail", "unknownFrom", "group", "groups", "groupsBreached", "windowSeconds", "coveredSeconds", "warmingUntil", "warming"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			item := web.PlanOf(documents(), spec.Auto, reconcile.Result{
				Service: "checkout", Assessment: compare.Assessment{Objectives: []compare.Objective{tc.o}},
			}).Objectives[0]
			got, want := fields(t, item), map[string]any{}
			for name := range got {
				if !slices.Contains(added, name) {
					delete(got, name)
				}
			}
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func fields(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestServiceShowsFaultOfSource(t *testing.T) {
	unknown := func(id string, reason compare.Reason, from, detail string) compare.Objective {
		return compare.Objective{
			ID: id, State: compare.Unknown, Reason: reason, Detail: detail, UnknownFrom: from, Sources: []string{from},
		}
	}
	several := unknown("both", measure.SourceError, "probe", "from source probe: 503")
	several.Sources = []string{"main", "probe"}
	cases := map[string]struct {
		reason     string
		objectives []compare.Objective
		text, kind string
	}{
		"transient": {
			reason:     "time may heal it",
			objectives: []compare.Objective{unknown("availability", measure.SourceError, "main", "503: starting up")},
			text:       "source-error from main: 503: starting up", kind: "transient",
		},
		"refused": {
			reason:     "nobody answers 401 by waiting",
			objectives: []compare.Objective{unknown("availability", measure.SourceRefused, "main", "401")},
			text:       "source-refused from main: 401", kind: "persistent",
		},
		"bad query": {
			reason:     "a query is an objective's, so that is named",
			objectives: []compare.Objective{unknown("availability", measure.QueryError, "main", "bad_data")},
			text:       "availability: query-error from main: bad_data", kind: "persistent",
		},
		"persistent first": {
			reason: "what waits for a person is said before what does not, and the first of each kind",
			objectives: []compare.Objective{
				unknown("a", measure.SourceError, "main", "503"), unknown("b", measure.SourceRefused, "probe", "404"),
				unknown("c", measure.SourceRefused, "third", "401"), unknown("d", measure.SourceError, "main", "502"),
			},
			text: "source-refused from probe: 404", kind: "persistent",
		},
		"several vantage points": {
			reason:     "the detail names the source already",
			objectives: []compare.Objective{several},
			text:       "source-error: from source probe: 503", kind: "transient",
		},
		"the service's own": {
			reason:     "no data is no fault of the source",
			objectives: []compare.Objective{unknown("availability", measure.NoData, "main", "returned nothing")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := world(t)
			v.Last["checkout"] = reconcile.Result{Service: "checkout", Assessment: compare.Assessment{
				At: start, State: compare.Unknown, Objectives: tc.objectives,
			}}
			s := web.Services(v, web.Filter{Service: "checkout"}).Items[0]
			if s.LastError != tc.text || s.LastErrorKind != tc.kind {
				t.Errorf("%s: got %q (%s), want %q (%s)", tc.reason, s.LastError, s.LastErrorKind, tc.text, tc.kind)
			}
		})
	}
}
