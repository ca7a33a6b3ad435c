package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// The first and the last millisecond that a request without times means.
const (
	always = math.MinInt64 / 2
	ever   = math.MaxInt64 / 2
)

// scope is which series a request is about.
type scope struct {
	from, to int64
	limit    int
	sets     [][]*labels.Matcher
}

func (e *Engine) scope(r *http.Request) (scope, *fault) {
	s := scope{from: always, to: ever}
	var err error
	if s.limit, err = parseLimit(r.FormValue("limit")); err != nil {
		return s, invalid("limit", err)
	}
	for name, to := range map[string]*int64{"start": &s.from, "end": &s.to} {
		text := r.FormValue(name)
		if text == "" {
			continue
		}
		t, err := parseTime(text)
		if err != nil {
			return s, invalid(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
		}
		*to = t.UnixMilli()
	}
	if s.sets, err = e.parser.ParseMetricSelectors(r.Form["match[]"]); err != nil {
		return s, invalid("match[]", err)
	}
	for _, ms := range s.sets {
		// A set of matchers that all take "" would be every series.
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return s, invalid("match[]", errors.New("match[] must contain at least one non-empty matcher"))
		}
	}
	return s, nil
}

// cut gives the sorted names without doubles, within the limit.
func (s scope) cut(names []string) ([]string, annotations.Annotations) {
	slices.Sort(names)
	names = slices.Compact(names)
	if names == nil {
		names = []string{}
	}
	if s.limit == 0 || len(names) <= s.limit {
		return names, nil
	}
	return names[:s.limit], annotations.New().Add(errTruncated)
}

// finder asks the storage for names under one set of matchers.
type finder func(context.Context, storage.Querier, []*labels.Matcher) ([]string, annotations.Annotations, error)

func (e *Engine) names(r *http.Request, find finder) (any, annotations.Annotations, *fault) {
	s, f := e.scope(r)
	if f != nil {
		return nil, nil, f
	}
	q, err := e.db.Querier(s.from, s.to)
	if err != nil {
		return nil, nil, &fault{execution, err}
	}
	defer func() { _ = q.Close() }()
	sets := s.sets
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	var all []string
	notes := annotations.New()
	for _, ms := range sets {
		found, more, err := find(r.Context(), q, ms)
		if err != nil {
			return nil, more, &fault{execution, err}
		}
		notes.Merge(more)
		all = append(all, found...)
	}
	names, cut := s.cut(all)
	return names, notes.Merge(cut), nil
}

func (e *Engine) labelNames(r *http.Request) (any, annotations.Annotations, *fault) {
	return e.names(r, func(ctx context.Context, q storage.Querier, ms []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelNames(ctx, &storage.LabelHints{}, ms...)
	})
}

func (e *Engine) labelValues(r *http.Request) (any, annotations.Annotations, *fault) {
	name := r.PathValue("name")
	if !model.UTF8Validation.IsValidLabelName(name) {
		return nil, nil, &fault{badData, fmt.Errorf("invalid label name: %q", name)}
	}
	return e.names(r, func(ctx context.Context, q storage.Querier, ms []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelValues(ctx, name, &storage.LabelHints{}, ms...)
	})
}

// series gives the labels of each series, sorted.
func (e *Engine) series(r *http.Request) (any, annotations.Annotations, *fault) {
	if len(r.Form["match[]"]) == 0 {
		return nil, nil, &fault{badData, errors.New("no match[] parameter provided")}
	}
	s, f := e.scope(r)
	if f != nil {
		return nil, nil, f
	}
	q, err := e.db.Querier(s.from, s.to)
	if err != nil {
		return nil, nil, &fault{execution, err}
	}
	defer func() { _ = q.Close() }()
	// There is no such function; the word says that no samples are needed.
	hints := &storage.SelectHints{Start: s.from, End: s.to, Func: "series"}
	var found []storage.SeriesSet
	for _, ms := range s.sets {
		found = append(found, q.Select(r.Context(), true, hints, ms...))
	}
	set := storage.NewMergeSeriesSet(found, 0, storage.ChainedSeriesMerge)
	out := []labels.Labels{}
	notes := annotations.New()
	for set.Next() {
		if s.limit > 0 && len(out) == s.limit {
			return out, notes.Add(errTruncated), nil
		}
		out = append(out, set.At().Labels())
	}
	if err := set.Err(); err != nil {
		return nil, set.Warnings(), &fault{execution, err}
	}
	return out, notes.Merge(set.Warnings()), nil
}
