package decisionlog

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// operation is what a mask does with what it names.
type operation string

const (
	remove operation = "remove"
	upsert operation = "upsert"
)

// mask is one thing that is left out of an event, or replaced in it.
type mask struct {
	op operation
	// path is as its author wrote it, parts are its segments after the first.
	path  string
	root  string
	parts []string
	value any
}

// errNoPointer says nothing of the pointer, which may be made of a secret.
const errNoPointer = maskError("a mask is no pointer below /input or /result")

// parsePointer reads a path to remove. A segment is a key as it is, with RFC
// 6901's ~1 and ~0 or percent-encoded, an index, or * for all of them.
func parsePointer(path string) (mask, error) {
	parts := strings.Split(path, "/")
	if len(parts) < 2 || parts[0] != "" {
		return mask{}, errNoPointer
	}
	switch parts[1] {
	case "input", "result", "nd_builtin_cache": // The last is OPA's; no event here has it.
		return mask{op: remove, path: path, root: parts[1], parts: parts[2:]}, nil
	}
	return mask{}, errNoPointer
}

// parseMask reads an element of data.system.log.mask: a path to remove, or an
// object of op, path and value.
func parseMask(element any) (mask, error) {
	switch v := element.(type) {
	case string:
		return parsePointer(v)
	case map[string]any:
		path, _ := v["path"].(string)
		m, err := parsePointer(path)
		if err != nil {
			return mask{}, err
		}
		op, _ := v["op"].(string)
		if m.op = operation(op); m.op != remove && m.op != upsert {
			return mask{}, maskError("the op of a mask is neither remove nor upsert")
		}
		m.value = v["value"]
		return m, nil
	}
	return mask{}, maskError("a mask is neither a path nor an object of op, path and value")
}

// apply masks the event in the order of the masks. All of them count elements of
// lists as the decision had them, however many are removed.
func apply(e *Event, masks []mask) {
	for _, m := range masks {
		var node *any
		switch m.root {
		case "input":
			node = &e.Input
		case "result":
			node = &e.Result
		default:
			continue
		}
		if !m.on(node) {
			continue
		}
		list := &e.Erased
		if m.op == upsert {
			list = &e.Masked
		}
		if !slices.Contains(*list, m.path) {
			*list = append(*list, m.path)
		}
	}
	e.Input, e.Result = compacted(e.Input), compacted(e.Result)
}

// on masks below the root, and reports whether there was anything to mask.
func (m mask) on(root *any) bool {
	switch {
	case *root == nil:
		return false
	case len(m.parts) > 0:
		return m.below(*root, m.parts)
	case m.op == upsert:
		*root = m.value
	default:
		*root = nil
	}
	return true
}

// removed stands in a list where an element was, until all masks have counted.
type removed struct{}

// below goes down the segments. There is at least one.
func (m mask) below(node any, parts []string) bool {
	done := false
	switch v := node.(type) {
	case map[string]any:
		keys := matching(v, parts[0])
		if len(keys) == 0 && m.op == upsert && parts[0] != "*" {
			keys = []string{parts[0]}
		}
		for _, key := range keys {
			done = m.member(v, key, parts[1:]) || done
		}
	case []any:
		for _, i := range indices(v, parts[0]) {
			done = m.element(v, i, parts[1:]) || done
		}
	}
	return done
}

func (m mask) member(o map[string]any, key string, rest []string) bool {
	child, found := o[key]
	switch {
	case len(rest) > 0 && !found:
		child = map[string]any{}
		o[key] = child
		return m.below(child, rest)
	case len(rest) > 0:
		return m.below(child, rest)
	case m.op == upsert:
		o[key] = m.value
	default:
		delete(o, key)
	}
	return true
}

func (m mask) element(list []any, i int, rest []string) bool {
	switch {
	case list[i] == removed{}:
		return false
	case len(rest) > 0:
		return m.below(list[i], rest)
	case m.op == upsert:
		list[i] = m.value
	default:
		list[i] = removed{}
	}
	return true
}

// escapes are those of a JSON pointer.
var escapes = strings.NewReplacer("~1", "/", "~0", "~")

// matching are the keys that a segment may mean. Where several read it
// differently, all are meant: too much is masked rather than too little.
func matching(o map[string]any, part string) []string {
	readings := []string{part, escapes.Replace(part)}
	if plain, err := url.PathUnescape(part); err == nil {
		readings = append(readings, plain)
	}
	var keys []string
	for key := range o {
		if part == "*" || slices.Contains(readings, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func indices(list []any, part string) []int {
	if part == "*" {
		all := make([]int, len(list))
		for i := range all {
			all[i] = i
		}
		return all
	}
	if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(list) {
		return []int{i}
	}
	return nil
}

// compacted closes the gaps that removed elements left.
func compacted(node any) any {
	switch v := node.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = compacted(child)
		}
	case []any:
		v = slices.DeleteFunc(v, func(x any) bool { return x == removed{} })
		for i, child := range v {
			v[i] = compacted(child)
		}
		return v
	}
	return node
}
