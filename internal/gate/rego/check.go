package rego

import "io/fs"

// Check gives everything that is wrong with a bundle: what does not compile
// strictly, misspelt input and data paths, reasons that are not literal and
// unique, grants outside setpoint.gate, and, as warnings, rules without a title.
func Check(fsys fs.FS) []Finding {
	snap, err := readSnapshot(fsys)
	if err != nil {
		return []Finding{{Code: CodeRead, Text: err.Error()}}
	}
	_, findings := build(snap)
	findings = append(findings, compileTests(snap, findings)...)
	return findings.sorted()
}
