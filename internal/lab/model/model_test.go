package model_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/prompts"
)

func serve(t *testing.T, r *rules.Rules) string {
	t.Helper()
	srv := httptest.NewServer(model.Handler(r))
	t.Cleanup(srv.Close)
	return srv.URL
}

// client is the agent's own, with the shipped prompts.
func client(t *testing.T, url string, mode openai.Reply) *openai.Client {
	t.Helper()
	ps, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := openai.New(openai.Options{
		Endpoints: []openai.Endpoint{{Name: "lab", BaseURL: url + "/v1", Model: model.Name}}, Reply: mode, Prompts: ps,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoundTrip asks once directly and once over HTTP.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		service string
		edit    func(*propose.Request)
		// want is what must come out both ways.
		want       propose.Kind
		action     string
		parameters propose.Parameters
	}{
		"Rollback":    {"The previous version is read from the permitted values.", "checkout", nothing, propose.KindAction, "rollback", propose.Parameters{"version": "v41"}},
		"NoChange":    {"What did not help is handed over.", "checkout", tried(attempt("rollback", compare.OutcomeNoChange, 60)), propose.KindEscalate, "", nil},
		"Recovered":   {"A relapse has no rule.", "checkout", tried(attempt("rollback", compare.OutcomeRecovered, 60)), propose.KindNone, "", nil},
		"Worsened":    {"The newest attempt counts, whatever the order.", "checkout", tried(attempt("scale", compare.OutcomeWorsened, 10), attempt("rollback", compare.OutcomeNoChange, 60)), propose.KindEscalate, "", nil},
		"OldEpisode":  {"Tried means in this episode.", "checkout", tried(earlier(attempt("rollback", compare.OutcomeNoChange, 60))), propose.KindAction, "rollback", propose.Parameters{"version": "v41"}},
		"Held":        {"An action that is not in the catalogue is not proposed.", "checkout", func(r *propose.Request) { r.Catalogue = r.Catalogue[1:] }, propose.KindNone, "", nil},
		"First":       {"A first try.", "fulfilment", nothing, propose.KindAction, "recycle-workers", propose.Parameters{}},
		"Again":       {"And the same again, if a rule says so.", "fulfilment", tried(attempt("recycle-workers", compare.OutcomeNoChange, 30)), propose.KindAction, "recycle-workers", propose.Parameters{}},
		"Unknown":     {"Unknown is no reason to act.", "catalog", func(r *propose.Request) { r.Assessment.State = compare.Unknown }, propose.KindNone, "", nil},
		"Restart":     {"A known fault is.", "catalog", nothing, propose.KindAction, "restart", propose.Parameters{}},
		"Live":        {"Rules that need what is not known give no proposal.", "checkout", func(r *propose.Request) { r.Catalogue[0].LiveKnown = false }, propose.KindMalformed, "", nil},
		"NoOlder":     {"Nor do they without a release to go back to.", "checkout", func(r *propose.Request) { r.Catalogue[0].Live["previousVersion"] = []string{} }, propose.KindMalformed, "", nil},
		"AnotherSeen": {"What is permitted now is what counts.", "checkout", func(r *propose.Request) { r.Catalogue[0].Live["previousVersion"] = "v40" }, propose.KindAction, "rollback", propose.Parameters{"version": "v40"}},
	}
	rs := shopRules(t)
	url := serve(t, rs)
	for name, tc := range cases {
		for _, mode := range []openai.Reply{openai.ReplySchema, openai.ReplyTool, openai.ReplyObject} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				req := request(t, tc.service)
				tc.edit(&req)
				direct := rs.Propose(req)
				got, _ := client(t, url, mode).Propose(t.Context(), req)
				if direct.Kind == propose.KindMalformed { // The words of a refusal may differ.
					got.Rationale = ""
				}
				ignore := cmpopts.IgnoreFields(propose.Proposal{}, "Proposer", "Fault")
				if diff := cmp.Diff(direct, got, ignore); diff != "" {
					t.Errorf("%s\n-direct, +over HTTP:\n%s\n%s", tc.reason, diff, got.Fault)
				}
				if got.Kind != tc.want || got.Action != tc.action {
					t.Errorf("%s\ngot %s %q, want %s %q", tc.reason, got.Kind, got.Action, tc.want, tc.action)
				}
				if diff := cmp.Diff(tc.parameters, got.Parameters, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				who := propose.Proposer{Kind: openai.Kind, Endpoint: "lab", Model: model.Name}
				if diff := cmp.Diff(who, got.Proposer); diff != "" {
					t.Errorf("-want, +got:\n%s", diff)
				}
			})
		}
	}
}

