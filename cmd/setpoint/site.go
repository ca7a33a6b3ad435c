package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// site is one setpoint.yaml with what it names on this host.
type site struct {
	file string
	// data is what the file held when it was read.
	data []byte
	cfg  config.Config
	// positions are the places of the keys in the file.
	positions spec.Positions
}

// site reads the configuration; its paths are then relative to the working
// directory.
func (a *app) site() (site, error) {
	file := a.configFile()
	data, err := readRegular(file)
	if err != nil {
		return site{}, noConfig(file, err)
	}
	cfg, err := config.Parse(spec.File{Name: file, Data: data})
	if err != nil {
		return site{}, err
	}
	cfg.SetDirectory(filepath.Dir(file))
	for i, program := range cfg.Executors.Command.Allow {
		if cfg.Executors.Command.Allow[i], err = filepath.Abs(program); err != nil {
			return site{}, fmt.Errorf("executors.command.allow: %w", err)
		}
	}
	doc, _ := spec.OneDocument(spec.File{Name: file, Data: data}) // Parsed without a fault just now.
	return site{file: file, data: data, cfg: cfg, positions: doc.Positions()}, nil
}

// edited reports whether the file says something else than when it was read. One
// that cannot be read now says nothing.
func (s site) edited() bool {
	now, err := readRegular(s.file)
	return err == nil && !bytes.Equal(now, s.data)
}

// errNoConfig says that there is no configuration.
var errNoConfig = errors.New("no configuration")

func noConfig(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no %s; `setpoint init` writes one, --config or SETPOINT_CONFIG names another", errNoConfig, file)
	}
	return fmt.Errorf("configuration: %w", err)
}

// places are the two paths that a freeze needs. They are found even in a
// configuration that does not parse, for a person who wants it to stop.
type places struct {
	freezeDir, socket string
	// doubt says that the configuration did not parse.
	doubt error
}

func (a *app) places() (places, error) {
	s, err := a.site()
	if err == nil {
		return places{freezeDir: s.cfg.Ledger.FreezeDir, socket: s.cfg.Web.Socket}, nil
	}
	file := a.configFile()
	data, readErr := readRegular(file)
	if readErr != nil {
		return places{}, noConfig(file, readErr)
	}
	def := config.Default()
	loose := struct {
		Ledger struct {
			FreezeDir string `yaml:"freezeDir"`
		} `yaml:"ledger"`
		Web struct {
			Socket string `yaml:"socket"`
		} `yaml:"web"`
	}{}
	loose.Ledger.FreezeDir, loose.Web.Socket = def.Ledger.FreezeDir, def.Web.Socket
	_ = yaml.Unmarshal(data, &loose) // The defaults stand where it says nothing.
	below := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(file), path)
	}
	return places{freezeDir: below(loose.Ledger.FreezeDir), socket: below(loose.Web.Socket), doubt: err}, nil
}

func (a *app) freezeDir(path string) *freezefile.Dir { return freezefile.New(path, a.now) }

func (s site) groups() approve.Groups { return approve.Groups(s.cfg.Approvers) }

// documents loads the desired state and everything that must fit it. It is
// all or nothing.
func (s site) documents() (spec.Set, error) {
	set, err := loadDocuments(s.cfg.Documents)
	if err != nil {
		return spec.Set{}, err
	}
	if err := s.cfg.Validate(set); err != nil {
		return spec.Set{}, err
	}
	return set, nil
}

// absolutePrograms names each program by its whole path: targets and digests
// must not depend on the folder in which an agent was started.
func absolutePrograms(set spec.Set) error {
	for _, svc := range set.Services {
		for _, act := range svc.Remediation.Actions {
			for _, argv := range [][]string{act.Target.Argv, act.Target.StatusArgv} {
				if len(argv) == 0 {
					continue
				}
				abs, err := filepath.Abs(argv[0])
				if err != nil {
					return fmt.Errorf("action %s of %s: %w", act.Name, svc.Name, err)
				}
				argv[0] = abs
			}
		}
	}
	return nil
}

// rules reads the rules proposer's file. In a configuration with a model the
// file may be absent: then mode observe proposes nothing.
func (s site) rules() (*rules.Rules, error) {
	path := s.cfg.Proposer.Rules
	data, err := readRegular(path)
	switch {
	case err == nil:
		return rules.Load(spec.File{Name: path, Data: data})
	case errors.Is(err, fs.ErrNotExist) && s.cfg.Proposer.Provider != "rules":
		return rules.Load(spec.File{Name: path, Data: []byte("rules: []\n")})
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("proposer.rules: no file %s: write one (`rules: []` proposes nothing), or name another in %s", path, s.file)
	}
	return nil, fmt.Errorf("proposer.rules: %w", err)
}

// rulesStandIn reports whether rules speak where no model answers: the file is
// there beside a model.
func (s site) rulesStandIn() bool {
	_, err := os.Stat(s.cfg.Proposer.Rules)
	return s.cfg.Proposer.Provider == "openai" && err == nil
}

// tokens reads web.tokensFile; without one there are none.
func (s site) tokens() (web.Tokens, error) {
	path := s.cfg.Web.TokensFile
	if path == "" {
		return web.Tokens{}, nil
	}
	data, err := readRegular(path)
	if err != nil {
		return web.Tokens{}, fmt.Errorf("web.tokensFile: %w", err)
	}
	return web.ParseTokens(path, data)
}

// loadDocuments reads files, folders and globs.
func loadDocuments(patterns []string) (spec.Set, error) {
	files, err := readDocuments(patterns)
	if err != nil {
		return spec.Set{}, err
	}
	set, err := spec.Load(files, readers(0))
	if err != nil {
		return spec.Set{}, err
	}
	return set, absolutePrograms(set)
}

func readDocuments(patterns []string) ([]spec.File, error) {
	var names []string
	for _, p := range patterns {
		found, err := expand(p)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	files := make([]spec.File, 0, len(names))
	var faults spec.Faults
	for _, name := range names {
		data, err := readRegular(name)
		if err != nil {
			faults = append(faults, spec.Fault{Pos: spec.Position{File: name}, Text: "cannot be read: " + err.Error()})
		}
		files = append(files, spec.File{Name: name, Data: data})
	}
	return files, faults.Err()
}

// expand gives the files that one entry of documents names.
func expand(pattern string) ([]string, error) {
	if strings.ContainsAny(pattern, "*?[") {
		return expandGlob(pattern)
	}
	info, err := os.Stat(pattern)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("documents: no file or folder %s: make it, or change documents in the configuration", pattern)
	case err != nil:
		return nil, fmt.Errorf("documents: %w", err)
	case !info.IsDir():
		return []string{filepath.Clean(pattern)}, nil
	}
	return walk(pattern)
}

// expandGlob leaves hidden names out, as a shell does: editors keep their
// half-written copies there.
func expandGlob(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("documents: %q is no glob: %w", pattern, err)
	}
	var names []string
	for _, f := range found {
		if strings.HasPrefix(filepath.Base(f), ".") && !strings.HasPrefix(filepath.Base(pattern), ".") {
			continue
		}
		info, err := os.Stat(f)
		if err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
		if !info.IsDir() {
			names = append(names, f)
			continue
		}
		below, err := walk(f)
		if err != nil {
			return nil, err
		}
		names = append(names, below...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("documents: nothing matches %q", pattern)
	}
	return names, nil
}

// walk finds the YAML files below a folder, hidden ones left out.
func walk(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			names = append(names, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	return names, nil
}
