package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The bounds of one file. They keep a hostile or broken file from costing
// more than a moment; no honest document comes near them.
const (
	// MaxFileBytes is the longest file that is read.
	MaxFileBytes = 1 << 20

	maxDepth     = 64
	maxDocuments = 1000
	// maxFaults is per document.
	maxFaults = 100
)

// Document is one YAML document, checked in structure (no duplicate key, no
// alias, bounded depth) and not decoded yet.
type Document struct {
	// APIVersion, Kind and Name (metadata.name) are empty where the document
	// has none.
	APIVersion, Kind, Name string
	Pos                    Position
	root                   Value
}

// Positions gives the place of each value of the document by its path.
func (d Document) Positions() Positions { return d.root.positions }

// Root returns the whole document as a value.
func (d Document) Root() Value { return d.root }

// Decode reads the whole document into a pointer to a struct; see Value.
func (d Document) Decode(into any) Faults { return d.root.Decode(into) }

// Fault returns a fault at the value of that path, or at its nearest parent
// that is there.
func (d Document) Fault(path, format string, args ...any) Fault {
	return d.root.positions.Fault(path, format, args...)
}

// Has reports whether the document holds a value at that path.
func (d Document) Has(path string) bool { return d.root.positions.Has(path) }

// Digest is the SHA-256 over the content, hex: comments, layout and the order
// of keys do not change it.
func (d Document) Digest() string { return digestNode(d.root.node) }

// Documents splits a file into its documents. Empty ones are skipped; a file
// without any is a fault, because an emptied file must not silently take a
// service's promises away.
func Documents(f File) ([]Document, Faults) {
	docs, faults, _ := documents(f)
	return docs, faults
}

// documents also says whether the whole file could be read: after an error of
// syntax nobody knows what it holds.
func documents(f File) (docs []Document, faults Faults, whole bool) {
	docs, faults, whole = split(f)
	if len(faults) == 0 && len(docs) == 0 {
		faults = append(faults, Fault{
			Pos:  Position{File: f.Name},
			Text: "holds no document: remove the file, or restore its content",
		})
	}
	return docs, faults, whole
}

// OneDocument reads a file that holds exactly one document without a kind,
// such as setpoint.yaml. An empty file is an empty mapping.
func OneDocument(f File) (Document, Faults) {
	docs, faults, _ := split(f)
	switch {
	case len(docs) == 0 && len(faults) > 0:
		return Document{Pos: faults[0].Pos}, faults // Nothing that could lack a key.
	case len(docs) == 0:
		empty := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1}
		return newDocument(f.Name, empty, nil), faults
	case len(docs) > 1:
		faults = append(faults, Fault{Pos: docs[1].Pos, Text: "a second document: this file holds exactly one"})
	}
	return docs[0], faults
}

// DecodeFile reads a file of exactly one document, without a kind, into a
// pointer to a struct; see Value.
func DecodeFile(f File, into any) Faults {
	d, faults := OneDocument(f)
	return append(faults, d.Decode(into)...)
}

func split(f File) (docs []Document, faults Faults, whole bool) {
	if len(f.Data) > MaxFileBytes {
		return nil, Faults{{Pos: Position{File: f.Name}, Text: fmt.Sprintf(
			"is %d bytes long, more than the limit of %d: split it", len(f.Data), MaxFileBytes)}}, false
	}
	nodes, faults := parseYAML(f)
	whole = len(faults) == 0
	for _, n := range nodes {
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
			continue
		}
		docs = append(docs, newDocument(f.Name, n, &faults))
	}
	return docs, faults, whole
}

// parseYAML returns the content nodes of all documents. The library's own panics
// on odd input become faults.
func parseYAML(f File) (nodes []*yaml.Node, faults Faults) {
	defer func() {
		if r := recover(); r != nil {
			nodes, faults = nil, Faults{{Pos: Position{File: f.Name}, Text: fmt.Sprintf("is not readable as YAML: %v", r)}}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(f.Data))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nodes, faults
		}
		if err != nil {
			return nodes, append(faults, syntaxFault(f, err))
		}
		if len(nodes) == maxDocuments {
			return nodes, append(faults, Fault{Pos: Position{File: f.Name, Line: n.Line},
				Text: fmt.Sprintf("more than %d documents: split the file", maxDocuments)})
		}
		if len(n.Content) == 1 {
			nodes = append(nodes, n.Content[0])
		}
	}
}

// The library counts lines from 0 for what its parser finds (these texts), and
// from 1 for what its scanner finds.
var (
	syntaxLine  = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	parserError = regexp.MustCompile(`^did not find expected (',' or|key|'-'|node content|<document start>)`)
)

