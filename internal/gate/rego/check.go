package rego

import "io/fs"

// Check gives everything that is wrong with a bundle: what does not compile
// strictly, misspelt input and data paths, reasons that are not literal and
// unique, grants outside setpoint.gate, and, as warnings, rules without a title.
func Check(fsys fs.FS) []Finding {
	b, err := Read(fsys)
	if err != nil {
		return []Finding{{Code: CodeRead, Text: err.Error()}}
	}
	_, findings := b.Build()
	return findings
}
