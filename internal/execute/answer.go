package execute

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// MaxAnswer is the most that is read of an actuator's answer, in bytes.
const MaxAnswer = 64 << 10

// errNoObject: the bytes are no JSON object, and say nothing.
var errNoObject = errors.New("no JSON object")

// errCut: the bytes begin a JSON object and do not end it, so what it would
// have said is not known.
var errCut = errors.New("the JSON object is cut off")

// errTwice: a key occurs twice, and readers differ in which one they take.
var errTwice = errors.New("a key occurs twice")

// ParseResult reads the result word of an answer that counts as applied unless
// its JSON object says no-op, failed or not-now. Bytes that are no JSON object
// say nothing, so they are Applied; an object that is cut off or says a key
// twice is InDoubt, because it may have said the contrary.
func ParseResult(body []byte) Effect {
	fields, err := object(body)
	if errors.Is(err, errCut) || errors.Is(err, errTwice) {
		return InDoubt
	}
	var word string
	if err == nil {
		// A result that is no string says none of the three words.
		_ = json.Unmarshal(fields["result"], &word)
	}
	switch e := Effect(word); e {
	case NoOp, Failed, NotNow:
		return e
	}
	return Applied
}

// ParseStatus reads the answer to a status request: {"known": …, "result": …,
// "state": {…}, "revisions": […]}. Anything but one JSON object with a boolean known is no
// answer; nor is a known key whose result is not one of the four words,
// because reading it as "no such key" would refund an effect that happened.
func ParseStatus(body []byte) Observation {
	fields, err := object(body)
	if err != nil {
		return Observation{Detail: "no answer: " + err.Error()}
	}
	var known *bool
	if json.Unmarshal(fields["known"], &known) != nil || known == nil {
		return Observation{Detail: "no answer: known is not true or false"}
	}
	o := Observation{Known: true, KeyKnown: *known}
	if *known {
		var word string
		_ = json.Unmarshal(fields["result"], &word)
		switch o.Result = Effect(word); o.Result {
		case Applied, NoOp, Failed, NotNow:
		default:
			return Observation{Detail: fmt.Sprintf("no answer: the result %q of a known key is none of applied, no-op, failed, not-now", CleanText(word, 40))}
		}
	}
	var dropped, said []string
	o.State, dropped = liveState(fields["state"])
	if len(dropped) > 0 {
		said = append(said, "dropped from the state: "+strings.Join(dropped, ", "))
	}
	var why string
	if o.Revisions, why = revisionsOf(fields["revisions"]); why != "" {
		said = append(said, "no revisions are read: "+why)
	}
	o.Detail = CleanText(strings.Join(said, "; "), MaxDetail)
	return o
}

// object splits one JSON object into its members. It takes exactly one, with
// nothing behind it, because encoding/json alone forgives doubled keys and
// folds their case.
func object(body []byte) (map[string]json.RawMessage, error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errNoObject
	}
	d := json.NewDecoder(bytes.NewReader(trimmed))
	_, _ = d.Token() // the brace seen above
	fields := map[string]json.RawMessage{}
	twice := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, cutOr(err)
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, cutOr(err)
		}
		if _, seen := fields[name]; seen {
			twice = true
		}
		fields[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, cutOr(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	if twice {
		return nil, errTwice
	}
	return fields, nil
}

func cutOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return errNoObject
}

// liveState keeps the values of the types that propose.Live has, and names the
// others, sorted.
func liveState(raw json.RawMessage) (propose.Live, []string) {
	if len(raw) == 0 {
		return nil, nil
	}
	fields, err := object(raw)
	if err != nil {
		return nil, []string{"state (" + err.Error() + ")"}
	}
	live := propose.Live{}
	var dropped []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if v, ok := liveValue(fields[name]); ok {
			live[name] = v
		} else {
			dropped = append(dropped, name)
		}
	}
	return live, dropped
}

func liveValue(raw json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	switch v := v.(type) {
	case string, bool:
		return v, true
	case json.Number:
		return liveNumber(v.String())
	case []any:
		list := make([]string, len(v))
		for i := range v {
			s, ok := v[i].(string)
			if !ok {
				return nil, false
			}
			list[i] = s
		}
		return list, true
	}
	return nil, false
}

// maxExact is the largest magnitude below which every integer is a float64.
const maxExact = 1 << 53

// liveNumber gives an int64 for a whole number however it is written (6, 6.0,
// 6e0 are one JSON number), else a finite float64. An integer beyond int64 is
// dropped: a float64 would be another number.
func liveNumber(s string) (any, bool) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil, math.IsInf(f, 0), math.IsNaN(f):
		return nil, false
	case f == math.Trunc(f) && math.Abs(f) <= maxExact:
		return int64(f), true
	case !strings.ContainsAny(s, ".eE"):
		return nil, false
	}
	return f, true
}
