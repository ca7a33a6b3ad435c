package decisionlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/decisionlog"
)

// opened is a log at a path, with what it tells people.
func opened(t *testing.T, path string) (l *decisionlog.Log, told *bytes.Buffer) {
	t.Helper()
	told = &bytes.Buffer{}
	l, err := decisionlog.Open(decisionlog.Options{Path: path, Logger: slog.New(slog.NewTextHandler(told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l, told
}

func named(id string, p decisionlog.Policy) decisionlog.Decision {
	d := decision(p)
	d.ID = id
	return d
}

// ids are the decisions in a file, each line of which must be one event.
func ids(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		var e decisionlog.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			out = append(out, "("+strings.TrimSpace(line)+")")
			continue
		}
		out = append(out, e.DecisionID)
	}
	return strings.Join(out, " ")
}

// eventually waits for another goroutine, which has real files to write.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal(what)
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

func TestFileIsAppendedTo(t *testing.T) {
	path, p := filepath.Join(t.TempDir(), "decisions.jsonl"), policy(t)
	for _, id := range []string{"d1", "d2"} {
		l, told := opened(t, path)
		l.Record(t.Context(), named(id, p))
		if err := l.Close(t.Context()); err != nil || l.Lost() != 0 || told.Len() > 0 {
			t.Fatalf("%v, %d lost, %s", err, l.Lost(), told)
		}
	}
	if got := ids(t, path); got != "d1 d2" {
		t.Errorf("the file has %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600", info.Mode(), err)
	}
}

// After a rotation the next line is in the new file, without a signal.
func TestFileIsFollowed(t *testing.T) {
	tests := map[string]struct {
		reason    string
		rotate    func(path string) error
		old, next string
	}{
		"Moved":     {"logrotate moves it", func(p string) error { return os.Rename(p, p+".1") }, "d1", "d2"},
		"Replaced":  {"logrotate moves it and makes another", func(p string) error { return errors.Join(os.Rename(p, p+".1"), os.WriteFile(p, nil, 0o600)) }, "d1", "d2"},
		"Removed":   {"somebody removes it", os.Remove, "", "d2"},
		"Truncated": {"logrotate copies and truncates it", func(p string) error { return os.Truncate(p, 0) }, "", "d2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path, p := filepath.Join(t.TempDir(), "decisions.jsonl"), policy(t)
			l, _ := opened(t, path)
			l.Record(t.Context(), named("d1", p))
			eventually(t, "the first line is not written", func() bool { return size(path) > 0 })
			if err := tt.rotate(path); err != nil {
				t.Fatal(err)
			}
			l.Record(t.Context(), named("d2", p))
			if err := l.Close(t.Context()); err != nil || l.Lost() != 0 {
				t.Fatalf("%s: %v, %d lost", tt.reason, err, l.Lost())
			}
			if got := ids(t, path); got != tt.next {
				t.Errorf("%s: the file has %s", tt.reason, got)
			}
			if tt.old != "" && ids(t, path+".1") != tt.old {
				t.Errorf("%s: the old file has %s", tt.reason, ids(t, path+".1"))
			}
		})
	}
}

// A line without an end, as a crash leaves it, spoils no other.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	if err := os.WriteFile(path, []byte(`{"decision_id":"d`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, _ := opened(t, path)
	for _, id := range []string{"d2", "d3"} {
		l.Record(t.Context(), named(id, policy(t)))
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, path); got != `({"decision_id":"d) d2 d3` {
		t.Errorf("the file has %s", got)
	}
}

// What is no file of events is left alone, nothing waits for it, and people hear
// of it once.
func TestNoFileOfEvents(t *testing.T) {
	tests := map[string]struct {
		reason string
		make   func(path string) error
		want   string
	}{
		"Other":   {"a wrong path destroys no other file", func(p string) error { return os.WriteFile(p, []byte("SQLite format 3"), 0o600) }, "holds something else than events"},
		"FIFO":    {"a pipe that nobody reads holds up nothing", func(p string) error { return syscall.Mkfifo(p, 0o600) }, "is no regular file"},
		"Folder":  {"a folder", func(p string) error { return os.Mkdir(p, 0o700) }, "is a directory"},
		"Dangles": {"a link to nowhere", func(p string) error { return os.Symlink(filepath.Join(p, "no", "where"), p) }, "too many levels"},
		"Device":  {"a device", func(p string) error { return os.Symlink("/dev/null", p) }, "is no regular file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "decisions.jsonl")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			l, told := opened(t, path)
			for i := range 3 {
				l.Record(t.Context(), named(fmt.Sprint("d", i), policy(t)))
			}
			if err := l.Close(t.Context()); err != nil || l.Lost() != 3 {
				t.Errorf("%s: %v, %d lost, want 3", tt.reason, err, l.Lost())
			}
			if got := told.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, tt.want) {
				t.Errorf("%s: told %q, want %q once", tt.reason, got, tt.want)
			}
			if name == "Other" {
				if after, err := os.ReadFile(path); err != nil || string(after) != "SQLite format 3" {
					t.Errorf("%s: it holds %q now, %v", tt.reason, after, err)
				}
			}
		})
	}
}

