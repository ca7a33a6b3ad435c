package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (s *site) post(body string) reply {
	s.t.Helper()
	return s.do(request{method: http.MethodPost, path: "/hooks/changes", body: body, header: bearer(aliceToken)})
}

// change is a body of one change that long ago.
func changeBody(service, version string, ago time.Duration) string {
	return fmt.Sprintf(`{"time":%q,"service":%q,"what":"deploy","version":%q}`, time.Now().Add(-ago).UTC().Format(time.RFC3339), service, version)
}

func TestPostedChanges(t *testing.T) {
	s := newSite(t)
	first := changeBody("checkout", "v41", time.Hour)
	answer := func(r reply) (out web.Changed) {
		t.Helper()
		if err := json.Unmarshal([]byte(r.body), &out); err != nil || r.status != http.StatusOK || out.Kind != "Changed" {
			t.Fatalf("%d %s %v", r.status, r.body, err)
		}
		return out
	}
	steps := []struct {
		reason, body           string
		fresh, known           int
		socket, onlyDuplicates bool
	}{
		{"one", first, 1, 0, false, false},
		{"the same again is no second change", first, 0, 1, false, true},
		{"a list, one of which is known and one twice", "[" + first + "," + changeBody("search", "s7", time.Minute) + "," + changeBody("search", "s7", time.Minute) + "]", 1, 2, false, false},
		{"a fraction of a second is cut off, so it is the one before", strings.Replace(first, "Z\"", ".7Z\"", 1), 0, 1, false, true},
		{"without a time it is now, without a version it has none", ` {"service":"checkout","what":"flag"}`, 1, 0, true, false},
	}
	for _, st := range steps {
		req := request{method: http.MethodPost, path: "/hooks/changes", body: st.body, header: bearer(aliceToken)}
		if st.socket {
			req.socket, req.header = true, nil
		}
		got := answer(s.do(req))
		if got.Recorded != st.fresh || got.Duplicates != st.known || got.Duplicate != st.onlyDuplicates {
			t.Errorf("%s: %+v", st.reason, got)
		}
	}
	sv, _ := s.state().Service("checkout")
	if len(sv.Changes) != 2 || sv.Changes[0].What != "flag" || time.Since(sv.Changes[0].At) > time.Minute || sv.Changes[0].At.Nanosecond() != 0 || sv.Changes[1].Version != "v41" {
		t.Errorf("recorded: %+v", sv.Changes)
	}
	entries, err := s.store.Read(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, e := range entries {
		if e.Kind == "change" {
			var body struct{ By string }
			if err := json.Unmarshal(e.Body, &body); err != nil {
				t.Fatal(err)
			}
			by = append(by, body.By)
		}
	}
	if diff := cmp.Diff([]string{"token:alice", "token:alice", s.me}, by); diff != "" {
		t.Errorf("who posted (-want +got):\n%s", diff)
	}
	if len(s.hints) != 0 {
		t.Error("a change woke the loop: it is context, and no reason to act")
	}
	var list web.List[web.Change]
	got := s.do(request{method: http.MethodGet, path: "/api/v1/changes?service=search"})
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || list.Kind != "ChangeList" || len(list.Items) != 1 || list.Items[0].Version != "s7" || list.Items[0].From != "posted" {
		t.Errorf("%v %s", err, got.body)
	}
}

func TestChangeRefusals(t *testing.T) {
	s := newSite(t)
	good := changeBody("checkout", "v1", 0)
	cases := map[string]struct {
		reason, body string
		status       int
		text         string
	}{
		"Unknown":  {"a mistyped service would never be shown", changeBody("chekout", "v1", 0), 404, `no service "chekout" in the documents; GET /api/v1/services lists them`},
		"OneOfTwo": {"a list is taken whole or not at all", "[" + good + "," + changeBody("x", "v1", 0) + "]", 404, `no service "x"`},
		"Future":   {"it has not happened yet", changeBody("checkout", "v1", -6*time.Minute), 400, "more than 5m0s in the future"},
		"Old":      {"nobody is helped by it", changeBody("checkout", "v1", 31*24*time.Hour), 400, "more than 30 days ago"},
		"Long":     {"a word has 200 bytes at most", changeBody("checkout", strings.Repeat("x", 201), 0), 400, "version has 201 bytes, want 200 at most"},
		"Control":  {"a line end forges a line", `{"service":"checkout","what":"deploy\nnow"}`, 400, "what has a control character"},
		"NoWhat":   {"nothing was done", `{"service":"checkout"}`, 400, "what is missing"},
		"NoOne":    {"of nobody", `{"what":"deploy"}`, 400, "service is missing"},
		"Key":      {"who posted it is no field", `{"service":"checkout","what":"deploy","by":"os:root"}`, 400, `unknown field`},
		"Number":   {"a version is words", `{"service":"checkout","what":"deploy","version":42}`, 400, "version: must be a string"},
		"InAList":  {"also in a list", `[` + good + `,{"service":["checkout"],"what":"deploy"}]`, 400, "service: must be a string"},
		"Word":     {"a list of words is none of changes", `["deploy"]`, 400, "body: must be an object"},
		"Time":     {"a time without a zone is a guess", `{"time":"2026-11-29 12:00","service":"checkout","what":"deploy"}`, 400, "time: must be a time like 2026-11-29T12:00:00Z"},
		"Seconds":  {"a number says not since when", `[{"time":1764417600,"service":"checkout","what":"deploy"}]`, 400, "time: must be a time like 2026-11-29T12:00:00Z"},
		"Cut":      {"half a body", `{"service":"checkout","what":`, 400, "body: the JSON ends before it is complete"},
		"Empty":    {"no change at all", `[]`, 400, "want 1 to 60 changes, not 0"},
		"Many":     {"more than a minute takes", "[" + strings.Repeat(good+",", 60) + good + "]", 400, "want 1 to 60 changes, not 61"},
		"NoJSON":   {"no JSON", `deploy v42`, 400, "body: is no JSON: invalid character 'd' looking for beginning of value at byte 1"},
		"Two":      {"one value only", good + good, 400, "more than one JSON value"},
	}
	before := s.state().Head
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := s.post(tc.body)
			for _, of := range []string{"Request", "unmarshal", "2006-01-02", "Go "} {
				if strings.Contains(got.body, of) {
					t.Errorf("%s is a word of the program: %s", of, got.body)
				}
			}
			if got.status != tc.status || !strings.Contains(strings.ReplaceAll(got.body, `\"`, `"`), tc.text) {
				t.Errorf("%s: %d %s", tc.reason, got.status, got.body)
			}
		})
	}
	if got := s.do(request{method: http.MethodPost, path: "/hooks/changes", body: good}); got.status != 401 {
		t.Errorf("without a token: %d", got.status)
	}
	if got := s.do(request{method: http.MethodGet, path: "/hooks/changes"}); got.status != 405 {
		t.Errorf("GET: %d", got.status)
	}
	if after := s.state().Head; after != before {
		t.Error("a refused change was recorded")
	}
}

