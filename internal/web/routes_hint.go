package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bodyHints are the bodies of the writes that read one: who is told that a path
// takes POST still does not know what to post.
var bodyHints = map[string]string{
	"POST /api/v1/approvals/{id}":        `{"answer":"approve|deny","reason":"…"}`,
	"POST /api/v1/freezes":               `{"service":"…","reason":"…","until":"…"}`,
	"DELETE /api/v1/freezes/{id}":        `{"reason":"…"}`,
	"POST /api/v1/decisions/{id}/settle": `{"as":"landed|not-landed","reason":"…"}`,
	"POST /api/v1/budgets/reset":         `{"service":"…","action":"…","reason":"…","until":"…"}`,
	"POST /api/v1/ceilings":              `{"service":"…","action":"…","to":"deny|escalate|approval|auto","reason":"…","until":"…"}`,
	"POST /api/v1/ledger/lower-mark":     `{"service":"…","reason":"…"}`,
	"POST /hooks/changes":                `{"service":"…","what":"…","version":"…"}`,
}

// mostHinted is how many routes a hint names; of more it names where they begin.
const mostHinted = 4

// routeHint continues the message of a request that no route takes: it names the
// routes that begin as this path does, with their bodies.
func (s *Server) routeHint(path string) string {
	asked := segments(path)
	depth, near := 0, map[string]bool{}
	for _, route := range s.known {
		_, at, _ := strings.Cut(route, " ")
		same := shared(asked, segments(at))
		if same > depth {
			depth = same
			clear(near)
		}
		if same == depth {
			near[route] = true
		}
	}
	if len(near) > mostHinted {
		return beginnings(slices.Collect(maps.Keys(near)), depth)
	}
	var out []string
	for _, route := range slices.SortedFunc(maps.Keys(near), byPath) {
		if body := bodyHints[route]; body != "" {
			route += " with " + body
		}
		out = append(out, route)
	}
	return "; there is " + strings.Join(out, ", ")
}

func segments(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// shared is how many segments a path has in common with that of a route, from the
// beginning. A segment in braces is any.
func shared(asked, route []string) int {
	for i := range route {
		if i >= len(asked) || asked[i] == "" || asked[i] != route[i] && !strings.HasPrefix(route[i], "{") {
			return i
		}
	}
	return len(route)
}

// beginnings are the next segments of many routes.
func beginnings(routes []string, depth int) string {
	var next []string
	below := "/"
	for _, route := range routes {
		_, at, _ := strings.Cut(route, " ")
		parts := segments(at)
		below = "/" + strings.Join(parts[:depth], "/")
		if len(parts) > depth {
			next = append(next, parts[depth])
		}
	}
	slices.Sort(next)
	return fmt.Sprintf("; below %s there is %s", below, strings.Join(slices.Compact(next), ", "))
}

// byPath puts routes of one path beside each other.
func byPath(a, b string) int {
	methodA, pathA, _ := strings.Cut(a, " ")
	methodB, pathB, _ := strings.Cut(b, " ")
	if c := strings.Compare(pathA, pathB); c != 0 {
		return c
	}
	return strings.Compare(methodA, methodB)
}
