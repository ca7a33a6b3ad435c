package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/policies"
)

func (a *app) policyInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init <folder>",
		Short: "Write the built-in policy into a new folder, to be changed there",
		Long: `Write the built-in policy, its tests and its page for authors (README.md) into a folder
that does not exist yet or is empty. Nothing is in force before setpoint.yaml names it.`,
		Example: `  setpoint policy init policies/
  setpoint policy test policies/`,
		Args: oneArg("one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := writeBundle(args[0])
			if err != nil {
				return err
			}
			return a.print("wrote %s into %s; read %s, and put `policies: {path: %s}` into setpoint.yaml\n",
				count(n, "file"), args[0], filepath.Join(args[0], "README.md"), args[0])
		},
	}
}

// writeBundle refuses a folder that holds anything: nobody's rules are lost.
func writeBundle(folder string) (files int, err error) {
	entries, err := os.ReadDir(folder)
	switch {
	case err == nil && len(entries) > 0:
		return 0, fmt.Errorf("policy init: the folder %s is not empty: name a new one", folder)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("policy init: %w", err)
	}
	err = fs.WalkDir(policies.FS, ".", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	})
	if err == nil {
		err = os.CopyFS(folder, policies.FS)
	}
	if err != nil {
		return 0, fmt.Errorf("policy init: %w", err)
	}
	return files, nil
}
