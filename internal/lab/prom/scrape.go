package prom

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
)

// Target is one exporter to scrape.
type Target struct {
	Job string
	// URL is of the metrics page.
	URL string
}

// Scrape scrapes the targets with Prometheus's own manager until ctx ends. It
// blocks until then, and gives an error only when it could not begin.
func (e *Engine) Scrape(ctx context.Context, targets []Target, interval time.Duration) error {
	cfg, groups, err := scrapeConfig(targets, interval)
	if err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return errors.New("scrape: the engine is closed")
	}
	e.scraping.Add(1)
	e.mu.Unlock()
	defer e.scraping.Done()

	m, err := scrape.NewManager(
		&scrape.Options{DiscoveryReloadOnStartup: true, DiscoveryReloadInterval: model.Duration(interval)},
		promslog.NewNopLogger(), nil, nil, e.db, prometheus.NewRegistry())
	if err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	if err := m.ApplyConfig(cfg); err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- groups
	ended := make(chan error, 1)
	go func() { ended <- m.Run(sets) }()
	select {
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	m.Stop()
	return <-ended
}

// scrapeConfig is one job per name with its targets.
func scrapeConfig(targets []Target, interval time.Duration) (*config.Config, map[string][]*targetgroup.Group, error) {
	text := fmt.Sprintf("global: {scrape_interval: %[1]s, scrape_timeout: %[1]s}\nscrape_configs:\n", model.Duration(interval))
	groups := map[string][]*targetgroup.Group{}
	for _, t := range targets {
		u, err := url.Parse(t.URL)
		if err != nil {
			return nil, nil, fmt.Errorf("target of job %s: %w", t.Job, err)
		}
		if groups[t.Job] == nil {
			text += fmt.Sprintf("- job_name: %q\n", t.Job)
		}
		groups[t.Job] = append(groups[t.Job], &targetgroup.Group{
			Source: t.URL,
			Targets: []model.LabelSet{{
				model.AddressLabel:     model.LabelValue(u.Host),
				model.SchemeLabel:      model.LabelValue(u.Scheme),
				model.MetricsPathLabel: model.LabelValue(u.Path),
			}},
		})
	}
	cfg, err := config.Load(text, promslog.NewNopLogger())
	return cfg, groups, err
}
