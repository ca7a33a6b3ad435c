package rego

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowedNames is the allow-list of built-in functions, one a line. It is what
// OPA has minus what reaches the network, the clock, the host or chance; a test
// compares it, so that a new function of a new OPA is looked at by a person.
//
//go:embed builtins.txt
var allowedNames string

// Capabilities are what policies may use: the allow-list, no network for
// schemas, and every feature of the language.
var Capabilities = sync.OnceValue(func() *ast.Capabilities {
	caps := ast.CapabilitiesForThisVersion()
	allowed := strings.Fields(allowedNames)
	caps.Builtins = slices.DeleteFunc(caps.Builtins, func(b *ast.Builtin) bool {
		_, found := slices.BinarySearch(allowed, b.Name)
		return !found
	})
	caps.AllowNet = []string{}
	return caps
})

// impure reports whether a built-in function may answer differently for the
// same input, or reaches out of the process.
func impure(b *ast.Builtin) bool {
	if b.IsNondeterministic() {
		return true
	}
	for _, p := range impurePrefixes {
		if strings.HasPrefix(b.Name, p) {
			return true
		}
	}
	return false
}

// impurePrefixes are those that OPA does not mark itself: chance, the host, the
// network (remote schemas included), the present time (certificates), traces.
var impurePrefixes = []string{
	"http.", "net.", "opa.", "rand.", "uuid.", "providers.", "json.match_schema", "json.verify_schema",
	"crypto.x509.", "io.jwt.", "time.now", "trace",
}
