// Package slack puts approvals before people in a Slack channel and takes their
// clicks. The ledger's ticket is the record: everything here is a view of it, or
// a way in.
package slack

import (
	"net/http"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Timeout bounds one request to Slack.
const Timeout = 8 * time.Second

// NewClient speaks to the Web API at apiURL with a bot token and, for Socket
// Mode, an app-level token. It follows no redirect: a token goes where
// setpoint.yaml says, and nowhere else.
func NewClient(apiURL, botToken, appToken string) *slack.Client {
	client := &http.Client{
		Timeout:       Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return slack.New(botToken, slack.OptionAPIURL(strings.TrimSuffix(apiURL, "/")+"/"),
		slack.OptionAppLevelToken(appToken), slack.OptionHTTPClient(client))
}
