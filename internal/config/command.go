package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// command checks the allow-lists of programs and variables.
func (k *checker) command(c CommandExecutor) {
	for i, program := range c.Allow {
		path := spec.IndexPath("executors.command.allow", i)
		k.set(path, program)
		k.that(!strings.HasSuffix(program, "/"), path, "%q is a folder: name each program that may be run", program)
		k.that(!strings.ContainsRune(program, 0), path, "holds a NUL byte, which ends a path")
	}
	for i, name := range c.EnvAllow {
		path := spec.IndexPath("executors.command.envAllow", i)
		k.that(variableName.MatchString(name), path, "%q is no name of a variable: the name alone is listed, its value is the agent's", name)
		k.that(!strings.HasPrefix(name, "SETPOINT_"), path, "%s is set by Setpoint itself: remove it", name)
	}
}

// Allows reports whether a program is on the list, by its cleaned path. An
// entry is one program, never a folder: what somebody puts beside it is not
// allowed thereby.
func (c CommandExecutor) Allows(program string) bool {
	return program != "" && slices.ContainsFunc(c.Allow, func(entry string) bool {
		return entry != "" && filepath.Clean(entry) == filepath.Clean(program)
	})
}

// program checks one program of an action against the allow-list. Both paths
// are relative to the file that holds them, so a fault names them as they were
// found from there.
func (v *validator) program(r spec.Remediation, path, program string) {
	allow := v.config.Executors.Command.Allow
	if v.config.Executors.Command.Allows(program) {
		return
	}
	known := "which allows no program"
	if len(allow) > 0 {
		known = "which allows " + strings.Join(slices.Sorted(slices.Values(allow)), ", ")
	}
	v.fault(r, path, "the program %s, found from this file's folder, is not in executors.command.allow of setpoint.yaml, %s", program, known)
}
