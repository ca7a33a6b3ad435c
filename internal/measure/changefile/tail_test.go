package changefile

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A file that became a pipe after it was looked at holds up nobody.
func TestTailOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := tail(path, 0, 100)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a pipe is read")
		}
	case <-time.After(10 * time.Second):
		t.Error("the opening of a pipe waits")
	}
}
