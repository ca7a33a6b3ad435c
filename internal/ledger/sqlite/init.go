package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Init creates a ledger with its first entry, which names by, the principal
// who wanted it. It never touches a file that is there.
func Init(path, by string) error { return initAt(path, by, time.Now()) }

func initAt(path, by string, now time.Time) (err error) {
	if err := local(path); err != nil {
		return fmt.Errorf("create %w", err)
	}
	held, err := lock(path)
	if err != nil {
		return fmt.Errorf("create ledger %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return exists(path)
	}
	// Under another name until it is whole: a crash leaves no half ledger.
	fresh := path + ".new"
	if err := create(fresh, by, now); err != nil {
		return err
	}
	// A link, unlike a rename, does not replace what appeared meanwhile.
	if err := os.Link(fresh, path); errors.Is(err, os.ErrExist) {
		return exists(path)
	} else if err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	if err := os.Remove(fresh); err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func exists(path string) error {
	return fmt.Errorf("create ledger %s: the file %w", path, ledger.ErrExists)
}

func create(path, by string, now time.Time) (err error) {
	// The lock is ours, so what is left there is of a crashed init.
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("create ledger: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	db, err := connect(path, false, "journal_mode(WAL)")
	if err != nil {
		return err
	}
	// Closing moves everything from the -wal into the file.
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return explain(path, "create tables", err)
	}
	e, err := ledger.Link(ledger.Position{}, now, ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: by}})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, insertEntry, values(e)...)
	return explain(path, "write first entry", err)
}

// syncDir makes a new name survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
