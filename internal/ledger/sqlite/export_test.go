package sqlite

import (
	"context"
	"testing"
)

// Exec runs SQL on the writer's own connection, to put it where a full or a
// read-only disk would.
func (s *Store) Exec(t testing.TB, query string) {
	t.Helper()
	if _, err := s.conn.ExecContext(context.Background(), query); err != nil {
		t.Fatal(err)
	}
}

// Network is the refusal of a path on a file system of that magic number.
func Network(path string, magic uint32) error { return network(path, magic) }
