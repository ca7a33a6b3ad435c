package propose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The types of this file are all that the evidence is made of, besides whole
// counts and booleans. Each guards what it writes, so that a stranger's text
// cannot get into a prompt by an oversight: there is no field that would take
// it. A test walks through the document's types and refuses any other.

// unknownWord stands for every value that is not known.
const unknownWord = "unknown"

func quotedJSON(s string) ([]byte, error) { return json.Marshal(s) }

// number is a measured value with four digits, or a whole number as it is; what
// is not finite is "unknown", because JSON has no word for it and zero would be
// a lie.
type number float64

var notKnown = number(math.NaN())

// MarshalJSON writes the rounded value.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if f != math.Trunc(f) {
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64)
		if err != nil {
			return quotedJSON(unknownWord)
		}
		f = rounded
	}
	return exact(f).MarshalJSON()
}

// exact is a bound, or a value that has bounds. Rounded it could lie outside of
// them.
type exact float64

// MarshalJSON writes the value with all its digits.
func (e exact) MarshalJSON() ([]byte, error) {
	f := float64(e)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return quotedJSON(unknownWord)
	case f == 0:
		return []byte("0"), nil // Negative zero is no number of people's.
	}
	return json.Marshal(f)
}

// length is a duration of a reviewed document, such as 5m.
type length time.Duration

// MarshalJSON writes it as the document would.
func (l length) MarshalJSON() ([]byte, error) {
	return quotedJSON(spec.FormatDuration(time.Duration(l)))
}

// word is a name of a reviewed document or a word of ours. One that could be a
// sentence is not sent.
type word string

// MarshalJSON writes the word, or "unknown" for one that is no plain word.
func (w word) MarshalJSON() ([]byte, error) {
	if w != "" && !plainWord(string(w)) {
		w = unknownWord
	}
	return quotedJSON(string(w))
}

var phraseShape = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9 ._:/-]{0,58}[A-Za-z0-9])?$`)

// phrase is the name of an evidence query, which people reviewed: a few words.
type phrase string

// MarshalJSON writes the phrase, or "unknown" for anything longer or stranger.
func (p phrase) MarshalJSON() ([]byte, error) {
	if !phraseShape.MatchString(string(p)) {
		p = unknownWord
	}
	return quotedJSON(string(p))
}

var patternShape = regexp.MustCompile(`^[!-~ ]{1,200}$`)

// pattern is the regular expression of a parameter, from a reviewed document.
type pattern string

// MarshalJSON writes the pattern, or "unknown" for one that is long, or not of
// printable ASCII.
func (p pattern) MarshalJSON() ([]byte, error) {
	if !patternShape.MatchString(string(p)) {
		p = unknownWord
	}
	return quotedJSON(string(p))
}

// alias stands for a value that a stranger wrote. Only a register makes one:
// a placeholder, or the value itself where that may be shown.
type alias struct{ text string }

// MarshalJSON writes the placeholder or the value; "" is an absent label.
func (a alias) MarshalJSON() ([]byte, error) { return word(a.text).MarshalJSON() }

// scalar is the value of a parameter: a number, a boolean, or an alias. The
// zero one is unknown.
type scalar struct{ value json.Marshaler }

type flag bool

// MarshalJSON writes true or false.
func (f flag) MarshalJSON() ([]byte, error) { return strconv.AppendBool(nil, bool(f)), nil }

type integer int64

// MarshalJSON writes all digits.
func (i integer) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(i), 10), nil }

// MarshalJSON writes the value.
func (s scalar) MarshalJSON() ([]byte, error) {
	switch v := s.value.(type) {
	case flag, integer, exact, alias:
		return v.MarshalJSON()
	}
	return quotedJSON(unknownWord)
}

// argument is one value under a name of a reviewed document.
type argument struct {
	name  word
	value scalar
}

// arguments are an object whose keys are guarded like words.
type arguments []argument

// MarshalJSON writes the object, its keys sorted. A key that is no plain word
// is left out with its value.
func (as arguments) MarshalJSON() ([]byte, error) {
	sorted := slices.SortedFunc(slices.Values(as), func(a, b argument) int { return cmp.Compare(a.name, b.name) })
	var out bytes.Buffer
	out.WriteByte('{')
	for _, a := range sorted {
		if !plainWord(string(a.name)) {
			continue
		}
		value, err := a.value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Quote(string(a.name)))
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// row is one series of a breakdown: the values of its labels, then its number.
type row struct {
	values []alias
	number number
}

// MarshalJSON writes a list, which costs fewer tokens than an object whose keys
// each row would repeat.
func (r row) MarshalJSON() ([]byte, error) {
	var cells []json.Marshaler
	for _, v := range r.values {
		cells = append(cells, v)
	}
	return json.Marshal(append(cells, r.number))
}
