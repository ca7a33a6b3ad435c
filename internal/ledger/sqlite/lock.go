package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// lock takes the writer lock of a ledger: an OS lock on <ledger>.lock, which
// ends with the process however that ends. The file stays; removing it would
// let two writers lock two files of one name.
func lock(path string) (*os.File, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s%s; stop it, or let it do the writing over its socket", ledger.ErrLocked, name, holder(f))
	case err != nil:
		err = fmt.Errorf("ledger lock %s: %w", name, err)
	default:
		err = sign(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sign writes who holds the lock, for people only.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("ledger lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("ledger lock: %w", err)
	}
	return nil
}

func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || convErr != nil {
		return ""
	}
	return fmt.Sprintf(" is held by process %d", pid)
}
