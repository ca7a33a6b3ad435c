package rego

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
)

// Pack is the bundle as one byte string, for the ledger. Its SHA-256 is the
// revision, so a decision that names its revision names this blob.
func (b Bundle) Pack() []byte { return pack(b.files) }

// Unpack reads what Pack wrote. Bytes that are no bundle are an error; the
// revision of what was read is that of the bytes.
func Unpack(raw []byte) (Bundle, error) {
	var files []File
	for rest := raw; len(rest) > 0; {
		var path, data []byte
		var err error
		if path, rest, err = next(rest); err == nil {
			data, rest, err = next(rest)
		}
		switch {
		case err != nil:
			return Bundle{}, err
		case !fs.ValidPath(string(path)) || !isRego(string(path)) && !isData(string(path)):
			return Bundle{}, fmt.Errorf("not a packed policy bundle: it has a file named %.80q", path)
		case len(files) > 0 && string(path) <= files[len(files)-1].Path:
			return Bundle{}, fmt.Errorf("not a packed policy bundle: file %.80q is out of order", path)
		}
		files = append(files, File{Path: string(path), Data: data})
	}
	return bundleOf(files, nil), nil
}

// pack writes path and content of every file, each with its length before it, so
// that no two bundles have one text.
func pack(files []File) []byte {
	var out []byte
	for _, f := range files {
		out = binary.BigEndian.AppendUint64(out, uint64(len(f.Path)))
		out = append(out, f.Path...)
		out = binary.BigEndian.AppendUint64(out, uint64(len(f.Data)))
		out = append(out, f.Data...)
	}
	return out
}

func next(raw []byte) (value, rest []byte, err error) {
	const size = 8
	if len(raw) < size {
		return nil, nil, errors.New("not a packed policy bundle: it ends within a length")
	}
	n := binary.BigEndian.Uint64(raw)
	if raw = raw[size:]; n > uint64(len(raw)) {
		return nil, nil, errors.New("not a packed policy bundle: it ends within a file")
	}
	return raw[:n], raw[n:], nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
