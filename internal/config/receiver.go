package config

import "time"

// Receiver is one way to tell people. Exactly one kind is set.
type Receiver struct {
	Name         string        `yaml:"name,required"`
	Alertmanager *Alertmanager `yaml:"alertmanager"`
	Webhook      *Webhook      `yaml:"webhook"`
	PagerDuty    *PagerDuty    `yaml:"pagerduty"`
	Slack        *SlackChannel `yaml:"slack"`
	Command      *Command      `yaml:"command"`
	// Heartbeat sends a sign of life through the same path; 0: none.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// EscalateAfter is how long its predecessor may fail or stay
	// unacknowledged.
	EscalateAfter time.Duration `yaml:"escalateAfter"`
}

// SetDefaults fills in what a receiver need not say.
func (r *Receiver) SetDefaults() { r.EscalateAfter = 10 * time.Minute }

// Alertmanager is one Alertmanager, by its base URL.
type Alertmanager struct {
	URL string `yaml:"url,required"`
}

// Webhook gets Alertmanager's webhook JSON.
type Webhook struct {
	URL        string `yaml:"url,required"`
	SecretFile string `yaml:"secretFile"`
}

// PagerDuty gets events of API version 2.
type PagerDuty struct {
	RoutingKeyFile string `yaml:"routingKeyFile,required"`
	URL            string `yaml:"url"`
	// WebhookSecretFile signs what PagerDuty posts to /hooks/pagerduty; "" takes
	// no acknowledgement from it.
	WebhookSecretFile string `yaml:"webhookSecretFile"`
}

// SetDefaults fills in PagerDuty's own address.
func (p *PagerDuty) SetDefaults() { p.URL = "https://events.pagerduty.com/v2/enqueue" }

// SlackChannel is a channel of the workspace under slack.
type SlackChannel struct {
	Channel string `yaml:"channel,required"`
}

// Command is a program that is run for each page.
type Command struct {
	Argv []string `yaml:"argv,required"`
}

// Slack is the workspace where approvals are asked.
type Slack struct {
	// Transport is how clicks come in: SlackSocket or SlackHTTP.
	Transport string `yaml:"transport"`
	// Listen is where SlackHTTP listens, for POST /slack/interactivity alone.
	Listen string `yaml:"listen"`
	APIURL string `yaml:"apiURL"`
	// BotTokenFile is needed for every transport, AppTokenFile for SlackSocket,
	// SigningSecretFile for SlackHTTP.
	BotTokenFile      string `yaml:"botTokenFile,required"`
	AppTokenFile      string `yaml:"appTokenFile"`
	SigningSecretFile string `yaml:"signingSecretFile"`
	// Team is the id of the workspace whose people may answer.
	Team    string `yaml:"team,required"`
	Channel string `yaml:"channel,required"`
	// OpenCards is how many open cards a channel holds at most; what is asked
	// beyond them is listed in one digest message, and pages.
	OpenCards int `yaml:"openCards"`
}

// The transports of Slack.
const (
	SlackSocket = "socket"
	SlackHTTP   = "http"
)

// SetDefaults fills in what a workspace need not say.
func (s *Slack) SetDefaults() {
	s.Transport, s.Listen, s.APIURL, s.OpenCards = SlackSocket, "127.0.0.1:8322", "https://slack.com/api/", 5
}
