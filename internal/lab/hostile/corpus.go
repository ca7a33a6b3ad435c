package hostile

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

//go:embed testdata/corpus.json
var corpusJSON []byte

// Entry is one text that an attacker could plant.
type Entry struct {
	ID, Kind string
	// Text is what is planted, and Plain what it says, where it is encoded.
	Text, Plain string
	// Parts are planted side by side and mean something together; then there is
	// no Text.
	Parts []string
	// Canary is a word that is in the entry and nowhere else in the world; each
	// part has it with a letter of its own.
	Canary string
}

// Texts are what is planted.
func (e Entry) Texts() []string {
	if len(e.Parts) > 0 {
		return slices.Clone(e.Parts)
	}
	return []string{e.Text}
}

// Corpus is every entry, in the order of the file.
func Corpus() ([]Entry, error) {
	var raw []struct {
		ID, Kind, Text, Encode string
		Parts                  []string
		Repeat                 int
	}
	dec := json.NewDecoder(bytes.NewReader(corpusJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf("the corpus: %w", err)
	}
	var out []Entry
	for _, r := range raw {
		e := Entry{ID: r.ID, Kind: r.Kind, Canary: canary(r.ID)}
		for _, p := range r.Parts {
			e.Parts = append(e.Parts, strings.ReplaceAll(p, placeholder, e.Canary))
		}
		e.Plain = strings.Repeat(strings.ReplaceAll(r.Text, placeholder, e.Canary), max(1, r.Repeat))
		var err error
		if e.Text, err = encode(r.Encode, e.Plain); err != nil {
			return nil, fmt.Errorf("the corpus: entry %s: %w", r.ID, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// placeholder stands for the canary in the file.
const placeholder = "CANARY"

// canary is a word without meaning: letters only, so that it is legal wherever a
// name is.
func canary(id string) string {
	sum := sha256.Sum256([]byte("canary " + id))
	letters := make([]byte, 12)
	for i := range letters {
		letters[i] = 'a' + sum[i]%26
	}
	return "zq" + string(letters)
}

// encode hides a text the way that attackers do.
func encode(how, text string) (string, error) {
	switch how {
	case "":
		return text, nil
	case "base64":
		return base64.StdEncoding.EncodeToString([]byte(text)), nil
	case "hex":
		return hex.EncodeToString([]byte(text)), nil
	case "percent":
		return url.QueryEscape(text), nil
	case "rot13":
		return strings.Map(rot13, text), nil
	case "reverse":
		rs := []rune(text)
		slices.Reverse(rs)
		return string(rs), nil
	case "json-escape":
		return eachRune(text, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) }), nil
	case "zero-width":
		return eachRune(text, func(r rune) string { return string(r) + "\u200b" }), nil
	case "tags": // Letters of Unicode's tag block, which nothing shows.
		return eachRune(text, func(r rune) string { return string(0xe0000 + r) }), nil
	case "fullwidth":
		return eachRune(text, func(r rune) string { return string(fullwidth(r)) }), nil
	}
	return "", fmt.Errorf("unknown encoding %q", how)
}

func eachRune(s string, f func(rune) string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(f(r))
	}
	return b.String()
}

func rot13(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return 'a' + (r-'a'+13)%26
	case r >= 'A' && r <= 'Z':
		return 'A' + (r-'A'+13)%26
	}
	return r
}

func fullwidth(r rune) rune {
	if r > ' ' && r < 0x7f {
		return r + 0xfee0
	}
	return r
}
