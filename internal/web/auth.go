package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

type contextKey int

const (
	actorKey contextKey = iota
	peerKey
)

// withActor records the authenticated principal of a request. Nothing in the
// request's own fields can name one.
func withActor(r *http.Request, by string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), actorKey, by))
}

func actorOf(r *http.Request) (by string, ok bool) {
	by, ok = r.Context().Value(actorKey).(string)
	return by, ok
}

// Tokens are bearer tokens by the name of their holder, kept as digests.
type Tokens struct {
	digests map[string][sha256.Size]byte
}

// minToken is the shortest token that is accepted: 16 characters, so that a
// placeholder such as "changeme" opens nothing.
const minToken = 16

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ParseTokens reads a tokens file: one `name: token` a line. The file's name
// is for the error only; no error shows a token.
func ParseTokens(file string, data []byte) (Tokens, error) {
	entries, err := tokenEntries(spec.File{Name: file, Data: data})
	if err != nil {
		return Tokens{}, err
	}
	t := Tokens{digests: map[string][sha256.Size]byte{}}
	holders := map[[sha256.Size]byte]string{}
	for _, e := range entries {
		if why := e.unusable(); why != "" {
			return Tokens{}, tokensFault(e.at, "%s", why)
		}
		digest := sha256.Sum256([]byte(e.token))
		if other, taken := holders[digest]; taken {
			return Tokens{}, tokensFault(e.at, "%s and %s have the same token, so nobody could tell who acts", other, e.name)
		}
		holders[digest] = e.name
		t.digests[e.name] = digest
	}
	return t, nil
}

// tokenEntry is one line of a tokens file.
type tokenEntry struct {
	name, token string
	at          spec.Position
}

// tokenEntries reads the file as far as its form goes. The words of the YAML
// library are not passed on: they may quote a token.
func tokenEntries(f spec.File) ([]tokenEntry, error) {
	docs, _ := spec.Documents(f)
	if len(docs) > 1 {
		return nil, tokensFault(docs[1].Pos, "a second YAML document, whose tokens would open nothing: put all into one")
	}
	doc, faults := spec.OneDocument(f)
	if len(faults) > 0 {
		return nil, tokensFault(faults.Sorted()[0].Pos, "%s", tokensForm)
	}
	if !doc.Root().IsMapping() {
		return nil, tokensFault(doc.Pos, "%s", tokensForm)
	}
	var entries []tokenEntry
	for name, v := range doc.Root().Pairs() {
		token, ok := v.Scalar()
		if !ok {
			return nil, tokensFault(v.Pos(), "%s", tokensForm)
		}
		entries = append(entries, tokenEntry{name, token, v.Pos()})
	}
	return entries, nil
}

const tokensForm = "want one `name: token` a line, each name once"

func tokensFault(at spec.Position, format string, args ...any) error {
	return spec.Faults{{Pos: at, Text: "tokens file: " + fmt.Sprintf(format, args...)}}
}

// unusable says why a request could never carry the token, or why it is none;
// "" when it is fine.
func (e tokenEntry) unusable() string {
	switch {
	case !tokenName.MatchString(e.name):
		return fmt.Sprintf("%q is no name (letters, digits, . _ -)", e.name)
	case strings.TrimSpace(e.token) == "":
		return fmt.Sprintf("the token of %s is blank", e.name)
	case strings.TrimSpace(e.token) != e.token:
		return fmt.Sprintf("the token of %s has blanks before or after it, which no request can carry", e.name)
	case strings.ContainsFunc(e.token, unicode.IsControl):
		return fmt.Sprintf("the token of %s has a line end or another control character, which no request can carry", e.name)
	case len(e.token) < minToken:
		return fmt.Sprintf("the token of %s is shorter than %d characters", e.name, minToken)
	}
	return ""
}

// Len is the number of tokens.
func (t Tokens) Len() int { return len(t.digests) }

// actor is the holder of the request's bearer token. Every token is compared,
// in constant time, so that timing tells neither a token nor a holder.
func (t Tokens) actor(r *http.Request) (name string, ok bool) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for holder, digest := range t.digests {
		if subtle.ConstantTimeCompare(given[:], digest[:]) == 1 {
			name, ok = holder, true
		}
	}
	return name, ok
}
