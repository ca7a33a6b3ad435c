package fakeslack

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

// maxBody bounds a request.
const maxBody = 4 << 20

// refusal is an answer with ok false.
type refusal struct {
	code string
	// needed is the scope that is missing.
	needed string
	// messages say more, as response_metadata does.
	messages []string
}

func refuse(code string) *refusal { return &refusal{code: code} }

// method is one of the Web API. scope is what it needs; one that begins with
// "conversations:" is spelled by the kind of the channel.
type method struct {
	scope string
	// app: it wants the app's token.
	app bool
	do  func(*Slack, url.Values) (map[string]any, *refusal)
}

func methods() map[string]method {
	return map[string]method{
		"auth.test":             {do: (*Slack).authTest},
		"apps.connections.open": {app: true, scope: "connections:write", do: (*Slack).open},
		"chat.postMessage":      {scope: "chat:write", do: (*Slack).postMessage},
		"chat.update":           {scope: "chat:write", do: (*Slack).update},
		"chat.delete":           {scope: "chat:write", do: (*Slack).remove},
		"chat.postEphemeral":    {scope: "chat:write", do: (*Slack).postEphemeral},
		"chat.getPermalink":     {do: (*Slack).permalink},
		"conversations.history": {scope: "conversations:history", do: (*Slack).history},
		"conversations.replies": {scope: "conversations:history", do: (*Slack).replies},
		"conversations.info":    {scope: "conversations:read", do: (*Slack).info},
		"users.info":            {scope: "users:read", do: (*Slack).userInfo},
	}
}

// scopes are what the app was granted at first.
func scopes(app bool) []string {
	if app {
		return []string{"connections:write"}
	}
	return []string{"chat:write", "channels:history", "channels:read", "groups:history", "groups:read", "users:read"}
}

// api answers one request of the Web API.
func (s *Slack) api(w http.ResponseWriter, req *http.Request) {
	name := req.PathValue("method")
	values, token, err := arguments(req)
	if err != nil {
		reply(w, http.StatusOK, map[string]any{"ok": false, "error": "invalid_form_data"})
		return
	}
	call := Call{Method: name, Channel: values.Get("channel"), TS: values.Get("ts"), Heard: true}
	treated := s.fault(name)
	if said := s.before(treated, w, req); said != "" {
		call.Error, call.Heard = said, said != fault.Dropped && said != fault.HungUp
		s.journal(call)
		return
	}
	answer := s.answer(name, token, values, req.Host)
	call.Error, _ = answer["error"].(string)
	call.Done = call.Error == ""
	if ts, ok := answer["ts"].(string); ok {
		call.TS = ts
	}
	call.Heard = !treated.DropReply
	s.journal(call)
	if treated.DropReply {
		_ = treated.Wait(req, s.ended)
		fault.Abort(w)
		return
	}
	w.Header().Set("X-OAuth-Scopes", s.provided(token))
	reply(w, http.StatusOK, answer)
}

func (s *Slack) journal(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.At = s.o.Now()
	s.calls = append(s.calls, c)
}

func (s *Slack) provided(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.granted(token == s.o.AppToken), ",")
}

// granted are the scopes that were not taken away. The caller holds the lock.
func (s *Slack) granted(app bool) []string {
	return slices.DeleteFunc(scopes(app), func(scope string) bool { return s.taken[scope] })
}

// answer does it, and gives Slack's JSON.
func (s *Slack) answer(name, token string, values url.Values, host string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = "http://" + host
	m, known := methods()[name]
	if !known {
		return s.refused(refuse("unknown_method"), false)
	}
	if no := s.allowed(m, token, values.Get("channel")); no != nil {
		return s.refused(no, m.app)
	}
	answer, no := m.do(s, values)
	if no != nil {
		return s.refused(no, m.app)
	}
	answer["ok"] = true
	return answer
}

func (s *Slack) refused(no *refusal, app bool) map[string]any {
	answer := map[string]any{"ok": false, "error": no.code}
	if no.needed != "" {
		answer["needed"], answer["provided"] = no.needed, strings.Join(s.granted(app), ",")
	}
	if len(no.messages) > 0 {
		answer["errors"] = no.messages
		answer["response_metadata"] = map[string]any{"messages": no.messages}
	}
	return answer
}

func (s *Slack) allowed(m method, token, channelID string) *refusal {
	want, other := s.o.BotToken, s.o.AppToken
	if m.app {
		want, other = other, want
	}
	switch {
	case token == "":
		return refuse("not_authed")
	case (token == want || token == other) && s.revoked[token]:
		return refuse("token_revoked")
	case token == other:
		return refuse("not_allowed_token_type")
	case token != want:
		return refuse("invalid_auth")
	}
	if scope := s.scope(m, channelID); s.taken[scope] {
		return &refusal{code: "missing_scope", needed: scope}
	}
	return nil
}

// scope is what the method needs for that channel; "" for none.
func (s *Slack) scope(m method, channelID string) string {
	right, ok := strings.CutPrefix(m.scope, "conversations:")
	if !ok {
		return m.scope
	}
	if c := s.channels[channelID]; c != nil && c.Private {
		return "groups:" + right
	}
	return "channels:" + right
}

// arguments are read as Slack does: a form, or JSON. The token comes in the
// header or as an argument of a POST; one in a URL is not taken.
func arguments(req *http.Request) (url.Values, string, error) {
	token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	values := maps.Clone(req.URL.Query())
	delete(values, "token")
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, "", err
	case len(body) > maxBody:
		return nil, "", errors.New("the body is too large")
	}
	var posted url.Values
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/json") {
		posted, err = jsonArguments(body)
	} else {
		posted, err = url.ParseQuery(string(body))
	}
	if err != nil {
		return nil, "", err
	}
	if token == "" {
		token = posted.Get("token")
	}
	maps.Copy(values, posted)
	delete(values, "token")
	return values, token, nil
}

// jsonArguments puts JSON into the shape of a form, in which lists are JSON.
func jsonArguments(body []byte) (url.Values, error) {
	values := url.Values{}
	if len(body) == 0 {
		return values, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	for name, raw := range fields {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		values.Set(name, text)
	}
	return values, nil
}

func (s *Slack) authTest(url.Values) (map[string]any, *refusal) {
	return map[string]any{
		"url": "https://" + s.o.Domain + ".slack.com/", "team": s.o.Domain, "user": s.people[Bot].Username,
		"team_id": s.o.Team, "user_id": Bot, "bot_id": "B0000BOT00", "is_enterprise_install": false,
	}, nil
}

func (s *Slack) userInfo(v url.Values) (map[string]any, *refusal) {
	p, ok := s.people[v.Get("user")]
	if !ok {
		return nil, refuse("user_not_found")
	}
	team := p.Team
	if team == "" {
		team = s.o.Team
	}
	return map[string]any{"user": map[string]any{
		"id": p.ID, "team_id": team, "name": p.Username, "real_name": p.Username, "is_bot": p.IsBot, "deleted": false,
	}}, nil
}