func syntaxFault(f File, err error) Fault {
	pos, text := Position{File: f.Name}, err.Error()
	if strings.Contains(text, "control characters are not allowed") || strings.Contains(text, "UTF-8") {
		if at, what := unreadable(f.Data); what != "" {
			return Fault{Pos: Position{File: f.Name, Line: at}, Text: "is not valid YAML: " + what}
		}
	}
	if m := syntaxLine.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		text = m[2]
		if parserError.MatchString(text) {
			pos.Line++
		}
	}
	return Fault{Pos: pos, Text: "is not valid YAML: " + text}
}

// unreadable finds the first character that no YAML file may hold, which the
// library reports without its place.
func unreadable(data []byte) (line int, what string) {
	line = 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, fmt.Sprintf("byte 0x%02x is no UTF-8 text: save the file as UTF-8", data[0])
		case r == '\n':
			line++
		case r == '\t' || r == '\r' || r == 0x85 || r == 0xfeff:
		case unicode.IsControl(r):
			return line, fmt.Sprintf("control character %U is not allowed: remove it", r)
		}
		data = data[size:]
	}
	return 0, ""
}

// newDocument appends what is wrong in structure to faults.
func newDocument(file string, n *yaml.Node, faults *Faults) Document {
	if faults != nil {
		w := walker{file: file}
		w.walk(n, nil, 0)
		*faults = append(*faults, limited(w.faults)...)
	}
	d := Document{
		Pos:  Position{File: file, Line: n.Line},
		root: Value{node: n, positions: Positions{file: file, root: n}},
	}
	d.APIVersion = scalarAt(n, "apiVersion")
	d.Kind = scalarAt(n, "kind")
	if meta := child(n, "metadata"); meta != nil {
		d.Name = scalarAt(meta, "name")
	}
	return d
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func scalarAt(n *yaml.Node, key string) string {
	if c := child(n, key); c != nil && c.Kind == yaml.ScalarNode && c.ShortTag() == "!!str" {
		return c.Value
	}
	return ""
}

// walker checks what holds for every document, whatever its kind. What it
// refuses it takes out of the tree, so that one mistake gives one fault.
type walker struct {
	file   string
	faults Faults
}

func (w *walker) fault(n *yaml.Node, at *trail, format string, args ...any) {
	if len(w.faults) <= maxFaults {
		w.faults = append(w.faults, Fault{
			Pos: Position{File: w.file, Line: n.Line}, Path: at.String(), Text: fmt.Sprintf(format, args...),
		})
	}
}

func (w *walker) walk(n *yaml.Node, at *trail, depth int) {
	if n.Kind == yaml.AliasNode {
		w.fault(n, at, "alias *%s is not supported: write the value out", shorten(n.Value))
		return
	}
	if n.Anchor != "" {
		w.fault(n, at, "anchor &%s is not supported: write the value out where it is needed", shorten(n.Anchor))
	}
	if depth > maxDepth {
		w.fault(n, nil, "is nested deeper than %d levels", maxDepth)
		n.Content = nil
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.mapping(n, at, depth)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			w.walk(c, &trail{parent: at, index: i}, depth+1)
		}
	}
}

func (w *walker) mapping(n *yaml.Node, at *trail, depth int) {
	first := make(map[string]int, len(n.Content)/2)
	kept := make([]*yaml.Node, 0, len(n.Content))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" {
			w.key(k, at)
			continue
		}
		p := &trail{parent: at, key: k.Value, index: -1}
		if line, dup := first[k.Value]; dup {
			w.fault(k, p, "duplicate key, first given in line %d", line)
			continue
		}
		if k.Anchor != "" {
			w.fault(k, p, "anchor &%s is not supported", shorten(k.Anchor))
		}
		first[k.Value] = k.Line
		kept = append(kept, k, c)
		w.walk(c, p, depth+1)
	}
	n.Content = kept
}

func (w *walker) key(k *yaml.Node, at *trail) {
	switch {
	case k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge":
		w.fault(k, at, "merge key << is not supported: write the keys out")
	case k.Kind == yaml.ScalarNode:
		w.fault(k, at, "key %s is not text: put it in quotes", shorten(k.Value))
	default:
		w.fault(k, at, "a key that is a list, a mapping or an alias is not supported")
	}
}

// limited cuts the faults of one document to a number that a person reads.
func limited(fs Faults) Faults {
	if len(fs) <= maxFaults {
		return fs
	}
	last := fs[maxFaults]
	return append(fs[:maxFaults:maxFaults], Fault{Pos: last.Pos, Text: "and more faults: mend these first"})
}
