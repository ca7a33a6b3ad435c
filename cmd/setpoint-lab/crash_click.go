package main

import (
	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/crash"
)

// besides are what runs after the faults and stands in the same table.
type besides struct {
	all, clicks bool
}

func (b besides) run(cmd *cobra.Command, o crash.Options, t *crash.Table) error {
	if b.clicks {
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		if err := crash.ProveClicks(cmd.Context(), o, root, t); err != nil {
			return err
		}
	}
	if b.all {
		return beside(cmd, t)
	}
	return nil
}