// TestRefusal: no proposal is made up where the rules come to none, and the
// words say why.
func TestRefusal(t *testing.T) {
	t.Parallel()
	req := request(t, "checkout")
	req.Catalogue[0].LiveKnown = false
	got, _ := client(t, serve(t, shopRules(t)), openai.ReplySchema).Propose(t.Context(), req)
	if code := propose.FaultCode(got.Fault); code != propose.FaultRefusal {
		t.Errorf("fault %q", got.Fault)
	}
	for _, want := range []string{"rollback", "not known"} {
		if !strings.Contains(got.Rationale, want) {
			t.Errorf("its words %q lack %q", got.Rationale, want)
		}
	}
}

// TestOnlyThePrompt: the answer is made of the text of the prompt, and of
// nothing that the server could know besides.
func TestOnlyThePrompt(t *testing.T) {
	t.Parallel()
	ps, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	system, user, err := ps.Render(request(t, "checkout"))
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, shopRules(t))
	ask := func(user string) string {
		status, body := post(t, url+"/v1/chat/completions", body(t, map[string]any{
			"model": model.Name, "messages": []any{map[string]any{"role": "system", "content": system}, map[string]any{"role": "user", "content": user}},
		}))
		var c struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK || len(c.Choices) != 1 {
			t.Fatalf("HTTP %d %s (%v)", status, body, err)
		}
		return c.Choices[0].Message.Content
	}
	for from, want := range map[string]string{
		"v41":                        `{"action":"rollback","parameters":{"version":"v7"}`,
		`"name":"checkout"`:          `{"action":"none","parameters":{}`,
		`"name":"checkout-avail`:     `{"action":"none","parameters":{}`,
		`"action":"rollback"`:        `{"action":"none","parameters":{}`,
		`"state":"breached"`:         `{"action":"none","parameters":{}`,
		`"secondsAgo":1,`:            `{"action":"rollback","parameters":{"version":"v41"}`,
		`"autonomyBudgetRemaining":`: `{"action":"rollback","parameters":{"version":"v41"}`,
	} {
		to := map[string]string{
			"v41": "v7", `"name":"checkout"`: `"name":"basket"`, `"name":"checkout-avail`: `"name":"checkout-x`,
			`"action":"rollback"`: `"action":"rollout"`, `"state":"breached"`: `"state":"unknown"`,
		}[from]
		if to == "" {
			to = from
		}
		if got := ask(strings.ReplaceAll(user, from, to)); !strings.HasPrefix(got, want) {
			t.Errorf("with %s for %s: got %s, want %s…", to, from, got, want)
		}
	}
}

// TestRepairTurn: after a reply that was none, the evidence is that of the
// question, however the repair turn is worded.
func TestRepairTurn(t *testing.T) {
	t.Parallel()
	ps, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		t.Fatal(err)
	}
	system, user, err := ps.Render(request(t, "checkout"))
	if err != nil {
		t.Fatal(err)
	}
	repair, err := ps.Repair(`the key "rationale" is missing; {"action": "<name>"}`)
	if err != nil {
		t.Fatal(err)
	}
	turn := func(role, content string) map[string]any { return map[string]any{"role": role, "content": content} }
	status, answer := post(t, serve(t, shopRules(t))+"/v1/chat/completions", body(t, map[string]any{
		"model": model.Name, "messages": []any{turn("system", system), turn("user", user), turn("assistant", "{}"), turn("user", repair)},
	}))
	if status != http.StatusOK || !strings.Contains(answer, `{\"action\":\"rollback\"`) {
		t.Errorf("HTTP %d %s, want a rollback", status, answer)
	}
}

