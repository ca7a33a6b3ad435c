// Package fakeslack is a Slack on loopback, as far as approvals need it: the part
// of the Web API that posts and changes messages, Socket Mode, and people who
// click, with the faults that the real one has.
package fakeslack

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/fault"
)

// The names that a Slack without options has.
const (
	DefaultTeam    = "T0000LAB00"
	DefaultChannel = "C0000OPS00"
	DefaultApp     = "A0000LAB00"
	// Bot is the user that the app posts as.
	Bot = "U0000BOT00"
	// BotToken, AppToken and SigningSecret are no secrets: this Slack is on loopback.
	BotToken      = "xoxb-lab-bot"
	AppToken      = "xapp-lab-app"
	SigningSecret = "lab-signing-secret"
)

// Channel is one conversation.
type Channel struct {
	ID, Name string
	// Private needs the groups scopes instead of the channels ones.
	Private bool
	// Out: the app is no member.
	Out bool
	// Archived: nothing can be posted any more.
	Archived bool
}

// Person is somebody who can click.
type Person struct {
	ID, Username string
	// Team is that of the Slack when "".
	Team string
	// IsBot is what users.info says.
	IsBot bool
}

// Options are what a Slack starts with. The zero value is usable.
type Options struct {
	// Now is the clock of timestamps and signatures; time.Now when nil.
	Now func() time.Time
	// Team and Domain are of the workspace, App of the app.
	Team, Domain, App string
	// BotToken, AppToken and SigningSecret are the constants' when "".
	BotToken, AppToken, SigningSecret string
	// Interactivity is the URL to which clicks are posted; "" when there is none.
	Interactivity string
	// Channels is one channel, DefaultChannel, when empty.
	Channels []Channel
	// Patience is how long a click waits for its answer; Slack's 3 s when 0. It
	// passes by the real clock, like every wait here.
	Patience time.Duration
	// PingEvery is how often a socket is pinged: 5 s when 0, never when negative.
	PingEvery time.Duration
	// Redeliver is after which waits an envelope that was not acknowledged is
	// sent again. Nil is never by itself: see Slack.Redeliver.
	Redeliver []time.Duration
}

func (o Options) filled() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Team, o.Domain, o.App = cmp.Or(o.Team, DefaultTeam), cmp.Or(o.Domain, "lab"), cmp.Or(o.App, DefaultApp)
	o.BotToken, o.AppToken = cmp.Or(o.BotToken, BotToken), cmp.Or(o.AppToken, AppToken)
	o.SigningSecret = cmp.Or(o.SigningSecret, SigningSecret)
	o.Patience, o.PingEvery = cmp.Or(o.Patience, 3*time.Second), cmp.Or(o.PingEvery, 5*time.Second)
	if len(o.Channels) == 0 {
		o.Channels = []Channel{{ID: DefaultChannel, Name: "ops"}}
	}
	return o
}

// Slack holds one workspace in memory. It is safe for concurrent use.
type Slack struct {
	o Options
	// ended is closed by Close.
	ended chan struct{}
	once  sync.Once
	// faults guards itself.
	faults fault.Book

	mu sync.Mutex
	// base is this Slack's own URL, learned from the requests.
	base     string
	clock    int64
	ids      int
	channels map[string]*channel
	people   map[string]Person
	calls    []Call
	// taken are the scopes that were taken away, revoked the tokens.
	taken, revoked map[string]bool
	// hooks are the response URLs that were handed out.
	hooks map[string]*hook
	hub   hub
}

// channel is a conversation with what was posted.
type channel struct {
	Channel
	messages   []*message
	ephemerals []Ephemeral
}

// New returns a Slack without messages.
func New(o Options) *Slack {
	s := &Slack{
		o: o.filled(), ended: make(chan struct{}), channels: map[string]*channel{}, people: map[string]Person{},
		taken: map[string]bool{}, revoked: map[string]bool{}, hooks: map[string]*hook{},
		hub: hub{tickets: map[string]bool{}, envelopes: map[string]*envelope{}},
	}
	for _, c := range s.o.Channels {
		s.channels[c.ID] = &channel{Channel: c}
	}
	s.people[Bot] = Person{ID: Bot, Username: "setpoint", Team: s.o.Team, IsBot: true}
	return s
}

// Close ends every open socket and every wait.
func (s *Slack) Close() {
	s.once.Do(func() { close(s.ended) })
	s.DropConnections()
}

// Handler answers the Web API below /api/, sockets at /link, response URLs below
// /actions/, and control below /control/.
func (s *Slack) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.api)
	mux.HandleFunc("GET /link", s.link)
	mux.HandleFunc("POST /actions/{id}", s.response)
	mux.Handle("/control/", s.Control())
	return mux
}

// SetInteractivity changes where clicks are posted.
func (s *Slack) SetInteractivity(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Interactivity = url
}

// AddPerson makes somebody known; who clicks is known by then.
func (s *Slack) AddPerson(p Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[p.ID] = p
}

// AddChannel adds a channel, or changes what is known of it.
func (s *Slack) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.channels[c.ID]; had != nil {
		had.Channel = c
		return
	}
	s.channels[c.ID] = &channel{Channel: c}
}

// Archive archives a channel, or brings it back.
func (s *Slack) Archive(channelID string, archived bool) bool {
	return s.change(channelID, func(c *channel) { c.Archived = archived })
}

// Kick removes the app from a channel, or invites it again.
func (s *Slack) Kick(channelID string, out bool) bool {
	return s.change(channelID, func(c *channel) { c.Out = out })
}

func (s *Slack) change(channelID string, do func(*channel)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channelID]
	if c != nil {
		do(c)
	}
	return c != nil
}

// Revoke revokes a token, or gives it back: the bot's or the app's.
func (s *Slack) Revoke(token string, revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked[token] = revoked
}

// TakeScope takes a scope away, or gives it back.
func (s *Slack) TakeScope(scope string, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scope != "" {
		s.taken[scope] = taken
	}
}

// Delete deletes a message, as a person does.
func (s *Slack) Delete(channelID, ts string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channelID, ts)
	if m == nil {
		return false
	}
	m.erase()
	return true
}

// Call is one request of the Web API.
type Call struct {
	At      time.Time `json:"at"`
	Method  string    `json:"method"`
	Channel string    `json:"channel,omitempty"`
	TS      string    `json:"ts,omitempty"`
	// Error is what was answered; "" for ok.
	Error string `json:"error,omitempty"`
	// Done: it had its effect, whatever the caller heard.
	Done bool `json:"done"`
	// Heard: the caller was answered.
	Heard bool `json:"heard"`
}

// Calls are all requests of the Web API so far, in order of their end.
func (s *Slack) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}
