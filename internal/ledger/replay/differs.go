package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// differs says what of a recorded decision is not what its policy leads to; ""
// when all of it is, to the byte.
func differs(record, again gate.Decision) (string, error) {
	was, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("encode a decision: %w", err)
	}
	is, err := json.Marshal(again)
	if err != nil {
		return "", fmt.Errorf("encode a decision: %w", err)
	}
	if bytes.Equal(was, is) {
		return "", nil
	}
	var parts []string
	for _, f := range fields(record, again) {
		if text := f.differs(); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("recorded %s, its policy leads to %s", was, is), nil
	}
	return strings.Join(parts, "; "), nil
}

// field is one part of a decision, as lines of JSON.
type field struct {
	name    string
	was, is []string
}

func fields(a, b gate.Decision) []field {
	out := []field{
		{"verdict", lines(a.Verdict), lines(b.Verdict)},
		{"hold", lines(a.Hold), lines(b.Hold)},
		{"reasons", lines(a.Reasons...), lines(b.Reasons...)},
		{"needs", lines(a.Needs...), lines(b.Needs...)},
	}
	x, y := a.Ruling, b.Ruling
	for i, rules := range [][2][]gate.Rule{{x.Deny, y.Deny}, {x.Escalate, y.Escalate}, {x.Approval, y.Approval}, {x.Auto, y.Auto}} {
		out = append(out, field{"rules of " + gate.Verdict(i).String(), lines(rules[0]...), lines(rules[1]...)})
	}
	return append(out,
		field{"fault", lines(x.Fault), lines(y.Fault)},
		field{"revision", lines(x.Revision, x.DataDigest), lines(y.Revision, y.DataDigest)},
		field{"input", lines(a.InputDigest, x.InputDigest), lines(b.InputDigest, y.InputDigest)},
		field{"digest", lines(a.Digest), lines(b.Digest)},
		field{"key", lines(a.Key), lines(b.Key)},
		field{"cost", lines(a.Cost), lines(b.Cost)},
	)
}

func lines[T any](vs ...T) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = []byte(err.Error())
		}
		out[i] = string(raw)
	}
	return out
}

// differs names the first line that is not the same.
func (f field) differs() string {
	for i := range max(len(f.was), len(f.is)) {
		if was, is := line(f.was, i), line(f.is, i); was != is {
			return fmt.Sprintf("%s: recorded %s, its policy leads to %s", f.name, was, is)
		}
	}
	return ""
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}
