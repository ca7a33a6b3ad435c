package gate

import (
	_ "embed"
	"slices"
)

// exampleInput is kept as people would write it, so that documentation can show
// the file itself.
//
//go:embed testdata/example.json
var exampleInput []byte

// ExampleInput is one complete input, indented: a service that misses its SLO
// on a Wednesday morning, whose rules proposer wants to scale. It is what authors start from:
// they change what matters to their rule.
func ExampleInput() []byte { return slices.Clone(exampleInput) }
