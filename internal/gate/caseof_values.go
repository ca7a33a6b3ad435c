package gate

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// UnmarshalJSON reads a number or "unknown".
func (n *numberIn) UnmarshalJSON(b []byte) error {
	*n = numberIn{}
	if len(b) > 0 && b[0] == '"' {
		return nil
	}
	n.Known = true
	return json.Unmarshal(b, &n.Value)
}

// UnmarshalJSON reads an object or "unknown".
func (l *liveIn) UnmarshalJSON(b []byte) error {
	*l = liveIn{}
	if len(b) > 0 && b[0] == '"' {
		return nil
	}
	l.Known = true
	return json.Unmarshal(b, &l.Values)
}

// float is the number; one that is not known is none.
func (n numberIn) float() float64 {
	if !n.Known {
		return math.NaN()
	}
	return n.Value
}

// duration is the number of seconds; zero when it is not known.
func (n numberIn) duration() time.Duration {
	if !n.Known {
		return 0
	}
	return seconds(n.Value)
}

// seconds takes Duration.Seconds back, to the nanosecond where a float can tell
// them apart. What no Duration holds becomes the longest.
func seconds(f float64) time.Duration {
	const longest = float64(math.MaxInt64) / float64(time.Second)
	switch {
	case math.IsNaN(f):
		return 0
	case f >= longest:
		return math.MaxInt64
	case f <= -longest:
		return math.MinInt64
	}
	whole, part := math.Modf(f)
	return time.Duration(whole)*time.Second + time.Duration(math.Round(part*float64(time.Second)))
}

// ago is the time of which since gives the number; zero when it is not known.
func (x inverse) ago(n numberIn) time.Time {
	d := n.duration()
	switch {
	case !n.Known:
		return time.Time{}
	case d == math.MinInt64: // Its opposite is no Duration.
		return x.now.Add(math.MaxInt64).Add(1)
	}
	return x.now.Add(-d)
}

// ahead is the time of which until gives the number; zero when it is not known.
func (x inverse) ahead(n numberIn) time.Time {
	if !n.Known {
		return time.Time{}
	}
	return x.now.Add(n.duration())
}

// word is the text, or "" when it stands for none.
func word(text, none string) string {
	if text == none {
		return ""
	}
	return text
}

func mode(in modeEnum) (m spec.Mode) {
	_ = m.UnmarshalText([]byte(in)) // The schema knows no other word.
	return m
}

// exact makes whole numbers integers, as documents and proposals have them.
func exact(in map[string]any) propose.Parameters {
	out := make(propose.Parameters, len(in))
	for name, v := range in {
		out[name] = exactValue(v)
	}
	return out
}

func exactLive(in map[string]any) propose.Live {
	out := make(propose.Live, len(in))
	for name, v := range in {
		list, ok := v.([]any)
		if !ok {
			out[name] = exactValue(v)
			continue
		}
		texts := make([]string, 0, len(list))
		for _, e := range list {
			s, _ := e.(string) // The schema knows lists of text alone.
			texts = append(texts, s)
		}
		out[name] = texts
	}
	return out
}

func exactValue(v any) any {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return int64(f)
	}
	return v
}

// argvOf reads the canonical name of a program's target.
func argvOf(canonical string) ([]string, bool) {
	rest, ok := strings.CutPrefix(canonical, "command")
	var argv []string
	for ok && rest != "" {
		var element string
		if rest, ok = strings.CutPrefix(rest, " "); ok {
			element, rest, ok = cutElement(rest)
			argv = append(argv, element)
		}
	}
	if len(argv) == 0 {
		// A name of placeholders alone.
		argv = []string{"${parameters.x}"}
	}
	return argv, ok
}

// cutElement takes one element off, which is quoted where it must be.
func cutElement(s string) (element, rest string, ok bool) {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil || quoted[0] != '"' {
		end := strings.IndexByte(s, ' ')
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], true
	}
	element, err = strconv.Unquote(quoted)
	return element, s[len(quoted):], err == nil
}

// groupLabels are the labels of a group's name; nil when it is none that
// measure.GroupName wrote.
func groupLabels(group string) []string {
	var labels []string
	values := map[string]string{}
	for rest := group; rest != ""; {
		label, after, ok := cutLabel(rest)
		if !ok {
			return nil
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			return nil
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil
		}
		labels, values[label] = append(labels, label), value
		rest = strings.TrimPrefix(after[len(quoted):], ", ")
	}
	if group == "" || measure.GroupName(labels, func(l string) string { return values[l] }) != group {
		return nil
	}
	return labels
}

// cutLabel takes the name of a label and its equals sign off.
func cutLabel(s string) (label, rest string, ok bool) {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return strings.Cut(s, "=")
	}
	label, err = strconv.Unquote(quoted)
	rest, ok = strings.CutPrefix(s[len(quoted):], "=")
	return label, rest, ok && err == nil
}
