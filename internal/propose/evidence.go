package propose

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// unknownWord stands for every value that is not known.
const unknownWord = "unknown"

// number is a measured value, rounded to six digits; what is not finite is
// "unknown", because JSON has no word for it and zero would be a lie.
type number float64

// MarshalJSON writes the rounded value.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.Marshal(unknownWord)
	}
	f, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	if err != nil {
		return json.Marshal(unknownWord)
	}
	return json.Marshal(f)
}

var notKnown = number(math.NaN())

type serviceFacts struct {
	Name         word   `json:"name"`
	State        word   `json:"state"`
	Reason       word   `json:"reason"`
	SinceSeconds number `json:"sinceSeconds"`
	Warming      bool   `json:"warming"`
}

type objectiveFacts struct {
	Name                 word        `json:"name"`
	State                word        `json:"state"`
	Reason               word        `json:"reason"`
	Target               number      `json:"target"`
	JudgeErrorRatio      number      `json:"judgeErrorRatio"`
	JudgeEvents          number      `json:"judgeEvents"`
	ErrorRatio           number      `json:"errorRatio"`
	ErrorBudgetRemaining number      `json:"errorBudgetRemaining"`
	SampleAgeSeconds     number      `json:"sampleAgeSeconds"`
	BurnRates            []burnFacts `json:"burnRates"`
}

type burnFacts struct {
	Short     string `json:"short"`
	Long      string `json:"long"`
	ShortRate number `json:"shortRate"`
	LongRate  number `json:"longRate"`
	Factor    number `json:"factor"`
	Burning   bool   `json:"burning"`
}

type triedFacts struct {
	Action           word           `json:"action"`
	Parameters       map[string]any `json:"parameters"`
	SecondsAgo       number         `json:"secondsAgo"`
	ThisEpisode      bool           `json:"thisEpisode"`
	Effect           word           `json:"effect"`
	Outcome          word           `json:"outcome"`
	ErrorRatioBefore number         `json:"errorRatioBefore"`
	ErrorRatioAfter  number         `json:"errorRatioAfter"`
}

type actionFacts struct {
	Action        word             `json:"action"`
	Class         word             `json:"class"`
	Reversal      word             `json:"reversal"`
	SettleSeconds number           `json:"settleSeconds"`
	Remaining     number           `json:"autonomyBudgetRemaining"`
	Obstacle      string           `json:"notProposable,omitempty"`
	Parameters    []parameterFacts `json:"parameters"`
}

type parameterFacts struct {
	Name    word     `json:"name"`
	Type    word     `json:"type"`
	Minimum *number  `json:"minimum,omitempty"`
	Maximum *number  `json:"maximum,omitempty"`
	Values  []string `json:"values,omitempty"`
	Omitted int      `json:"valuesOmitted,omitempty"`
	Pattern string   `json:"pattern,omitempty"`
	Current any      `json:"current,omitempty"`
}

// word is a name of a document or a word of ours. One that could be a sentence
// is not sent.
type word string

// MarshalJSON writes the word, or "" for one that is no plain word.
func (w word) MarshalJSON() ([]byte, error) {
	if !plainWord(string(w)) {
		return json.Marshal("")
	}
	return json.Marshal(string(w))
}

// Evidence is what a model may know of a request, as JSON with one fact a
// line: measured numbers, and words of the catalogue. No label, annotation,
// description, source's message or other free text is in it; of the live state
// only numbers, booleans and the values that a parameter may take. Equal
// requests give equal bytes.
func Evidence(r Request) []byte {
	a := r.Assessment
	var d document
	d.member("service", serviceFacts{
		Name: word(r.Service.Name), State: word(a.State), Reason: word(a.Reason),
		SinceSeconds: ago(r.Now, r.Since), Warming: a.Warming,
	})
	d.list("objectives", len(a.Objectives), func(i int) any { return factsOfObjective(a.Objectives[i]) })
	d.member("dependencies", factsOfDependencies(r))
	d.list("tried", len(r.Tried), func(i int) any { return factsOfTried(r, r.Tried[i]) })
	d.member("triedOmitted", r.TriedOmitted)
	d.list("catalogue", len(r.Catalogue), func(i int) any { return factsOfItem(r, r.Catalogue[i]) })
	return d.end()
}

// document writes one JSON object with one entry a line, which reads well and
// costs few tokens.
type document struct{ out bytes.Buffer }

func (d *document) key(name string) {
	if d.out.Len() == 0 {
		d.out.WriteString("{\n")
	} else {
		d.out.WriteString(",\n")
	}
	d.out.WriteString(strconv.Quote(name) + ":")
}

