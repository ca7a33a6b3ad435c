package changefile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/changefile"
)

var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// feed is a file, and what was said of it.
type feed struct {
	*changefile.File
	t    *testing.T
	path string
	said []string
	bad  int
}

func newFeed(t *testing.T) *feed {
	f := &feed{t: t, path: filepath.Join(t.TempDir(), "changes.jsonl")}
	f.File = changefile.New(changefile.Options{
		Path: f.path, Now: func() time.Time { return day },
		Notice: func(text string) { f.said = append(f.said, strings.ReplaceAll(text, f.path, "FILE")) },
		Bad:    func(n int) { f.bad += n },
	})
	return f
}

func line(version string, ago time.Duration) string {
	return fmt.Sprintf(`{"time":%q,"service":"checkout","what":"deploy","version":%q}`+"\n", day.Add(-ago).Format(time.RFC3339), version)
}

// add appends, as a pipeline does.
func (f *feed) add(text string) {
	f.t.Helper()
	w, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := w.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *feed) versions() string {
	var out []string
	for _, c := range f.Changes("checkout") {
		out = append(out, c.Version)
	}
	return strings.Join(out, " ")
}

func (f *feed) want(versions string, said ...string) {
	f.t.Helper()
	if got := f.versions(); got != versions {
		f.t.Errorf("versions %q, want %q", got, versions)
	}
	if diff := cmp.Diff(said, f.said); diff != "" {
		f.t.Errorf("said (-want +got):\n%s", diff)
	}
	f.said = nil
}

func TestFile(t *testing.T) {
	const missing = "there is no change file FILE yet; it is read when somebody writes it"
	const nonsense = `: a line of the change feed is left out: want one JSON object {"time", "service", "what", "version"}`
	f := newFeed(t)
	f.want("", missing)
	f.want("")
	f.add(line("v1", time.Hour))
	f.want("v1")
	f.add("nonsense\n" + line("v2", time.Minute))
	f.want("v2 v1", "FILE:2"+nonsense)
	f.add(line("v3", 0)[:20])
	f.want("v2 v1") // Somebody is writing it, and the bad line was named.
	f.add(line("v3", 0)[20:])
	f.want("v3 v2 v1")
	f.add(line("v0", measure.ChangesKept+time.Hour))
	f.want("v3 v2 v1") // More than a week old.
	if f.bad != 1 {
		t.Errorf("%d bad lines are counted, want 1", f.bad)
	}

	// Rotation: what was said before has happened.
	if err := os.Rename(f.path, f.path+".1"); err != nil {
		t.Fatal(err)
	}
	f.want("v3 v2 v1", missing)
	f.add(line("v4", 0) + "worse\n")
	f.want("v3 v4 v2 v1", "FILE:2"+nonsense)
	if err := os.WriteFile(f.path, []byte(line("v5", time.Second)), 0o600); err != nil { // Truncated in its place.
		t.Fatal(err)
	}
	f.want("v3 v4 v5 v2 v1")
	if got := f.Changes("other"); got != nil {
		t.Errorf("of another service: %v", got)
	}
	if got := f.All(); len(got) != 5 {
		t.Errorf("all: %v", got)
	}
}

// A large file is read from a line's beginning near its end.
func TestLargeFile(t *testing.T) {
	f := newFeed(t)
	f.add(line("first", 0))
	one := line("v", time.Hour)
	f.add(strings.Repeat(one, changefile.MaxTail/len(one)+10))
	f.add("nonsense\n" + line("last", 0))
	if got := f.versions(); got != "last v" {
		t.Errorf("versions %q", got)
	}
	if len(f.said) != 1 || !strings.HasPrefix(f.said[0], "FILE: at byte 1") {
		t.Errorf("said %q", f.said)
	}
	f.said = nil
	f.add(one)
	f.want("last v")
	if f.bad != 1 {
		t.Errorf("%d bad lines", f.bad)
	}
}

