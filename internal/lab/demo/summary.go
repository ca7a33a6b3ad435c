package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Summary is what --json prints as the last line of standard output.
type Summary struct {
	Episodes []Episode `json:"episodes"`
	// DoubleEffects are the effects beyond the first under one key.
	DoubleEffects int `json:"doubleEffects"`
	// ActsOnUnknown are the claims whose recorded assessment was Unknown.
	ActsOnUnknown int `json:"actsOnUnknown"`
}

// Episode is what became of one fault.
type Episode struct {
	Service string `json:"service"`
	Fault   string `json:"fault"`
	// State and Reason are those that began the episode.
	State       string    `json:"state"`
	Reason      string    `json:"reason"`
	BreachedAt  time.Time `json:"breachedAt,omitzero"`
	RecoveredAt time.Time `json:"recoveredAt,omitzero"`
	PagedAt     time.Time `json:"pagedAt,omitzero"`
	Actions     []Action  `json:"actions"`
}

// Action is one claim of an episode.
type Action struct {
	Action     string `json:"action"`
	Verdict    string `json:"verdict"`
	ApprovedBy string `json:"approvedBy,omitempty"`
	Key        string `json:"key"`
	// Effects counts the changes that the actuator's own journal has under the
	// key.
	Effects int    `json:"effects"`
	Outcome string `json:"outcome"`
	// Before and After came out of Prometheus; null where nothing was judged.
	Before *Measured `json:"before"`
	After  *Measured `json:"after"`
}

// Measured is one measurement.
type Measured struct {
	ErrorRatio float64 `json:"errorRatio"`
}

// write prints the summary as one line.
func (s Summary) write(w io.Writer) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

// summarise says what the evidence shows. Its times are whole seconds, as
// people compare them with a log.
func summarise(e evidence) Summary {
	s := Summary{
		Episodes:      []Episode{},
		DoubleEffects: len(e.doubles()), ActsOnUnknown: len(e.actsOnUnknown()),
	}
	for _, f := range plot {
		s.Episodes = append(s.Episodes, e.episode(f))
	}
	return s
}

func (e evidence) episode(f scene) Episode {
	out := Episode{Service: f.service, Fault: string(f.fault), State: "met", Actions: []Action{}}
	ep, ok := e.episodes[f.service]
	if !ok {
		return out
	}
	out.State, out.Reason = string(ep.state), string(ep.reason)
	out.BreachedAt, out.RecoveredAt = whole(ep.breached), whole(ep.recovered)
	if p, ok := e.page(f.service, ""); ok {
		out.PagedAt = whole(p.OpenedAt)
	}
	out.Actions = e.actions(f.service)
	return out
}

func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
