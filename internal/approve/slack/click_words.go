package slack

import (
	"context"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

const (
	textFailed    = "The ledger could not record this in time. Click again, or answer with `setpoint approve` or `setpoint deny`."
	textMalformed = "This button is not understood: the card may be of another version. Answer with `setpoint approve` or `setpoint deny`."
)

// recorded says what a click that counts has begun.
func recorded(k click, t approve.Ticket) string {
	switch {
	case k.page != "":
		return fmt.Sprintf("Recorded: you have seen page %s.", k.page)
	case !k.approve:
		return fmt.Sprintf("Recorded: ticket %s is denied; nothing is sent.", t.ID)
	case t.State == approve.Open:
		return fmt.Sprintf("Recorded: ticket %s wants %s.", t.ID, further(t))
	}
	return fmt.Sprintf("Recorded: ticket %s is answered; it is checked again against fresh measurements before it is sent.", t.ID)
}

// further is how many approvals are missing still.
func further(t approve.Ticket) string {
	n := 1
	if missing := approve.Missing(t); len(missing) > 0 {
		n = max(n, slices.Max(missing))
	}
	if n == 1 {
		return "1 more approval"
	}
	return fmt.Sprintf("%d more approvals", n)
}

func unknown(k click) string {
	if k.page != "" {
		return fmt.Sprintf("Nothing was recorded: the ledger knows no page %s.", k.page)
	}
	return fmt.Sprintf("Nothing was recorded: the ledger knows no ticket %s.", k.ticket)
}

// maxReply bounds a reply, in runes.
const maxReply = 600

// sentence gives the reason of a refusal to a person.
func sentence(reason string) string {
	text := []rune("Nothing was recorded: " + reason)
	if len(text) > maxReply {
		text = append(text[:maxReply], '…')
	}
	return string(text) + "."
}

// Ephemeral replies with a message that only the person sees.
func Ephemeral(client *slack.Client) func(ctx context.Context, channel, user, text string) error {
	return func(ctx context.Context, channel, user, text string) error {
		_, err := client.PostEphemeralContext(ctx, channel, user, slack.MsgOptionText(text, true))
		return err
	}
}