// A log that can be written again is, and that is told too.
func TestFaultEnds(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(folder, "decisions.jsonl")
	l, told := opened(t, path)
	l.Record(t.Context(), named("d1", policy(t)))
	eventually(t, "the fault is not counted", func() bool { return l.Lost() == 1 })
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Record(t.Context(), named("d2", policy(t)))
	if err := l.Close(t.Context()); err != nil || l.Lost() != 1 || ids(t, path) != "d2" {
		t.Errorf("%v, %d lost, the file has %s", err, l.Lost(), ids(t, path))
	}
	if got := told.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "is written again") || !strings.Contains(got, "lost=1") {
		t.Errorf("told %s", got)
	}
}

// A disk that is full costs the lines that it refused.
func TestWriteFails(t *testing.T) {
	to := &lines{fail: syscall.ENOSPC}
	l, err := decisionlog.Start(decisionlog.Options{}, to)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		l.Record(t.Context(), decision(policy(t)))
	}
	if err := l.Close(t.Context()); err != nil || l.Lost() != 5 {
		t.Errorf("%v, %d lost, want 5", err, l.Lost())
	}
}

// hanging is a file system that hangs until it is released.
type hanging struct{ release chan struct{} }

func (h hanging) Follow() error      { return nil }
func (h hanging) Write([]byte) error { <-h.release; return nil }

// A file system that hangs holds up nobody: what does not fit is counted, and a
// stop waits no longer than it may.
func TestHungFile(t *testing.T) {
	p := policy(t)
	synctest.Test(t, func(t *testing.T) {
		h := hanging{make(chan struct{})}
		l, err := decisionlog.Start(decisionlog.Options{Path: "/hung"}, h)
		if err != nil {
			t.Fatal(err)
		}
		d := decision(p)
		began := time.Now()
		l.Record(t.Context(), d)
		synctest.Wait() // One is being written, so that all others wait.
		for range decisionlog.MaxWaiting + 7 {
			l.Record(t.Context(), d)
		}
		if took := time.Since(began); took != 0 || l.Lost() != 7 {
			t.Errorf("took %s, %d lost, want 7", took, l.Lost())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err = l.Close(ctx)
		want := fmt.Sprintf("%d decisions were not written to /hung", decisionlog.MaxWaiting+1)
		if took := time.Since(began); took != 3*time.Second || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Close took %s: %v, want %s", took, err, want)
		}
		if l.Lost() != 7+decisionlog.MaxWaiting+1 {
			t.Errorf("%d lost", l.Lost())
		}
		close(h.release)
	})
}

// Large inputs fill what may wait sooner.
func TestBytesAreBounded(t *testing.T) {
	p := policy(t)
	synctest.Test(t, func(t *testing.T) {
		h := hanging{make(chan struct{})}
		l, err := decisionlog.Start(decisionlog.Options{}, h)
		if err != nil {
			t.Fatal(err)
		}
		d := decision(p)
		d.Input = []byte(`"` + strings.Repeat("x", 1<<20-2) + `"`)
		for range 40 {
			l.Record(t.Context(), d)
		}
		if l.Lost() != 8 {
			t.Errorf("%d of 40 MiB lost, want 8", l.Lost())
		}
		close(h.release)
		if err := l.Close(t.Context()); err != nil || l.Lost() != 8 {
			t.Errorf("%v, %d lost", err, l.Lost())
		}
	})
}

// What comes after the end is counted.
func TestRecordAfterClose(t *testing.T) {
	var to lines
	l, err := decisionlog.Start(decisionlog.Options{}, &to)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close(t.Context()), l.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	l.Record(t.Context(), decision(policy(t)))
	if l.Lost() != 1 || len(to.got) != 0 {
		t.Errorf("%d lost, %d lines", l.Lost(), len(to.got))
	}
}

// Every decision is written once or counted, whoever records it and whenever it
// ends.
func TestNoneIsForgotten(t *testing.T) {
	p := policy(t)
	var to lines
	l, err := decisionlog.Start(decisionlog.Options{}, &to)
	if err != nil {
		t.Fatal(err)
	}
	const each = 200
	var g sync.WaitGroup
	for i := range 4 {
		g.Go(func() {
			for j := range each {
				l.Record(t.Context(), named(fmt.Sprintf("d%d-%d", i, j), p))
			}
		})
	}
	g.Go(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g.Wait()
	seen := map[string]bool{}
	for _, line := range to.got {
		var e decisionlog.Event
		if err := json.Unmarshal(line, &e); err != nil || seen[e.DecisionID] {
			t.Errorf("%s twice, or no event: %v", e.DecisionID, err)
		}
		seen[e.DecisionID] = true
	}
	if uint64(len(seen))+l.Lost() != 4*each {
		t.Errorf("%d written and %d lost of %d", len(seen), l.Lost(), 4*each)
	}
}

func TestBadMaskOfTheConfiguration(t *testing.T) {
	if _, err := decisionlog.Open(decisionlog.Options{Path: filepath.Join(t.TempDir(), "d"), Mask: []string{"input/a"}}); err == nil || !strings.Contains(err.Error(), "input/a") {
		t.Errorf("got %v", err)
	}
}
