package sqlite

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// local refuses a path whose directory is on a network file system.
func local(path string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &fs); err != nil {
		return fmt.Errorf("ledger %s: look at its file system: %w", path, err)
	}
	return network(path, uint32(fs.Type)) //nolint:gosec // The numbers have 32 bits.
}
