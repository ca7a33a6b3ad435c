package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxChangeLine is more than three words and a time can need, escapes included.
const maxChangeLine = 8 << 10

// ChangeLines are what a file of changes says.
type ChangeLines struct {
	// Changes are those of the good lines, in their order.
	Changes []Change
	// Places says where each of them stands.
	Places []ChangePlace
	// Faults are the bad lines, in their order. None of them stops a good one.
	Faults []ChangeFault
	// Read is where the last finished line ends, in bytes. A line without its end
	// is taken if it is good; otherwise somebody is still writing it.
	Read int
}

// ChangePlace is where a line begins: Line counts from 1, Offset in bytes from 0.
type ChangePlace struct{ Line, Offset int }

// ChangeFault is one bad line.
type ChangeFault struct {
	ChangePlace
	// Text says what is wrong, and quotes nothing of the line.
	Text string
}

// ParseChanges reads JSON lines {"time", "service", "what", "version"}. Each is
// read strictly: an unknown key, a key twice, a time that is not RFC 3339, a word
// beyond its bounds make a bad line. The version may be missing; an empty line
// says nothing. Times are cut to whole seconds.
func ParseChanges(data []byte) ChangeLines {
	var out ChangeLines
	for at, line := 0, 1; at < len(data); line++ {
		text, _, whole := bytes.Cut(data[at:], []byte("\n"))
		c, said, err := parseChange(text)
		switch {
		case err == nil && said:
			out.Changes = append(out.Changes, c)
			out.Places = append(out.Places, ChangePlace{line, at})
		case err != nil && whole:
			out.Faults = append(out.Faults, ChangeFault{ChangePlace{line, at}, err.Error()})
		}
		at += len(text)
		if whole {
			at++
		}
		if whole || err == nil {
			out.Read = at
		}
	}
	return out
}

// parseChange reads one line; an empty one says nothing.
func parseChange(line []byte) (c Change, said bool, err error) {
	if len(line) > maxChangeLine {
		return Change{}, false, fmt.Errorf("the line has %d bytes, want %d at most", len(line), maxChangeLine)
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return Change{}, false, nil
	}
	fields, err := words(line)
	if err != nil {
		return Change{}, false, err
	}
	for key, value := range fields {
		switch key {
		case "time":
			if c.At, err = time.Parse(time.RFC3339, value); err != nil {
				return Change{}, false, errors.New("time must be like 2026-01-31T18:00:00Z")
			}
			c.At = ChangeTime(c.At)
		case "service":
			c.Service = value
		case "what":
			c.What = value
		case "version":
			c.Version = value
		}
	}
	return c, true, c.Check()
}

// words reads one JSON object of strings with the keys of a change, each once.
// encoding/json alone takes the last of two, and any spelling.
func words(line []byte) (map[string]string, error) {
	const form = `want one JSON object {"time", "service", "what", "version"}`
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New(form)
	}
	out := map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New(form)
		}
		name, _ := key.(string)
		switch name {
		case "time", "service", "what", "version":
		default:
			return nil, errors.New("a key is none of time, service, what, version")
		}
		if _, twice := out[name]; twice {
			return nil, errors.New(name + " stands there twice")
		}
		value, err := d.Token()
		word, ok := value.(string)
		if err != nil || !ok {
			return nil, errors.New(name + " must be a text")
		}
		out[name] = word
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New(form)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}
