package rego

// For tests of the package from outside.
var (
	Impure        = impure
	DecodeElement = decodeElement
)
