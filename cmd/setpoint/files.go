package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// maxFile is the most that is read of one file. No honest one comes near.
const maxFile = spec.MaxFileBytes

// readRegular reads a whole file. A pipe would hang whoever reads it and a
// device may never end, so both are refused, and so is what is too long.
func readRegular(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, tooLong(path, maxFile)
	}
	return data, nil
}

func tooLong(path string, most int64) error {
	return fmt.Errorf("%s is longer than the limit of %d bytes", path, most)
}

func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, err
	}
	// It may have become a pipe since: without O_NONBLOCK opening one waits for
	// a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "something else"
	for _, k := range []struct {
		mode fs.FileMode
		name string
	}{
		{fs.ModeDir, "a folder"}, {fs.ModeNamedPipe, "a named pipe"}, {fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"},
	} {
		if info.Mode()&k.mode != 0 {
			what = k.name
			break
		}
	}
	return fmt.Errorf("%s is %s, want a regular file", path, what)
}

// folder is a folder of this host from which only regular files are read.
type folder struct {
	path string
	// most is the longest file that is opened.
	most int64
	fs.FS
}

// openFolder wants a folder to be there.
func openFolder(path string, most int64) (folder, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return folder{}, err
	case !info.IsDir():
		return folder{}, fmt.Errorf("%s is no folder", path)
	}
	return folder{path: path, most: most, FS: os.DirFS(path)}, nil
}

// Open opens a regular file or a folder.
func (d folder) Open(name string) (fs.File, error) {
	info, err := fs.Stat(d.FS, name)
	switch {
	case err != nil || info.IsDir():
		return d.FS.Open(name)
	case info.Size() > d.most:
		return nil, tooLong(name, d.most)
	}
	return openRegular(filepath.Join(d.path, filepath.FromSlash(name)))
}
