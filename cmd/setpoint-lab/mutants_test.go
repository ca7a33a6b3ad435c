package main

import (
	"strings"
	"testing"
)

func TestMutantsCommand(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		says   string
		fails  string
	}{
		"list":          {"the list runs nothing", []string{"--list"}, "claim-after-send", ""},
		"one":           {"one of the list", []string{"--list", "--only", "no-fsync"}, "TestAppendIsOnTheDisk", ""},
		"unknown":       {"a typo must not look like success", []string{"--only", "no-sync"}, "", `no mutant is called "no-sync"`},
		"no such shape": {"only what it can print", []string{"-o", "yaml"}, "", "want table or json"},
		"argument":      {"a name without --only", []string{"no-fsync"}, "", "unexpected argument"},
		"no module":     {"sources that are not there prove nothing", []string{"--only", "no-fsync", "--root", t.TempDir()}, "stale no-fsync", "1 mutants prove nothing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := lab(t, append([]string{"mutants"}, tt.args...)...)
			if !strings.Contains(out, tt.says) {
				t.Errorf("%s: it says %q, want %q", tt.reason, out, tt.says)
			}
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v, want %q", tt.reason, err, tt.fails)
			}
		})
	}
}
