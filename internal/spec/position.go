package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Positions finds the place of a value by its path, e.g.
// spec.actions[0].class, so that a check of meaning can point at the line it
// is about.
type Positions struct {
	file string
	root *yaml.Node
}

// String returns the file.
func (p Positions) String() string { return p.file }

// At returns the place of the value, or of its nearest parent that is there.
func (p Positions) At(path string) Position {
	pos, _ := p.find(path)
	return pos
}

// Has reports whether a value stands at that path.
func (p Positions) Has(path string) bool {
	_, whole := p.find(path)
	return whole
}

// Equal is always true: where a document stands is no part of what it says, so
// two loads of the same content compare as equal.
func (Positions) Equal(Positions) bool { return true }

// Fault returns a fault at that path.
func (p Positions) Fault(path, format string, args ...any) Fault {
	return Fault{Pos: p.At(path), Path: path, Text: fmt.Sprintf(format, args...)}
}

// find descends as far as the path leads; whole says that it led to the end.
func (p Positions) find(path string) (pos Position, whole bool) {
	pos.File = p.file
	if p.root == nil {
		return pos, false
	}
	n := p.root
	pos.Line = n.Line
	for path != "" {
		key, index, rest, ok := cutStep(path)
		if !ok {
			return pos, false
		}
		next, line := descend(n, key, index)
		if next == nil {
			return pos, false
		}
		n, pos.Line, path = next, line, rest
	}
	return pos, true
}

// cutStep takes the first step off a path: .key, ["odd key"] or [index]. The
// index is -1 for a key.
func cutStep(path string) (key string, index int, rest string, ok bool) {
	if path[0] != '[' {
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		return path[:end], -1, path[end:], true
	}
	if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil {
		key, err = strconv.Unquote(quoted)
		rest, ok = strings.CutPrefix(path[1+len(quoted):], "]")
		return key, -1, rest, ok && err == nil
	}
	number, rest, ok := strings.Cut(path[1:], "]")
	index, err := strconv.Atoi(number)
	return "", index, rest, ok && err == nil && index >= 0
}

func descend(n *yaml.Node, key string, index int) (next *yaml.Node, line int) {
	switch {
	case n.Kind == yaml.MappingNode && index < 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case n.Kind == yaml.SequenceNode && index >= 0 && index < len(n.Content):
		return n.Content[index], n.Content[index].Line
	}
	return nil, 0
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_@/-]+$`)

// KeyPath appends a key to a path; one with odd characters is quoted in brackets.
func KeyPath(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// IndexPath appends the index of a list's element to a path.
func IndexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// trail is the way from the root to a node. It is rendered only for a fault,
// because a path for each node of a hostile file would fill the memory.
type trail struct {
	parent *trail
	key    string
	index  int
}

func (t *trail) String() string {
	if t == nil {
		return ""
	}
	if t.index >= 0 {
		return IndexPath(t.parent.String(), t.index)
	}
	return KeyPath(t.parent.String(), shorten(t.key))
}

// shorten keeps a stranger's text from filling a screen.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
