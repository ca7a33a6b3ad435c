package rego

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// MaxBundle is the largest bundle that is read, in bytes and in files.
const (
	MaxBundle = 8 << 20
	MaxFiles  = 1000
)

// File is one file of a bundle as it was read.
type File struct {
	Path string
	Data []byte
}

// snapshot is all of a bundle, read at once.
type snapshot struct {
	// files are sorted by path.
	files    []File
	revision string
	// ignored are data-like files that a bundle does not load.
	ignored []string
}

func (s snapshot) pick(keep func(string) bool) []File {
	var out []File
	for _, f := range s.files {
		if keep(f.Path) {
			out = append(out, f)
		}
	}
	return out
}

func isRego(p string) bool { return path.Ext(p) == ".rego" }
func isTest(p string) bool { return strings.HasSuffix(p, "_test.rego") }
func isRule(p string) bool { return isRego(p) && !isTest(p) }
func isData(p string) bool {
	b := path.Base(p)
	return b == "data.json" || b == "data.yaml" || b == "data.yml"
}

// readSnapshot reads the bundle twice and refuses one that changed in between:
// a folder in the middle of being written is no snapshot of anything.
func readSnapshot(fsys fs.FS) (snapshot, error) {
	one, err := readOnce(fsys)
	if err != nil {
		return snapshot{}, err
	}
	two, err := readOnce(fsys)
	if err != nil {
		return snapshot{}, err
	}
	if one.revision != two.revision {
		return snapshot{}, errors.New("the policy folder changed while it was read; it is read again at the next reload")
	}
	return one, nil
}

func readOnce(fsys fs.FS) (snapshot, error) {
	r := reader{fsys: fsys}
	if err := fs.WalkDir(fsys, ".", r.visit); err != nil {
		return snapshot{}, fmt.Errorf("read policy: %w", err)
	}
	slices.SortFunc(r.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	r.revision = revision(r.files)
	return r.snapshot, nil
}

// reader collects a snapshot within its limits.
type reader struct {
	snapshot
	fsys fs.FS
	size int64
}

func (r *reader) visit(p string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case p != "." && strings.HasPrefix(d.Name(), "."):
		if d.IsDir() {
			return fs.SkipDir // a mounted ConfigMap keeps its versions in such folders
		}
	case isRego(p) || isData(p):
		return r.add(p)
	case !d.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, path.Ext(p)):
		r.ignored = append(r.ignored, p)
	}
	return nil
}

func (r *reader) add(p string) error {
	info, err := fs.Stat(r.fsys, p) // follows links, as in a ConfigMap
	if err != nil || info.IsDir() {
		return err
	}
	if r.size += info.Size(); r.size > MaxBundle || len(r.files) >= MaxFiles {
		return fmt.Errorf("%s: the bundle has more than %d bytes or %d files", p, MaxBundle, MaxFiles)
	}
	data, err := fs.ReadFile(r.fsys, p)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	r.files = append(r.files, File{Path: p, Data: data})
	return nil
}

// revision is the SHA-256 (hex) over path and content of every file, each with
// its length before it, so that no two bundles have one text.
func revision(files []File) string {
	h := sha256.New()
	write := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, f := range files {
		write([]byte(f.Path))
		write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
