package propose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// member is one key of a JSON object with its value as written.
type member struct {
	key string
	raw json.RawMessage
}

// readObject reads exactly one JSON object. encoding/json alone would let pass
// what changes meaning in silence: duplicate keys (the last wins), invalid
// UTF-8 and lone surrogates (replaced), and data after the object.
func readObject(b []byte) ([]member, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(b, &whole); err != nil {
		return nil, fmt.Errorf("not exactly one JSON object: %w", err)
	}
	if whole = bytes.TrimSpace(whole); whole[0] != '{' {
		return nil, fmt.Errorf("not a JSON object but %s", jsonKind(whole))
	}
	if hasLoneSurrogate(whole) {
		return nil, errors.New(`a \u escape is half of a surrogate pair`)
	}
	return readMembers(whole)
}

func readMembers(object []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	var members []member
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("not a JSON object: %w", err)
		}
		m := member{}
		m.key, _ = tok.(string)
		if seen[m.key] {
			return nil, fmt.Errorf("the key %s is given twice", quoted(m.key))
		}
		seen[m.key] = true
		if err := dec.Decode(&m.raw); err != nil {
			return nil, fmt.Errorf("not a JSON object: %w", err)
		}
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	return members, nil
}

// hasLoneSurrogate looks through valid JSON, where a backslash stands only in
// strings and is followed by what it escapes.
func hasLoneSurrogate(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		high := escape(b[i:])
		i++
		if high < 0xD800 || high > 0xDFFF {
			continue
		}
		i += 4
		low := escape(b[i+1:])
		if high > 0xDBFF || low < 0xDC00 || low > 0xDFFF {
			return true
		}
		i += 6
	}
	return false
}

// escape is the code unit of a \u escape that b starts with; otherwise 0.
func escape(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	u, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	if err != nil {
		return 0
	}
	return u
}

// jsonKind names the kind of a valid JSON value, for messages.
func jsonKind(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
