package propose

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// ErrPromptSize says that the catalogue and the evidence alone exceed the
// limit, with every earlier attempt left out.
var ErrPromptSize = errors.New("the prompt exceeds promptTokens without any earlier attempt in it: raise the limit")

// Prompts are the templates of a proposal.
type Prompts struct {
	system, user, repair *promptFile
}

// files are the templates in the order in which they are sent.
func (p *Prompts) files() []*promptFile { return []*promptFile{p.system, p.user, p.repair} }

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

// repairData is all that the template of the repair turn can use.
type repairData struct {
	// Fault is what was wrong with the answer.
	Fault        string
	MaxRationale int
}

// LoadPrompts reads propose.system.tmpl, propose.user.tmpl and
// propose.repair.tmpl, and renders each once, so that a fault in one shows at
// the start and not in an incident.
func LoadPrompts(files fs.FS) (*Prompts, error) {
	p := &Prompts{}
	for i, into := range []**promptFile{&p.system, &p.user, &p.repair} {
		f, err := loadPrompt(files, []string{systemID, userID, repairID}[i])
		if err != nil {
			return nil, err
		}
		*into = f
	}
	if _, _, err := p.Render(Request{}); err != nil {
		return nil, err
	}
	if _, err := p.Repair(""); err != nil {
		return nil, err
	}
	return p, nil
}

// Version names the templates, e.g. "propose.system@2 propose.user@2
// propose.repair@1".
func (p *Prompts) Version() string {
	var names []string
	for _, f := range p.files() {
		names = append(names, f.id+"@"+f.version)
	}
	return strings.Join(names, " ")
}

// Digest is the SHA-256 over the files, hex.
func (p *Prompts) Digest() string {
	digests := ""
	for _, f := range p.files() {
		digests += f.digest
	}
	sum := sha256.Sum256([]byte(digests))
	return hex.EncodeToString(sum[:])
}

// maxFaultShown bounds what a repair turn shows of a fault, in characters.
const maxFaultShown = 400

// Repair is the message that follows an answer which was no proposal: it shows
// what was wrong, in words of ours, and asks for the one object again. What a
// fault quotes of a stranger is cleaned once more and cut.
func (p *Prompts) Repair(fault string) (string, error) {
	return p.repair.render(repairData{Fault: CleanText(fault, maxFaultShown), MaxRationale: MaxRationale})
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
