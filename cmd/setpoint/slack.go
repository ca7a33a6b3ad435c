package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	slackgo "github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// slackClient speaks to the workspace under slack. Its tokens are read here, so
// that a command that does not speak to Slack needs none of them.
func (s site) slackClient() (*slackgo.Client, error) {
	c := s.cfg.Slack
	if c == nil {
		return nil, errors.New("slack: not configured; setpoint.yaml names the workspace and its tokens there")
	}
	bot, err := readSecret("slack.botTokenFile", c.BotTokenFile)
	if err != nil {
		return nil, err
	}
	app := config.Secret{}
	if c.Transport == config.SlackSocket {
		if app, err = readSecret("slack.appTokenFile", c.AppTokenFile); err != nil {
			return nil, err
		}
	}
	return slack.NewClient(c.APIURL, bot.Reveal(), app.Reveal()), nil
}

// slackSecretFiles are the files of slack that its transport needs.
func slackSecretFiles(c *config.Slack) map[string]string {
	if c == nil {
		return nil
	}
	files := map[string]string{"slack.botTokenFile": c.BotTokenFile}
	if c.Transport == config.SlackHTTP {
		files["slack.signingSecretFile"] = c.SigningSecretFile
	} else {
		files["slack.appTokenFile"] = c.AppTokenFile
	}
	return files
}

// slackMetrics say whether people can answer in the channel.
type slackMetrics struct {
	connected prometheus.Gauge
	requests  *prometheus.CounterVec
}

func newSlackMetrics(registry *prometheus.Registry) slackMetrics {
	m := slackMetrics{
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "setpoint_slack_connected", Help: "1 while clicks come in: Socket Mode is connected, or slack.listen is open.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "setpoint_slack_requests_total", Help: "Clicks, and requests that claim to be some, by what became of them.",
		}, []string{"result"}),
	}
	for _, r := range slack.Results() {
		m.requests.WithLabelValues(string(r))
	}
	registry.MustRegister(m.connected, m.requests)
	return m
}

func (m slackMetrics) counted(r slack.Result) { m.requests.WithLabelValues(string(r)).Inc() }

func (m slackMetrics) up(connected bool) {
	m.connected.Set(0)
	if connected {
		m.connected.Set(1)
	}
}

// connectSlack gives the loop its channel, where there is one.
func (d *daemon) connectSlack() error {
	c := d.site.cfg.Slack
	if c == nil {
		return nil
	}
	client, err := d.site.slackClient()
	if err != nil {
		return err
	}
	d.slack, d.options.Board = client, discreet{slack.NewBoard(client, c.Channel, ""), d.site.secretValues}
	return nil
}

// clicks opens the way in which people answer in the channel, and returns what
// serves it until its context ends; nil without Slack. What is wrong with it is
// said at the start, not when somebody clicks.
func (d *daemon) clicks(ctx context.Context) (serve func(context.Context) error, err error) {
	c := d.site.cfg.Slack
	if c == nil {
		return nil, nil
	}
	metrics := newSlackMetrics(d.metrics.registry)
	clicks, err := slack.NewClicks(slack.Options{
		Desk: d.loop.Desk, Team: c.Team, Log: d.log, OnResult: metrics.counted, Reply: slack.Ephemeral(d.slack),
		Unknown: func(err error) bool { return errors.Is(err, reconcile.ErrNotFound) },
	})
	if err != nil {
		return nil, err
	}
	if c.Transport != config.SlackHTTP {
		return func(ctx context.Context) error {
			defer clicks.Close()
			clicks.Socket(ctx, d.slack, metrics.up)
			return nil
		}, nil
	}
	secret, err := readSecret("slack.signingSecretFile", c.SigningSecretFile)
	if err != nil {
		return nil, err
	}
	handler, err := clicks.Handler(secret.Reveal())
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("slack.listen: %w", err)
	}
	d.log.Info("listening for Slack", "address", l.Addr().String(), "path", slack.Path)
	return func(ctx context.Context) error {
		defer clicks.Close()
		defer metrics.up(false)
		metrics.up(true)
		return slack.Serve(ctx, l, handler, d.log)
	}, nil
}
