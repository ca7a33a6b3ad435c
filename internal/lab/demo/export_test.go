package demo

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// Facts are an evidence whose parts a test can change.
type Facts struct {
	Chain    *ledger.State
	Episodes map[string]EpisodeFacts
	Journal  []executetest.Record
	Pages    []pager.Page
	Probes   []ProbeFacts
	You      string
}

// EpisodeFacts are an episode.
type EpisodeFacts struct {
	ID                         string
	State                      compare.State
	Reason                     compare.Reason
	Began, Breached, Recovered time.Time
}

// ProbeFacts are a probe.
type ProbeFacts struct {
	What             string
	Key              gate.Key
	Recorded, Answer float64
	OK               bool
}

func (f Facts) evidence() evidence {
	e := evidence{chain: f.Chain, episodes: map[string]episode{}, journal: f.Journal, pages: f.Pages, you: f.You}
	for name, ep := range f.Episodes {
		e.episodes[name] = episode{
			id: ep.ID, state: ep.State, reason: ep.Reason,
			began: ep.Began, breached: ep.Breached, recovered: ep.Recovered,
		}
	}
	for _, p := range f.Probes {
		e.probes = append(e.probes, probe{what: p.What, key: p.Key, recorded: p.Recorded, answer: p.Answer, ok: p.OK})
	}
	return e
}

// Missing gives the claims that do not hold, as "service: text: why".
func (f Facts) Missing() []string {
	err := unmeasured(weigh(f.evidence()))
	if err == nil {
		return nil
	}
	_, list, _ := strings.Cut(err.Error(), "\n  ")
	return strings.Split(list, "\n  ")
}

// Summary writes the summary line.
func (f Facts) Summary(w io.Writer) error { return summarise(f.evidence()).write(w) }

// Ending is the last line of a service.
func (f Facts) Ending(service string) (string, bool) { return ending(f.evidence(), service) }

// Claims are how many there are.
func Claims() int { return len(claims) }

// Look is a snapshot.
type Look struct {
	Services   []web.Service
	Objectives []web.Objective
	Decisions  []web.Decision
	Approvals  []web.Approval
}

func (l Look) snapshot() snapshot {
	return snapshot{services: l.Services, objectives: l.Objectives, decisions: l.Decisions, approvals: l.Approvals}
}

// Lines are what a person sees of a run of looks, one second apart.
func Lines(looks []Look, judged map[string]web.Judgement) []string {
	t := newTracker()
	lines := []string{header()}
	for i, l := range looks {
		rows := t.next(l.snapshot(), func(id string) *web.Judgement {
			j, ok := judged[id]
			if !ok {
				return nil
			}
			return &j
		})
		for _, r := range rows {
			lines = append(lines, r.line(time.Duration(i)*time.Second))
		}
	}
	return lines
}

// Ended reports whether nothing more will happen to a service.
func Ended(l Look, service string) bool { return ended(l.snapshot(), service) }

// ErrNobody is of a question that nobody here can answer.
var ErrNobody = errNobody

// Ask asks a person on a paper.
func Ask(ctx context.Context, screen io.Writer, yes bool, terminal io.Reader) (approve bool, reason string, err error) {
	p := newPerson(&paper{w: screen, began: time.Now()}, yes, terminal)
	a, err := p.decide(ctx, "t7", "recycle-workers of fulfilment")
	return a.approve, a.reason, err
}

// Paper prints what is said while a question is open.
func Paper(w io.Writer, colour bool, use func(say func(string), ask func(string), answered func())) {
	p := &paper{w: w, colour: colour, began: time.Now()}
	use(func(s string) { p.say(red, "%s", s) }, p.ask, p.answered)
}

// EpisodesSince gives the episodes of a chain.
func EpisodesSince(entries []ledger.Entry, faults map[string]time.Time) (map[string]EpisodeFacts, error) {
	eps, err := episodesSince(entries, faults)
	out := map[string]EpisodeFacts{}
	for name, ep := range eps {
		out[name] = EpisodeFacts{
			ID: ep.id, State: ep.state, Reason: ep.reason,
			Began: ep.began, Breached: ep.breached, Recovered: ep.recovered,
		}
	}
	return out, err
}

// Probe asks an engine about effects.
func Probe(ctx context.Context, engine asker, set spec.Set, effects []*ledger.Effect) ([]ProbeFacts, error) {
	ps, err := ask(ctx, engine, set, effects)
	var out []ProbeFacts
	for _, p := range ps {
		out = append(out, ProbeFacts{What: p.what, Key: p.key, Recorded: p.recorded, Answer: p.answer, OK: p.ok})
	}
	return out, err
}

// Because lists why a person is asked.
var Because = because

// ConfigText is the agent's setpoint.yaml.
func ConfigText(source, model, pager, actuator, you string) string {
	return configText(places{source: source, model: model, pager: pager, actuator: actuator}, you)
}

// Environment is a child's.
var Environment = environment
