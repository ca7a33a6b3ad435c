// Package prompts holds the templates of what a model is asked, embedded. A
// folder of the same file names, named in setpoint.yaml, takes their place.
package prompts

import "embed"

// FS holds the template files.
//
//go:embed *.tmpl
var FS embed.FS
