package approve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// MaxExact is how many bytes of canonical JSON are shown: as many as fit one block
// unshortened.
const MaxExact = 2500

// Some characters are longer on the wire than on the screen, and Slack bounds what
// is on the wire: these are the bounds by weight.
const (
	maxExactWeight = 4000
	maxLineWeight  = 600
)

// weight is how long a text is within JSON that may stand in HTML.
func weight(s string) int {
	n := 0
	for _, r := range s {
		n += weigh(r)
	}
	return n
}

func weigh(r rune) int {
	switch r {
	case '<', '>', '&':
		return len(`\u0026`)
	case '"', '\\':
		return 2
	}
	return 1
}

// light is the text up to that weight.
func light(s string, limit int) string {
	if weight(s) <= limit {
		return s
	}
	n := weigh('…')
	for i, r := range s {
		if n += weigh(r); n > limit {
			return s[:i] + "…"
		}
	}
	return s
}

const otherBytes = "what would be executed now is not what was asked for: the documents changed"

// exact gives the bytes that an approval executes, or why they cannot be shown. A
// person must not approve what is not wholly before their eyes.
func exact(f CardFacts) (canonical, why string) {
	t := f.Ticket
	a, ok := f.Service.Action(t.Proposal.Action)
	if !ok {
		return "", fmt.Sprintf("no document has an action %s of %s any more", OneLine(t.Proposal.Action, 100), OneLine(t.Service, 100))
	}
	b, err := gate.Canonical(t.Service, t.Key, a, t.Proposal.Parameters)
	if err != nil {
		return "", "what would be executed cannot be written down: " + OneLine(err.Error(), 150)
	}
	sum := sha256.Sum256(b)
	switch {
	case hex.EncodeToString(sum[:]) != t.Digest:
		return "", otherBytes
	case len(b) > MaxExact, weight(string(b)) > maxExactWeight:
		return "", fmt.Sprintf("what would be executed is %d bytes long and does not fit here unshortened", len(b))
	}
	if why := obscure(t, a); why != "" {
		return "", why
	}
	if !plain(string(b)) {
		return "", "what would be executed holds a character that cannot be told with the eye"
	}
	return string(b), ""
}

// obscure names the first text that holds anything but printable ASCII: what is
// invisible, turns the direction of reading, or looks like another letter.
func obscure(t Ticket, a spec.Action) string {
	named := []struct{ what, text string }{
		{"the service", t.Service}, {"the key", string(t.Key)}, {"the action", a.Name}, {"the executor", a.Uses},
		{"the target", a.Target.URL}, {"the target", a.Target.StatusURL}, {"the target", a.Target.Secret},
	}
	for _, arg := range slices.Concat(a.Target.Argv, a.Target.StatusArgv) {
		named = append(named, struct{ what, text string }{"the target", arg})
	}
	for _, n := range named {
		if !plain(n.text) {
			return fmt.Sprintf("%s holds %s, which cannot be told with the eye", n.what, firstObscure(n.text))
		}
	}
	return obscureParameter(t.Proposal.Parameters)
}

func obscureParameter(p propose.Parameters) string {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		text, _ := p[name].(string)
		for _, s := range []string{name, text} {
			if !plain(s) {
				return fmt.Sprintf("parameter %s holds %s, which cannot be told with the eye", OneLine(name, 60), firstObscure(s))
			}
		}
	}
	return ""
}

// plain: printable ASCII.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func firstObscure(s string) string {
	for _, r := range s {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("%U", r)
		}
	}
	return "nothing"
}
