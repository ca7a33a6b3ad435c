package rego

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// dataPath leads to a value of the data: names and indices.
type dataPath []any

// String returns it as policy writes it, e.g. data.limits.hosts[0].
func (p dataPath) String() string {
	out := "data"
	for _, step := range p {
		switch step := step.(type) {
		case int:
			out += fmt.Sprintf("[%d]", step)
		default:
			out += fmt.Sprintf(".%v", step)
		}
	}
	return out
}

// nodeOf parses a data file for its lines. JSON is read as the YAML that it is
// once no tab indents it; within its text a tab is always escaped.
func nodeOf(data []byte) (*yaml.Node, error) {
	if json.Valid(data) {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{}, nil // comments alone
	case err != nil:
		return nil, fmt.Errorf("syntax: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document; only the first would count")
	}
	if len(doc.Content) == 0 {
		return &doc, nil
	}
	return doc.Content[0], nil
}

// lineOf is the line in a data file that holds the value, or that of the last
// step that is found.
func lineOf(data []byte, p dataPath) int {
	at, err := nodeOf(data)
	if err != nil {
		return 0
	}
	for _, step := range p {
		next, found := below(at, step)
		if !found {
			break
		}
		at = next
	}
	return at.Line
}

// maxYAML is the largest file of YAML in bytes, maxKeys the most keys in one of
// its objects. Reading it takes time by the square of the keys: these take a
// second, ten times as many take minutes. JSON takes neither.
const (
	maxYAML = 2 << 20
	maxKeys = 20_000
)

// readable refuses, with its line, what readers see otherwise than the policy
// does, or what would take too long to read.
func readable(data []byte) (line int, err error) {
	if json.Valid(data) {
		if key, at := repeatedInJSON(data); at > 0 {
			return at, fmt.Errorf("key %q is there twice in one object", key)
		}
		return 0, nil
	}
	if len(data) > maxYAML {
		return 1, fmt.Errorf("%d bytes take too long to read as YAML; write the file as data.json", len(data))
	}
	n, err := nodeOf(data)
	if err != nil {
		return brokenAt(err), fmt.Errorf("not one JSON or YAML object: %w", err)
	}
	return checkKeys(n)
}

func checkKeys(n *yaml.Node) (line int, err error) {
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys {
		return n.Line, fmt.Errorf("an object with %d keys takes too long to read as YAML; write the file as data.json", len(n.Content)/2)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if seen[c.Value] {
				return c.Line, fmt.Errorf("key %q is there twice in one object", c.Value)
			}
			seen[c.Value] = true
			continue
		}
		if line, err = checkKeys(c); err != nil {
			return line, err
		}
	}
	return 0, nil
}

// repeatedInJSON is the first key that an object has twice, with its line.
func repeatedInJSON(data []byte) (key string, line int) {
	dec := json.NewDecoder(bytes.NewReader(data))
	type level struct {
		keys map[string]bool // nil in a list
		key  bool            // the next token is a key
	}
	levels := []level{{}}
	for {
		token, err := dec.Token()
		if err != nil {
			return "", 0
		}
		at := &levels[len(levels)-1]
		name, isText := token.(string)
		if at.key && isText {
			if at.keys[name] {
				return name, 1 + bytes.Count(data[:dec.InputOffset()], []byte("\n"))
			}
			at.keys[name], at.key = true, false
			continue
		}
		at.key = at.keys != nil
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{map[string]bool{}, true})
		case json.Delim('['):
			levels = append(levels, level{})
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
		}
	}
}

func below(n *yaml.Node, step any) (*yaml.Node, bool) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch step := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return n.Content[step], true
		}
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1], true
			}
		}
	}
	return nil, false
}

// sourceOf is the data file that holds the value, and the line there.
func sourceOf(files []File, p dataPath) (file string, line int) {
	for _, f := range files {
		rest := p
		under := folder(f.Path)
		for len(under) > 0 && len(rest) > 0 && under[0] == rest[0] {
			under, rest = under[1:], rest[1:]
		}
		switch {
		case len(under) > 0 && len(rest) > 0:
			continue // another folder
		case len(rest) == 0:
			return f.Path, 1
		}
		if doc, err := nodeOf(f.Data); err == nil {
			if _, found := below(doc, rest[0]); found {
				return f.Path, lineOf(f.Data, rest)
			}
		}
	}
	return "", 0
}

var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// brokenAt is the line that the parser names; what is no object is so from its
// first line.
func brokenAt(err error) int {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return 1
}
