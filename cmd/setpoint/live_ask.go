package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

// asker asks one source many expressions at one instant. What differs only in
// the values of equalities becomes one query; slots and rate are the source's.
type asker struct {
	source *prom.Source
	src    config.Source
	at     time.Time
	// asked is told after each query how many expressions are left.
	asked func(left int)
}

// askGroup is one query for one or many expressions.
type askGroup struct {
	exprs   []string
	expr    string
	grouped *measure.Grouped
}

// all answers each expression once.
func (a asker) all(ctx context.Context, exprs []string) map[string]measure.Reading {
	exprs = slices.Compact(slices.Sorted(slices.Values(exprs)))
	groups := a.groups(exprs)
	out := make(map[string]measure.Reading, len(exprs))
	next := make(chan askGroup, len(groups))
	for _, g := range groups {
		next <- g
	}
	close(next)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(len(groups), max(a.src.MaxConcurrency, 1)) {
		wg.Go(func() {
			for g := range next {
				r := a.source.Ask(ctx, g.expr, a.at)
				mu.Lock()
				g.deal(r, out)
				left := len(exprs) - len(out)
				mu.Unlock()
				a.asked(left)
			}
		})
	}
	wg.Wait()
	return out
}

// groups keep the order of the expressions, so that two runs ask the same.
func (a asker) groups(exprs []string) []askGroup {
	type member struct {
		expr   string
		values []string
	}
	byShape := map[string][]member{}
	var order []string
	var out []askGroup
	for _, e := range exprs {
		shape, values, single := measure.Analyse(e)
		if single != "" {
			out = append(out, askGroup{exprs: []string{e}, expr: e})
			continue
		}
		if byShape[shape.Key()] == nil {
			order = append(order, shape.Key())
		}
		byShape[shape.Key()] = append(byShape[shape.Key()], member{e, values})
	}
	for _, key := range order {
		for part := range slices.Chunk(byShape[key], max(a.src.Chunk, 1)) {
			names, values := make([]string, len(part)), make([][]string, len(part))
			for i, m := range part {
				names[i], values[i] = m.expr, m.values
			}
			g, err := measure.Group(names[0], values)
			if err != nil || len(part) == 1 {
				for _, e := range names {
					out = append(out, askGroup{exprs: []string{e}, expr: e})
				}
				continue
			}
			out = append(out, askGroup{exprs: names, expr: g.Expr, grouped: &g})
		}
	}
	return out
}

// deal gives each expression its part of an answer.
func (g askGroup) deal(r measure.Reading, into map[string]measure.Reading) {
	if g.grouped == nil || r.Reason != "" {
		for _, e := range g.exprs {
			into[e] = r
		}
		return
	}
	for i, series := range g.grouped.Split(r.Series) {
		into[g.exprs[i]] = measure.Reading{Series: series}
	}
}
