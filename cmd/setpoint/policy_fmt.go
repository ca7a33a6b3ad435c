package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// fmtFlags are the flags of `policy fmt`, named as those of `opa fmt`.
type fmtFlags struct{ write, list, diff, fail bool }

// regoSource is one file as it is and as it should be.
type regoSource struct {
	name           string
	old, formatted []byte
}

func (s regoSource) differs() bool { return !bytes.Equal(s.old, s.formatted) }

func (a *app) policyFmtCommand() *cobra.Command {
	var f fmtFlags
	cmd := &cobra.Command{
		Use:   "fmt [folder | file …]",
		Short: "Format Rego as `opa fmt` does",
		Long: `Format Rego as "opa fmt" does. Without a flag the formatted source is printed and
nothing is written. When one file does not parse, no file is written.`,
		Example: `  setpoint policy fmt policies/ --list          # the files whose formatting differs
  setpoint policy fmt policies/ --diff --fail   # for CI: exit 1 when one does
  setpoint policy fmt policies/ --write`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.write && f.fail:
				return usageError(cmd, "--write and --fail exclude each other: what is written differs no more")
			case f.write && len(args) == 0 && a.builtIn():
				return errors.New("the built-in policy cannot be written: name a folder or files")
			}
			sources, err := a.regoSources(args)
			if err != nil {
				return err
			}
			if err := formatAll(sources); err != nil {
				return err
			}
			return a.showFormatted(sources, f)
		},
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "write files whose formatting differs")
	cmd.Flags().BoolVarP(&f.list, "list", "l", false, "list files whose formatting differs")
	cmd.Flags().BoolVarP(&f.diff, "diff", "d", false, "show what differs")
	cmd.Flags().BoolVar(&f.fail, "fail", false, "exit 1 when the formatting of a file differs; alone, list them")
	return cmd
}

// builtIn reports whether no folder is configured.
func (a *app) builtIn() bool {
	s, err := a.site()
	return err != nil || s.cfg.Policies.Path == ""
}

// regoSources reads the files of the arguments, else of the configured bundle,
// else of the built-in one, each once.
func (a *app) regoSources(args []string) ([]regoSource, error) {
	if len(args) == 0 {
		fsys, name, err := a.bundleOf(nil)
		if err != nil {
			return nil, err
		}
		return regoIn(fsys, name)
	}
	var out []regoSource
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		var more []regoSource
		if info.IsDir() {
			var dir folder
			if dir, err = openFolder(arg, maxFile); err == nil {
				more, err = regoIn(dir, arg)
			}
		} else {
			var data []byte
			data, err = readRegular(arg)
			more = []regoSource{{name: arg, old: data}}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortStableFunc(out, func(a, b regoSource) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(out, func(a, b regoSource) bool { return filepath.Clean(a.name) == filepath.Clean(b.name) }), nil
}

// regoIn reads what a bundle would load, tests included: hidden files and
// folders are none of it.
func regoIn(fsys fs.FS, name string) (out []regoSource, err error) {
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case path.Ext(p) == ".rego" && !d.IsDir():
			data, err := fs.ReadFile(fsys, p)
			if err != nil {
				return err
			}
			out = append(out, regoSource{name: path.Join(name, p), old: data})
		}
		return nil
	})
	return out, err
}

// formatAll formats every file or gives every fault.
func formatAll(sources []regoSource) error {
	parse := ast.ParserOptions{RegoVersion: ast.RegoV1}
	var faults rego.Findings
	for i := range sources {
		s := &sources[i]
		out, err := format.SourceWithOpts(s.name, s.old, format.Opts{RegoVersion: ast.RegoV1, ParserOptions: &parse})
		if err != nil {
			faults = append(faults, rego.FindingsOf(s.name, allOf(err))...)
			continue
		}
		// What is written must be Rego, whatever the formatter made of it.
		if _, err := ast.ParseModuleWithOpts(s.name, string(out), parse); err != nil {
			faults = append(faults, rego.Finding{File: s.name, Code: rego.CodeCompile,
				Text: fmt.Sprintf("cannot be formatted: the result would not parse: %v", err)})
			continue
		}
		s.formatted = out
	}
	if len(faults) > 0 {
		return fmt.Errorf("nothing is formatted:\n%w", faults)
	}
	return nil
}

// allOf makes a list of the one error that OPA gives for an empty file, so that
// its place is known.
func allOf(err error) error {
	var one *ast.Error
	if errors.As(err, &one) {
		return ast.Errors{one}
	}
	return err
}

func (a *app) showFormatted(sources []regoSource, f fmtFlags) error {
	if !f.write && !f.list && !f.diff && !f.fail {
		for _, s := range sources {
			if err := a.print("%s", s.formatted); err != nil {
				return err
			}
		}
		return nil
	}
	different := slices.DeleteFunc(sources, func(s regoSource) bool { return !s.differs() })
	for _, s := range different {
		if err := a.showDifferent(s, f); err != nil {
			return err
		}
	}
	if f.fail && len(different) > 0 {
		return exitCode(exitError)
	}
	return nil
}

func (a *app) showDifferent(s regoSource, f fmtFlags) error {
	if f.list || f.fail && !f.diff {
		if err := a.print("%s\n", s.name); err != nil {
			return err
		}
	}
	if f.diff {
		if err := a.print("%s", diff.Diff(s.name+".orig", s.old, s.name, s.formatted)); err != nil {
			return err
		}
	}
	if !f.write {
		return nil
	}
	if err := replaceFile(s.name, s.formatted); err != nil {
		return fmt.Errorf("%s: not written: %w", s.name, err)
	}
	return nil
}

// replaceFile puts new content into a file at once, so that an agent which
// reloads meanwhile sees a whole one. Links stay links, the mode stays, and a
// file that may not be written is not.
func replaceFile(name string, data []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	old, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := old.Stat()
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".setpoint-fmt-*") // A bundle holds no hidden file.
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
