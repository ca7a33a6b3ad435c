package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// The ids of the buttons.
const (
	actionApprove = "setpoint-approve"
	actionDeny    = "setpoint-deny"
	// actionAck says that a page was seen; its value is the page's id.
	actionAck = "setpoint-ack"
)

// click is what counts of an interaction: ids that Slack vouches for, and the
// value of a button that we made. Names and texts are never read.
type click struct {
	team, user     string
	channel, ts    string
	action         string
	ticket, digest string
	approve        bool
	page           string
}

func (k click) principal() string { return "slack:" + k.team + "/" + k.user }

// message is where the button stood.
func (k click) message() (approve.Message, bool) {
	return approve.Message{Channel: k.channel, ID: k.ts}, k.channel != "" && k.ts != ""
}

// payload is the part of an interaction that is read. What else Slack sends, or
// will send, cannot keep an answer from being understood.
type payload struct {
	Type string `json:"type"`
	Team *struct {
		ID string `json:"id"`
	} `json:"team"`
	User *struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
		IsBot  bool   `json:"is_bot"`
	} `json:"user"`
	BotID     string `json:"bot_id"`
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
	} `json:"container"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Actions []struct {
		ActionID string `json:"action_id"`
		Type     string `json:"type"`
		Value    string `json:"value"`
	} `json:"actions"`
}

// errForeign: the click is nobody's who could count here.
var errForeign = errors.New("foreign")

// parseClick reads a payload. What could be read of it is returned with an error
// too, for the audit line.
func parseClick(data []byte, team string) (click, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		// Its own words would quote the payload.
		return click{}, errors.New("the payload is no JSON of an interaction")
	}
	k, err := clicker(p, team)
	if err != nil {
		return k, err
	}
	if p.Type != "block_actions" {
		return k, fmt.Errorf("%w: an interaction of another kind than a button's", errForeign)
	}
	if len(p.Actions) != 1 {
		return k, fmt.Errorf("%d actions in one click, want 1", len(p.Actions))
	}
	k.action = p.Actions[0].ActionID
	return k.button(p.Actions[0].Value)
}

// clicker says who clicked, and where. Both the workspace of the message and that
// of the person must be the configured one: in a shared channel the two differ.
func clicker(p payload, team string) (click, error) {
	k := click{channel: p.Container.ChannelID, ts: p.Container.MessageTS}
	if k.channel == "" {
		k.channel = p.Channel.ID
	}
	if p.Team != nil {
		k.team = p.Team.ID
	}
	if k.team != team {
		return k.nobody(p), fmt.Errorf("%w: another workspace than slack.team", errForeign)
	}
	if p.User == nil || p.User.ID == "" {
		return k, fmt.Errorf("%w: nobody clicked", errForeign)
	}
	k.user = p.User.ID
	if p.User.TeamID != "" {
		k.team = p.User.TeamID
	}
	switch {
	case k.team != team:
		return k, fmt.Errorf("%w: a guest of another workspace", errForeign)
	case p.User.IsBot, p.BotID != "", strings.HasPrefix(k.user, "B"), k.user == "USLACKBOT":
		return k, fmt.Errorf("%w: a bot, and no person", errForeign)
	case approve.CheckPrincipal(k.principal()) != nil:
		return k, fmt.Errorf("%w: no id of a person", errForeign)
	}
	return k, nil
}

// nobody keeps who it was for the audit line alone.
func (k click) nobody(p payload) click {
	if p.User != nil {
		k.user = p.User.ID
	}
	return k
}

func (k click) button(value string) (click, error) {
	var err error
	switch k.action {
	case actionApprove, actionDeny:
		k.approve = k.action == actionApprove
		k.ticket, k.digest, err = parseValue(value)
	case actionAck:
		k.page, err = parsePage(value)
	default:
		err = fmt.Errorf("%w: no button of Setpoint's", errForeign)
	}
	return k, err
}

// parseValue reads "<ticket> <digest>", as the card wrote it, and nothing else.
func parseValue(s string) (ticket, digest string, err error) {
	ticket, digest, _ = strings.Cut(s, " ")
	number, ok := strings.CutPrefix(ticket, "t")
	if !ok || len(number) == 0 || len(number) > 19 || number[0] == '0' || strings.Trim(number, "0123456789") != "" {
		return "", "", errors.New("the button names no ticket")
	}
	if len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return "", "", errors.New("the button names no digest")
	}
	return ticket, digest, nil
}

// maxPage bounds the id of a page.
const maxPage = 255

// parsePage reads the id of a page; the ledger says whether there is one.
func parsePage(s string) (string, error) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if s == "" || len(s) > maxPage || strings.ContainsFunc(s, odd) {
		return "", errors.New("the button names no page")
	}
	return s, nil
}

// short keeps an id of a stranger's from filling a log.
func short(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
