// Package freezefile keeps freezes as files, one `<id>.json` each in one
// folder. Writing one needs no agent, no lock, no database and no network, and
// its presence outranks everything: a file that is half written, or that
// nobody can read, freezes too.
package freezefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Dir is a folder of freeze files. It implements reconcile.FreezeDir.
type Dir struct {
	path string
	now  func() time.Time
}

// New returns the folder; it is made by Make or the first Write.
func New(path string, now func() time.Time) *Dir { return &Dir{path: path, now: now} }

// Path is the folder.
func (d *Dir) Path() string { return d.path }

const suffix = ".json"

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// maxFile is more than any freeze needs; a longer file freezes unread.
const maxFile = 64 << 10

// Write makes a freeze durable: file and folder are synced before it returns.
// It is created under its own name, so that it freezes from its first byte.
func (d *Dir) Write(f ledger.Freeze) error {
	if !validID.MatchString(f.ID) {
		return fmt.Errorf("freeze id %q: want letters, digits, - and _", f.ID)
	}
	body, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("freeze %s: %w", f.ID, err)
	}
	// A longer file would not be read back: it would freeze everything, without
	// end.
	if len(body) >= maxFile {
		return fmt.Errorf("freeze %s would be %d bytes long, more than the limit of %d: give a shorter reason", f.ID, len(body), maxFile)
	}
	if err := d.Make(); err != nil {
		return err
	}
	name := filepath.Join(d.path, f.ID+suffix)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("freeze %s: %w%s", f.ID, err, asWhom(err))
	}
	_, err = file.Write(append(body, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return fmt.Errorf("freeze %s is in force, but its file %s is not durable: %w", f.ID, name, err)
	}
	return syncFolder(d.path)
}

// Make creates the folder, so that it belongs to the agent's user and not to
// whoever freezes first: otherwise the agent could not remove what was thawed.
func (d *Dir) Make() error {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return fmt.Errorf("freeze folder: %w%s", err, asWhom(err))
	}
	return nil
}

func asWhom(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; run this as the agent's user or root"
	}
	return ""
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("freeze folder: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("freeze folder %s: sync: %w", path, err)
	}
	return nil
}

// Frozen returns what binds a service now. An error means that nobody knows,
// which holds too; a folder that was never made holds nothing.
func (d *Dir) Frozen(service string) ([]gate.Hold, error) {
	all, err := d.List()
	if err != nil {
		return nil, err
	}
	now := d.now()
	var holds []gate.Hold
	for _, f := range all {
		passed := !f.Until.IsZero() && !now.Before(f.Until)
		if passed || (f.Service != "" && service != "" && f.Service != service) {
			continue
		}
		holds = append(holds, gate.Hold{ID: f.ID, By: f.By, Text: f.Reason, Until: f.Until})
	}
	return holds, nil
}

// List returns every file by id. One that cannot be understood is a freeze of
// everything, without end, whose reason says so.
func (d *Dir) List() ([]ledger.Freeze, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("freeze folder: %w", err)
	}
	var all []ledger.Freeze
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		all = append(all, d.read(e.Name()))
	}
	slices.SortFunc(all, func(a, b ledger.Freeze) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// nobody is who froze when the file does not say; the ledger wants a name.
const nobody = "unknown"

func (d *Dir) read(name string) ledger.Freeze {
	id := strings.TrimSuffix(name, suffix)
	f, at, err := readFile(filepath.Join(d.path, name))
	if err != nil {
		return ledger.Freeze{ID: id, By: nobody, Reason: fmt.Sprintf("the freeze file %s cannot be read (%v), so it freezes everything", name, err), At: at}
	}
	// The name is what thaw removes, whatever the file says.
	f.ID = id
	if f.By == "" {
		f.By = nobody
	}
	if f.At.IsZero() {
		f.At = at
	}
	return f
}

func readFile(path string) (f ledger.Freeze, modified time.Time, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return f, time.Time{}, err
	}
	modified = info.ModTime().UTC()
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return f, modified, errors.New("no regular file of a sensible size")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return f, modified, err
	}
	var out ledger.Freeze
	if err := json.Unmarshal(data, &out); err != nil {
		return f, modified, errors.New("no whole JSON object")
	}
	return out, modified, nil
}

// Remove deletes the file of a freeze and syncs the folder; one that is gone
// already is fine.
func (d *Dir) Remove(id string) error {
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return fmt.Errorf("freeze id %q is no name of a file", id)
	}
	removed := false
	for _, name := range []string{id + suffix, id} {
		err := os.Remove(filepath.Join(d.path, name))
		switch {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("freeze %s: %w", id, err)
		}
	}
	if !removed {
		return nil
	}
	return syncFolder(d.path)
}
