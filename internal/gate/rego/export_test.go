package rego

// For tests of the package from outside.
var (
	Impure        = impure
	DecodeElement = decodeElement
)

// ParseInput is parseInput.
var ParseInput = parseInput
