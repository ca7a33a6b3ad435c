package sim

// Mutants are the names of all mutants.
func Mutants() []string {
	var out []string
	for _, m := range mutants() {
		out = append(out, string(m))
	}
	return out
}

// WithMutant breaks the machine for a run.
func WithMutant(o Options, name string) Options {
	o.bad, o.enough = mutant(name), 1
	return o
}

// ScopeWithMutant breaks it for an exploration.
func ScopeWithMutant(s Scope, name string) Scope {
	s.bad = mutant(name)
	return s
}
