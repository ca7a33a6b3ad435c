package rego

import "io/fs"

// Check gives what loading says of a bundle: what does not compile strictly,
// misspelt input and data paths, reasons that are not literal and unique, grants
// outside setpoint.gate. Package regolint checks more.
func Check(fsys fs.FS) Findings {
	b, err := Read(fsys)
	if err != nil {
		return Findings{{Code: CodeRead, Text: err.Error()}}
	}
	_, findings := b.Build()
	return findings
}
