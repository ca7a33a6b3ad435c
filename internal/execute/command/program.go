package command

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// program returns the absolute path of a listed program, and the file that it
// leads to and that is run: what a link is turned to after the last look
// changes nothing.
func (e *Executor) program(path string) (listed, file string, err error) {
	if listed, err = filepath.Abs(path); err != nil {
		return "", "", fmt.Errorf("program %q: %w", path, err)
	}
	if !slices.Contains(e.allow, listed) {
		known := "which allows no program"
		if len(e.allow) > 0 {
			known = "which allows " + strings.Join(slices.Sorted(slices.Values(e.allow)), ", ")
		}
		return "", "", fmt.Errorf("the program %s is not in executors.command.allow of setpoint.yaml, %s", listed, known)
	}
	file, err = Check(listed)
	return listed, file, err
}

// Check says whether a program may be run at all, and returns the file behind
// all links. Whoever can write the file chooses what is run, whatever was
// reviewed, so nobody but its owner may.
func Check(program string) (file string, err error) {
	file, err = filepath.EvalSymlinks(program)
	if err != nil {
		return "", fmt.Errorf("the program %s cannot be found: %w", program, err)
	}
	info, err := os.Lstat(file)
	if err != nil {
		return "", fmt.Errorf("the program %s cannot be found: %w", program, err)
	}
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return "", fmt.Errorf("the program %s is a folder: name the file to run", program)
	case !mode.IsRegular():
		return "", fmt.Errorf("the program %s is no regular file (%s)", program, mode.Type())
	case mode.Perm()&0o111 == 0:
		return "", fmt.Errorf("the program %s is not executable: chmod +x %s", program, file)
	case mode.Perm()&0o022 != 0:
		return "", fmt.Errorf("the program %s can be written by others than its owner (mode %04o): chmod go-w %s", program, mode.Perm(), file)
	}
	for _, path := range []string{program, file} {
		if err := checkFolders(path); err != nil {
			return "", fmt.Errorf("the program %s: %w", program, err)
		}
	}
	return file, nil
}

// checkFolders refuses a path on which everybody could put another file in the
// place of the one that was listed. The sticky bit, as on /tmp, prevents it.
func checkFolders(path string) error {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("its folder %s can be written by everybody: chmod o-w %s", folder, folder)
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}
