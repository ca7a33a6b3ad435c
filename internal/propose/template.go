package propose

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// The template files, by the id that their front matter must have.
const (
	systemID = "propose.system"
	userID   = "propose.user"
	repairID = "propose.repair"
)

// olderRepair is said where a folder of templates has no file for the repair
// turn, as one from before there was such a turn.
const olderRepair = `---
id: propose.repair
version: 0
---
That answer cannot be used: {{.Fault}}. Answer once more with exactly one JSON object with exactly the keys action, parameters and rationale, and nothing before or after it.
`

type promptFile struct {
	id, version, digest string
	// inputs are those that the front matter names; nil where it names none.
	// uses are those that the text uses, sorted.
	inputs, uses []string
	// before is how many lines of the file stand before its text.
	before   int
	older    bool
	template *template.Template
}

// Template says what one template is.
type Template struct {
	ID, Version string
	// Digest is the SHA-256 of the file, hex.
	Digest string
	// Uses are the inputs that its text uses, sorted.
	Uses []string
	// Declared: its front matter names them.
	Declared bool
	// Older: the folder has no such file, so words of ours stand in.
	Older bool
}

// Templates are all of them, in the order in which they are sent.
func (p *Prompts) Templates() []Template {
	var out []Template
	for _, f := range p.files() {
		out = append(out, Template{
			ID: f.id, Version: f.version, Digest: f.digest, Uses: f.uses, Declared: f.inputs != nil, Older: f.older,
		})
	}
	return out
}

var frontMatter = regexp.MustCompile(`\A---\n((?s:.*?)\n)---\n`)

func loadPrompt(files fs.FS, id string) (*promptFile, error) {
	name := id + templateEnd
	f := &promptFile{}
	data, err := fs.ReadFile(files, name)
	if id == repairID && errors.Is(err, fs.ErrNotExist) {
		data, err, f.older = []byte(olderRepair), nil, true
	}
	if err != nil {
		return nil, fmt.Errorf("read prompt %s: %w", name, err)
	}
	head := frontMatter.FindSubmatchIndex(data)
	if head == nil {
		return nil, fmt.Errorf("prompt %s: starts without front matter: put id and version between two lines ---", name)
	}
	if err := f.head(string(data[head[2]:head[3]])); err != nil {
		return nil, fmt.Errorf("prompt %s: %w", name, err)
	}
	if f.id != id || f.version == "" {
		return nil, fmt.Errorf("prompt %s: front matter must have id: %s and a version", name, id)
	}
	f.before = bytes.Count(data[:head[1]], []byte("\n"))
	if err := f.parse(string(data[head[1]:])); err != nil {
		return nil, err
	}
	if f.inputs != nil && !slices.Equal(f.inputs, f.uses) {
		return nil, fmt.Errorf("prompt %s: front matter says inputs: %s, but the text uses %s",
			name, strings.Join(f.inputs, ", "), cmp.Or(strings.Join(f.uses, ", "), "none"))
	}
	sum := sha256.Sum256(data)
	f.digest = hex.EncodeToString(sum[:])
	return f, nil
}

// parse reads the text below the front matter.
func (f *promptFile) parse(text string) (err error) {
	f.template, err = template.New(f.id + templateEnd).Option("missingkey=error").Parse(text)
	if err != nil {
		return f.fault(err)
	}
	used := inputsOf(f.template.Tree)
	f.uses = slices.Sorted(maps.Keys(used))
	return f.unknownInput(used, text)
}

func (f *promptFile) head(text string) error {
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" || seen[key] {
			return fmt.Errorf("front matter line %q is not one of id: …, version: … and inputs: …, each once", strings.TrimSpace(line))
		}
		seen[key] = true
		switch key {
		case "id":
			f.id = value
		case "version":
			f.version = value
		case "inputs":
			for name := range strings.SplitSeq(value, ",") {
				f.inputs = append(f.inputs, strings.TrimSpace(name))
			}
			slices.Sort(f.inputs)
		default:
			return fmt.Errorf("front matter has the unknown key %q: id, version and inputs are known", key)
		}
	}
	return nil
}

// maxRendered bounds what one template renders, in bytes. No model reads so much,
// and a loop that somebody wrote by mistake must not fill the memory.
const maxRendered = 1 << 20

var errRendered = fmt.Errorf("renders more than %d bytes", maxRendered)

// rendering is the text so far.
type rendering struct{ text bytes.Buffer }

// Write takes more of it, within the bound.
func (r *rendering) Write(b []byte) (int, error) {
	if r.text.Len()+len(b) > maxRendered {
		return 0, errRendered
	}
	return r.text.Write(b)
}

func (f *promptFile) render(data any) (string, error) {
	var out rendering
	err := f.template.Execute(&out, data)
	switch {
	case errors.Is(err, errRendered):
		return "", fmt.Errorf("prompt %s: %w", f.id+templateEnd, errRendered)
	case err != nil:
		return "", f.fault(err)
	}
	return out.text.String(), nil
}

// inputsOf are the names of the fields that a template uses, with a place of
// each.
func inputsOf(t *parse.Tree) map[string]parse.Pos {
	found := map[string]parse.Pos{}
	if t != nil && t.Root != nil {
		fields(t.Root, found)
	}
	return found
}

func fields(n parse.Node, found map[string]parse.Pos) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, one := range n.Nodes {
			fields(one, found)
		}
	case *parse.ActionNode:
		pipeFields(n.Pipe, found)
	case *parse.IfNode:
		branchFields(n.BranchNode, found)
	case *parse.RangeNode:
		branchFields(n.BranchNode, found)
	case *parse.WithNode:
		branchFields(n.BranchNode, found)
	case *parse.TemplateNode:
		pipeFields(n.Pipe, found)
	}
}

func branchFields(b parse.BranchNode, found map[string]parse.Pos) {
	pipeFields(b.Pipe, found)
	fields(b.List, found)
	fields(b.ElseList, found)
}

func pipeFields(p *parse.PipeNode, found map[string]parse.Pos) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			switch arg := arg.(type) {
			case *parse.FieldNode:
				note(found, arg.Ident[0], arg.Pos)
			case *parse.VariableNode:
				if arg.Ident[0] == "$" && len(arg.Ident) > 1 {
					note(found, arg.Ident[1], arg.Pos)
				}
			case *parse.PipeNode:
				pipeFields(arg, found)
			}
		}
	}
}

// note keeps the first place.
func note(found map[string]parse.Pos, name string, at parse.Pos) {
	if first, known := found[name]; !known || at < first {
		found[name] = at
	}
}
