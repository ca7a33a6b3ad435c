package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The words that stand for a value: of the observed state, or of the label of
// the parameter's name in the worst group of a missed objective.
const (
	wordPrevious = "previous"
	wordCurrent  = "current"
	wordWorst    = "worst"
)

// isWord reports whether a value of the file is one of the words, unless the
// parameter's enum has that very text.
func isWord(d spec.Parameter, v any) bool {
	return (v == wordPrevious || v == wordCurrent || v == wordWorst) && !slices.Contains(d.Enum, fmt.Sprint(v))
}

// resolve gives the parameters with the words replaced by what they stand for.
// Parameters that the action does not have are kept, for Check to refuse.
func (s step) resolve(r propose.Request, it propose.Item) (propose.Parameters, error) {
	p := propose.Parameters{}
	maps.Copy(p, s.parameters)
	for _, d := range it.Action.Parameters {
		v, ok := s.parameters[d.Name]
		if !ok || !isWord(d, v) {
			continue
		}
		if v == wordWorst {
			if p[d.Name] = worstGroup(r.Assessment, d.Name); p[d.Name] == "" {
				return nil, fmt.Errorf("parameter %s: no missed objective has a worst group with a label of that name", d.Name)
			}
			continue
		}
		observed, err := observe(it, d, fmt.Sprint(v))
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", d.Name, err)
		}
		p[d.Name] = observed
	}
	return p, nil
}

// worstGroup is the value of a label in the worst group of a missed objective.
func worstGroup(a compare.Assessment, label string) string {
	for _, o := range a.Objectives {
		if value, ok := measure.GroupLabels(o.Group)[label]; ok && o.State == compare.Breached {
			return value
		}
	}
	return ""
}

// observe reads what a word stands for. The previous value is the first of a
// list: an observed state lists newest first.
func observe(it propose.Item, d spec.Parameter, word string) (any, error) {
	name := d.Name
	if word == wordPrevious {
		name = d.FromState
	}
	if name == "" {
		return nil, fmt.Errorf("%s needs a parameter with fromState", word)
	}
	if !it.LiveKnown {
		return nil, fmt.Errorf("%s is not known: the target's state could not be observed", word)
	}
	switch v := it.Live[name].(type) {
	case nil:
		return nil, fmt.Errorf("%s is not known: the observed state has no %s", word, name)
	case []string:
		if len(v) == 0 {
			return nil, fmt.Errorf("%s is not known: the observed list %s is empty", word, name)
		}
		return v[0], nil
	default:
		return v, nil
	}
}
