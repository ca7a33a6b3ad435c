package freezefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// sendingFile is locked, shared, by whoever sends, from before the last look at
// the freezes until the answer. Its name begins with a dot: it is no freeze.
const sendingFile = ".sending"

// Sending says that a send begins; the freezes are looked at after it, and the
// returned function ends it. Whoever freezes waits for the sends that had begun
// (Settled), so that no byte leaves after a freeze is acknowledged. An error
// means that nothing may be sent.
func (d *Dir) Sending() (done func(), err error) {
	if err := d.Make(); err != nil {
		return nil, err
	}
	f, err := d.openSending()
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(freezingTakes); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // Closing unlocks; there is nothing to lose.
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || !time.Now().Before(end) {
			return nil, errors.Join(fmt.Errorf("somebody holds %s, as a freeze does for a moment: %w", f.Name(), err), f.Close())
		}
		time.Sleep(pollEvery)
	}
}

// freezingTakes is longer than a freeze holds the lock.
const freezingTakes = 500 * time.Millisecond

// Settled reports whether every send that had begun is over, and waits for that
// at most so long. Call it after Write.
func (d *Dir) Settled(wait time.Duration) (bool, error) {
	f, err := d.openSending()
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	for end := time.Now().Add(wait); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return false, fmt.Errorf("freeze folder: %w", err)
		case !time.Now().Before(end):
			return false, nil
		}
		time.Sleep(pollEvery)
	}
}

// pollEvery is how often Settled looks; a lock that is waited for cannot be
// given up in time.
const pollEvery = 20 * time.Millisecond

func (d *Dir) openSending() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, sendingFile), os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fmt.Errorf("freeze folder: %w%s", err, asWhom(err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("freeze folder: %s is no regular file; remove it", f.Name())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
