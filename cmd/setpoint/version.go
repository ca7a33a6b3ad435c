package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// build is what the Go tool chain recorded about this binary.
type build struct {
	web.Meta
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Time     string `json:"time"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildInfo() build {
	b := build{
		Meta:    web.Meta{APIVersion: spec.Group, Kind: "Version"},
		Version: "(devel)", Revision: "unknown", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// line is the build in one line.
func (b build) line() string {
	dirty := ""
	if b.Modified {
		dirty = ", modified"
	}
	return fmt.Sprintf("setpoint %s (revision %s%s, %s, %s)", b.Version, short(b.Revision), dirty, b.Go, b.Platform)
}

func (a *app) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what was built, from which revision",
		Example: `  setpoint version
  setpoint version -o json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := buildInfo()
			if output != formatTable {
				return emit(a.out, output, b)
			}
			return a.print("%s\n", b.line())
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}
