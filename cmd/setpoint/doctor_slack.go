package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// slackItems look whether approvals could be asked in Slack, and answered there.
// Nothing is posted.
func (e *examination) slackItems(ctx context.Context) []checkItem {
	c := e.site.cfg.Slack
	if c == nil {
		return []checkItem{subject{"receivers/slack", "slack"}.skipped("not configured: approvals are asked over the socket and the HTTP API")}
	}
	out := e.slackApprovers()
	client, err := e.site.slackClient()
	if err != nil {
		return append(out, subject{"receivers/slack", "slack"}.failed(err.Error(), "write the app's tokens into the files under slack in setpoint.yaml: "+tokensAt))
	}
	who, err := client.AuthTestContext(ctx)
	out = append(out, slackToken(c, who, err))
	if err == nil {
		private := false
		for _, use := range slackChannels(e.site.cfg) {
			channel, err := client.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: use.id})
			private = private || err == nil && channel.IsPrivate
			out = append(out, slackChannel(use, channel, err))
		}
		out = append(out, slackScopes(who.Header, private))
	}
	return append(out, e.slackClicks(ctx, client))
}

// tokensAt is where Slack shows what the files have to hold.
const tokensAt = "at api.slack.com/apps, OAuth & Permissions has the bot token (xoxb-…), Basic Information the app-level token (xapp-…) and the signing secret"

// slackApprovers warn of cards that nobody could answer.
func (e *examination) slackApprovers() []checkItem {
	var out []checkItem
	for _, n := range e.site.cfg.Unanswered(e.set) {
		out = append(out, subject{"receivers/slack", "approvers"}.warned(fmt.Sprintf("%s: %s", n.Pos, n.Text),
			"correct approvers in setpoint.yaml; until then `setpoint approve` answers, over the socket or with a token"))
	}
	return out
}

// channelUse is what is posted into a channel.
type channelUse struct {
	id string
	// cards: approvals are asked there.
	cards bool
	// receivers post their pages there.
	receivers []string
}

// slackChannels are the channels into which something is posted.
func slackChannels(cfg config.Config) []channelUse {
	all := []channelUse{{id: cfg.Slack.Channel, cards: true}}
	for _, r := range cfg.Receivers {
		if r.Slack == nil {
			continue
		}
		at := slices.IndexFunc(all, func(u channelUse) bool { return u.id == r.Slack.Channel })
		if at < 0 {
			at = len(all)
			all = append(all, channelUse{id: r.Slack.Channel})
		}
		all[at].receivers = append(all[at].receivers, r.Name)
	}
	return all
}

// lost is what becomes of what cannot be posted.
func (u channelUse) lost() string {
	var out []string
	if u.cards {
		out = append(out, "no approval is asked there until then, and each one pages")
	}
	if len(u.receivers) > 0 {
		out = append(out, "no page reaches anybody through receiver "+and(u.receivers)+" until then")
	}
	return strings.Join(out, "; ")
}

// slackToken judges whom the bot token belongs to.
func slackToken(c *config.Slack, who *slackgo.AuthTestResponse, err error) checkItem {
	s := subject{"receivers/slack", "token"}
	switch {
	case err != nil:
		return s.failed("auth.test: "+slackFault(err), slackRemedy(err, "slack.botTokenFile ("+c.BotTokenFile+")"))
	case who.TeamID != c.Team:
		return s.failed(fmt.Sprintf("the bot token is of workspace %s, and slack.team is %s: nobody's click would count", who.TeamID, c.Team),
			fmt.Sprintf("set slack.team to %s if that is the workspace of your on-call, or write a token of the other one into %s", who.TeamID, c.BotTokenFile))
	}
	return s.fine("workspace %s, posts as %s; nothing was posted", who.TeamID, who.UserID)
}

