package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/slack-go/slack"
)

const (
	headerSignature = "X-Slack-Signature"
	headerTimestamp = "X-Slack-Request-Timestamp"
)

// verify reports whether the exact bytes of a body come from Slack, within five
// minutes of now. A request is believed in one form only: each header once, in
// the letters that Slack writes. Recorded answers are final, so that the same
// bytes sent again within that time change nothing.
func verify(h http.Header, body []byte, secret string) (Result, bool) {
	if secret == "" || !wellFormed(h) {
		return Unsigned, false
	}
	v, err := slack.NewSecretsVerifier(h, secret)
	switch {
	case errors.Is(err, slack.ErrExpiredTimestamp) && genuine(h, body, secret):
		return Stale, false
	case err != nil:
		return Unsigned, false
	}
	if _, err := v.Write(body); err != nil {
		return Unsigned, false
	}
	if v.Ensure() != nil {
		return Unsigned, false
	}
	return "", true
}

// wellFormed: exactly one of each header, a signature of version 0 in lower-case
// hex, and a time in plain digits.
func wellFormed(h http.Header) bool {
	signatures, times := h.Values(headerSignature), h.Values(headerTimestamp)
	if len(signatures) != 1 || len(times) != 1 {
		return false
	}
	digits, ok := strings.CutPrefix(signatures[0], "v0=")
	if !ok || len(digits) != hex.EncodedLen(sha256.Size) || strings.Trim(digits, "0123456789abcdef") != "" {
		return false
	}
	at := times[0]
	return len(at) > 0 && len(at) <= 11 && strings.Trim(at, "0123456789") == ""
}

// genuine tells a replay, or a clock that is wrong, from a forger: only what
// Slack signed may raise that alarm.
func genuine(h http.Header, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + h.Get(headerTimestamp) + ":"))
	mac.Write(body)
	want, err := hex.DecodeString(strings.TrimPrefix(h.Get(headerSignature), "v0="))
	return err == nil && hmac.Equal(mac.Sum(nil), want)
}
