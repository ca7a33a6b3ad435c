package freezefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// pagesFile holds the pages that receivers were sent while the ledger could not
// record them. This folder is what still works then.
const pagesFile = ".pages"

// KeepPages remembers pages that were sent and not recorded, by id; none forgets
// all. Otherwise a restart would leave them open at the receivers for ever.
func (d *Dir) KeepPages(pages map[string]escalate.Page) error {
	path := filepath.Join(d.path, pagesFile)
	if len(pages) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unrecorded pages: %w", err)
		}
		return nil
	}
	data, err := json.Marshal(pages)
	if err != nil {
		return fmt.Errorf("unrecorded pages: %w", err)
	}
	if err := d.Make(); err != nil {
		return err
	}
	// Whole or not at all: half a file would be no page.
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("unrecorded pages: %w", err)
	}
	return os.Rename(path+".new", path)
}

// KeptPages are those that KeepPages remembered.
func (d *Dir) KeptPages() (map[string]escalate.Page, error) {
	data, err := os.ReadFile(filepath.Join(d.path, pagesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("unrecorded pages: %w", err)
	}
	pages := map[string]escalate.Page{}
	if err := json.Unmarshal(data, &pages); err != nil {
		return nil, fmt.Errorf("unrecorded pages: %s: %w", pagesFile, err)
	}
	return pages, nil
}
