package escalate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
)

// Affected is a service that a page for many tells of.
type Affected struct {
	Service    string
	Assessment compare.Assessment
	// Since is when its state began.
	Since time.Time
}

// maxListed bounds the list of a page; receivers cut what is longer anyhow.
const maxListed = 500

// Affecting is the page with all that it tells of listed below, the worst first.
func (p Page) Affecting(all []Affected) Page {
	if len(all) == 0 {
		return p
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Affected) int {
		return cmp.Or(cmp.Compare(b.burn(), a.burn()), cmp.Compare(a.Service, b.Service))
	})
	var w writer
	lines := make([]string, 0, min(len(all), maxListed)+1)
	for i, a := range all {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more: setpoint get services", len(all)-i))
			break
		}
		lines = append(lines, a.line())
	}
	w.section(fmt.Sprintf("Missed now (%d, the worst first)", len(all)), lines...)
	p.Text = strings.TrimRight(p.Text+"\n"+w.String(), "\n")
	return p
}

// burn is how many times its budget the service burns; what cannot be judged comes
// last.
func (a Affected) burn() float64 {
	o, ok := a.Assessment.Worst()
	if !ok || !o.Judge.Known() {
		return -1
	}
	if rate := o.Judge.ErrorRatio / (1 - o.Target); !math.IsNaN(rate) {
		return rate
	}
	return -1
}

func (a Affected) line() string {
	what := fmt.Sprintf("unknown (%s)", orWord(string(a.Assessment.Reason), "no measurement"))
	if o, ok := a.Assessment.Worst(); ok && o.Judge.Known() {
		what = fmt.Sprintf("%s %s errors%s, %s allowed", o.ID, approve.Percent(o.Judge.ErrorRatio), over(o.Judge.ID.Window), approve.Percent(1-o.Target))
	} else if a.Assessment.State != compare.Unknown {
		what = orWord(string(a.Assessment.State), "missed")
	}
	return fmt.Sprintf("%s: %s, since %s", a.Service, what, approve.Instant(a.Since))
}

// StormGist is what makes the page of a storm worth sending again: another source
// at fault, or more services than it told of. The latter is said a minute after the
// storm began, when most of those that it takes have joined, and every ten minutes
// from then on: one message for each that joins would be a storm of messages. known
// is the gist of the page that is open, "" without one; since is the storm's begin.
func StormGist(known string, services int, sources []string, since, now time.Time) string {
	step := 0
	if age := now.Sub(since); age >= time.Minute {
		step = 1 + int((age-time.Minute)/(10*time.Minute))
	}
	at := strings.Join(sources, ",")
	var told, toldAt int
	if n, err := fmt.Sscanf(known, "storm %d %d", &told, &toldAt); n == 2 && err == nil {
		_, from, _ := strings.Cut(known, " of ")
		if from == at && (services <= told || step <= toldAt) {
			return known
		}
	}
	return fmt.Sprintf("storm %d %d of %s", services, step, at)
}
