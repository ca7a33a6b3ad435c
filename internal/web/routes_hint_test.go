package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRouteHints: who asks for what is not there is told what is.
func TestRouteHints(t *testing.T) {
	const (
		approvals = "GET /api/v1/approvals, POST /api/v1/approvals/{id} with " + `{"answer":"approve|deny","reason":"…"}`
		decisions = "GET /api/v1/decisions, GET /api/v1/decisions/{id}, POST /api/v1/decisions/{id}/settle with " + `{"as":"landed|not-landed","reason":"…"}`
		all       = "actions, approvals, budgets, ceilings, changes, decisions, drift, freezes, ledger, objectives, pages, services"
	)
	cases := map[string]struct {
		reason, method, path string
		status               int
		want                 string
	}{
		"Approve":   {"a guess at the way to approve", "POST", "/api/v1/approvals/t10/approve", 404, "no such path /api/v1/approvals/t10/approve; there is POST /api/v1/approvals/{id} with " + `{"answer":"approve|deny","reason":"…"}`},
		"Slash":     {"a list with a slash", "GET", "/api/v1/approvals/", 404, "no such path /api/v1/approvals/; there is " + approvals},
		"Post":      {"the list takes no answer", "POST", "/api/v1/approvals", 405, "/api/v1/approvals takes GET; there is " + approvals},
		"Put":       {"another method", "PUT", "/api/v1/approvals/t10", 405, "/api/v1/approvals/t10 takes POST; there is POST /api/v1/approvals/{id} with " + `{"answer":"approve|deny","reason":"…"}`},
		"Decision":  {"one page has more below it", "POST", "/api/v1/decisions/d4/undo", 404, "no such path /api/v1/decisions/d4/undo; there is GET /api/v1/decisions/{id}, POST /api/v1/decisions/{id}/settle with " + `{"as":"landed|not-landed","reason":"…"}`},
		"Decisions": {"all of one kind", "DELETE", "/api/v1/decisions", 405, "/api/v1/decisions takes GET; there is " + decisions},
		"Resource":  {"no such kind", "GET", "/api/v1/approval/t10", 404, "no such path /api/v1/approval/t10; below /api/v1 there is " + all},
		"Version":   {"another version", "GET", "/api/v2/services", 404, "no such path /api/v2/services; below /api there is v1"},
		"Root":      {"nothing of it", "GET", "/", 404, "no such path /; below / there is -, api, hooks, metrics"},
		"Hook":      {"a hook's name", "POST", "/hooks/change", 404, "no such path /hooks/change; there is POST /hooks/alertmanager, POST /hooks/changes with " + `{"service":"…","what":"…","version":"…"}` + ", POST /hooks/pagerduty"},
	}
	s := newSite(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := s.do(request{method: tc.method, path: tc.path, header: bearer(aliceToken)})
			var e struct{ Message string }
			if err := json.Unmarshal([]byte(got.body), &e); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, e.Message); diff != "" || got.status != tc.status {
				t.Errorf("%s: %d (-want, +got)\n%s", tc.reason, got.status, diff)
			}
		})
	}
}

// TestHintedBodies: the body that a hint shows is one that its route reads: what
// is wrong with it is a word in it, never a key.
func TestHintedBodies(t *testing.T) {
	s := newSite(t)
	hints := 0
	for _, path := range []string{
		"/api/v1/approvals", "/api/v1/freezes", "/api/v1/decisions", "/api/v1/budgets", "/api/v1/ceilings", "/api/v1/ledger", "/hooks/changes",
	} {
		got := s.do(request{method: "PATCH", path: path, header: bearer(aliceToken)})
		var e struct{ Message string }
		if err := json.Unmarshal([]byte(got.body), &e); err != nil {
			t.Fatal(err)
		}
		_, routes, _ := strings.Cut(e.Message, "; there is ")
		for hint := range strings.SplitSeq(routes, "}, ") {
			route, body, ok := strings.Cut(hint, " with ")
			if !ok {
				continue
			}
			hints++
			if at := strings.LastIndex(route, ", "); at >= 0 {
				route = route[at+2:]
			}
			method, at, _ := strings.Cut(route, " ")
			body = strings.TrimSuffix(body, "}") + "}"
			body = strings.ReplaceAll(strings.Replace(body, `"until":"…"`, `"until":"2030-01-01T00:00:00Z"`, 1), "…", "x")
			r := s.do(request{method: method, path: strings.Replace(at, "{id}", "x1", 1), body: body, header: bearer(aliceToken)})
			if r.status == 405 || strings.Contains(r.body, "unknown field") || strings.Contains(r.body, "no such path") || strings.Contains(r.body, "body:") {
				t.Errorf("%s with %s: %d %s", route, body, r.status, r.body)
			}
		}
	}
	if hints != 8 {
		t.Errorf("%d bodies are shown, want 8", hints)
	}
}
