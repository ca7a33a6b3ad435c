// Package policies holds the policy bundle that is used when setpoint.yaml
// names no other. It takes nothing and gives the folder as a file system.
package policies

import (
	"embed"
	"io/fs"
)

//go:embed *.rego data.yaml .manifest README.md
var files embed.FS

// FS is the bundle root.
var FS fs.FS = files
