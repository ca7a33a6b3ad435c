package slack

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
)

// No answer of Slack keeps the socket away for long: while there is none, nobody
// can click.
func TestRestIsBounded(t *testing.T) {
	cases := map[string]struct {
		fault      error
		least, max time.Duration
	}{
		"none":     {errors.New("cut"), 0, firstWait},
		"short":    {&slackgo.RateLimitedError{RetryAfter: 40 * time.Second}, 40 * time.Second, 40 * time.Second},
		"a day":    {&slackgo.RateLimitedError{RetryAfter: 24 * time.Hour}, longestRest, longestRest},
		"negative": {&slackgo.RateLimitedError{RetryAfter: -time.Hour}, 0, firstWait},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &socket{clicks: &Clicks{o: Options{Log: slog.New(slog.DiscardHandler)}}, connected: func(bool) {}}
			if got := s.lost(tc.fault); got < tc.least || got > tc.max {
				t.Errorf("waits for %s, want %s to %s", got, tc.least, tc.max)
			}
		})
	}
}
