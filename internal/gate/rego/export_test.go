package rego

import (
	oparego "github.com/open-policy-agent/opa/v1/rego"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// For tests of the package from outside.
var (
	Impure        = impure
	DecodeElement = decodeElement
)

// ParseInput is parseInput.
var ParseInput = parseInput

// RulingOf reads a result as if the engine had given it.
func RulingOf(p *Policy, results oparego.ResultSet) (gate.Ruling, error) {
	return p.ruling(gate.Ruling{}, results)
}
