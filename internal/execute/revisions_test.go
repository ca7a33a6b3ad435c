package execute_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

func TestRevisions(t *testing.T) {
	day := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	deploy := func(version string, ago time.Duration) measure.Change {
		return measure.Change{At: day.Add(-ago), What: "deploy", Version: version}
	}
	const v1, v2 = `{"version":"v1","time":"2026-11-30T11:00:00Z"}`, `{"version":"v2","time":"2026-11-30T13:00:00+01:00"}`
	cases := map[string]struct {
		reason, revisions string
		want              []measure.Change
		detail            string // "" is none
	}{
		"Newest":  {"whatever the order of the answer", v1 + "," + v2, []measure.Change{deploy("v2", 0), deploy("v1", time.Hour)}, ""},
		"None":    {"a target without a past", "", nil, ""},
		"Unknown": {"what nobody reads was meant to say something", `{"version":"v1","time":"2026-11-30T11:00:00Z","author":"x"}`, nil, "revision 0: a key is neither version nor time"},
		"Twice":   {"readers differ in which one they take", `{"version":"v1","version":"v2","time":"2026-11-30T11:00:00Z"}`, nil, "revision 0: a key occurs twice"},
		"One bad": {"half a list would say that the rest never happened", v1 + `,{"version":"v2"}`, nil, "revision 1: time is missing"},
		"NoName":  {"of what", `{"time":"2026-11-30T11:00:00Z"}`, nil, "revision 0: version is missing"},
		"Number":  {"a number is no version", `{"version":2,"time":"2026-11-30T11:00:00Z"}`, nil, "revision 0: version and time are texts"},
		"Null":    {"null is no text", `{"version":"v1","time":null}`, nil, "revision 0: version and time are texts"},
		"Epoch":   {"a time without a zone is a guess", `{"version":"v1","time":"1795939200"}`, nil, "revision 0: time is no RFC 3339 time"},
		"Control": {"a line end forges a line", `{"version":"v1\n","time":"2026-11-30T11:00:00Z"}`, nil, "revision 0: version has a control character"},
		"Long":    {"more than a version needs", `{"version":"` + strings.Repeat("x", 201) + `","time":"2026-11-30T11:00:00Z"}`, nil, "revision 0: version has 201 bytes, want 200 at most"},
		"Many":    {"a bound", strings.Repeat(v1+",", 20) + v1, nil, "21 of them, want 20 at most"},
		"Item":    {"no object", `"v1"`, nil, "revision 0: no JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := execute.ParseStatus(fmt.Appendf(nil, `{"known":true,"result":"no-op","state":{"replicas":6},"revisions":[%s]}`, tc.revisions))
			if !got.Known || got.Result != execute.NoOp || got.State["replicas"] != int64(6) {
				t.Errorf("%s: the rest of the answer is lost: %+v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want, got.Revisions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if tc.detail != "" {
				tc.detail = "no revisions are read: " + tc.detail
			}
			if got.Detail != tc.detail {
				t.Errorf("%s: %q, want %q", tc.reason, got.Detail, tc.detail)
			}
		})
	}
	for _, body := range []string{`{"known":false}`, `{"known":false,"revisions":null}`} {
		if got := execute.ParseStatus([]byte(body)); got.Revisions != nil || got.Detail != "" {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := execute.ParseStatus([]byte(`{"known":false,"revisions":{"a":1}}`)); got.Detail != "no revisions are read: want a list" {
		t.Errorf("no list: %+v", got)
	}
}

// FuzzRevisions: whatever stands there, what is read of it is fit to be shown, and
// the answer that it stands beside is not touched.
func FuzzRevisions(f *testing.F) {
	f.Add(`[{"version":"v1","time":"2026-11-30T11:00:00Z"}]`)
	f.Add(`[{"version":"\u202e","time":"0000-01-01T00:00:00+23:59"},{}]`)
	f.Fuzz(func(t *testing.T, revisions string) {
		o := execute.ParseStatus([]byte(`{"known":true,"result":"applied","revisions":` + revisions + `}`))
		if len(o.Revisions) > execute.MaxRevisions || !o.Known && len(o.Revisions) > 0 {
			t.Fatalf("%+v", o)
		}
		for _, c := range o.Revisions {
			c.Service = "checkout"
			if err := c.Check(); err != nil || c.What != execute.Deployed || c.Version == "" {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
