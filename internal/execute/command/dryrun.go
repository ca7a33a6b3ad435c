package command

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Permits says why an action of this executor would be refused before anything
// is run: its program, and the one that tells its status, must be listed, there
// and executable. It runs nothing.
func (e *Executor) Permits(a spec.Action) error {
	if a.Uses != Uses {
		return fmt.Errorf("%s is not in this version, which has %s", a.Uses, Uses)
	}
	for _, argv := range [][]string{a.Target.Argv, a.Target.StatusArgv} {
		if len(argv) == 0 {
			continue
		}
		if _, _, err := e.program(argv[0]); err != nil {
			return err
		}
	}
	return nil
}
