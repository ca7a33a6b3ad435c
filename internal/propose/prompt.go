package propose

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
)

// ErrPromptSize says that the prompt exceeds the limit with everything left out
// that may be. The catalogue is never cut.
var ErrPromptSize = errors.New("the prompt exceeds promptTokens with everything left out that may be: raise the limit")

// Prompts are the templates of a proposal.
type Prompts struct {
	system, user, repair *promptFile
}

// files are the templates in the order in which they are sent.
func (p *Prompts) files() []*promptFile { return []*promptFile{p.system, p.user, p.repair} }

// Prompt is a request in the words that a model gets.
type Prompt struct {
	System, User string
	// Tokens is the estimate of it, what is sent beside it included.
	Tokens int
	// TriedOmitted counts the attempts that are not in it, RowsOmitted the rows
	// of breakdowns and ChangesOmitted the changes.
	TriedOmitted, RowsOmitted, ChangesOmitted int
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
// the start and not in an incident. Another .tmpl beside them is a fault too.
func LoadPrompts(files fs.FS) (*Prompts, error) {
	if err := checkFolder(files); err != nil {
		return nil, err
	}
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
	return p.renderWith(r, Evidence(r))
}

func (p *Prompts) renderWith(r Request, evidence []byte) (system, user string, err error) {
	data := promptData{
		Evidence:     string(evidence),
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
