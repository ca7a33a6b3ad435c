package crash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

// SQLite's write-ahead log: a header of 32 bytes, then frames of 24 bytes and a
// page each. A frame that ends a transaction holds the database's size in
// pages; frames of an older round have other salts.
const (
	walHeader   = 32
	frameHeader = 24
)

// transaction is where one lies in the log.
type transaction struct{ from, to int64 }

// transactions lists the committed ones of a -wal file, oldest first.
func transactions(path string) ([]transaction, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < walHeader {
		return nil, fmt.Errorf("%s holds no frame", path)
	}
	page := int(binary.BigEndian.Uint32(data[8:]))
	salts := data[16:24]
	var out []transaction
	from := walHeader
	for at := walHeader; at+frameHeader+page <= len(data); at += frameHeader + page {
		if !bytes.Equal(data[at+8:at+16], salts) {
			break
		}
		if binary.BigEndian.Uint32(data[at+4:]) != 0 {
			end := at + frameHeader + page
			out = append(out, transaction{int64(from), int64(end)})
			from = end
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no committed transaction", path)
	}
	return out, nil
}

// flip inverts one byte of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	if err == nil {
		b[0] ^= 0xff
		_, err = f.WriteAt(b[:], at)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
