package incident

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Suite is what to play.
type Suite struct {
	Incidents []Incident
	Options   Options
	// Done, when set, is told of each run as it ends; the calls do not overlap.
	Done func(Score)
}

// Runs is how many runs the suite has: one for each incident and sweep.
func (s Suite) Runs() int {
	n := 0
	for _, in := range s.Incidents {
		n += len(in.Sweeps)
	}
	return n
}

// Play runs the suite, as many at once as there are processors, and gives the
// scores in the order of incidents and sweeps.
func (s Suite) Play(ctx context.Context) ([]Score, error) {
	if s.Runs() == 0 {
		return nil, errors.New("nothing to play")
	}
	scores := make([][]Score, len(s.Incidents))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	told := make(chan struct{}, 1)
	for i, in := range s.Incidents {
		scores[i] = make([]Score, len(in.Sweeps))
		for j, sweep := range in.Sweeps {
			g.Go(func() (err error) {
				if scores[i][j], err = Run(ctx, in, sweep, s.Options); err != nil || s.Done == nil {
					return err
				}
				told <- struct{}{}
				s.Done(scores[i][j])
				<-told
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []Score
	for _, runs := range scores {
		for j := range runs[1:] {
			runs[j+1].Wrong = append(runs[j+1].Wrong, differ(runs[0], runs[j+1])...)
		}
		out = append(out, runs...)
	}
	return out, nil
}

// differ says what hangs on the speed of the loop: what was done, and in how
// short a time.
func differ(a, b Score) []string {
	var out []string
	at := func(s Score) string {
		return spec.FormatDuration(time.Duration(s.SweepSeconds*1000) * time.Millisecond)
	}
	for i := range a.Services {
		if n, m := len(a.Services[i].Effects), len(b.Services[i].Effects); n != m {
			out = append(out, fmt.Sprintf("%s: %d effects with a sweep each %s, and %d with one each %s", a.Services[i].Service, n, at(a), m, at(b)))
		}
	}
	if a.MaxPerHour != b.MaxPerHour || a.MaxPerHourAll != b.MaxPerHourAll {
		out = append(out, fmt.Sprintf("at most %d effects of a service and %d of all within an hour with a sweep each %s, and %d and %d with one each %s",
			a.MaxPerHour, a.MaxPerHourAll, at(a), b.MaxPerHour, b.MaxPerHourAll, at(b)))
	}
	return out
}
