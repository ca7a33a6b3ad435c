package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
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
	var byName map[string]string
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&byName); {
	case errors.Is(err, io.EOF):
		return Tokens{}, nil
	case err != nil:
		// The decoder's own words may quote a token.
		return Tokens{}, fmt.Errorf("tokens file %s: want one `name: token` a line, each name once", file)
	}
	t := Tokens{digests: map[string][sha256.Size]byte{}}
	holders := map[[sha256.Size]byte]string{}
	for name, token := range byName {
		switch {
		case !tokenName.MatchString(name):
			return Tokens{}, fmt.Errorf("tokens file %s: %q is no name (letters, digits, . _ -)", file, name)
		case len(token) < minToken:
			return Tokens{}, fmt.Errorf("tokens file %s: the token of %s is shorter than %d characters", file, name, minToken)
		}
		digest := sha256.Sum256([]byte(token))
		if other, taken := holders[digest]; taken {
			a, b := min(name, other), max(name, other)
			return Tokens{}, fmt.Errorf("tokens file %s: %s and %s have the same token, so nobody could tell who acts", file, a, b)
		}
		holders[digest] = name
		t.digests[name] = digest
	}
	return t, nil
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
