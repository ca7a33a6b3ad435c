package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// childEnv makes the test binary a writer that appends until it is killed, or,
// with limitEnv, until its files may not grow any more.
const (
	childEnv = "SETPOINT_TEST_APPEND_TO"
	limitEnv = "SETPOINT_TEST_FILE_LIMIT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := errors.Join(limitFiles(), appendForEver(path)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if what, dir, ok := strings.Cut(os.Getenv(mountEnv), ":"); ok {
		if err := onMount(what, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(actionsEnv); path != "" {
		if err := actions(path, 10); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// Each check makes a ledger on the disk.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// appendForEver writes the number of each entry once it was acknowledged.
func appendForEver(path string) error {
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	var at ledger.Position
	for {
		// Three at once: a batch is there whole or not at all.
		es, err := s.Append(context.Background(), at, ledgertest.Drafts(ledgertest.Gap("a"), ledgertest.Gap("b"), ledgertest.Gap("c")))
		if err != nil {
			// Nothing may be tried on a disk that failed in a commit.
			_, again := s.Append(context.Background(), at, ledgertest.Drafts(ledgertest.Gap("again")))
			return errors.Join(err, again)
		}
		at = es[len(es)-1].Position()
		fmt.Println(at.Seq)
	}
}

// limitFiles has the operating system refuse to grow files beyond a size, as a
// failing disk does.
func limitFiles() error {
	value, ok := os.LookupEnv(limitEnv)
	if !ok {
		return nil
	}
	limit, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return err
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
}

func TestDiskFailsInCommit(t *testing.T) {
	path := newLedger(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path, limitEnv+"=200000")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err == nil {
		t.Fatal("the disk never failed")
	}
	for _, want := range []string{"the disk failed; nothing more is written until a restart", "not written since an earlier failure"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("the writer said %q, want %q", &stderr, want)
		}
	}
	lines := strings.Fields(stdout.String())
	if len(lines) == 0 {
		t.Fatal("nothing was acknowledged before the disk failed")
	}
	s := openLedger(t, path)
	rep, err := s.Verify(t.Context())
	if err != nil || strconv.FormatUint(rep.Entries, 10) != lines[len(lines)-1] {
		t.Errorf("%d entries, %v, want the %s that were acknowledged", rep.Entries, err, lines[len(lines)-1])
	}
	check(t, s.Close())
}

func TestKilled(t *testing.T) {
	path := newLedger(t)
	for round := range 5 {
		acknowledged := killAfter(t, path, 5+10*round)
		s := openLedger(t, path)
		rep, err := s.Verify(t.Context())
		if err != nil {
			t.Fatalf("after kill %d: %v", round, err)
		}
		// More than was acknowledged may be there, but only whole batches.
		if rep.Entries < acknowledged || rep.Entries%3 != 1 {
			t.Errorf("after kill %d: %d entries, %d were acknowledged", round, rep.Entries, acknowledged)
		}
		check(t, s.Close())
	}
}

// killAfter runs a writer until it acknowledged so many batches, kills it and
// returns the last entry that it acknowledged.
func killAfter(t *testing.T, path string, batches int) uint64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(out)
	last := ""
	for n := 0; lines.Scan(); n++ {
		last = lines.Text()
		if n == batches {
			beside(t, path, cmd.Process)
			check(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("the writer ended by itself: %v, %s", err, &stderr)
	}
	seq, err := strconv.ParseUint(last, 10, 64)
	check(t, err)
	return seq
}

// beside checks what another process gets while a writer lives: no lock, with
// the pid to look for; and all of its reading, also while the writer hangs.
func beside(t *testing.T, path string, writer *os.Process) {
	t.Helper()
	check(t, writer.Signal(syscall.SIGSTOP))
	_, err := sqlite.Open(path, sqlite.Options{})
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(writer.Pid)) {
		t.Errorf("beside process %d: got %v", writer.Pid, err)
	}
	r, err := sqlite.OpenReader(path)
	check(t, err)
	if rep, err := r.Verify(t.Context()); err != nil || rep.Entries%3 != 1 {
		t.Errorf("beside a hanging writer: %d entries, %v", rep.Entries, err)
	}
	check(t, r.Close())
}
