package main

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	quotedCommand = regexp.MustCompile("`([^`]+)`")
	// others are programs of an operating system that a remedy may name, and keys
	// of files.
	others = []string{"chmod", "chown", "curl", "mkdir", "ps", "timedatectl", "chronyc"}
)

// checkRemedy: a red or yellow line says what to do, and the commands that it
// names are there.
func checkRemedy(t *testing.T, i checkItem) {
	t.Helper()
	red := i.Result == resultFail || i.Result == resultWarn
	if red != (i.Remedy != "") {
		t.Errorf("%s %s is %s with the remedy %q", i.Check, i.Subject, i.Result, i.Remedy)
	}
	if i.Detail == "" {
		t.Errorf("%s %s says nothing", i.Check, i.Subject)
	}
	root := (&app{}).root()
	for _, m := range quotedCommand.FindAllStringSubmatch(i.Remedy, -1) {
		words := strings.Fields(m[1])
		switch {
		case words[0] == "setpoint":
			checkCommand(t, root, words[1:])
		case strings.Contains(words[0], ":"):
			// A line of a file, such as `rules: []`.
		case !slices.Contains(others, words[0]):
			t.Errorf("%s names the command %q, which nobody has", i.Check, m[1])
		}
	}
}

func checkCommand(t *testing.T, root *cobra.Command, words []string) {
	t.Helper()
	found, _, err := root.Find(words)
	if err != nil || found == root {
		t.Errorf("no command %v: %v", words, err)
		return
	}
	for _, w := range words {
		name, long := strings.CutPrefix(w, "--")
		if !long {
			continue
		}
		var flag *pflag.Flag
		for c := found; c != nil && flag == nil; c = c.Parent() {
			if flag = c.Flags().Lookup(name); flag == nil {
				flag = c.PersistentFlags().Lookup(name)
			}
		}
		if flag == nil {
			t.Errorf("%s has no flag --%s", found.CommandPath(), name)
		}
	}
}

// TestDoctorHidesNothing: one check that panics and one that hangs are two
// lines, in their places.
func TestDoctorHidesNothing(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	cases := map[string]struct {
		reason string
		run    func(context.Context) []checkItem
		result string
		detail string
	}{
		"panic": {"a fault of the check is said", func(context.Context) []checkItem { panic("index out of range") }, resultFail, "broke off: index out of range"},
		"hang":  {"what does not end is left behind", func(context.Context) []checkItem { <-hang; return nil }, resultFail, "no end within 10ms"},
		"late": {"what gives up in time has more to say", func(ctx context.Context) []checkItem {
			<-ctx.Done()
			return []checkItem{subject{"x", "y"}.fine("given up")}
		}, resultOK, "given up"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := examine{group: aboutModel, subject: "main", limit: 10 * time.Millisecond, run: tc.run}.bounded(t.Context())
			if len(got) != 1 || got[0].Result != tc.result || !strings.Contains(got[0].Detail, tc.detail) || got[0].TookSeconds == 0 {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			for _, i := range got {
				checkRemedy(t, i)
			}
		})
	}
}

func TestDoctorColours(t *testing.T) {
	for word, code := range map[string]string{resultOK: "32", resultWarn: "33", resultFail: "31", resultSkip: "39"} {
		if got := paint(word, true); !strings.HasPrefix(got, "\x1b["+code+"m") {
			t.Errorf("%s is painted %q", word, got)
		}
	}
}
