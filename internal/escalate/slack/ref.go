package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// over is the word of a message that shows an ended page.
const over = "over"

// reference is the name of a message that is kept with the delivery:
// channel/ts/since/word.
type reference struct {
	channel, ts string
	// since is the begin of the page that it shows: an id may come again.
	since int64
	// word is the reason that it shows, or over.
	word string
}

// String is what is kept.
func (r reference) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", r.channel, r.ts, r.since, r.word)
}

func parse(ref string) (reference, bool) {
	parts := strings.SplitN(ref, "/", 4)
	if len(parts) != 4 || parts[0] == "" || parts[1] == "" {
		return reference{}, false
	}
	since, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return reference{}, false
	}
	return reference{channel: parts[0], ts: parts[1], since: since, word: parts[3]}, true
}

// word is what a message says the page is about; when it changes people are told.
func word(p escalate.Page) string {
	if !p.EndedAt.IsZero() {
		return over
	}
	return p.Now
}

// sinceOf tells a page from an earlier one of the same id. A heartbeat goes on.
func sinceOf(p escalate.Page) int64 {
	if p.Reason == escalate.Heartbeat {
		return 0
	}
	return p.Since.Unix()
}

// maxBlockID is Slack's.
const maxBlockID = 255

// blockID marks the message of an open page, by which it is found again.
func blockID(p escalate.Page) string {
	id := fmt.Sprintf("setpoint-page/%d/%s", sinceOf(p), p.ID)
	if len(id) <= maxBlockID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "setpoint-page#" + hex.EncodeToString(sum[:])
}