func body(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestRefusedRequests: every answer to what is no request is OpenAI's error
// document, with a code.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	const good = `{"service":{"name":"a","state":"met"}}`
	chat := func(edit string) string {
		return `{"model":"` + model.Name + `","messages":[{"role":"user","content":` + body(t, good) + `}]` + edit + `}`
	}
	user := func(content string) string {
		return `{"model":"` + model.Name + `","messages":[{"role":"user","content":` + content + `}]}`
	}
	text := func(s string) string { return user(body(t, s)) }
	cases := map[string]struct {
		body   string
		status int
		code   string
	}{
		"Good":        {chat(""), 200, ""},
		"Parts":       {user(`[{"type":"text","text":` + body(t, good[:9]) + `},{"type":"text","text":` + body(t, good[9:]) + `}]`), 200, ""},
		"OneChoice":   {chat(`,"n":1,"temperature":0,"seed":7`), 200, ""},
		"Prose":       {text("Here it is:\n" + good + "\nPropose one of: none, escalate."), 200, ""},
		"Empty":       {"", 400, "invalid_json"},
		"NoJSON":      {"model=x", 400, "invalid_json"},
		"Half":        {chat("")[:40], 400, "invalid_json"},
		"Two":         {chat("") + chat(""), 400, "invalid_json"},
		"List":        {"[]", 400, "invalid_json"},
		"OtherModel":  {strings.Replace(chat(""), model.Name, "gpt-4o", 1), 404, "model_not_found"},
		"NoModel":     {`{"messages":[]}`, 404, "model_not_found"},
		"Stream":      {chat(`,"stream":true`), 400, "unsupported_value"},
		"Choices":     {chat(`,"n":2`), 400, "unsupported_value"},
		"Tools":       {chat(`,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]`), 400, "unsupported_value"},
		"ToolKind":    {chat(`,"tools":[{"type":"code_interpreter"}]`), 400, "unsupported_value"},
		"NoMessages":  {`{"model":"` + model.Name + `"}`, 400, "invalid_value"},
		"NoUser":      {`{"model":"` + model.Name + `","messages":[{"role":"system","content":"{}"}]}`, 400, "invalid_value"},
		"NullContent": {user("null"), 400, "invalid_value"},
		"Number":      {user("7"), 400, "invalid_json"},
		"Image":       {user(`[{"type":"image_url","image_url":{"url":"x"}}]`), 400, "invalid_json"},
		"NoEvidence":  {text("what shall I do?"), 200, ""},
		"NoInstance":  {chatAbout(t, "what shall I do?", `{"type":"string","pattern":"^a$"}`), 400, "invalid_schema"},
		"Truncated":   {text(good[:20]), 400, "invalid_evidence"},
		"NoService":   {text(`{"objectives":[]}`), 400, "invalid_evidence"},
		"NoState":     {text(`{"service":{"name":"a","state":"fine"}}`), 400, "invalid_evidence"},
		"BadFigure":   {text(`{"service":{"name":"a","state":"met"},"tried":[{"secondsAgo":null}]}`), 400, "invalid_evidence"},
		"WrongType":   {text(`{"service":"a"}`), 400, "invalid_evidence"},
		"Large":       {text(strings.Repeat("x", 5<<20)), 413, "request_too_large"},
	}
	url := serve(t, shopRules(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, got := post(t, url+"/v1/chat/completions", tc.body)
			if status != tc.status {
				t.Fatalf("HTTP %d %s, want %d", status, got, tc.status)
			}
			if tc.code != "" {
				checkError(t, got, tc.code)
			}
		})
	}
}

func checkError(t *testing.T, body, code string) {
	t.Helper()
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == "" || e.Error.Type != "invalid_request_error" || e.Error.Code != code {
		t.Errorf("got %s (%v), want an error document with code %s", body, err, code)
	}
}

func TestOtherURLs(t *testing.T) {
	t.Parallel()
	url := serve(t, shopRules(t))
	cases := map[string]struct {
		method, path string
		status       int
		has          string
	}{
		"Models":     {"GET", "/v1/models", 200, `"id":"rules-file-behind-openai-api"`},
		"PostModels": {"POST", "/v1/models", 405, `"method_not_supported"`},
		"GetChat":    {"GET", "/v1/chat/completions", 405, `"method_not_supported"`},
		"Elsewhere":  {"POST", "/v1/completions", 404, `"unknown_url"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), tc.method, url+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			b, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tc.status || !strings.Contains(string(b), tc.has) {
				t.Errorf("HTTP %d %s, want %d with %s", resp.StatusCode, b, tc.status, tc.has)
			}
		})
	}
}

// TestGolden reads the rendering that the proposing package pins.
func TestGolden(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "propose", "testdata", "propose.user.golden"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := model.Read(string(b))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, it := range e.Request.Catalogue {
		names = append(names, it.Action.Name)
	}
	if diff := cmp.Diff([]string{"scale", "rollback-flag", "tune", "restart"}, names); diff != "" {
		t.Errorf("catalogue: -want, +got:\n%s", diff)
	}
	if n := len(e.Request.Tried); n != 2 || !e.Request.Tried[1].ThisEpisode || e.Request.Tried[1].Outcome != compare.OutcomeNoChange {
		t.Errorf("tried: %+v", e.Request.Tried)
	}
	scale, _ := e.Request.Catalogue.Item("scale")
	if diff := cmp.Diff(propose.Live{"replicas": int64(4)}, scale.Live); diff != "" {
		t.Errorf("live: -want, +got:\n%s", diff)
	}
}