func TestManyBadLinesAreCounted(t *testing.T) {
	f := newFeed(t)
	f.add(strings.Repeat("x\n", 1000) + line("v1", 0))
	if got := f.versions(); got != "v1" || len(f.said) != 11 || f.bad != 1000 {
		t.Errorf("%q, %d said, %d bad", got, len(f.said), f.bad)
	}
	if want := "FILE: 990 more lines of the change feed are left out"; f.said[10] != want {
		t.Errorf("said %q, want %q", f.said[10], want)
	}
}

// A pipe is not opened, which would wait for whoever writes to it.
func TestNoRegularFile(t *testing.T) {
	f := newFeed(t)
	if err := syscall.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	f.want("", "the change file FILE is no regular file")
	f.want("")
	if f.bad != 1 {
		t.Errorf("%d faults are counted", f.bad)
	}
}

// What did not change costs one stat: the bytes are not read again.
func TestUnchangedFileIsNotRead(t *testing.T) {
	f := newFeed(t)
	f.add(line("v1", 0))
	f.want("v1")
	info, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	// Other bytes of the same size and time, which only a read would find.
	if err := os.WriteFile(f.path, []byte(line("v9", 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(f.path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	f.want("v1")
	if n := testing.AllocsPerRun(100, f.Look); n > 6 {
		t.Errorf("a look allocates %v times", n)
	}
}

// A line about a service that no document has is named once, and is taken when
// the documents have it.
func TestUnknownService(t *testing.T) {
	known := "checkout"
	f := &feed{t: t, path: filepath.Join(t.TempDir(), "changes.jsonl")}
	f.File = changefile.New(changefile.Options{
		Path: f.path, Now: func() time.Time { return day },
		Notice: func(text string) { f.said = append(f.said, strings.ReplaceAll(text, f.path, "FILE")) },
		Bad:    func(n int) { f.bad += n },
		Unknown: func(service string) string {
			if strings.Contains(known, service) {
				return ""
			}
			return fmt.Sprintf("no service %q", service)
		},
	})
	other := strings.Replace(line("w1", 0), "checkout", "chekout", 1)
	f.add(other + "nonsense\n" + line("v1", 0))
	f.want("v1",
		`FILE:1: a line of the change feed is left out: no service "chekout"`,
		`FILE:2: a line of the change feed is left out: want one JSON object {"time", "service", "what", "version"}`)
	f.add(line("v2", -time.Second))
	f.want("v2 v1") // Each is named once.
	if got := f.All(); len(got) != 2 || f.bad != 2 {
		t.Errorf("%d bad lines, and all are %v; want two of either", f.bad, got)
	}
	known = "checkout chekout"
	if got := f.Changes("chekout"); len(got) != 1 || got[0].Version != "w1" || len(f.All()) != 3 {
		t.Errorf("the service is there now, and its changes are %v of %v", got, f.All())
	}
}

// A reporter whose clock is a year ahead hides nothing of what has happened, and
// its changes are there when their time comes.
func TestChangesAheadHideNothing(t *testing.T) {
	f := newFeed(t)
	f.add(line("v1", time.Minute))
	for i := range 500 {
		f.add(line(fmt.Sprintf("ahead-%d", i), -365*24*time.Hour-time.Duration(i)*time.Second))
	}
	got := f.Changes("checkout")
	if n := len(got); n != 201 || got[n-1].Version != "v1" || got[n-2].Version != "ahead-0" {
		t.Errorf("%d changes are kept, the last of them %+v", n, got[max(0, n-2):])
	}
}

// What was read once stays known when so much of other services is appended that
// it lies before the end that is read.
func TestOthersHideNothing(t *testing.T) {
	f := newFeed(t)
	f.add(line("v1", time.Minute))
	f.want("v1")
	other := strings.Replace(line("v9", time.Minute), "checkout", "other", 1)
	f.add(strings.Repeat(other, changefile.MaxTail/len(other)+10))
	f.want("v1")
	f.add(line("v2", 0))
	f.want("v2 v1")
}
