package propose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"text/template"
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
Your last answer cannot be used: {{.Fault}}. Answer once more, with exactly one JSON object with exactly the keys action, parameters and rationale, and nothing before or after it.
`

type promptFile struct {
	id, version, digest string
	template            *template.Template
}

var frontMatter = regexp.MustCompile(`\A---\n((?s:.*?)\n)---\n`)

func loadPrompt(files fs.FS, id string) (*promptFile, error) {
	name := id + ".tmpl"
	data, err := fs.ReadFile(files, name)
	if id == repairID && errors.Is(err, fs.ErrNotExist) {
		data, err = []byte(olderRepair), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read prompt %s: %w", name, err)
	}
	head := frontMatter.FindSubmatchIndex(data)
	if head == nil {
		return nil, fmt.Errorf("prompt %s: starts without front matter: put id and version between two lines ---", name)
	}
	f := &promptFile{}
	if err := f.head(string(data[head[2]:head[3]])); err != nil {
		return nil, fmt.Errorf("prompt %s: %w", name, err)
	}
	if f.id != id || f.version == "" {
		return nil, fmt.Errorf("prompt %s: front matter must have id: %s and a version", name, id)
	}
	f.template, err = template.New(name).Option("missingkey=error").Parse(string(data[head[1]:]))
	if err != nil {
		return nil, fmt.Errorf("prompt %s: %w", name, err)
	}
	sum := sha256.Sum256(data)
	f.digest = hex.EncodeToString(sum[:])
	return f, nil
}

func (f *promptFile) head(text string) error {
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" || seen[key] {
			return fmt.Errorf("front matter line %q is not one of id: … and version: …, each once", strings.TrimSpace(line))
		}
		seen[key] = true
		switch key {
		case "id":
			f.id = value
		case "version":
			f.version = value
		default:
			return fmt.Errorf("front matter has the unknown key %q: id and version are known", key)
		}
	}
	return nil
}

func (f *promptFile) render(data any) (string, error) {
	var out bytes.Buffer
	if err := f.template.Execute(&out, data); err != nil {
		return "", fmt.Errorf("render prompt: %w", err)
	}
	return out.String(), nil
}
