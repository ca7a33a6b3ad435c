package rego

import (
	"fmt"
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

// lineOf is the line in a data file that holds the value, or that of the last
// step that is found. JSON is read as the YAML that it is.
func lineOf(data []byte, p dataPath) int {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return 0
	}
	at, line := doc.Content[0], doc.Content[0].Line
	for _, step := range p {
		next, found := below(at, step)
		if !found {
			break
		}
		at, line = next, next.Line
	}
	return line
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
		var doc map[string]yaml.Node
		if yaml.Unmarshal(f.Data, &doc) != nil {
			continue
		}
		if _, found := doc[fmt.Sprint(rest[0])]; found {
			return f.Path, lineOf(f.Data, rest)
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
