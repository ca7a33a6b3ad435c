package escalate

import (
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Sequence is what is sent to a receiver to bring it to the page, in order. A
// receiver that never confirmed a page which is over is first sent it as open,
// marked as over: an end of something that it never had tells nobody anything.
func Sequence(p Page, d Delivery) []Page {
	if p.EndedAt.IsZero() || !d.First.IsZero() {
		return []Page{p}
	}
	return []Page{p.late(), p}
}

// late is the page as it would have been opened, and says that it is over.
func (p Page) late() Page {
	p = p.Over()
	over := fmt.Sprintf("over already: ended at %s (%s), and could not be delivered before", approve.Instant(p.EndedAt), p.EndReason)
	p.Text = "This is " + over + "\n" + p.Text
	p.Lead.Broken = approve.OneLine("this is "+over+"; "+strings.TrimPrefix(p.Lead.Broken, "over: "), approve.MaxLine)
	p.Summary = execute.CleanText("over already: "+strings.TrimPrefix(p.Summary, "over: "), maxSummary)
	if p.Gist != "" {
		p.Gist += " late"
	}
	p.EndedAt, p.EndReason = time.Time{}, ""
	return p
}

// Linger is how long a page of no episode must not have been wanted before it
// ends, so that what comes and goes is one page and not many. again is how often
// somebody else opened the page anew after this process had ended it: of replicas
// that see different things none ends what the other opens in every pass.
func Linger(again int) time.Duration {
	d := lingers
	for range min(max(again, 0), 10) {
		d *= 2
	}
	return min(d, maxLingers)
}

const (
	lingers    = 5 * time.Minute
	maxLingers = 4 * time.Hour
)
