package inputfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// maxDepth is deeper than any input; a deeper one would only fill the stack.
const maxDepth = 100

// lines are where the values of a JSON text stand.
type lines struct {
	file   spec.File
	starts map[string]int
	faults spec.Faults

	dec *json.Decoder
}

// readLines goes through the text once. What is no JSON, or says a thing twice,
// is a fault.
func readLines(f spec.File) lines {
	l := lines{file: f, starts: map[string]int{}, dec: json.NewDecoder(bytes.NewReader(f.Data))}
	err := l.value("", 0)
	if err == nil {
		if _, more := l.dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one JSON value")
		}
	}
	if err != nil {
		text := err.Error()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			text = "it ends in the middle"
		}
		l.faults = append(l.faults, spec.Fault{Pos: spec.Position{File: f.Name, Line: l.line(err)}, Text: "is no JSON: " + text})
	}
	l.dec = nil
	return l
}

// line is where the text is read, or where its syntax is wrong.
func (l *lines) line(err error) int {
	offset := l.dec.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	offset = max(0, min(offset, int64(len(l.file.Data))))
	return 1 + bytes.Count(l.file.Data[:offset], []byte("\n"))
}

// at is the place of a value, or of the nearest one around it.
func (l *lines) at(path string) spec.Position {
	for {
		if line, ok := l.starts[path]; ok || path == "" {
			return spec.Position{File: l.file.Name, Line: max(1, line)}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// value reads one value at a path.
func (l *lines) value(path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	t, err := l.dec.Token()
	if err != nil {
		return err
	}
	if _, known := l.starts[path]; !known {
		l.starts[path] = l.line(nil)
	}
	switch t {
	case json.Delim('{'):
		return l.object(path, depth)
	case json.Delim('['):
		return l.list(path, depth)
	}
	return nil
}

func (l *lines) object(path string, depth int) error {
	seen := map[string]bool{}
	for l.dec.More() {
		t, err := l.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		at := spec.KeyPath(path, key)
		if seen[key] {
			l.faults = append(l.faults, spec.Fault{
				Pos: spec.Position{File: l.file.Name, Line: l.line(nil)}, Path: at,
				Text: fmt.Sprintf("is given twice, first in line %d", l.starts[at]),
			})
		} else {
			seen[key] = true
			l.starts[at] = l.line(nil)
		}
		if err := l.value(at, depth+1); err != nil {
			return err
		}
	}
	_, err := l.dec.Token()
	return err
}

func (l *lines) list(path string, depth int) error {
	for i := 0; l.dec.More(); i++ {
		if err := l.value(spec.IndexPath(path, i), depth+1); err != nil {
			return err
		}
	}
	_, err := l.dec.Token()
	return err
}
