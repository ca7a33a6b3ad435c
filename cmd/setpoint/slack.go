package main

import (
	"errors"

	slackgo "github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/config"
)

// slackClient speaks to the workspace under slack. Its tokens are read here, so
// that a command that does not speak to Slack needs none of them.
func (s site) slackClient() (*slackgo.Client, error) {
	c := s.cfg.Slack
	if c == nil {
		return nil, errors.New("slack: not configured; setpoint.yaml names the workspace and its tokens there")
	}
	bot, err := readSecret("slack.botTokenFile", c.BotTokenFile)
	if err != nil {
		return nil, err
	}
	app := config.Secret{}
	if c.Transport == config.SlackSocket {
		if app, err = readSecret("slack.appTokenFile", c.AppTokenFile); err != nil {
			return nil, err
		}
	}
	return slack.NewClient(c.APIURL, bot.Reveal(), app.Reveal()), nil
}

// slackSecretFiles are the files of slack that its transport needs.
func slackSecretFiles(c *config.Slack) map[string]string {
	if c == nil {
		return nil
	}
	files := map[string]string{"slack.botTokenFile": c.BotTokenFile}
	if c.Transport == config.SlackHTTP {
		files["slack.signingSecretFile"] = c.SigningSecretFile
	} else {
		files["slack.appTokenFile"] = c.AppTokenFile
	}
	return files
}
