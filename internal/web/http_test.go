package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

const aliceToken = "alice-has-a-long-token"

// site is a server over a real ledger, on TCP and on a unix socket.
type site struct {
	t      *testing.T
	tcp    *http.Client
	unix   *http.Client
	base   string
	store  *sqlite.Store
	dir    *freezefile.Dir
	hints  chan string
	ready  string
	reload error
	me     string
}

func newSite(t *testing.T) *site {
	t.Helper()
	tmp := t.TempDir()
	db := filepath.Join(tmp, "setpoint.db")
	if err := sqlite.Init(db, "os:root"); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		t: t, store: store, dir: freezefile.New(filepath.Join(tmp, "freeze"), time.Now),
		hints: make(chan string, 10), me: "os:" + u.Username,
	}
	s.fill()
	server, err := web.New(s.options())
	if err != nil {
		t.Fatal(err)
	}
	s.listen(server, filepath.Join(tmp, "s.sock"))
	return s
}

func (s *site) options() web.Options {
	tokens, err := web.ParseTokens("tokens.yaml", []byte("alice: "+aliceToken+"\n"))
	if err != nil {
		s.t.Fatal(err)
	}
	return web.Options{
		View: func(use func(web.View)) {
			files, err := s.dir.List()
			if err != nil {
				s.t.Error(err)
			}
			use(web.View{State: s.state(), Set: documents(), Files: files, Now: time.Now()})
		},
		Desk:  reconcile.NewDesk(s.store, approve.Groups{"@oncall": {"token:alice", s.me}}, time.Now),
		Files: s.dir.List, WriteFreeze: s.dir.Write, RemoveFreeze: s.dir.Remove,
		Ready: func() string { return s.ready }, Reload: func(context.Context) error { return s.reload },
		Hint:   func(name string) { s.hints <- name },
		Tokens: func() web.Tokens { return tokens }, Gatherer: prometheus.NewRegistry(), Now: time.Now,
	}
}

func (s *site) listen(server *web.Server, path string) {
	ctx, stop := context.WithCancel(context.Background())
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	socket, err := web.ListenUnix(context.Background(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- server.Serve(ctx, tcp) }()
	go func() { done <- server.ServeSocket(ctx, socket) }()
	s.base, s.tcp = "http://"+tcp.Addr().String(), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	s.unix = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", path)
	}}}
	s.t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				s.t.Errorf("server: %v", err)
			}
		}
		if err := s.store.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// fill appends the golden history to the real ledger, with a ticket that is
