package budget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The ladder: observe, suggest, approval, auto, per service and action. A rung
// is earned by what is in the ledger of a period, never by time alone, and each
// rung needs all of the rungs below it. Slow to earn:
//
//   - suggest: an objective was met at least once in the period, and nothing says
//     that the objective itself is wrong. Who never saw it met cannot say that a
//     breach is a change.
//   - approval: TrialsForApproval times it would have acted and the cost of those,
//     had no action helped, fits the capacity; or as many effects were judged and
//     none of them did harm.
//   - auto: EffectsForAuto judged effects (those on a service that was recovering
//     by itself not counted) in EpisodesForAuto different episodes, none of all
//     Worsened, none Unknown, HelpedForAuto of the counted ones Recovered or
//     Improved, at most DeniedForAuto of people's answers a no, and the service
//     was watched for WatchedForAuto. Many effects of one bad afternoon are one
//     experience.
//
// Fast to lose: one Worsened or one Unknown in the period ends auto, a suspended
// action is worth suggest at most, and a demotion in force caps the rung.
//
// What is earned is advice. A rung is granted by a person who commits a document;
// Setpoint itself only takes away (Demoted).
const (
	TrialsForApproval = 3
	EffectsForAuto    = 5
	EpisodesForAuto   = 3
	HelpedForAuto     = 0.8
	DeniedForAuto     = 0.2
	WatchedForAuto    = 7 * 24 * time.Hour
)

// Ran is one effect of an action that may have changed something.
type Ran struct {
	Decision, Episode string
	// At is the time of the claim.
	At time.Time
	// ByPerson: people approved it; otherwise it ran by verdict auto.
	ByPerson bool
	// Outcome is Pending until it was judged, and Unknown for an effect of which
	// nobody can tell whether it landed.
	Outcome compare.Outcome
	// Recovering: the service was recovering already, so the action gets no
	// credit. Harm counts all the same.
	Recovering bool
}

// Record is what the ledger has of one service and action in one period.
type Record struct {
	// Watched is how much of the period the service's state is known of.
	Watched time.Duration
	// EverMet: the service was measured and met at some time of the period.
	EverMet bool
	// SpecProblem says why the objective itself is in doubt; "" when it is not.
	SpecProblem string
	// WouldHaveActed is how often a decision would have let it act, alone or with
	// a person, but for the mode; Projected is what all of that would have cost.
	WouldHaveActed int
	Projected      float64
	// Approved and Denied count people's answers to the action's tickets.
	Approved, Denied int
	// Ran are the effects, oldest first.
	Ran []Ran
	// Suspended says why the action waits for a named reset; "" when it does not.
	Suspended string
	// Demoted says by whom and why no more than DemotedTo is allowed; "" when
	// nobody demoted it.
	Demoted   string
	DemotedTo spec.Mode
}

// Earned is a rung with the rules that gave it.
type Earned struct {
	Rung spec.Mode
	// Why are the rules that hold, or that took a rung away, with their numbers.
	Why []string
	// Next is what the next rung needs; "" on the highest.
	Next string
	// Against are the rules that something measured or said speaks against, on
	// whatever rung. Empty, the record only holds too little: that is no reason to
	// take away what a person granted.
	Against []string
}

// Earn says which rung a record is worth under the budget of the action.
func Earn(r Record, p Policy) Earned {
	e := Earned{Rung: spec.Observe, Why: []string{}, Against: []string{}}
	for _, rung := range []struct {
		mode  spec.Mode
		rules []rule
	}{{spec.Suggest, suggestRules(r)}, {spec.Approval, approvalRules(r, p)}, {spec.Auto, autoRules(r)}} {
		missing := unmet(rung.rules)
		e.Against = append(e.Against, against(rung.rules)...)
		switch {
		case e.Next != "":
		case len(missing) > 0:
			e.Next = fmt.Sprintf("%s needs %s", rung.mode, strings.Join(missing, "; "))
		default:
			e.Rung = rung.mode
			for _, x := range rung.rules {
				e.Why = append(e.Why, x.text)
			}
		}
	}
	return e.without(r)
}

// without takes away what was lost.
func (e Earned) without(r Record) Earned {
	lose := func(to spec.Mode, why, next string) {
		e.Why, e.Against = append(e.Why, why), append(e.Against, why)
		if to < e.Rung {
			e.Rung, e.Next = to, next
		}
	}
	if r.Suspended != "" {
		lose(spec.Suggest, "suspended: "+r.Suspended, "anything above suggest needs a named budget reset")
	}
	if r.Demoted != "" {
		lose(r.DemotedTo, "demoted: "+r.Demoted, fmt.Sprintf("anything above %s needs a named ceiling raise", r.DemotedTo))
	}
	return e
}

// rule is one condition with its numbers: text says how it holds, need what is
// missing. against is what speaks against it where it is not only too early to
// tell.
type rule struct {
	holds               bool
	text, need, against string
}

func against(rules []rule) []string {
	var out []string
	for _, r := range rules {
		if !r.holds && r.against != "" {
			out = append(out, r.against)
		}
	}
	return out
}

