package fakeslack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Via is the way on which a click is delivered.
type Via string

// The ways. The zero Via is the socket while one is open or no interactivity
// URL is known, else HTTP.
const (
	ViaHTTP   Via = "http"
	ViaSocket Via = "socket"
)

// Press is one click of one person.
type Press struct {
	User string
	// Team is the person's own, Workspace the one in which it was clicked; both
	// are this Slack's when "".
	Team, Workspace string
	Channel, TS     string
	// Action is the button's action_id.
	Action string
	// Back is so many versions before the present one: a copy of the message that
	// somebody's screen still shows. A deletion counts as a version.
	Back int
	Via  Via
	// Forge changes the payload before it is signed or sent.
	Forge func(payload map[string]any)
	// Tamper changes a signed request on its way.
	Tamper func(Request) Request
	// SignedAt is the time of the signature; now when zero.
	SignedAt time.Time
	// Times is how often the same envelope or the same bytes come, one after the
	// other; 0 is once.
	Times int
}

// What a person sees beside the button.
const (
	ShownOK      = "ok"
	ShownWarning = "warning"
)

// Outcome is what became of a click.
type Outcome struct {
	// Shown is what the person sees: ShownOK or ShownWarning.
	Shown string `json:"shown"`
	Via   Via    `json:"via"`
	// Status is the answer's, 0 without one.
	Status int `json:"status,omitempty"`
	// Error is why there was no answer; "" when there was.
	Error string `json:"error,omitempty"`
	// Took is the time until the answer, by the real clock.
	Took Duration `json:"took"`
	// Envelope is its id on a socket.
	Envelope string `json:"envelope,omitempty"`
	// Trigger is unique for a click.
	Trigger string `json:"trigger"`
	// Sent is what was posted, so that it can be sent again.
	Sent Request `json:"-"`
}

// ErrNoButton is returned for a click on what is not there.
var ErrNoButton = errors.New("there is no such button")

// Click is the plain one: the present message, this workspace, the usual way.
func (s *Slack) Click(ctx context.Context, user, channelID, ts, action string) (Outcome, error) {
	return s.Press(ctx, Press{User: user, Channel: channelID, TS: ts, Action: action})
}

// Press clicks, and waits for what the person sees. It fails only when such a
// click is not possible.
func (s *Slack) Press(ctx context.Context, p Press) (Outcome, error) {
	payload, err := s.payload(p)
	if err != nil {
		return Outcome{}, err
	}
	trigger := word(payload["trigger_id"])
	if p.Forge != nil {
		p.Forge(payload)
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return Outcome{}, fmt.Errorf("the payload is no JSON: %w", err)
	}
	if s.way(p.Via) == ViaSocket {
		o := s.overSocket(ctx, data, max(1, p.Times))
		o.Trigger = trigger
		return o, nil
	}
	r := s.Sign(data, p.SignedAt)
	if p.Tamper != nil {
		r = p.Tamper(r)
	}
	var o Outcome
	for range max(1, p.Times) {
		if o, err = s.Deliver(ctx, r); err != nil {
			return Outcome{}, err
		}
	}
	o.Trigger = trigger
	return o, nil
}

func (s *Slack) way(via Via) Via {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case via != "":
		return via
	case len(s.hub.links) > 0 || s.o.Interactivity == "":
		return ViaSocket
	}
	return ViaHTTP
}

// payload is what Slack sends of the click.
func (s *Slack) payload(p Press) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(p.Channel, p.TS)
	if m == nil {
		return nil, fmt.Errorf("%w: no message %s in channel %s", ErrNoButton, p.TS, p.Channel)
	}
	at := len(m.versions) - 1 - p.Back
	if at < 0 || p.Back < 0 {
		return nil, fmt.Errorf("%w: message %s has %d versions, none is %d back", ErrNoButton, p.TS, len(m.versions), p.Back)
	}
	copied := m.versions[at]
	action, ok := copied.action(p.Action)
	if !ok {
		return nil, fmt.Errorf("%w: message %s has %s, not %q", ErrNoButton, p.TS, actions(copied), p.Action)
	}
	now := s.o.Now()
	// Slack's triggers are unique; so is a counter.
	action["action_ts"] = fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	who := s.known(p)
	c := s.channels[p.Channel]
	return map[string]any{
		"type": "block_actions", "token": "lab", "api_app_id": s.o.App, "enterprise": nil, "is_enterprise_install": false,
		"team":       map[string]any{"id": or(p.Workspace, s.o.Team), "domain": s.o.Domain},
		"user":       map[string]any{"id": who.ID, "username": who.Username, "name": who.Username, "team_id": or(who.Team, s.o.Team)},
		"container":  map[string]any{"type": "message", "message_ts": m.ts, "channel_id": p.Channel, "is_ephemeral": false},
		"trigger_id": s.id(strconv.FormatInt(now.Unix(), 10) + ".lab."), "channel": map[string]any{"id": p.Channel, "name": c.Name},
		"message": m.wireOf(s, copied), "state": map[string]any{"values": map[string]any{}},
		"response_url": s.responseURL(p, m.ts), "actions": []any{action},
	}, nil
}

// known gives the person, who is known from now on.
func (s *Slack) known(p Press) Person {
	who, ok := s.people[p.User]
	if !ok {
		who = Person{ID: p.User, Username: strings.ToLower(p.User)}
	}
	if p.Team != "" {
		who.Team = p.Team
	}
	if !ok {
		s.people[p.User] = who
	}
	return who
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// action is the click's own part of the payload.
func (v version) action(id string) (map[string]any, bool) {
	for _, b := range v.blocks {
		for _, e := range elements(b) {
			if e["type"] != "button" || e["action_id"] != id {
				continue
			}
			a := map[string]any{"type": "button", "action_id": id, "block_id": b["block_id"], "text": e["text"]}
			for _, field := range []string{"value", "style", "confirm"} {
				if x, ok := e[field]; ok {
					a[field] = x
				}
			}
			return a, true
		}
	}
	return nil, false
}

func actions(v version) string {
	var ids []string
	for _, b := range buttons(v.blocks) {
		ids = append(ids, strconv.Quote(b.Action))
	}
	if len(ids) == 0 {
		return "no buttons"
	}
	return "the buttons " + strings.Join(slices.Compact(ids), ", ")
}
