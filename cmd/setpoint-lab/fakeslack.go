package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// fakeslackFlags are how a Slack is to be.
type fakeslackFlags struct {
	listen, secretFile, interactivity, team, channel string
	botTokenFile, appTokenFile                       string
	redeliver                                        []time.Duration
	control                                          bool
}

func fakeslackCommand() *cobra.Command {
	var f fakeslackFlags
	cmd := &cobra.Command{
		Use:   "fakeslack",
		Short: "A Slack on loopback: the Web API, Socket Mode, and people who click",
		Long: `Answer the part of Slack's Web API that approvals need (/api/chat.postMessage,
chat.update, chat.postEphemeral, conversations.history and so on), hold sockets
(apps.connections.open), and deliver clicks: over a socket while one is open, else
as signed requests to --interactivity-url. The first line of standard output is
its URL; slack.apiURL of setpoint.yaml is that with /api/ behind it.

Without the files of tokens and secret it takes these, which are no secrets:
  bot token ` + fakeslack.BotToken + `, app token ` + fakeslack.AppToken + `, signing secret ` + fakeslack.SigningSecret + `

With --control another process may click, see and disturb it while it runs:

  POST   /control/click          {"user": "U1", "ticket": "...", "action": "setpoint-approve", "via": "http|socket"}
                                 or "channel" and "ts" for "ticket"; "team", "workspace", "times";
                                 "back": 1 clicks a copy that is one edit old
  GET    /control/messages       ?channel=C..., with what single people were told
  GET    /control/calls          every request of the Web API; /control/envelopes every click over sockets
  PUT    /control/fault          ?method=chat.update&next=2, the body is one of
                                 {"error": "message_not_found"}, {"status": 429, "retryAfter": 30}, {"status": 503},
                                 {"hang": "5s"}, {"dropReply": true}, {"dropRequest": true};
                                 the method * is every one, and socket the opening of a socket
  DELETE /control/fault          ?method=..., or all
  DELETE /control/message        ?ticket=... or ?channel=C...&ts=...
  PUT    /control/archive        ?channel=C...; &off=true is the way back, here and below
  PUT    /control/kick           ?channel=C... takes the app out of the channel
  PUT    /control/revoke         ?token=bot|app
  PUT    /control/scope          ?scope=chat:write takes a scope away
  PUT    /control/interactivity  the body is the URL
  POST   /control/disconnect     ?reason=refresh_requested|warning|link_disabled
  POST   /control/redeliver      ?envelope=... sends a click over a socket again`,
		Example: `  setpoint-lab fakeslack --listen 127.0.0.1:9920 --control
  # setpoint.yaml: slack: {transport: socket, apiURL: "http://127.0.0.1:9920/api/", ..., team: ` + fakeslack.DefaultTeam + `, channel: ` + fakeslack.DefaultChannel + `}
  setpoint-lab fakeslack --signing-secret-file signing.secret --interactivity-url http://127.0.0.1:8322/slack/interactivity --control
  curl -d '{"user": "U1", "ticket": "...", "action": "setpoint-approve"}' http://127.0.0.1:9920/control/click
  curl -X PUT -d '{"dropReply": true}' 'http://127.0.0.1:9920/control/fault?method=chat.postMessage&next=1'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	listenFlag(cmd, &f.listen)
	flags := cmd.Flags()
	flags.StringVar(&f.secretFile, "signing-secret-file", "", "sign clicks with this secret")
	flags.StringVar(&f.botTokenFile, "bot-token-file", "", "the app's bot token")
	flags.StringVar(&f.appTokenFile, "app-token-file", "", "the app's own token, which opens sockets")
	flags.StringVar(&f.interactivity, "interactivity-url", "", "post clicks there while no socket is open")
	flags.StringVar(&f.team, "team", fakeslack.DefaultTeam, "id of the workspace")
	flags.StringVar(&f.channel, "channel", fakeslack.DefaultChannel, "id of its channel")
	flags.DurationSliceVar(&f.redeliver, "redeliver", fakeslack.DefaultRedeliver(), "waits after which a click that was not acknowledged is sent on a socket again")
	flags.BoolVar(&f.control, "control", false, "let other processes click, see and disturb below /control/")
	return cmd
}

func (f fakeslackFlags) run(cmd *cobra.Command) error {
	o := fakeslack.Options{
		Team: f.team, Interactivity: f.interactivity, Redeliver: f.redeliver,
		Channels: []fakeslack.Channel{{ID: f.channel, Name: "ops"}},
	}
	for _, file := range []struct {
		flag, name string
		into       *string
	}{
		{"--signing-secret-file", f.secretFile, &o.SigningSecret}, {"--bot-token-file", f.botTokenFile, &o.BotToken},
		{"--app-token-file", f.appTokenFile, &o.AppToken},
	} {
		if err := readSecret(file.flag, file.name, file.into); err != nil {
			return err
		}
	}
	s := fakeslack.New(o)
	defer s.Close()
	return serve(cmd, f.listen, controlled(s.Handler(), s.Control(), f.control))
}

// readSecret reads the file of a flag that may be absent.
func readSecret(flag, name string, into *string) error {
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if *into = config.NewSecret(data).Reveal(); *into == "" {
		return fmt.Errorf("%s: %s is empty", flag, name)
	}
	return nil
}
