package rego

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says what a finding keeps a bundle from. The zero value is the
// gravest.
type Severity int8

// The severities, gravest first.
const (
	// SeverityError keeps the bundle from loading.
	SeverityError Severity = iota
	// SeverityLint fails a check: the bundle loads, and should not be merged.
	SeverityLint
	// SeverityWarning is shown, and keeps from nothing.
	SeverityWarning
)

var severityWords = [...]string{"error", "lint", "warning"}

// String returns the word; anything unknown is an error.
func (s Severity) String() string {
	if s < SeverityError || s > SeverityWarning {
		return severityWords[SeverityError]
	}
	return severityWords[s]
}

// MarshalText returns the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a word; anything unknown is an error's.
func (s *Severity) UnmarshalText(b []byte) error {
	*s = Severity(max(0, slices.Index(severityWords[:], string(b))))
	return nil
}

// Finding is one thing wrong with a bundle.
type Finding struct {
	File string `json:"file"`
	// Line is 0 where the finding is about no single line.
	Line int `json:"line"`
	// Code is stable; see the Code constants here and in regolint.
	Code     string   `json:"code"`
	Text     string   `json:"text"`
	Severity Severity `json:"severity"`
}

// The codes of findings that loading gives.
const (
	CodeRead    = "read"
	CodeCompile = "compile"
	CodeInput   = "input-reference"
	CodeData    = "data"
	CodePackage = "package"
	CodeRule    = "rule"
	CodeReason  = "reason"
	CodeIgnored = "ignored"
)

// String returns file:line: text (code).
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if at != "" {
		at += ": "
	}
	return at + f.Text + " (" + f.Code + ")"
}

// Findings are all that is wrong with a bundle, as one error.
type Findings []Finding

// Error returns one finding a line.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Errors are the findings that keep a bundle from loading.
func (fs Findings) Errors() Findings {
	return fs.upTo(SeverityError)
}

// Failing are the findings that fail a check: errors and lints.
func (fs Findings) Failing() Findings { return fs.upTo(SeverityLint) }

func (fs Findings) upTo(gravest Severity) Findings {
	return slices.DeleteFunc(slices.Clone(fs), func(f Finding) bool { return f.Severity > gravest })
}

// Sorted are the findings by file and line, each once.
func (fs Findings) Sorted() Findings {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Text, b.Text))
	})
	return slices.Compact(fs)
}
