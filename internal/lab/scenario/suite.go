package scenario

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Suite is what to play: every scenario with every proposer and seed.
type Suite struct {
	Scenarios []Scenario
	Proposers []string
	// Model is whom the proposer openai asks.
	Model Model
	// Seeds is how many seeds, counted up from each scenario's own.
	Seeds int
	// Done, when set, is told of each run as it ends; the calls do not overlap.
	Done func(Score)
}

// Play runs the suite, as many at once as there are processors, and gives the
// scores in the order of scenario, proposer and seed.
func (s Suite) Play(ctx context.Context) ([]Score, error) {
	type run struct {
		scenario Scenario
		options  Options
	}
	var runs []run
	for _, sc := range s.Scenarios {
		for _, p := range s.Proposers {
			for i := range s.Seeds {
				runs = append(runs, run{sc, Options{Proposer: p, Seed: sc.Seed + i, Model: s.Model}})
			}
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("nothing to play: %d scenarios, %d proposers, %d seeds", len(s.Scenarios), len(s.Proposers), s.Seeds)
	}
	scores := make([]Score, len(runs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	told := make(chan struct{}, 1)
	for i, r := range runs {
		g.Go(func() (err error) {
			if scores[i], err = Run(ctx, r.scenario, r.options); err != nil || s.Done == nil {
				return err
			}
			told <- struct{}{}
			s.Done(scores[i])
			<-told
			return nil
		})
	}
	return scores, g.Wait()
}