// Each change is an entry for ever, so a pipeline that runs wild is stopped.
func TestChangesHaveARate(t *testing.T) {
	s := newSite(t)
	var list []string
	for i := range 60 {
		list = append(list, changeBody("checkout", fmt.Sprint("v", i), time.Hour))
	}
	if got := s.post("[" + strings.Join(list, ",") + "]"); got.status != 200 {
		t.Fatalf("sixty: %d %s", got.status, got.body)
	}
	got := s.post("[" + strings.Join(list[:30], ",") + "]")
	if got.status != http.StatusTooManyRequests || got.code() != "too-many" || got.header.Get("Retry-After") == "" {
		t.Errorf("more: %d %v %s", got.status, got.header, got.body)
	}
}

func TestChangeList(t *testing.T) {
	v := world(t)
	at := start.Add(time.Minute)
	v.Changes = []measure.Change{
		{At: at, Service: "checkout", What: "deploy", Version: "v1"},
		{At: at.Add(time.Minute), Service: "search", What: "flag", Version: ""},
	}
	got := web.Changes(v, web.Filter{})
	want := []web.Change{
		{Time: at.Add(time.Minute), Service: "search", What: "flag", From: "file"},
		{Time: at, Service: "checkout", What: "deploy", Version: "v1", From: "file"},
	}
	if diff := cmp.Diff(want, got.Items); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := web.Changes(v, web.Filter{Since: at.Add(time.Second)}); len(got.Items) != 1 {
		t.Errorf("since: %+v", got.Items)
	}
	if got := web.Changes(v, web.Filter{Service: "nothing"}); got.Items == nil || len(got.Items) != 0 {
		t.Errorf("an empty list is a list: %+v", got.Items)
	}
}
