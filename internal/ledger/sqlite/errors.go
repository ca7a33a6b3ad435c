package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// code is SQLite's primary result code of an error, 0 when it is none of it.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// explain says what a failure of SQLite means for a ledger and what to do.
func explain(path, what string, err error) error {
	if err == nil {
		return nil
	}
	words := ""
	switch code(err) {
	case codes.SQLITE_NOTADB:
		return fmt.Errorf("ledger %s: %s: %w: the file is no SQLite database; restore the ledger, or move the file away and run `setpoint ledger init`: %w", path, what, ledger.ErrCorrupt, err)
	case codes.SQLITE_CORRUPT:
		return fmt.Errorf("ledger %s: %s: %w: the database file is damaged; restore it from a backup: %w", path, what, ledger.ErrCorrupt, err)
	case codes.SQLITE_FULL:
		words = "the disk is full; free space on it"
	case codes.SQLITE_READONLY:
		words = "the file, its directory or its file system is read-only"
	case codes.SQLITE_IOERR:
		words = "the disk failed; nothing more is written until a restart"
	case codes.SQLITE_CANTOPEN:
		words = "the file, or its -wal and -shm beside it, cannot be opened; check the permissions of the directory"
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		words = "another program holds the database locked; end it"
	default:
		return fmt.Errorf("ledger %s: %s: %w", path, what, err)
	}
	return fmt.Errorf("ledger %s: %s: %s: %w", path, what, words, err)
}
