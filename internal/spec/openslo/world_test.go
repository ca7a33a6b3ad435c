package openslo_test

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"
)

// now is the end of every world: a whole minute, as slices need it.
var now = time.Unix(1_700_000_040, 0).UTC()

const (
	scrape = 30 * time.Second
	past   = 70 * time.Minute
)

// world is what a Prometheus has of one service: counters of requests by code
// and route, a classic histogram, a probe and a gauge. Each series may be
// missing, end early, start late, reset or stand still.
func world(t *rapid.T) database {
	var db database
	add := func(s series) {
		if len(s.points) > 0 {
			db = append(db, s)
		}
	}
	for _, code := range []string{"200", "404", "500"} {
		for _, route := range []string{"cart", "pay"} {
			add(counter(t, labels.FromStrings("__name__", "requests_total", "job", "shop", "code", code, "route", route)))
		}
	}
	for _, route := range []string{"cart", "pay"} {
		add(counter(t, labels.FromStrings("__name__", "seconds_bucket", "job", "shop", "le", "0.5", "route", route)))
		add(counter(t, labels.FromStrings("__name__", "seconds_count", "job", "shop", "route", route)))
		add(gauge(t, labels.FromStrings("__name__", "probe_success", "target", route), []float64{1, 1, 0}))
		add(gauge(t, labels.FromStrings("__name__", "depth", "queue", route), []float64{1, 300, 499, 500, 501, -4}))
	}
	return db
}

// span draws when a series lives; most live all the time.
func span(t *rapid.T, name string) (from, to time.Time) {
	from, to = now.Add(-past), now
	switch rapid.SampledFrom([]string{"whole", "whole", "whole", "absent", "late", "early"}).Draw(t, name) {
	case "absent":
		return to, from
	case "late":
		from = now.Add(-20 * time.Minute)
	case "early":
		to = now.Add(-15 * time.Minute)
	}
	return from, to
}

func counter(t *rapid.T, ls labels.Labels) series {
	name := ls.String()
	from, to := span(t, name)
	steps := rapid.SliceOfN(rapid.IntRange(0, 3), 5, 9).Draw(t, name+" steps")
	idle := rapid.IntRange(0, 60).Draw(t, name+" idle from minute")
	reset := rapid.IntRange(0, 300).Draw(t, name+" reset at scrape")
	s, total := series{labels: ls}, 0.0
	for i, at := 0, from; !at.After(to); i, at = i+1, at.Add(scrape) {
		if minute := int(at.Sub(now.Add(-past)).Minutes()); minute < idle || minute > idle+8 {
			total += float64(steps[i%len(steps)])
		}
		if i == reset {
			total = 0
		}
		s.points = append(s.points, point{at, total})
	}
	return s
}

func gauge(t *rapid.T, ls labels.Labels, values []float64) series {
	name := ls.String()
	from, to := span(t, name)
	picked := rapid.SliceOfN(rapid.SampledFrom(values), 5, 9).Draw(t, name+" values")
	s := series{labels: ls}
	for i, at := 0, from; !at.After(to); i, at = i+1, at.Add(scrape) {
		s.points = append(s.points, point{at, picked[i%len(picked)]})
	}
	return s
}

// document is one SLO of OpenSLO with its indicator, method and objective.
func document(indicator, method, objective string) string {
	return fmt.Sprintf(`apiVersion: openslo/v1
kind: SLO
metadata: {name: a}
spec:
  service: shop
  indicator:
    spec:
      %s
  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: %s
  objectives: [%s]
`, indicator, method, objective)
}