// still open.
func (s *site) fill() {
	_, err := s.store.Append(context.Background(), s.state().Head, func([]ledger.Entry) ([]ledger.Draft, error) {
		drafts := bodies()[1:]
		for i, d := range drafts {
			if t, ok := d.Body.(approve.Ticket); ok {
				t.Asked, t.Expires = time.Now(), time.Now().Add(time.Hour)
				drafts[i].Body = t
			}
		}
		return drafts, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) state() *ledger.State {
	entries, err := s.store.Read(context.Background(), 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	state, err := ledger.Fold(entries)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// request is one HTTP request of a test.
type request struct {
	socket       bool
	method, path string
	body         string
	header       map[string]string
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) code() string {
	var e struct {
		APIVersion, Kind, Code, Message string
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Kind != "Error" || e.APIVersion == "" || e.Message == "" {
		return ""
	}
	return e.Code
}

func (s *site) do(r request) reply {
	s.t.Helper()
	req, err := http.NewRequest(r.method, s.base+r.path, strings.NewReader(r.body))
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	client := s.tcp
	if r.socket {
		client = s.unix
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(body)}
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func TestReads(t *testing.T) {
	s := newSite(t)
	for _, kind := range []string{"services", "objectives", "actions", "approvals", "budgets", "decisions", "pages", "freezes"} {
		r := s.do(request{method: "GET", path: "/api/v1/" + kind})
		var list struct {
			Kind  string            `json:"kind"`
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != 200 || len(list.Items) == 0 {
			t.Errorf("%s: status %d, %d items, %v", kind, r.status, len(list.Items), err)
		}
		if want := strings.ToUpper(kind[:1]) + kind[1:len(kind)-1] + "List"; list.Kind != want {
			t.Errorf("%s: kind %q, want %q", kind, list.Kind, want)
		}
	}
	if r := s.do(request{method: "GET", path: "/api/v1/decisions?service=search"}); strings.Contains(r.body, "checkout") {
		t.Errorf("the filter let another service through: %s", r.body)
	}
	if r := s.do(request{method: "GET", path: "/api/v1/decisions/d4"}); r.status != 200 || !strings.Contains(r.body, `"transient-first"`) {
		t.Errorf("one decision: %d %s", r.status, r.body)
	}
	if r := s.do(request{method: "HEAD", path: "/api/v1/services"}); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: %d %q", r.status, r.body)
	}
}

func TestRefusals(t *testing.T) {
	s := newSite(t)
	approveBody := `{"answer":"approve"}`
	cases := map[string]struct {
		reason string
		req    request
		status int
		code   string
	}{
		"NoToken":        {"a write needs an actor", request{method: "POST", path: "/api/v1/approvals/t10", body: approveBody}, 401, "unauthorized"},
		"WrongToken":     {"nearly right is wrong", request{method: "POST", path: "/api/v1/approvals/t10", body: approveBody, header: bearer(aliceToken + "x")}, 401, "unauthorized"},
		"BasicAuth":      {"only bearer tokens", request{method: "POST", path: "/-/reload", header: map[string]string{"Authorization": "Basic " + aliceToken}}, 401, "unauthorized"},
		"ReloadNoToken":  {"reload is a write", request{method: "POST", path: "/-/reload"}, 401, "unauthorized"},
		"HookNoToken":    {"a hint is a write", request{method: "POST", path: "/hooks/alertmanager", body: `{}`}, 401, "unauthorized"},
		"CrossOrigin":    {"another page in a browser may not write", request{method: "POST", path: "/-/reload", header: map[string]string{"Authorization": "Bearer " + aliceToken, "Origin": "http://evil.example"}}, 403, "cross-origin"},
		"CrossSite":      {"nor by fetch metadata", request{method: "POST", path: "/-/reload", header: map[string]string{"Authorization": "Bearer " + aliceToken, "Sec-Fetch-Site": "cross-site"}}, 403, "cross-origin"},
		"WrongMethod":    {"approvals are answered by POST", request{method: "PUT", path: "/api/v1/approvals/t10", header: bearer(aliceToken)}, 405, "method-not-allowed"},
		"ListIsRead":     {"a list takes no POST", request{method: "POST", path: "/api/v1/services", header: bearer(aliceToken)}, 405, "method-not-allowed"},
		"NoPath":         {"an unknown path is JSON too", request{method: "GET", path: "/api/v2/services"}, 404, "not-found"},
		"NoDecision":     {"an unknown id", request{method: "GET", path: "/api/v1/decisions/d999"}, 404, "not-found"},
		"NoTicket":       {"an unknown ticket", request{method: "POST", path: "/api/v1/approvals/t999", body: approveBody, header: bearer(aliceToken)}, 404, "not-found"},
		"NoPage":         {"an unknown page", request{method: "POST", path: "/api/v1/pages/e999/ack", header: bearer(aliceToken)}, 404, "not-found"},
		"ActorField":     {"the actor is never a field", request{method: "POST", path: "/api/v1/approvals/t10", body: `{"answer":"approve","by":"os:root"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"AnswerWord":     {"only two words answer", request{method: "POST", path: "/api/v1/approvals/t10", body: `{"answer":"yes"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"EmptyBody":      {"a body is needed", request{method: "POST", path: "/api/v1/approvals/t10", header: bearer(aliceToken)}, 400, "bad-request"},
		"TwoBodies":      {"one value only", request{method: "POST", path: "/api/v1/approvals/t10", body: approveBody + approveBody, header: bearer(aliceToken)}, 400, "bad-request"},
		"FormBody":       {"a form is what a browser sends unasked", request{method: "POST", path: "/api/v1/approvals/t10", body: approveBody, header: map[string]string{"Authorization": "Bearer " + aliceToken, "Content-Type": "text/plain"}}, 415, "media-type"},
		"HugeBody":       {"bodies are bounded", request{method: "POST", path: "/api/v1/approvals/t10", body: `{"answer":"` + strings.Repeat("a", 2<<20) + `"}`, header: bearer(aliceToken)}, 413, "too-large"},
		"FreezeNoReason": {"a freeze says why", request{method: "POST", path: "/api/v1/freezes", body: `{}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"FreezeTypo":     {"a mistyped service would freeze nothing", request{method: "POST", path: "/api/v1/freezes", body: `{"service":"chekout","reason":"x"}`, header: bearer(aliceToken)}, 404, "not-found"},
		"FreezeEscape":   {"an id is no path", request{method: "POST", path: "/api/v1/freezes", body: `{"id":"../x","reason":"x"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"FreezePast":     {"an end that has passed", request{method: "POST", path: "/api/v1/freezes", body: `{"reason":"x","until":"2020-01-01T00:00:00Z"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"ThawUnknown":    {"an unknown freeze", request{method: "DELETE", path: "/api/v1/freezes/f9", body: `{"reason":"x"}`, header: bearer(aliceToken)}, 404, "not-found"},
		"SettleAs":       {"landed or not", request{method: "POST", path: "/api/v1/decisions/d4/settle", body: `{"as":"applied","reason":"x"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"SettleKnown":    {"d4 is not in doubt", request{method: "POST", path: "/api/v1/decisions/d4/settle", body: `{"as":"landed","reason":"x"}`, header: bearer(aliceToken)}, 409, "conflict"},
		"ResetHalf":      {"a reset names both or neither", request{method: "POST", path: "/api/v1/budgets/reset", body: `{"service":"checkout","reason":"x"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"CeilingWord":    {"a verdict that is none", request{method: "POST", path: "/api/v1/ceilings", body: `{"service":"checkout","to":"most","reason":"x"}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"CeilingUnknown": {"a service that is not there", request{method: "POST", path: "/api/v1/ceilings", body: `{"service":"x","to":"auto","reason":"x"}`, header: bearer(aliceToken)}, 404, "not-found"},
		"CeilingNobody":  {"raising autonomy needs somebody", request{method: "POST", path: "/api/v1/ceilings", body: `{"service":"checkout","to":"auto","reason":"x"}`}, 401, "unauthorized"},
		"LowerNobody":    {"and so does lowering a mark", request{method: "POST", path: "/api/v1/ledger/lower-mark", body: `{"reason":"x"}`}, 401, "unauthorized"},
		"LowerNoReason":  {"with a reason", request{method: "POST", path: "/api/v1/ledger/lower-mark", body: `{}`, header: bearer(aliceToken)}, 400, "bad-request"},
		"LowerNothing":   {"where no clock ran ahead", request{method: "POST", path: "/api/v1/ledger/lower-mark", body: `{"reason":"x"}`, header: bearer(aliceToken)}, 409, "conflict"},
		"ResetUnknown":   {"an action that is not there", request{method: "POST", path: "/api/v1/budgets/reset", body: `{"service":"checkout","action":"x","reason":"x"}`, header: bearer(aliceToken)}, 404, "not-found"},
		"SinceNonsense":  {"a filter that says nothing", request{method: "GET", path: "/api/v1/decisions?since=soon"}, 400, "bad-request"},
	}
	before := s.state().Head
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := s.do(tc.req)
			if got.status != tc.status || got.code() != tc.code {
				t.Errorf("%s: got %d %q, want %d %q: %s", tc.reason, got.status, got.code(), tc.status, tc.code, got.body)
			}
		})
	}
	if after := s.state().Head; after != before {
		t.Errorf("a refused write changed the ledger from %d to %d", before.Seq, after.Seq)
	}
}

func TestAnswerOverTCPAndSocket(t *testing.T) {
	cases := map[string]struct {
		reason string
		socket bool
		header map[string]string
		by     func(*site) string
		via    string
	}{
		"Token":  {"the actor is the token's holder", false, bearer(aliceToken), func(*site) string { return "token:alice" }, "web"},
		"Socket": {"the actor is the peer's user, whatever the header says", true, map[string]string{"X-Remote-User": "root"}, func(s *site) string { return s.me }, "cli"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			req := request{socket: tc.socket, method: "POST", path: "/api/v1/approvals/t10", body: `{"answer":"approve","reason":"known bad"}`, header: tc.header}
			if got := s.do(req); got.status != 200 {
				t.Fatalf("%s: %d %s", tc.reason, got.status, got.body)
			}
			ticket := s.state().Tickets["t10"]
			if ticket.State != approve.Approved || len(ticket.Answers) != 1 || ticket.Answers[0].By != tc.by(s) || ticket.Answers[0].Via != tc.via {
				t.Errorf("%s: %+v", tc.reason, ticket)
			}
			if got := s.do(req); got.status != 409 || got.code() != approve.RefusedRepeated {
				t.Errorf("a second click changes nothing: %d %s", got.status, got.body)
			}
		})
	}
}

func TestFreezeAndThaw(t *testing.T) {
	s := newSite(t)
	got := s.do(request{socket: true, method: "POST", path: "/api/v1/freezes", body: `{"service":"search","reason":"migration"}`})
	var made struct{ ID, By string }
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.status != 200 || made.ID == "" {
		t.Fatalf("freeze: %d %s", got.status, got.body)
	}
	if made.By != s.me {
		t.Errorf("the freeze is by %q, want the peer %q", made.By, s.me)
	}
	files, err := s.dir.List()
	if err != nil || len(files) != 1 || files[0].ID != made.ID {
		t.Fatalf("the file comes first: %v, %v", files, err)
	}
	if _, ok := s.state().Freezes[made.ID]; !ok {
		t.Error("the ledger does not know the freeze")
	}
	again := request{socket: true, method: "POST", path: "/api/v1/freezes", body: `{"id":"` + made.ID + `","service":"search","reason":"migration"}`}
	if got := s.do(again); got.status != 200 {
		t.Errorf("telling the ledger twice is fine: %d %s", got.status, got.body)
	}
	if err := s.dir.Write(ledger.Freeze{ID: "onlyfile", By: "os:bob", Reason: "agent hung", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{made.ID, "onlyfile", "f1"} {
		if got := s.do(request{socket: true, method: "DELETE", path: "/api/v1/freezes/" + id, body: `{"reason":"done"}`}); got.status != 200 {
			t.Errorf("thaw %s: %d %s", id, got.status, got.body)
		}
	}
	files, err = s.dir.List()
	if err != nil || len(files) != 0 || len(s.state().Freezes) != 0 {
		t.Errorf("after the thaw: files %v, ledger %v, %v", files, s.state().Freezes, err)
	}
	if _, ok := s.state().Thawed["onlyfile"]; !ok {
		t.Error("a freeze that was only a file must be in the record once it is lifted")
	}
}

func TestAckAndReset(t *testing.T) {
	s := newSite(t)
	if got := s.do(request{socket: true, method: "POST", path: "/api/v1/pages/e3/ack"}); got.status != 200 {
		t.Fatalf("ack: %d %s", got.status, got.body)
	}
	if by := s.state().Pages["e3"].AckedBy; by != s.me {
		t.Errorf("acknowledged by %q, want %q", by, s.me)
	}
	body := `{"service":"checkout","action":"scale","reason":"fixed"}`
	if got := s.do(request{method: "POST", path: "/api/v1/budgets/reset", body: body, header: bearer(aliceToken)}); got.status != 200 {
		t.Fatalf("reset: %d %s", got.status, got.body)
	}
	rs := s.state().Resets
	if len(rs) != 1 || rs[0].Service != "checkout" || rs[0].Action != "scale" || rs[0].By != "token:alice" {
		t.Errorf("resets: %+v", rs)
	}
}

func TestCeilingIsRecorded(t *testing.T) {
	s := newSite(t)
	body := `{"service":"checkout","action":"scale","to":"escalate","reason":"it flaps"}`
	if got := s.do(request{method: "POST", path: "/api/v1/ceilings", body: body, header: bearer(aliceToken)}); got.status != 200 {
		t.Fatalf("lower: %d %s", got.status, got.body)
	}
	if c := s.state().Ceilings["checkout"]["scale"]; c.To != gate.Escalate || c.By != "token:alice" || c.Reason != "it flaps" {
		t.Errorf("the ledger holds %+v", c)
	}
	raise := `{"service":"checkout","action":"scale","to":"deny","raise":true,"reason":"x"}`
	if got := s.do(request{method: "POST", path: "/api/v1/ceilings", body: raise, header: bearer(aliceToken)}); got.status != 409 {
		t.Errorf("raised to what is lower: %d %s", got.status, got.body)
	}
}

func TestIDsWithASlash(t *testing.T) {
	s := newSite(t)
	got := s.do(request{socket: true, method: "POST", path: "/api/v1/pages/source%2Fmain/ack"})
	if got.status != 404 || !strings.Contains(got.body, "source/main") {
		t.Errorf("the page of a source has a slash in its id: %d %s", got.status, got.body)
	}
}

func TestHintReadsTheServiceOnly(t *testing.T) {
	s := newSite(t)
	body := `{"version":"4","status":"firing","alerts":[
		{"labels":{"service":"checkout","alertname":"x","action":"rollback"}},
		{"labels":{"service":"checkout"}}, {"labels":{"service":"unknown"}}, {"labels":{}}]}`
	if got := s.do(request{method: "POST", path: "/hooks/alertmanager", body: body, header: bearer(aliceToken)}); got.status != 200 {
		t.Fatalf("hook: %d %s", got.status, got.body)
	}
	close(s.hints)
	var got []string
	for h := range s.hints {
		got = append(got, h)
	}
	if diff := cmp.Diff([]string{"checkout"}, got); diff != "" {
		t.Errorf("one hint, of the known service (-want, +got):\n%s", diff)
	}
}

func TestHealthAndReady(t *testing.T) {
	s := newSite(t)
	if got := s.do(request{method: "GET", path: "/-/healthy"}); got.status != 200 {
		t.Errorf("healthy: %d", got.status)
	}
	if got := s.do(request{method: "GET", path: "/-/ready"}); got.status != 200 {
		t.Errorf("ready: %d %s", got.status, got.body)
	}
	s.ready = "policy: undefined"
	if got := s.do(request{method: "GET", path: "/-/ready"}); got.status != 503 || !strings.Contains(got.body, "policy: undefined") {
		t.Errorf("not ready says why: %d %s", got.status, got.body)
	}
	if got := s.do(request{method: "GET", path: "/metrics"}); got.status != 200 {
		t.Errorf("metrics: %d", got.status)
	}
	if got := s.do(request{socket: true, method: "POST", path: "/-/reload"}); got.status != 200 {
		t.Errorf("reload: %d %s", got.status, got.body)
	}
	s.reload = errors.New("slo/a.yaml:3: bad")
	if got := s.do(request{socket: true, method: "POST", path: "/-/reload"}); got.status != 422 || !strings.Contains(got.body, "slo/a.yaml:3") {
		t.Errorf("a failed reload says where: %d %s", got.status, got.body)
	}
}

func TestSocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := web.ListenUnix(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v; want 0660", info.Mode().Perm(), err)
	}
	if _, err := web.ListenUnix(context.Background(), path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second agent must not take the socket: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = web.ListenUnix(context.Background(), path)
	if err != nil {
		t.Fatalf("a stale socket is replaced: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := web.ListenUnix(context.Background(), path); err == nil {
		t.Error("a file that is no socket must not be removed")
	}
}

func TestTokens(t *testing.T) {
	long := strings.Repeat("x", 16)
	cases := map[string]struct {
		reason, file string
		// want is what the error begins with; "" for a file that is fine.
		want string
	}{
		"Fine":        {"one token", "alice: " + long, ""},
		"Digits":      {"digits are a token too", "alice: 1234567890123456", ""},
		"Empty":       {"no token is no write, and no error", "", ""},
		"EmptySecond": {"a line that ends a document is no document", "alice: " + long + "\n---\n", ""},
		"Short":       {"a placeholder opens nothing", "alice: changeme", "tokens.yaml:1: "},
		"Same":        {"nobody could tell who acts", "alice: " + long + "\nbob: " + long, "tokens.yaml:2: "},
		"Duplicate":   {"one of them would be lost", "alice: " + long + "\nalice: " + long + "y", "tokens.yaml:2: "},
		"OddName":     {"a name becomes part of a principal", "\"alice/x\": " + long, "tokens.yaml:1: "},
		"List":        {"not a map", "- " + long, "tokens.yaml:1: "},
		"Nested":      {"not one line", "alice:\n  a: " + long, "tokens.yaml:1: "},
		"NoToken":     {"a name without a token", "alice:", "tokens.yaml:1: "},
		"Blank":       {"blanks never match", "# tokens\nalice: '" + strings.Repeat(" ", 20) + "'", "tokens.yaml:2: "},
		"OuterBlank":  {"a header never carries it", "alice: '" + long + "  '", "tokens.yaml:1: "},
		"LineEnd":     {"nor this", "alice: |\n  " + long + "\n", "tokens.yaml:1: "},
		"TwoLines":    {"nor this", "alice: \"" + long + "\\n" + long + "\"", "tokens.yaml:1: "},
		"Second":      {"it would be ignored", "alice: " + long + "\n---\nbob: " + long + "y", "tokens.yaml:3: "},
		"Alias":       {"a name that stands for a token", "alice: &" + long + " " + long + "\nbob: *" + long, "tokens.yaml:1: "},
		"Syntax":      {"no YAML", "alice: " + long + "\nbob: [" + long, "tokens.yaml:2: "},
		"NUL":         {"no text", "alice: " + long + "\nbob: \x00", "tokens.yaml:2: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := web.ParseTokens("tokens.yaml", []byte(tc.file))
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
				t.Errorf("%s: %v, want %q…", tc.reason, err, tc.want)
			case err != nil && (strings.Contains(err.Error(), long) || strings.Contains(err.Error(), "changeme")):
				t.Errorf("the error shows a token: %v", err)
			}
		})
	}
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte("alice: 0123456789abcdef\n"))
	f.Add([]byte("alice: &a 0123456789abcdef\nbob: *a\n"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, err := web.ParseTokens("tokens.yaml", data)
		if err != nil && tokens.Len() != 0 {
			t.Fatal("a file with a fault gives no token")
		}
		if err != nil && bytes.ContainsAny([]byte(err.Error()), "\x00") {
			t.Fatal("the error repeats the file")
		}
	})
}
