package world

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// The counters that the documents ask for.
const (
	goodCounter  = "shop_good_total"
	totalCounter = "shop_requests_total"
)

// rate is requests per second, badShare the share that fails while the service
// is broken, and scrape how often a sample is taken.
const (
	rate     = 1000
	badShare = 0.9
	scrape   = 100 * time.Millisecond
)

// Source answers the few queries that the suite's documents lead to, from
// counters that are a function of time. It computes what a Prometheus with a
// perfect memory would: no scrape has to be waited for, and a run can begin in
// the middle of an outage.
type Source struct {
	mu sync.Mutex
	// broken are the outages; the end of the last one is zero while it lasts.
	broken []outage
}

type outage struct{ from, to time.Time }

// Reset makes a service that has been broken since from, or never when zero.
func (s *Source) Reset(from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = nil
	if !from.IsZero() {
		s.broken = []outage{{from: from}}
	}
}

// Mend ends the outage.
func (s *Source) Mend(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.broken); n > 0 && s.broken[n-1].to.IsZero() {
		s.broken[n-1].to = at
	}
}

// bad is the seconds of outage between two instants.
func (s *Source) bad(from, to time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum time.Duration
	for _, o := range s.broken {
		start, end := o.from, to
		if !o.to.IsZero() && o.to.Before(to) {
			end = o.to
		}
		if start.Before(from) {
			start = from
		}
		sum += max(0, end.Sub(start))
	}
	return sum.Seconds()
}

var rangeSelector = regexp.MustCompile(`^sum\(increase\((\w+)\[(\w+)\]\)\)$`)

// ServeHTTP answers /api/v1/query.
func (s *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	at := now
	if text := r.FormValue("time"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			refuse(w, "time: "+text)
			return
		}
		at = time.UnixMilli(int64(math.Round(seconds * 1000)))
	}
	query := r.FormValue("query")
	stamp := float64(at.UnixMilli()) / 1000
	if query == "time()" {
		succeed(w, "scalar", []any{stamp, format(stamp)})
		return
	}
	value, known, err := s.value(query, at, now)
	switch {
	case err != nil:
		refuse(w, err.Error())
	case !known:
		succeed(w, "vector", []any{})
	default:
		succeed(w, "vector", []any{map[string]any{"metric": struct{}{}, "value": []any{stamp, format(value)}}})
	}
}

// value is known where the window holds samples.
func (s *Source) value(query string, at, now time.Time) (v float64, known bool, err error) {
	newest := at
	if newest.After(now) {
		newest = now
	}
	newest = newest.Truncate(scrape)
	if strings.HasPrefix(query, "max(timestamp(") {
		return float64(newest.UnixMilli()) / 1000, at.Sub(newest) < 5*time.Minute, nil
	}
	switch {
	case strings.HasPrefix(query, "max(resets("):
		return 0, true, nil
	case strings.HasPrefix(query, "min("), strings.Contains(query, measure.CountLabel):
		// The oldest sample is asked for only where there is none, and nobody
		// records counts.
		return 0, false, nil
	}
	m := rangeSelector.FindStringSubmatch(query)
	if m == nil || m[1] != goodCounter && m[1] != totalCounter {
		return 0, false, fmt.Errorf("the suite's source does not know %q", query)
	}
	d, err := model.ParseDuration(m[2])
	if err != nil {
		return 0, false, err
	}
	window := time.Duration(d)
	if newest.Sub(at.Add(-window)) < 2*scrape {
		return 0, false, nil
	}
	v = rate * window.Seconds()
	if m[1] == goodCounter {
		v -= rate * badShare * s.bad(at.Add(-window), newest)
	}
	return v, true, nil
}

func format(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func succeed(w http.ResponseWriter, kind string, result any) {
	answer(w, http.StatusOK, map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}})
}

func refuse(w http.ResponseWriter, why string) {
	answer(w, http.StatusBadRequest, map[string]any{"status": "error", "errorType": "bad_data", "error": why})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // A client that is gone was killed on purpose.
}
