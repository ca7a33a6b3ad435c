package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// The person who clicks, and the principal that the ledger knows.
const (
	personID = "U0000ONCALL"
	Person   = "slack:" + fakeslack.DefaultTeam + "/" + personID
)

// approveButton is the one that the person clicks.
const approveButton = "setpoint-approve"

const slackText = `slack:
  transport: TRANSPORT
  listen: "127.0.0.1:0"
  apiURL: "SLACK/api/"
  botTokenFile: bot.token
  appTokenFile: app.token
  signingSecretFile: signing.secret
  team: TEAM
  channel: CHANNEL
`

// writeSlack adds a workspace to a site.
func writeSlack(dir, url, transport string) error {
	fill := strings.NewReplacer("TRANSPORT", transport, "SLACK", url, "TEAM", fakeslack.DefaultTeam, "CHANNEL", fakeslack.DefaultChannel)
	path := filepath.Join(dir, ConfigFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("add Slack to a site: %w", err)
	}
	whole := strings.Replace(string(text), `"@oncall": [`, `"@oncall": ["`+Person+`", `, 1) + fill.Replace(slackText)
	errs := []error{os.WriteFile(path, []byte(whole), 0o600)}
	for name, secret := range map[string]string{
		"bot.token": fakeslack.BotToken, "app.token": fakeslack.AppToken, "signing.secret": fakeslack.SigningSecret,
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600))
	}
	return errors.Join(errs...)
}

// Press is one click, as the person saw it end.
type Press struct {
	Ticket string    `json:"ticket"`
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
	// Acknowledged: Slack showed no warning, so the person does not click again.
	Acknowledged bool   `json:"acknowledged"`
	Error        string `json:"error,omitempty"`
}

// Clicker is the person on call at a screen: they approve what a card asks, and
// click again where Slack showed a warning.
type Clicker struct {
	w *World

	mu      sync.Mutex
	presses []Press
}

// Presses are the clicks so far.
func (c *Clicker) Presses() []Press {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.presses)
}

// Acknowledged reports whether a click on a ticket's card was.
func (c *Clicker) Acknowledged(ticket string) bool {
	return slices.ContainsFunc(c.Presses(), func(p Press) bool { return p.Ticket == ticket && p.Acknowledged })
}

// Click begins to watch the channel, until ctx ends; the first click comes not
// before a while.
func (w *World) Click(ctx context.Context, after time.Duration) *Clicker {
	c := &Clicker{w: w}
	first := time.Now().Add(after)
	go c.watch(ctx, first)
	return c
}

func (c *Clicker) watch(ctx context.Context, first time.Time) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.w.listens(); time.Now().Before(first) {
			continue
		}
		for _, b := range c.w.Buttons() {
			ticket, digest, _ := strings.Cut(b.Value, " ")
			if !c.Acknowledged(ticket) {
				c.press(ctx, b, ticket, digest)
			}
		}
	}
}

func (c *Clicker) press(ctx context.Context, b LiveButton, ticket, digest string) {
	o, err := c.w.Slack.Click(ctx, personID, fakeslack.DefaultChannel, b.TS, approveButton)
	if err != nil {
		return // the card was changed at that moment
	}
	p := Press{Ticket: ticket, Digest: digest, At: time.Now(), Acknowledged: o.Shown == fakeslack.ShownOK, Error: o.Error}
	c.mu.Lock()
	c.presses = append(c.presses, p)
	c.mu.Unlock()
	if !p.Acknowledged {
		time.Sleep(200 * time.Millisecond) // nobody is faster
	}
}

var listening = regexp.MustCompile(`msg="listening for Slack" address=(\S+)`)

// listens tells Slack where the newest agent takes clicks.
func (w *World) listens() {
	found := listening.FindAllSubmatch(w.Log(), -1)
	if len(found) > 0 {
		w.Slack.SetInteractivity("http://" + string(found[len(found)-1][1]) + "/slack/interactivity")
	}
}

// LiveButton is one that somebody could click to approve.
type LiveButton struct {
	TS, Value string
}

// Ticket is the one that it approves.
func (b LiveButton) Ticket() string {
	ticket, _, _ := strings.Cut(b.Value, " ")
	return ticket
}

// Buttons are all that approve something, as the channel shows them now.
func (w *World) Buttons() []LiveButton {
	var out []LiveButton
	for _, m := range w.Slack.Messages(fakeslack.DefaultChannel) {
		for _, b := range m.Buttons {
			if b.Action == approveButton && !m.Deleted {
				out = append(out, LiveButton{m.TS, b.Value})
			}
		}
	}
	return out
}

// Posts counts the messages that were posted about each ticket, deleted ones too.
func (w *World) Posts() map[string]int {
	out := map[string]int{}
	for _, m := range w.Slack.Messages(fakeslack.DefaultChannel) {
		tickets := map[string]bool{}
		for _, id := range blockIDs(m.Blocks) {
			if parts := strings.Split(id, "/"); len(parts) >= 3 && parts[0] == "setpoint" {
				tickets[parts[1]] = true
			}
		}
		for ticket := range tickets {
			out[ticket]++
		}
	}
	return out
}

var blockID = regexp.MustCompile(`"block_id":"([^"]*)"`)

func blockIDs(blocks []byte) []string {
	var out []string
	for _, m := range blockID.FindAllSubmatch(blocks, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// OpenTickets are the ids of those that wait for an answer.
func (w *World) OpenTickets(ctx context.Context) ([]string, error) {
	var list web.List[web.Approval]
	err := w.call(ctx, http.MethodGet, "/api/v1/approvals", nil, &list)
	var open []string
	for _, a := range list.Items {
		if a.State == "open" {
			open = append(open, a.ID)
		}
	}
	return open, err
}
