package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FindRoot gives the folder that holds slo/ and evals/: the first at or above
// one of the starts, in their order.
func FindRoot(starts ...string) (string, error) {
	for _, start := range starts {
		abs, err := filepath.Abs(start)
		if err != nil {
			return "", fmt.Errorf("find slo/ and evals/: %w", err)
		}
		for dir := abs; ; dir = filepath.Dir(dir) {
			if isRoot(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no folder with slo/ and evals/ at or above %s: run this in a clone of the repository, or name it with --root",
		strings.Join(starts, " or "))
}

// CheckRoot refuses a folder that does not hold slo/ and evals/.
func CheckRoot(dir string) error {
	if !isRoot(dir) {
		return fmt.Errorf("--root %s: it holds no slo/ and evals/; name the top folder of the repository", dir)
	}
	return nil
}

func isRoot(dir string) bool {
	return isDir(filepath.Join(dir, "slo")) && isDir(filepath.Join(dir, "evals"))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
