package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
	"github.com/setpoint-dev/setpoint/policies"
)

// bundle is the configured policy folder, or the built-in one.
func (s site) bundle() (fsys fs.FS, name string, err error) {
	return bundleAt(s.cfg.Policies.Path)
}

func bundleAt(path string) (fsys fs.FS, name string, err error) {
	if path == "" {
		return policies.FS, "", nil
	}
	opened, err := openFolder(path, rego.MaxBundle)
	if err != nil {
		return nil, "", fmt.Errorf("policy: %w: name the root of the bundle", err)
	}
	return opened, path, nil
}

// policy loads the bundle as a whole. It reaches the loop only when its own
// tests pass.
func (s site) policy(ctx context.Context) (*rego.Policy, error) {
	fsys, _, err := s.bundle()
	if err != nil {
		return nil, err
	}
	l, err := reload.Load(ctx, fsys, reload.Rules{})
	return l.Policy, err
}

// shadowPolicy loads the bundle that binds nobody.
func (s site) shadowPolicy(ctx context.Context) (reload.Loaded, error) {
	fsys, _, err := bundleAt(s.cfg.Policies.Shadow)
	if err != nil {
		return reload.Loaded{}, err
	}
	return reload.Load(ctx, fsys, shadowRules)
}

// compiled loads the bundle without running its tests, to look at a decision.
func (s site) compiled(context.Context) (*rego.Policy, error) {
	fsys, _, err := s.bundle()
	if err != nil {
		return nil, err
	}
	return rego.Load(fsys, rego.Options{})
}

func (a *app) policyCommand() *cobra.Command {
	return group("policy", "The Rego that grants and refuses",
		a.policyInitCommand(),
		a.policyCheckCommand(),
		a.policyTestCommand(),
		a.policyEvalCommand(),
		a.policyExplainCommand(),
		a.policyFmtCommand(),
		a.policySchemaCommand(),
		a.policyReplayCommand(),
	)
}

// bundleOf is the folder of the argument, else the configured bundle, else the
// built-in one.
func (a *app) bundleOf(args []string) (fs.FS, string, error) {
	if len(args) > 0 {
		return bundleAt(args[0])
	}
	s, err := a.site()
	if err != nil && !errors.Is(err, errNoConfig) {
		return nil, "", err
	}
	if s.cfg.Policies.Path == "" {
		a.overlooked()
	}
	return s.bundle()
}

// overlooked tells of a folder that looks like the bundle and is none: who
// tests the built-in policy must not believe that it was their own.
func (a *app) overlooked() {
	dir := filepath.Join(filepath.Dir(a.configFile()), "policies")
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		a.say("setpoint: the folder %s was not looked at: name it as the argument, or as policies.path in %s", dir, a.configFile())
	}
}

// bundleName is a bundle for people.
func bundleName(path string) string {
	if path == "" {
		return "built-in policy"
	}
	return path
}

func optionalFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(cmd, "want one bundle folder at most, got %s", count(len(args), "argument"))
	}
	return nil
}