// slackChannel judges whether the bot may speak there.
func slackChannel(use channelUse, channel *slackgo.Channel, err error) checkItem {
	s := subject{"receivers/slack-channel", use.id}
	invite := fmt.Sprintf("invite the app there (/invite in channel %s), or correct the channel in setpoint.yaml: %s", use.id, use.lost())
	var refused slackgo.SlackErrorResponse
	switch {
	case errors.As(err, &refused) && refused.Err == "missing_scope":
		return s.warned("not known whether the app is a member: conversations.info needs channels:read, for a private channel groups:read",
			"add both scopes to the app, as deploy/slack-manifest.yaml has them, and install it again")
	case errors.As(err, &refused) && refused.Err == "channel_not_found":
		return s.failed("there is no such channel, or it is a private one without the app", invite)
	case err != nil:
		return s.failed("conversations.info: "+slackFault(err), slackRemedy(err, "slack.botTokenFile"))
	case channel.IsArchived:
		return s.failed("the channel is archived: nothing can be posted", fmt.Sprintf("unarchive channel %s, or name another in setpoint.yaml: %s", use.id, use.lost()))
	case !channel.IsMember:
		return s.failed("the app is not in the channel: nothing can be posted", invite)
	}
	return s.fine("the app is a member of it")
}

// slackScopes judges what the bot may do, by the header of an answer.
func slackScopes(h http.Header, private bool) checkItem {
	s := subject{"receivers/slack", "scopes"}
	if len(h.Values("X-OAuth-Scopes")) == 0 {
		return s.skipped("this server does not say which scopes the token has")
	}
	var has []string
	for scope := range strings.SplitSeq(h.Get("X-OAuth-Scopes"), ",") {
		has = append(has, strings.TrimSpace(scope))
	}
	history := "channels:history"
	if private {
		history = "groups:history"
	}
	var missing []string
	for _, want := range []string{"chat:write", history} {
		if !slices.Contains(has, want) {
			missing = append(missing, want)
		}
	}
	if len(missing) == 0 {
		return s.fine("chat:write and %s are there", history)
	}
	return s.failed("the bot token lacks "+strings.Join(missing, " and ")+": chat:write posts cards, the history finds one whose post was not answered",
		"add "+strings.Join(missing, " and ")+" under OAuth & Permissions, as deploy/slack-manifest.yaml has them, and install the app again")
}

// slackClicks judges whether an answer could come in.
func (e *examination) slackClicks(ctx context.Context, client *slackgo.Client) checkItem {
	c := e.site.cfg.Slack
	s := subject{"receivers/slack", "clicks"}
	if c.Transport == config.SlackHTTP {
		if _, err := readSecret("slack.signingSecretFile", c.SigningSecretFile); err != nil {
			return s.failed(err.Error(), "write the app's signing secret (Basic Information, App Credentials) into "+c.SigningSecretFile)
		}
		return s.fine("the signing secret is there; the app's Request URL has to lead to %s, which was not tried", "http://"+c.Listen+"/slack/interactivity")
	}
	_, address, err := client.StartSocketModeContext(ctx)
	switch {
	case err != nil:
		return s.failed("apps.connections.open: "+slackFault(err), slackRemedy(err, "slack.appTokenFile ("+c.AppTokenFile+")"))
	case !socketAddress(address):
		return s.failed("apps.connections.open gave no address of a socket", "look at slack.apiURL in setpoint.yaml: it has to be Slack's, https://slack.com/api/")
	}
	return s.fine("the app token opens a socket; none was kept open")
}

func socketAddress(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "wss" || u.Scheme == "ws") && u.Host != ""
}

// slackFault is what went wrong, in a line.
func slackFault(err error) string { return execute.CleanText(err.Error(), 200) }

// slackRemedy says what to do about an error of the Web API; file is where the
// token stands.
func slackRemedy(err error, file string) string {
	var refused slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	switch {
	case errors.As(err, &limited):
		return fmt.Sprintf("wait %s, then `setpoint doctor --only receivers` again", limited.RetryAfter)
	case !errors.As(err, &refused):
		return "look whether this host reaches slack.apiURL of setpoint.yaml: until it does, approvals page and are answered with `setpoint approve`"
	}
	switch refused.Err {
	case "missing_scope":
		return "add the scope to the app, as deploy/slack-manifest.yaml has it, install it again and renew the token in " + file
	case "not_allowed_token_type":
		return "write a token of the right kind into " + file + ": " + tokensAt
	}
	return "renew the token in " + file + ": " + tokensAt
}
