package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (s *site) freezeRequest(fields map[string]any) reply {
	s.t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(request{socket: true, method: http.MethodPost, path: "/api/v1/freezes", body: string(body)})
}

// TestFreezeAcknowledgesOnlyWhatBinds: an id that means something else, or
// that was lifted, freezes nothing, so it must not be answered with 200.
func TestFreezeAcknowledgesOnlyWhatBinds(t *testing.T) {
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	first := map[string]any{"id": "ops", "service": "search", "reason": "migration", "until": until}
	with := func(key string, value any) map[string]any {
		out := map[string]any{}
		for k, v := range first {
			out[k] = v
		}
		out[key] = value
		return out
	}
	cases := map[string]struct {
		reason string
		before func(*site)
		again  map[string]any
		status int
	}{
		"Retry":         {"the very same freeze again is a retry", func(*site) {}, first, 200},
		"AllServices":   {"only the one service is frozen", func(*site) {}, with("service", ""), 409},
		"OtherService":  {"that service is not frozen", func(*site) {}, with("service", "checkout"), 409},
		"Longer":        {"it ends earlier than asked", func(*site) {}, with("until", time.Now().Add(2*time.Hour)), 409},
		"OtherReason":   {"the record says another reason", func(*site) {}, with("reason", "incident"), 409},
		"Lifted":        {"every host removes the file of a lifted id", func(s *site) { s.lift("ops") }, first, 409},
		"LiftedAndGone": {"also when it asks for something else", func(s *site) { s.lift("ops") }, with("service", ""), 409},
		"FileLost":      {"a retry writes the file that is gone again", func(s *site) { s.unfile("ops") }, first, 200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if got := s.freezeRequest(first); got.status != 200 {
				t.Fatalf("the first freeze: %d %s", got.status, got.body)
			}
			tc.before(s)
			head, files := s.state().Head, s.files()
			got := s.freezeRequest(tc.again)
			if got.status != tc.status {
				t.Fatalf("%s: %d %s", tc.reason, got.status, got.body)
			}
			if tc.status == 200 {
				s.bound("ops")
				return
			}
			if got.code() != "conflict" {
				t.Errorf("code %q, want conflict", got.code())
			}
			if s.state().Head != head {
				t.Error("a refused freeze is in the ledger")
			}
			if diff := cmp.Diff(files, s.files()); diff != "" {
				t.Errorf("a refused freeze changed the files (-before, +after):\n%s", diff)
			}
		})
	}
}

func (s *site) lift(id string) {
	if got := s.do(request{socket: true, method: http.MethodDelete, path: "/api/v1/freezes/" + id, body: `{"reason":"done"}`}); got.status != 200 {
		s.t.Fatalf("thaw: %d %s", got.status, got.body)
	}
}

