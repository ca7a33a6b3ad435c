package mutants_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// appendEnv makes the test binary a writer of a few entries, which says after
// each that it was acknowledged.
const appendEnv = "SETPOINT_TEST_APPENDS"

const appends = 5

// acknowledged is what the writer says, as strace shows it.
const acknowledged = "acknowledged"

func TestMain(m *testing.M) {
	path := os.Getenv(appendEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := write(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(path string) error {
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	var at ledger.Position
	for range appends {
		es, err := s.Append(context.Background(), at, func([]ledger.Entry) ([]ledger.Draft, error) {
			return []ledger.Draft{{Kind: ledger.KindGap, Body: ledger.Gap{Why: "test"}}}, nil
		})
		if err != nil {
			return err
		}
		at = es[len(es)-1].Position()
		fmt.Println(acknowledged)
	}
	return s.Close()
}

// What an append acknowledged was told to the disk before: no kill shows
// whether it was, only a power cut would, or whoever watches the system calls.
func TestAppendIsOnTheDisk(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not there")
	}
	path := filepath.Join(t.TempDir(), "setpoint.db")
	if err := sqlite.Init(path, "os:test"); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(t.TempDir(), "calls")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-o", calls, "-e", "trace=pwrite64,write,fsync,fdatasync", os.Args[0])
	cmd.Env = append(os.Environ(), appendEnv+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("strace may not trace here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(calls)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	// A call that another thread interrupts is on two lines; the first names the
	// file, and the second its end.
	writes := regexp.MustCompile(`pwrite64\(\d+<[^>]*-wal>`)
	syncs := regexp.MustCompile(`(fsync|fdatasync)\(\d+<[^>]*-wal>`)
	unsynced, said := 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch {
		case writes.MatchString(line):
			unsynced++
		case syncs.MatchString(line):
			unsynced = 0
		case strings.Contains(line, acknowledged):
			if said++; unsynced > 0 {
				t.Errorf("entry %d was acknowledged with %d writes to the journal that no sync covers", said, unsynced)
			}
		}
	}
	if said != appends {
		t.Errorf("%d acknowledgements, want %d", said, appends)
	}
}
