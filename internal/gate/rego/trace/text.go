package trace

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Lines are a rule for people: one line, and one more for each of several rules
// that an expression asks under one name.
func (r Rule) Lines() []string {
	head := fmt.Sprintf("%s %s (%s:%d) ", r.Set, r.Reason, r.File, r.Line)
	switch {
	case r.Fired:
		return []string{head + "fired"}
	case r.Stopped == nil:
		return []string{head + r.Note}
	}
	lines := r.Stopped.lines()
	lines[0] = head + "stopped at " + lines[0]
	return lines
}

// lines are the place with its values, then what the helpers say: in the same
// line where there is one, below it where there are several.
func (s Stop) lines() []string {
	first := fmt.Sprintf("%s:%d: %s", s.File, s.Line, s.Expression)
	if len(s.Values) > 0 {
		texts := make([]string, len(s.Values))
		for i, v := range s.Values {
			texts[i] = v.String()
		}
		first += " — " + strings.Join(texts, ", ")
	}
	if s.More > 0 {
		first += fmt.Sprintf(" (and %d more like it)", s.More)
	}
	if len(s.Helpers) == 1 {
		lines := s.Helpers[0].lines()
		lines[0] = first + "; " + lines[0]
		return lines
	}
	lines := []string{first}
	for _, h := range s.Helpers {
		for _, l := range h.lines() {
			lines = append(lines, "    "+l)
		}
	}
	return lines
}

func (h Helper) lines() []string {
	if h.Stopped != nil {
		lines := h.Stopped.lines()
		lines[0] = h.Name + " stopped at " + lines[0]
		return lines
	}
	line := fmt.Sprintf("%s (%s:%d) is %s", h.Name, h.File, h.Line, h.Value)
	if len(h.Values) > 0 {
		texts := make([]string, len(h.Values))
		for i, v := range h.Values {
			texts[i] = v.String()
		}
		line += ", as " + strings.Join(texts, ", ")
	}
	return []string{line}
}

// In gives the rule with its files below a folder, as an editor finds them.
func (r Rule) In(folder string) Rule {
	r.File = path.Join(folder, r.File)
	r.Stopped = r.Stopped.in(folder)
	return r
}

func (s *Stop) in(folder string) *Stop {
	if s == nil {
		return nil
	}
	out := *s
	out.File = path.Join(folder, s.File)
	out.Helpers = slices.Clone(s.Helpers)
	for i, h := range out.Helpers {
		h.File, h.Stopped = path.Join(folder, h.File), h.Stopped.in(folder)
		out.Helpers[i] = h
	}
	return &out
}