func (d *document) value(v any) {
	b, err := json.Marshal(v)
	if err != nil { // not reached: every type here has a JSON form
		b = []byte(`"` + unknownWord + `"`)
	}
	d.out.Write(b)
}

func (d *document) member(name string, v any) {
	d.key(name)
	d.value(v)
}

func (d *document) list(name string, n int, at func(i int) any) {
	d.key(name)
	d.out.WriteByte('[')
	for i := range n {
		if i > 0 {
			d.out.WriteByte(',')
		}
		d.out.WriteByte('\n')
		d.value(at(i))
	}
	d.out.WriteByte(']')
}

func (d *document) end() []byte {
	d.out.WriteString("\n}\n")
	return d.out.Bytes()
}

func ago(now, at time.Time) number {
	if at.IsZero() || now.IsZero() {
		return notKnown
	}
	return number(math.Round(now.Sub(at).Seconds()))
}

func factsOfObjective(o compare.Objective) objectiveFacts {
	f := objectiveFacts{
		Name: word(o.ID), State: word(o.State), Reason: word(o.Reason), Target: number(o.Target),
		JudgeErrorRatio: ratio(o.Judge), ErrorRatio: ratio(o.Period),
		JudgeEvents: notKnown, ErrorBudgetRemaining: notKnown, SampleAgeSeconds: notKnown,
		BurnRates: []burnFacts{},
	}
	if o.Judge.Known() {
		f.SampleAgeSeconds = number(math.Round(o.SampleAge.Seconds()))
		if o.Judge.HasEvents {
			f.JudgeEvents = number(o.Judge.Total)
		}
	}
	if left, ok := o.ErrorBudgetRemaining(); ok {
		f.ErrorBudgetRemaining = number(left)
	}
	for _, b := range o.Burns {
		f.BurnRates = append(f.BurnRates, factsOfBurn(b))
	}
	return f
}

func factsOfBurn(b compare.Burn) burnFacts {
	f := burnFacts{
		Short: spec.FormatDuration(b.Short), Long: spec.FormatDuration(b.Long),
		Factor: number(b.Factor), Burning: b.Burning, ShortRate: notKnown, LongRate: notKnown,
	}
	if b.Known {
		f.ShortRate, f.LongRate = number(b.ShortRate), number(b.LongRate)
	}
	return f
}

func ratio(m measure.Measurement) number {
	if !m.Known() || (m.HasEvents && m.Total == 0) {
		return notKnown
	}
	return number(m.ErrorRatio)
}

func factsOfDependencies(r Request) map[string]word {
	states := map[string]word{}
	for name, s := range r.Dependencies {
		states[name] = word(s)
	}
	return states
}

func factsOfTried(r Request, t Tried) triedFacts {
	f := triedFacts{
		Action: word(t.Action), Parameters: map[string]any{}, SecondsAgo: ago(r.Now, t.At),
		ThisEpisode: t.ThisEpisode, Effect: word(t.Effect), Outcome: word(t.Outcome),
		ErrorRatioBefore: notKnown, ErrorRatioAfter: notKnown,
	}
	for name, v := range t.Parameters {
		f.Parameters[name] = shownValue(v)
	}
	switch t.Outcome {
	case compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened:
		f.ErrorRatioBefore, f.ErrorRatioAfter = number(t.Before), number(t.After)
	}
	return f
}

func shownValue(v any) any {
	switch v := v.(type) {
	case int64, bool:
		return v
	case float64:
		return number(v)
	case string:
		return word(v)
	default:
		return unknownWord
	}
}

func factsOfItem(r Request, it Item) actionFacts {
	a := it.Action
	f := actionFacts{
		Action: word(a.Name), Class: word(a.Class), Reversal: word(a.Reversal),
		SettleSeconds: number(a.Settle.Seconds()), Remaining: notKnown,
		Obstacle: it.Obstacle(), Parameters: []parameterFacts{},
	}
	if left, ok := r.Remaining[a.Name]; ok {
		f.Remaining = number(left)
	}
	for _, d := range a.Parameters {
		f.Parameters = append(f.Parameters, factsOfParameter(it, d))
	}
	return f
}

func factsOfParameter(it Item, d spec.Parameter) parameterFacts {
	f := parameterFacts{Name: word(d.Name), Type: word(d.Type), Pattern: d.Pattern}
	if b, err := it.Bounds(d); err == nil {
		lo, hi := b.limits(d.Type)
		f.Minimum, f.Maximum = (*number)(lo), (*number)(hi)
		f.Values, f.Omitted = showable(b.Values)
	}
	switch v := it.live(d.Name).(type) {
	case int64, bool:
		f.Current = v
	case float64:
		f.Current = number(v)
	case string:
		for _, known := range f.Values {
			if known == v {
				f.Current = v
			}
		}
	}
	return f
}
