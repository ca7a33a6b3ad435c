package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func (a *app) initCommand() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   "init [slo-file]",
		Short: "Write a commented setpoint.yaml and a ledger; with an SLO file, a Remediation in observe",
		Long: `Write a commented setpoint.yaml, an empty rules file and a ledger. With an
existing SLO file, write a Remediation in mode observe beside it for each of its
services that has none. What the documents name (receivers, approver groups,
targets, secrets) is entered in setpoint.yaml for you to review; limits.maxMode
is observe, so nothing is sent until you raise it. Nothing that is there is
overwritten.`,
		Example: `  setpoint init                      # documents in slo/, if there are any
  setpoint init slo/checkout.yaml --prometheus http://127.0.0.1:9090`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(cmd, "want one SLO file at most, got %s", count(len(args), "argument"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			slo := ""
			if len(args) == 1 {
				slo = args[0]
			}
			return a.init(slo, source)
		},
	}
	cmd.Flags().StringVar(&source, "prometheus", "http://127.0.0.1:9090", "URL of the Prometheus to ask")
	return cmd
}

// draft is one file to write.
type draft struct {
	path, text string
	mode       os.FileMode
}

func (a *app) init(slo, source string) error {
	if err := spec.CheckURL(source); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	file := a.configFile()
	dir := filepath.Dir(file)
	p, err := planInit(dir, slo)
	if err != nil {
		return err
	}
	drafts := append([]draft{
		{file, configText(p, source), 0o644},
		{filepath.Join(dir, "rules.yaml"), rulesText, 0o644},
	}, p.drafts...)
	db := filepath.Join(dir, config.Default().Ledger.SQLite.Path)
	if err := absent(append(slices.Clone(drafts), draft{path: db})); err != nil {
		return err
	}
	if err := a.writeAll(drafts); err != nil {
		return err
	}
	if err := sqlite.Init(db, actor()); err != nil {
		return err
	}
	if err := a.print("created %s\n", db); err != nil {
		return err
	}
	return a.nextSteps(dir, p)
}

func (a *app) nextSteps(dir string, p initPlan) error {
	if p.services == 0 {
		folder := filepath.Join(dir, "slo")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("init: %w", err)
		}
		return a.print("next: put OpenSLO files into %s, then `setpoint validate` and `setpoint plan`\n", folder)
	}
	if len(p.allow) > 0 {
		if err := a.print("review in %s what your documents name: receivers, approvers, executors, secrets\n", a.configFile()); err != nil {
			return err
		}
	}
	return a.print("next: `setpoint validate`, `setpoint plan`, then `setpoint run`\n")
}

func (a *app) writeAll(drafts []draft) error {
	for _, d := range drafts {
		if err := writeNew(d); err != nil {
			return err
		}
		if err := a.print("wrote %s\n", d.path); err != nil {
			return err
		}
	}
	return nil
}

// absent refuses before anything is written: half an init is worse than none.
func absent(drafts []draft) error {
	for _, d := range drafts {
		_, err := os.Lstat(d.path)
		if err == nil {
			return fmt.Errorf("init: %s is there already and is not overwritten; nothing was written", d.path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("init: %w", err)
		}
	}
	return nil
}

func writeNew(d draft) error {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o755); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	f, err := os.OpenFile(d.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, d.mode)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = f.WriteString(d.text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("init: write %s: %w", d.path, err)
	}
	return nil
}

// relative is a path as setpoint.yaml in dir has to write it.
func relative(dir, path string) (string, error) {
	absDir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	absPath, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	rel, err := filepath.Rel(absDir, absPath)
	if err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	if strings.HasPrefix(rel, "..") {
		return absPath, nil
	}
	return filepath.ToSlash(rel), nil
}
