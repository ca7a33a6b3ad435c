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
	RoutingKeyFile string `yaml:"routingKeyFile"`
	URL            string `yaml:"url"`
}

// SlackChannel is a channel of the workspace under slack.
type SlackChannel struct {
	Channel string `yaml:"channel"`
}

// Command is a program that is run for each page.
type Command struct {
	Argv []string `yaml:"argv"`
}

// Slack is the workspace where approvals are asked.
type Slack struct {
	Transport         string `yaml:"transport"`
	Listen            string `yaml:"listen"`
	APIURL            string `yaml:"apiURL"`
	BotTokenFile      string `yaml:"botTokenFile"`
	AppTokenFile      string `yaml:"appTokenFile"`
	SigningSecretFile string `yaml:"signingSecretFile"`
	Team              string `yaml:"team"`
	Channel           string `yaml:"channel"`
}
