package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Evidence is what a prompt tells, as a proposer's request.
type Evidence struct {
	Request propose.Request
	// Obstacles say which actions cannot be proposed now, and why.
	Obstacles map[string]string
}

// The words of rules for values of the observed state.
const (
	wordPrevious = "previous"
	wordCurrent  = "current"
)

// asked is the instant of the question. A prompt tells only how long ago things
// were, and rules only compare.
var asked = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// facts are the parts of the evidence that rules can ask for.
type facts struct {
	Service    state         `json:"service"`
	Objectives []state       `json:"objectives"`
	Tried      []triedFacts  `json:"tried"`
	Catalogue  []actionFacts `json:"catalogue"`
}

type state struct {
	Name   string         `json:"name"`
	State  compare.State  `json:"state"`
	Reason compare.Reason `json:"reason"`
}

type triedFacts struct {
	Action      string          `json:"action"`
	SecondsAgo  figure          `json:"secondsAgo"`
	ThisEpisode bool            `json:"thisEpisode"`
	Outcome     compare.Outcome `json:"outcome"`
}

type actionFacts struct {
	Action     string           `json:"action"`
	Obstacle   string           `json:"notProposable"`
	Parameters []parameterFacts `json:"parameters"`
}

type parameterFacts struct {
	Name    string             `json:"name"`
	Type    spec.ParameterType `json:"type"`
	Minimum *float64           `json:"minimum"`
	Maximum *float64           `json:"maximum"`
	Values  []string           `json:"values"`
	Pattern string             `json:"pattern"`
	Current json.RawMessage    `json:"current"`
}

// figure is a number, or the word unknown.
type figure struct {
	value float64
	known bool
}

// UnmarshalJSON reads a number or "unknown", and nothing else.
func (f *figure) UnmarshalJSON(b []byte) error {
	if string(b) == `"unknown"` {
		*f = figure{}
		return nil
	}
	if err := json.Unmarshal(b, &f.value); err != nil || string(b) == "null" {
		return errors.New(`want a number or "unknown"`)
	}
	f.known = true
	return nil
}

// Read takes the evidence out of a prompt: the first JSON object in it. Words
// around it, which are people's, are not looked at.
func Read(prompt string) (Evidence, error) {
	at := strings.IndexByte(prompt, '{')
	if at < 0 {
		return Evidence{}, errors.New("it has no JSON object")
	}
	var f facts
	if err := json.NewDecoder(strings.NewReader(prompt[at:])).Decode(&f); err != nil {
		return Evidence{}, fmt.Errorf("its JSON object cannot be read: %w", err)
	}
	if err := f.check(); err != nil {
		return Evidence{}, err
	}
	return f.evidence(), nil
}

func (f facts) check() error {
	states := []compare.State{compare.Met, compare.Breached, compare.Unknown}
	if f.Service.Name == "" {
		return errors.New("it names no service")
	}
	for _, s := range append([]state{f.Service}, f.Objectives...) {
		if !slices.Contains(states, s.State) {
			return fmt.Errorf("%q is in no known state: want met, breached or unknown", propose.CleanText(s.Name, 60))
		}
	}
	return nil
}

// evidence rebuilds the request as far as rules look at one.
func (f facts) evidence() Evidence {
	e := Evidence{Obstacles: map[string]string{}}
	r := &e.Request
	r.Service.Name, r.Now = f.Service.Name, asked
	r.Assessment = compare.Assessment{Service: f.Service.Name, State: f.Service.State, Reason: f.Service.Reason}
	for _, o := range f.Objectives {
		r.Assessment.Objectives = append(r.Assessment.Objectives, compare.Objective{ID: o.Name, State: o.State, Reason: o.Reason})
	}
	for _, t := range f.Tried {
		r.Tried = append(r.Tried, propose.Tried{Action: t.Action, At: t.at(), ThisEpisode: t.ThisEpisode, Outcome: t.Outcome})
	}
	for _, a := range f.Catalogue {
		r.Catalogue = append(r.Catalogue, a.item())
		if a.Obstacle != "" {
			e.Obstacles[a.Action] = a.Obstacle
		}
	}
	return e
}

// at is when it was tried. Nothing is older than what happened at an unknown
// time, as in a request.
func (t triedFacts) at() time.Time {
	const century = 100 * 365 * 24 * 3600
	if !t.SecondsAgo.known {
		return time.Time{}
	}
	seconds := math.Round(min(max(t.SecondsAgo.value, -century), century))
	return asked.Add(-time.Duration(seconds) * time.Second)
}

// item is the catalogue's entry with the bounds that are left once the live
// state was looked at: a maximum holds its factor already.
func (a actionFacts) item() propose.Item {
	it := propose.Item{Action: spec.Action{Name: a.Action}, Live: propose.Live{}, LiveKnown: true}
	for _, p := range a.Parameters {
		d := spec.Parameter{Name: p.Name, Type: p.Type, Minimum: p.Minimum, Maximum: p.Maximum, Pattern: p.Pattern}
		if v, ok := p.current(); ok {
			it.Live[p.Name] = v
		}
		switch {
		case p.Type != spec.String || p.Pattern != "":
		case slices.Contains(p.Values, wordPrevious) || slices.Contains(p.Values, wordCurrent):
			// Where such a word is itself a value, it means itself.
			d.Enum = p.Values
		default:
			// A list of the document and one of the live state look alike here.
			// As a live one, its first value is the previous one.
			d.FromState = p.Name + " values"
			it.Live[d.FromState] = p.Values
		}
		it.Action.Parameters = append(it.Action.Parameters, d)
	}
	return it
}

// current is the live value in the parameter's type.
func (p parameterFacts) current() (v any, ok bool) {
	switch p.Type {
	case spec.Integer:
		return typed[int64](p.Current)
	case spec.Number:
		return typed[float64](p.Current)
	case spec.Boolean:
		return typed[bool](p.Current)
	case spec.String:
		return typed[string](p.Current)
	}
	return nil, false
}

func typed[T any](raw json.RawMessage) (any, bool) {
	var v *T
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v == nil {
		return nil, false
	}
	return *v, true
}