func (s *site) unfile(id string) {
	if err := s.dir.Remove(id); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) files() []ledger.Freeze {
	files, err := s.dir.List()
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// bound checks that file and ledger have the freeze, and the ledger no thaw.
func (s *site) bound(id string) {
	s.t.Helper()
	state := s.state()
	_, recorded := state.Freezes[id]
	_, lifted := state.Thawed[id]
	filed := false
	for _, f := range s.files() {
		filed = filed || f.ID == id
	}
	if !recorded || lifted || !filed {
		s.t.Errorf("acknowledged, but recorded=%t lifted=%t file=%t", recorded, lifted, filed)
	}
}

// TestFreezeOfAForeignFile: the id of a file that somebody else wrote is no
// freeze of one's own.
func TestFreezeOfAForeignFile(t *testing.T) {
	s := newSite(t)
	if err := s.dir.Write(ledger.Freeze{ID: "stop", Service: "search", By: "os:bob", Reason: "hands off", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := s.freezeRequest(map[string]any{"id": "stop", "reason": "hands off"}); got.status != 409 {
		t.Errorf("all services were asked for, one is frozen: %d %s", got.status, got.body)
	}
	if _, ok := s.state().Freezes["stop"]; ok {
		t.Error("a refused freeze is in the ledger")
	}
}

// TestFreezeRace: of several requests for one id, each different, exactly one
// is acknowledged, and that one binds.
func TestFreezeRace(t *testing.T) {
	s := newSite(t)
	const n = 8
	replies := make([]reply, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			replies[i] = s.freezeRequest(map[string]any{"id": "race", "reason": fmt.Sprintf("reason %d", i)})
		})
	}
	wg.Wait()
	var won []string
	for i, r := range replies {
		switch r.status {
		case 200:
			won = append(won, fmt.Sprintf("reason %d", i))
		case 409:
		default:
			t.Errorf("request %d: %d %s", i, r.status, r.body)
		}
	}
	if len(won) != 1 {
		t.Fatalf("%d of %d are acknowledged: %v", len(won), n, won)
	}
	s.bound("race")
	if have := s.state().Freezes["race"].Reason; have != won[0] {
		t.Errorf("%q was acknowledged, %q is recorded", won[0], have)
	}
}

func TestReason(t *testing.T) {
	most := strings.Repeat("ü", web.MaxReason)
	cases := map[string]struct {
		reason, text, want string
		ok                 bool
	}{
		"Plain":     {"as it is", "looking into it", "looking into it", true},
		"Outer":     {"blanks around it say nothing", "  x\n", "x", true},
		"Lines":     {"one line in every table", "a\nb\tc", "a b c", true},
		"Escape":    {"no terminal is steered", "a\x1b[2Jb\u202ec\u2028d\x00", "a [2Jb c d", true},
		"NoText":    {"bytes that are no text", "a\xffb", "a\ufffdb", true},
		"Blank":     {"is none", " \x00\n ", "", true},
		"Most":      {"characters count, not bytes", most, most, true},
		"TooLong":   {"the ledger keeps it for ever", most + "x", "", false},
		"ManyBlank": {"blanks around it are not counted", most + "\n", most, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := web.Reason(tc.text)
			if (err == nil) != tc.ok || got != tc.want {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if again, err := web.Reason(got); tc.ok && (err != nil || again != got) {
				t.Errorf("cleaning twice gives %q, %v: a retry would be another freeze", again, err)
			}
		})
	}
}

func FuzzReason(f *testing.F) {
	f.Add("looking into it")
	f.Add("a\u202e\x1b[2J\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := web.Reason(text)
		if err != nil {
			return
		}
		if again, err := web.Reason(got); err != nil || again != got || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Fatalf("%q is not clean: %q, %v", got, again, err)
		}
	})
}

// TestLongReasons: each write that takes a reason bounds it.
func TestLongReasons(t *testing.T) {
	s := newSite(t)
	long := strings.Repeat("x", web.MaxReason+1)
	cases := map[string]request{
		"Freeze":  {method: "POST", path: "/api/v1/freezes", body: `{"reason":"` + long + `"}`},
		"Thaw":    {method: "DELETE", path: "/api/v1/freezes/f1", body: `{"reason":"` + long + `"}`},
		"Approve": {method: "POST", path: "/api/v1/approvals/t10", body: `{"answer":"approve","reason":"` + long + `"}`},
		"Settle":  {method: "POST", path: "/api/v1/decisions/d4/settle", body: `{"as":"landed","reason":"` + long + `"}`},
		"Reset":   {method: "POST", path: "/api/v1/budgets/reset", body: `{"reason":"` + long + `"}`},
	}
	head := s.state().Head
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			req.socket = true
			got := s.do(req)
			if got.status != 400 || got.code() != "bad-request" || !strings.Contains(got.body, "2000 at most") {
				t.Errorf("%d %.300s", got.status, got.body)
			}
		})
	}
	if s.state().Head != head || len(s.files()) != 0 {
		t.Error("a refused reason left something behind")
	}
	if got := s.freezeRequest(map[string]any{"reason": "\x00 \n"}); got.status != 400 {
		t.Errorf("a reason of control characters is none: %d %s", got.status, got.body)
	}
}
