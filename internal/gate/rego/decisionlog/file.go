package decisionlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// file is a regular file that lines are appended to. It is opened anew when its
// name leads to another file, as after a rotation.
type file struct {
	path string
	open *os.File
	// torn: the last line may have no end.
	torn bool
}

// write appends one line by one write, and never syncs.
func (f *file) write(line []byte) error {
	if err := f.follow(); err != nil {
		return err
	}
	if f.torn {
		line = append([]byte("\n"), line...)
	}
	if _, err := f.open.Write(line); err != nil {
		f.close() // Opened anew, it is looked at whether the line has an end.
		return err
	}
	f.torn = false
	return nil
}

// follow makes sure that the open file is the one of that name.
func (f *file) follow() error {
	if f.open != nil {
		named, err := os.Stat(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if opened, statErr := f.open.Stat(); err == nil && statErr == nil && os.SameFile(named, opened) {
			return nil
		}
		f.close()
	}
	// A FIFO that nobody reads must not hold up its opening.
	opened, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if f.torn, err = inspected(opened); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.path, err), opened.Close())
	}
	f.open = opened
	return nil
}

// inspected refuses what is no file of events, so that a wrong path destroys no
// other file, and reports whether the last line lacks its end.
func inspected(f *os.File) (torn bool, err error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, errors.New("is no regular file")
	case info.Size() == 0:
		return false, nil
	}
	first, last := make([]byte, 1), make([]byte, 1)
	if _, err := f.ReadAt(first, 0); err != nil {
		return false, err
	}
	if first[0] != '{' && first[0] != '\n' {
		return false, errors.New("holds something else than events: name a file of its own, or remove it")
	}
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

func (f *file) close() {
	if f.open != nil {
		_ = f.open.Close() // Each write told whether it worked.
		f.open = nil
	}
}