func unmet(rules []rule) []string {
	var out []string
	for _, r := range rules {
		if !r.holds {
			out = append(out, r.need)
		}
	}
	return out
}

func suggestRules(r Record) []rule {
	return []rule{
		{r.EverMet, "the SLO was measured and met", "the SLO measured and met at least once", ""},
		{r.SpecProblem == "", "nothing speaks against the objective", "an objective that can be met: " + r.SpecProblem, r.SpecProblem},
	}
}

func approvalRules(r Record, p Policy) []rule {
	t := tally(r.Ran)
	if t.judged >= TrialsForApproval && t.worsened == 0 {
		return []rule{{true, fmt.Sprintf("%s judged, none worsened", effectCount(t.judged)), "", ""}}
	}
	room, cost := figure(p.room()), figure(r.Projected)
	return []rule{
		{r.WouldHaveActed >= TrialsForApproval, fmt.Sprintf("it would have acted %s", timesCount(r.WouldHaveActed)),
			fmt.Sprintf("%d times in which it would have acted (%d so far)", TrialsForApproval, r.WouldHaveActed), ""},
		{isAmount(r.Projected) && r.Projected <= p.room(), fmt.Sprintf("that would have cost %s of %s at most", cost, room),
			fmt.Sprintf("a cost that fits the capacity of %s (%s at most)", room, cost), ""},
	}
}

func autoRules(r Record) []rule {
	t := tally(r.Ran)
	answers := r.Approved + r.Denied
	helped, denied := fmt.Sprintf("%d of %d helped", t.helped, t.counted), fmt.Sprintf("people denied %d of %d", r.Denied, answers)
	if answers == 0 {
		denied = "nobody denied it"
	}
	tooFew := ""
	if t.counted >= EffectsForAuto {
		tooFew = helped // Fewer say nothing yet.
	}
	return []rule{
		{t.counted >= EffectsForAuto, fmt.Sprintf("%s judged (%d approved by people)", effectCount(t.counted), t.byPerson),
			fmt.Sprintf("%d judged effects that count (%d so far%s)", EffectsForAuto, t.counted, t.notCounted()), ""},
		{t.episodes >= EpisodesForAuto, fmt.Sprintf("in %d episodes", t.episodes),
			fmt.Sprintf("effects in %d different episodes (%d so far)", EpisodesForAuto, t.episodes), ""},
		{t.worsened == 0, "none worsened", fmt.Sprintf("none worsened (%d did)", t.worsened), fmt.Sprintf("%s worsened", effectCount(t.worsened))},
		{t.unknown == 0, "none unknown", fmt.Sprintf("none unknown (%d are)", t.unknown), fmt.Sprintf("%s unknown", effectCount(t.unknown))},
		{t.counted > 0 && float64(t.helped) >= HelpedForAuto*float64(t.counted), helped,
			fmt.Sprintf("%.0f %% that helped (%d of %d so far)", HelpedForAuto*100, t.helped, t.counted), tooFew},
		{float64(r.Denied) <= DeniedForAuto*float64(answers), denied,
			fmt.Sprintf("people who deny %.0f %% at most (%d of %d so far)", DeniedForAuto*100, r.Denied, answers), denied},
		{r.Watched >= WatchedForAuto, fmt.Sprintf("watched for %s", dayCount(r.Watched)),
			fmt.Sprintf("%s of watching (%s so far)", dayCount(WatchedForAuto), dayCount(r.Watched)), ""},
	}
}

// counts are effects by what came of them.
type counts struct {
	// judged have a known outcome; counted are those without the ones that were
	// recovering already, of which helped were Recovered or Improved.
	judged, counted, helped, byPerson, worsened, unknown, episodes int
}

func tally(ran []Ran) counts {
	var t counts
	episodes := map[string]bool{}
	for _, x := range ran {
		switch x.Outcome {
		case compare.OutcomeUnknown:
			t.unknown++
			continue
		case compare.OutcomeWorsened:
			t.worsened++
		case compare.OutcomeRecovered, compare.OutcomeImproved, compare.OutcomeNoChange:
		default:
			continue
		}
		t.judged++
		if x.Recovering {
			continue
		}
		t.counted++
		episodes[x.Episode] = true
		if x.ByPerson {
			t.byPerson++
		}
		if x.Outcome == compare.OutcomeRecovered || x.Outcome == compare.OutcomeImproved {
			t.helped++
		}
	}
	t.episodes = len(episodes)
	return t
}

// notCounted says why effects were judged and prove nothing.
func (t counts) notCounted() string {
	if t.judged == t.counted {
		return ""
	}
	return fmt.Sprintf(", and %d on a service that was recovering by itself", t.judged-t.counted)
}

// figure writes a cost as a person would.
func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func effectCount(n int) string {
	if n == 1 {
		return "1 effect"
	}
	return fmt.Sprintf("%d effects", n)
}

func timesCount(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// dayCount is a length of days, or of hours where that is less than one.
func dayCount(d time.Duration) string {
	if d < 24*time.Hour {
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return strconv.FormatFloat(float64(int(d.Hours()/24*10))/10, 'f', -1, 64) + " d"
}
