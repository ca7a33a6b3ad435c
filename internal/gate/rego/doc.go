// Package rego evaluates policy. It takes a bundle root with Rego and data, and
// an input document of package gate, and gives a gate.Ruling: the rules that
// fired, by title, file and line, or a fault, which grants nothing.
//
// A bundle is loaded whole or not at all. It is compiled strictly, with an
// allow-list of pure built-in functions: a ruling depends on its input and the
// bundle, and on nothing else.
package rego
