package rego

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is one thing wrong with a bundle.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Code is stable; see the Code constants.
	Code string `json:"code"`
	Text string `json:"text"`
	// Warning: the bundle loads all the same.
	Warning bool `json:"warning"`
}

// The codes of findings.
const (
	CodeRead    = "read"
	CodeCompile = "compile"
	CodeInput   = "input-reference"
	CodeData    = "data"
	CodePackage = "package"
	CodeRule    = "rule"
	CodeReason  = "reason"
	CodeTitle   = "title"
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
	return slices.DeleteFunc(slices.Clone(fs), func(f Finding) bool { return f.Warning })
}

func (fs Findings) sorted() Findings {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Text, b.Text)
	})
	return slices.Compact(fs)
}
