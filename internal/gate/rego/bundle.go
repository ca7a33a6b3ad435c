package rego

import (
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

// Bundle is a bundle root, read whole at one moment. It never changes.
type Bundle struct {
	// files are sorted by path.
	files []File
	// revision is the digest of them all, data that of the data files alone.
	revision, data string
	// ignored are data-like files that a bundle does not load.
	ignored []string
}

// Revision is the SHA-256 (hex) over path and content of the bundle's Rego and
// data files.
func (b Bundle) Revision() string { return b.revision }

// DataDigest is the SHA-256 (hex) over path and content of its data files alone.
func (b Bundle) DataDigest() string { return b.data }

// Files are the bundle as it was read, by path.
func (b Bundle) Files() []File {
	out := make([]File, len(b.files))
	for i, f := range b.files {
		out[i] = File{f.Path, slices.Clone(f.Data)}
	}
	return out
}

func (b Bundle) pick(keep func(string) bool) []File {
	var out []File
	for _, f := range b.files {
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

// Read reads the bundle twice and refuses one that changed in between: a folder
// in the middle of being written is no bundle.
func Read(fsys fs.FS) (Bundle, error) {
	one, err := readOnce(fsys)
	if err != nil {
		return Bundle{}, err
	}
	two, err := readOnce(fsys)
	if err != nil {
		return Bundle{}, err
	}
	if one.revision != two.revision {
		return Bundle{}, errors.New("the policy folder changed while it was read; it is read again at the next reload")
	}
	return one, nil
}

func readOnce(fsys fs.FS) (Bundle, error) {
	r := reader{fsys: fsys}
	if err := fs.WalkDir(fsys, ".", r.visit); err != nil {
		return Bundle{}, fmt.Errorf("read policy: %w", err)
	}
	return bundleOf(r.files, r.ignored), nil
}

func bundleOf(files []File, ignored []string) Bundle {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	b := Bundle{files: files, ignored: ignored, revision: digest(pack(files))}
	b.data = digest(pack(b.pick(isData)))
	return b
}

// reader collects a bundle within its limits.
type reader struct {
	Bundle
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
