package propose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// MaxRationale is the longest rationale, in characters.
const MaxRationale = 500

// MaxReply is the largest reply that is parsed, in bytes.
const MaxReply = 64 << 10

// The three keys of a reply.
const (
	keyAction     = "action"
	keyParameters = "parameters"
	keyRationale  = "rationale"
)

// Parse reads a reply: exactly one JSON object with exactly the keys action,
// parameters and rationale, optionally inside exactly one fence. It repairs
// nothing: prose around the object, a second object, a trailing comma, a
// number as a string, an integer as 6.0 or 6e0 are errors. What it returns has
// passed Check. The error says what was wrong, in words fit for a repair turn.
func Parse(reply []byte, c Catalogue) (Proposal, error) {
	if len(reply) > MaxReply {
		return Proposal{}, fmt.Errorf("the reply is longer than %d bytes", MaxReply)
	}
	body, err := unfence(reply)
	if err != nil {
		return Proposal{}, err
	}
	members, err := readObject(body)
	if err != nil {
		return Proposal{}, fmt.Errorf("the reply is no proposal: %w", err)
	}
	fields, err := threeKeys(members)
	if err != nil {
		return Proposal{}, err
	}
	rationale, err := parseRationale(fields[keyRationale])
	if err != nil {
		return Proposal{}, err
	}
	action, err := parseString(fields[keyAction])
	if err != nil {
		return Proposal{}, fmt.Errorf("the key action: %w", err)
	}
	if jsonKind(fields[keyParameters]) != "an object" {
		return Proposal{}, fmt.Errorf("the key parameters must be an object, not %s", jsonKind(fields[keyParameters]))
	}
	p, err := resolve(action, fields[keyParameters], c)
	if err != nil {
		return Proposal{}, err
	}
	p.Rationale = rationale
	return p, nil
}

// unfence trims, and strips one fence that encloses the whole answer. Back
// quotes elsewhere are left alone: they may stand inside a string.
func unfence(reply []byte) ([]byte, error) {
	const space, mark = " \t\r\n", "```"
	body := bytes.Trim(reply, space)
	if len(body) == 0 {
		return nil, errors.New("the reply is empty")
	}
	if !bytes.HasPrefix(body, []byte(mark)) {
		return body, nil
	}
	info, inner, ok := bytes.Cut(body[len(mark):], []byte("\n"))
	if word := string(bytes.Trim(info, space)); !ok || word != "" && word != "json" {
		return nil, errors.New("the reply starts with a fence that is not ```json on a line of its own")
	}
	inner, ok = bytes.CutSuffix(inner, []byte("\n"+mark))
	if !ok {
		return nil, errors.New("the reply starts with a fence that does not end it on a line of its own")
	}
	return bytes.Trim(inner, space), nil
}

func threeKeys(members []member) (map[string]json.RawMessage, error) {
	keys := []string{keyAction, keyParameters, keyRationale}
	fields := map[string]json.RawMessage{}
	for _, m := range members {
		if !slices.Contains(keys, m.key) {
			return nil, fmt.Errorf("unknown key %s: the reply has exactly the keys action, parameters and rationale", quoted(m.key))
		}
		fields[m.key] = m.raw
	}
	for _, k := range keys {
		if fields[k] == nil {
			return nil, fmt.Errorf("the key %s is missing", k)
		}
	}
	return fields, nil
}

// parseRationale lets line breaks and tabs pass, which CleanText folds; other
// control characters say that something is broken.
func parseRationale(raw json.RawMessage) (string, error) {
	s, err := parseString(raw)
	if err != nil {
		return "", fmt.Errorf("the key rationale: %w", err)
	}
	if strings.ContainsFunc(s, func(r rune) bool {
		return (r < ' ' || r >= 0x7f && r < 0xa0) && !strings.ContainsRune("\n\r\t", r)
	}) {
		return "", errors.New("the key rationale holds a control character")
	}
	if n := utf8.RuneCountInString(s); n > MaxRationale {
		return "", fmt.Errorf("the key rationale has %d characters, more than %d", n, MaxRationale)
	}
	return s, nil
}

func parseString(raw json.RawMessage) (string, error) {
	if jsonKind(raw) != "a string" {
		return "", fmt.Errorf("must be a string, not %s", jsonKind(raw))
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

func resolve(action string, raw json.RawMessage, c Catalogue) (Proposal, error) {
	members, err := readMembers(raw)
	if err != nil {
		return Proposal{}, fmt.Errorf("the key parameters: %w", err)
	}
	if action == string(KindNone) || action == string(KindEscalate) {
		if len(members) > 0 {
			return Proposal{}, fmt.Errorf("%q takes no parameters: give {}", action)
		}
		return Proposal{Kind: Kind(action), Parameters: Parameters{}}, nil
	}
	it, ok := c.Item(action)
	if !ok {
		return Proposal{}, fmt.Errorf("unknown action %s: use one of %s", quoted(action), strings.Join(c.words(), ", "))
	}
	p, err := typedParameters(it.Action, members)
	if err != nil {
		return Proposal{}, fmt.Errorf("action %s: %w", it.Action.Name, err)
	}
	if err := Check(it, p); err != nil {
		return Proposal{}, fmt.Errorf("action %s: %w", it.Action.Name, err)
	}
	return Proposal{Kind: KindAction, Action: it.Action.Name, Parameters: p}, nil
}

// words are all that the key action may hold.
func (c Catalogue) words() []string {
	var ws []string
	for _, it := range c {
		ws = append(ws, it.Action.Name)
	}
	return append(ws, string(KindNone), string(KindEscalate))
}

func typedParameters(a spec.Action, members []member) (Parameters, error) {
	p := Parameters{}
	for _, m := range members {
		i := slices.IndexFunc(a.Parameters, func(d spec.Parameter) bool { return d.Name == m.key })
		if i < 0 {
			return nil, fmt.Errorf("unknown parameter %s: it takes %s", quoted(m.key), parameterNames(a))
		}
		v, err := typedValue(a.Parameters[i].Type, m.raw)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", quoted(m.key), err)
		}
		p[m.key] = v
	}
	return p, nil
}

func typedValue(t spec.ParameterType, raw json.RawMessage) (any, error) {
	kind := jsonKind(raw)
	switch {
	case t == spec.Integer && kind == "a number":
		return typedInteger(string(raw))
	case t == spec.Number && kind == "a number":
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, errors.New("the number is too large")
		}
		return f + 0, nil // Minus zero is zero.
	case t == spec.String && kind == "a string":
		return parseString(raw)
	case t == spec.Boolean && kind == "a boolean":
		return string(raw) == "true", nil
	default:
		return nil, fmt.Errorf("must be of type %s, not %s", t, kind)
	}
}

func typedInteger(raw string) (any, error) {
	if !plainInteger.MatchString(raw) {
		return nil, fmt.Errorf("must be a plain integer such as 6, not %s", quoted(raw))
	}
	i, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return nil, errors.New("the integer is too large")
	}
	return i, nil
}
