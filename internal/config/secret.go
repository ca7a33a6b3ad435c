package config

import (
	"fmt"
	"log/slog" //nolint:depguard // Nothing is logged: this is how a secret hides from a logger.
	"strings"
)

// hidden is what a secret shows of itself.
const hidden = "<secret>"

// Secret is a value that no format, log or encoder can print. Only Reveal
// gives it out, so that a search for that word finds every place that does.
type Secret struct {
	// text sits behind a pointer, so that a printer that walks the fields by
	// reflection meets an address.
	text *string
}

// NewSecret keeps the content of a secret's file, without the line end that
// editors append.
func NewSecret(content []byte) Secret {
	s := strings.TrimRight(string(content), "\r\n")
	return Secret{text: &s}
}

// Reveal returns the value itself, for the one place that sends it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// String returns <secret>.
func (Secret) String() string { return hidden }

// GoString returns <secret>.
func (Secret) GoString() string { return hidden }

// Format writes <secret>, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText returns <secret>.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON returns "<secret>".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalYAML returns <secret>.
func (Secret) MarshalYAML() (any, error) { return hidden, nil }

// LogValue returns <secret>.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
