package main

import (
	"bytes"
	"io"
)

// unquoted is where the standard library's own log goes. net/http prints there
// what a server sends before it has read what it is asked, up to 4 KiB of it: words
// of a stranger, in which an API key of an earlier request may be.
type unquoted struct{ to io.Writer }

// Write leaves out what is quoted.
func (u unquoted) Write(line []byte) (int, error) {
	said, _, quotes := bytes.Cut(line, []byte(" starting with "))
	if quotes {
		said = append(bytes.Clone(said), '\n')
	}
	if _, err := u.to.Write(said); err != nil {
		return 0, err
	}
	return len(line), nil
}
