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
	"unicode/utf8"
)

// The template files, by the id that their front matter must have.
const (
	systemID = "propose.system"
	userID   = "propose.user"
)

// ErrPromptSize says that the catalogue and the evidence alone exceed the
// limit, with every earlier attempt left out.
var ErrPromptSize = errors.New("the prompt exceeds promptTokens without any earlier attempt in it: raise the limit")

// Prompts are the two templates of a proposal.
type Prompts struct {
	system, user *promptFile
}

type promptFile struct {
	id, version, digest string
	template            *template.Template
}

// Prompt is a request in the words that a model gets.
type Prompt struct {
	System, User string
	// TriedOmitted counts the attempts that were left out for size, oldest
	// first.
	TriedOmitted int
}

// promptData is all that a template can use.
type promptData struct {
	// Evidence is the JSON document of the request.
	Evidence string
	// Actions are the words that the key action may hold.
	Actions      []string
	MaxRationale int
}

// LoadPrompts reads propose.system.tmpl and propose.user.tmpl, and renders
// both once, so that a fault in one shows at the start and not in an incident.
func LoadPrompts(files fs.FS) (*Prompts, error) {
	system, err := loadPrompt(files, systemID)
	if err != nil {
		return nil, err
	}
	user, err := loadPrompt(files, userID)
	if err != nil {
		return nil, err
	}
	p := &Prompts{system: system, user: user}
	if _, _, err := p.Render(Request{}); err != nil {
		return nil, err
	}
	return p, nil
}

var frontMatter = regexp.MustCompile(`\A---\n((?s:.*?)\n)---\n`)

func loadPrompt(files fs.FS, id string) (*promptFile, error) {
	name := id + ".tmpl"
	data, err := fs.ReadFile(files, name)
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

// Version names both templates, e.g. "propose.system@1 propose.user@1".
func (p *Prompts) Version() string {
	return p.system.id + "@" + p.system.version + " " + p.user.id + "@" + p.user.version
}

// Digest is the SHA-256 over both files, hex.
func (p *Prompts) Digest() string {
	sum := sha256.Sum256([]byte(p.system.digest + p.user.digest))
	return hex.EncodeToString(sum[:])
}

// Render gives exactly what would be sent, as system and user message.
func (p *Prompts) Render(r Request) (system, user string, err error) {
	data := promptData{
		Evidence:     string(Evidence(r)),
		Actions:      proposable(r.Catalogue),
		MaxRationale: MaxRationale,
	}
	if system, err = p.system.render(data); err != nil {
		return "", "", err
	}
	user, err = p.user.render(data)
	return system, user, err
}

func proposable(c Catalogue) []string {
	var ws []string
	for _, b := range branches(c) {
		ws = append(ws, b.name)
	}
	return ws
}

func (f *promptFile) render(data promptData) (string, error) {
	var out bytes.Buffer
	if err := f.template.Execute(&out, data); err != nil {
		return "", fmt.Errorf("render prompt: %w", err)
	}
	return out.String(), nil
}

// Fit renders within an estimated number of tokens (four characters each),
// besides so many characters that are sent beside the prompt. Where it does
// not fit, earlier attempts are left out, oldest first, and the evidence says
// how many. The catalogue is never cut: then it is ErrPromptSize. Zero tokens
// is no limit.
func (p *Prompts) Fit(r Request, tokens, besides int) (Prompt, error) {
	for {
		system, user, err := p.Render(r)
		if err != nil {
			return Prompt{}, err
		}
		size := utf8.RuneCountInString(system) + utf8.RuneCountInString(user) + besides
		if tokens <= 0 || EstimateTokens(size) <= tokens {
			return Prompt{System: system, User: user, TriedOmitted: r.TriedOmitted}, nil
		}
		if len(r.Tried) == 0 {
			return Prompt{}, fmt.Errorf("%w (about %d tokens, promptTokens is %d)", ErrPromptSize, EstimateTokens(size), tokens)
		}
		r.Tried, r.TriedOmitted = r.Tried[1:], r.TriedOmitted+1
	}
}

// EstimateTokens is a rough count of tokens: one for each four characters,
// rounded up. Models differ; the provider's own count is in its usage.
func EstimateTokens(characters int) int { return (characters + 3) / 4 }
