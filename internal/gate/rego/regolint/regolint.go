// Package regolint looks for mistakes in a policy that loads: grants that rest
// on something being absent, rules that nobody can explain, comparisons that
// never hold, grants that no test exercises. It takes a bundle and gives
// findings; none of them keeps a bundle from loading, and all of them fail a
// check.
package regolint

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
)

// The codes of findings, beside those of package rego.
const (
	// CodeMetadata is a rule without the words that a verdict needs.
	CodeMetadata = "metadata"
	// CodeAbsence is a grant that rests on something being absent or unknown.
	CodeAbsence = "absence"
	// CodeNever is a comparison that is never true.
	CodeNever = "never"
	// CodeUntested is a grant that no test exercises.
	CodeUntested = "untested"
)

// excuseKey is the key of METADATA custom that says why a grant may rest on
// absence.
const excuseKey = "absence"

// Options change what Check looks at.
type Options struct {
	// Tables are tables of cases that count as tests, beside those in Rego.
	Tables []regotest.Table
}

// Check reads a bundle and gives everything that is wrong with it: what loading
// says and, where it loads, what the lints here say. It runs the bundle's tests.
func Check(ctx context.Context, fsys fs.FS, o Options) rego.Findings {
	b, err := rego.Read(fsys)
	if err != nil {
		return rego.Findings{{Code: rego.CodeRead, Text: err.Error()}}
	}
	built, findings := b.Build()
	if len(findings.Errors()) > 0 {
		return findings
	}
	return append(findings, lint(ctx, b, built, o)...).Sorted()
}

func lint(ctx context.Context, b rego.Bundle, built rego.Built, o Options) (out rego.Findings) {
	// A policy that nobody foresaw must not take the check with it, nor pass it.
	defer func() {
		if caught := recover(); caught != nil {
			out = append(out, unseen(fmt.Errorf("panic: %v", caught)))
		}
	}()
	s, err := terms.New(built)
	if err != nil {
		return rego.Findings{unseen(err)}
	}
	out = append(lintBytes(b), lintMetadata(s)...)
	out = append(out, lintAbsence(s)...)
	out = append(out, lintNever(s, built.Tests)...)
	out = append(out, lintUnread(built)...)
	if s.Tangled {
		out = append(out, rego.Finding{Code: rego.CodeCompile, Severity: rego.SeverityLint,
			Text: "the rules use each other in too many ways, or too deep, to see what a grant rests on; write them with fewer helpers inside each other"})
	}
	return append(out, lintUntested(ctx, b, s, o)...)
}

// lintBytes finds files that begin with a byte order mark: other readers of
// policy take it for a part of the first word.
func lintBytes(b rego.Bundle) rego.Findings {
	var out rego.Findings
	for _, f := range b.Files() {
		if bytes.HasPrefix(f.Data, []byte("\xef\xbb\xbf")) {
			out = append(out, rego.Finding{File: f.Path, Line: 1, Code: rego.CodeRead, Severity: rego.SeverityLint,
				Text: "begins with a byte order mark; save it as UTF-8 without one"})
		}
	}
	return out
}

// unseen is the finding about a policy that could not be looked at.
func unseen(err error) rego.Finding {
	return rego.Finding{Code: rego.CodeRead, Severity: rego.SeverityLint, Text: "the policy loads, and could not be looked at: " + err.Error()}
}

// at is a finding about a place in the source.
func at(l *ast.Location, code string, s rego.Severity, text string) rego.Finding {
	return rego.Finding{File: l.File, Line: l.Row, Code: code, Text: text, Severity: s}
}
