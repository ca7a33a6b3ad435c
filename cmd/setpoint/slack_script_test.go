package main

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// cmdSlack is a Slack on loopback:
//
//	slack start file...             starts it, writes the secrets, fills $SLACK and so on in files
//	slack click user button shown   waits for a card with that button, clicks, and wants the
//	                                person to see "ok" or "warning" within three seconds
//	slack again shown               clicks as before, on the card as it was shown then
//	slack shows regexp              waits until a card, with its notes, shows that
//	slack told user regexp          waits until that person alone was told that
//	slack cards n                   wants so many messages in the channel
func cmdSlack(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "start" {
		startSlack(ts, args[1:])
		return
	}
	f := worldOf(ts).slack
	if f == nil {
		ts.Fatalf("slack: say slack start first")
	}
	switch args[0] {
	case "click":
		f.click(ts, args[1], args[2], args[3])
	case "again":
		f.press(ts, args[1])
	case "shows":
		f.until(ts, "a card", args[1], func() []string { return f.shown() })
	case "told":
		f.until(ts, "a reply to "+args[1], args[2], func() []string { return f.told(args[1]) })
	case "cards":
		if got := len(f.Messages(fakeslack.DefaultChannel)); strconv.Itoa(got) != args[1] {
			ts.Fatalf("the channel has %d cards, want %s", got, args[1])
		}
	default:
		ts.Fatalf("slack: unknown %s", args[0])
	}
}

// scriptSlack is the Slack of one story.
type scriptSlack struct {
	*fakeslack.Slack
	last fakeslack.Press
	// edits is how often the card had been changed when it was clicked last.
	edits int
}

func startSlack(ts *testscript.TestScript, files []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	listen := l.Addr().String()
	ts.Check(l.Close())
	f := &scriptSlack{Slack: fakeslack.New(fakeslack.Options{Interactivity: "http://" + listen + "/slack/interactivity"})}
	server := httptest.NewServer(f.Handler())
	ts.Defer(func() {
		f.Close()
		server.Close()
	})
	worldOf(ts).slack = f
	for name, secret := range map[string]string{"bot.token": fakeslack.BotToken, "app.token": fakeslack.AppToken, "signing.secret": fakeslack.SigningSecret} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(secret+"\n"), 0o600))
	}
	fill := strings.NewReplacer("$SLACK", server.URL+"/api/", "$LISTEN", listen, "$TEAM", fakeslack.DefaultTeam, "$CHANNEL", fakeslack.DefaultChannel)
	for _, name := range files {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(fill.Replace(ts.ReadFile(name))), 0o644))
	}
}

// click waits for the button, and for the way on which a click is delivered.
func (f *scriptSlack) click(ts *testscript.TestScript, user, button, shown string) {
	f.until(ts, "a card", button, func() []string {
		for _, m := range f.Messages(fakeslack.DefaultChannel) {
			for _, b := range m.Buttons {
				if b.Action == button {
					f.last = fakeslack.Press{User: user, Channel: m.Channel, TS: m.TS, Action: button}
					f.edits = m.Edits
					return []string{b.Action}
				}
			}
		}
		return nil
	})
	f.press(ts, shown)
}

func (f *scriptSlack) press(ts *testscript.TestScript, shown string) {
	p := f.last
	for _, m := range f.Messages(p.Channel) {
		if m.TS == p.TS {
			p.Back = m.Edits - f.edits
		}
	}
	got, err := f.Press(context.Background(), p)
	ts.Check(err)
	ts.Logf("%s clicked %s over %s: %s after %s", p.User, p.Action, got.Via, got.Shown, time.Duration(got.Took))
	if got.Shown != shown {
		ts.Fatalf("the person sees %q (%d %s), want %q", got.Shown, got.Status, got.Error, shown)
	}
}

func (f *scriptSlack) shown() []string {
	var out []string
	for _, m := range f.Messages(fakeslack.DefaultChannel) {
		text := m.Shown()
		for _, r := range m.Replies {
			text += "\n" + r.Shown()
		}
		out = append(out, text)
	}
	return out
}

func (f *scriptSlack) told(user string) []string {
	var out []string
	for _, e := range f.Ephemerals(fakeslack.DefaultChannel) {
		if e.User == user {
			out = append(out, e.Text)
		}
	}
	return out
}

func (f *scriptSlack) until(ts *testscript.TestScript, what, pattern string, texts func() []string) {
	want, err := regexp.Compile(pattern)
	ts.Check(err)
	deadline := time.Now().Add(20 * time.Second)
	for {
		all := texts()
		if slices.ContainsFunc(all, want.MatchString) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never matched %s; there are:\n%s\n%+v", what, pattern, strings.Join(all, "\n---\n"), f.shown())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
