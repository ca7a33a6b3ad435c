package slack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// errNoAnswer: HTTP was well and nothing of what was asked for came.
var errNoAnswer = errors.New("the answer is not Slack's")

// What Slack says where a message cannot be changed any more.
var gone = []string{"message_not_found", "thread_not_found", "cant_update_message", "edit_window_closed"}

// What it says where it does not know itself whether something was done. Of some
// of these it says that parts may have succeeded.
var unsure = []string{"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"}

const (
	// unsaid is how long Slack is left alone where it does not say.
	unsaid = 30 * time.Second
	// longest is more than it ever asked for.
	longest = time.Hour
)

// failed gives an error as the pass reads it: gone, limited, refused, or anything
// else, after which nobody knows what was done. It holds no token.
func failed(method string, err error) error {
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	var said slack.SlackErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return &approve.Limited{After: min(max(limited.RetryAfter, time.Second), longest)}
	case errors.As(err, &status) && status.Code == http.StatusTooManyRequests:
		return &approve.Limited{After: unsaid}
	case errors.As(err, &status):
		return fmt.Errorf("slack %s: HTTP %d", method, status.Code)
	case errors.As(err, &said):
		return refusal(method, said)
	case errors.Is(err, errNoAnswer):
		return fmt.Errorf("slack %s: %w", method, err)
	}
	return fmt.Errorf("slack %s: %w", method, transport(err))
}

// refusal is an answer with ok false, whatever HTTP said.
func refusal(method string, said slack.SlackErrorResponse) error {
	code := said.Err
	if !codeForm.MatchString(code) {
		code = "unnamed_error"
	}
	switch {
	case slices.Contains(gone, code):
		return fmt.Errorf("slack %s: %s: %w", method, code, approve.ErrGone)
	case code == "ratelimited", code == "rate_limited":
		return &approve.Limited{After: unsaid}
	case slices.Contains(unsure, code):
		return fmt.Errorf("slack %s: %s", method, code)
	case code == approve.MissingScope:
		return fmt.Errorf("slack %s: the bot's token lacks the scope %s: add it to the app and install it again: %w",
			method, scope(method, said.Needed), &approve.Refused{Code: code})
	}
	if len(said.ResponseMetadata.Messages) > 0 {
		return fmt.Errorf("slack %s: %s: %w", method, clean(said.ResponseMetadata.Messages[0]), &approve.Refused{Code: code})
	}
	return fmt.Errorf("slack %s: %w", method, &approve.Refused{Code: code})
}

var codeForm = regexp.MustCompile(`^[a-z0-9_]{1,60}$`)

// scope is the one that Slack names, or the one that the documentation does.
func scope(method, needed string) string {
	if needed != "" {
		return clean(needed)
	}
	switch method {
	case "conversations.history":
		return "channels:history (of a private channel: groups:history)"
	case "chat.postMessage", "chat.update":
		return "chat:write"
	}
	return "that it needs"
}

// transport is an error of the network without the URL, which says nothing new.
func transport(err error) error {
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return errors.New(clean(err.Error()))
}

var tokenForm = regexp.MustCompile(`x(ox[a-z]|app|wfp)-[A-Za-z0-9.-]+`)

// clean is a text of the other side, short and without what could be a token.
func clean(text string) string {
	return tokenForm.ReplaceAllString(approve.OneLine(text, 200), "secret")
}
