package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// mountEnv makes the test binary check a ledger on a file system of its own.
const mountEnv = "SETPOINT_TEST_MOUNT"

// mounted runs a check in a process with a small file system of its own on dir;
// the test is skipped where that is not allowed.
func mounted(t *testing.T, what string) {
	t.Helper()
	dir := t.TempDir()
	script := `mount -t tmpfs -o size=1m tmpfs "$1" || exit 77; exec "$2"`
	cmd := exec.Command("unshare", "-m", "sh", "-c", script, "sh", dir, os.Args[0])
	cmd.Env = append(os.Environ(), mountEnv+"="+what+":"+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) && exit.ExitCode() != 1 && exit.ExitCode() != 2:
		t.Skipf("no file system of its own can be mounted: %v: %s", err, out)
	case err != nil && strings.Contains(string(out), "unshare"):
		t.Skipf("no file system of its own can be mounted: %s", out)
	case err != nil:
		t.Errorf("%v: %s", err, out)
	}
}

func TestFullDisk(t *testing.T) { mounted(t, "full") }

func TestReadOnlyDisk(t *testing.T) { mounted(t, "read-only") }

// onMount is what the process of mounted does.
func onMount(what, dir string) error {
	path := filepath.Join(dir, "ledger.db")
	if err := sqlite.Init(path, "os:test"); err != nil {
		return err
	}
	if what == "full" {
		return fillUp(path, filepath.Join(dir, "other"))
	}
	return readOnly(path, dir)
}

// fillUp appends until a real disk is full, which says so and loses nothing that
// was acknowledged, and goes on when there is room again.
func fillUp(path, ballast string) error {
	if err := os.WriteFile(ballast, make([]byte, 300_000), 0o600); err != nil {
		return err
	}
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	ctx, acknowledged := context.Background(), uint64(1)
	for err == nil {
		var es []ledger.Entry
		es, err = s.Append(ctx, ledger.Position{}, ledgertest.Drafts(ledgertest.Gap(strings.Repeat("x", 5000))))
		if err == nil {
			acknowledged = es[len(es)-1].Seq
		}
	}
	if !strings.Contains(err.Error(), "the disk is full; free space on it") {
		return fmt.Errorf("a full disk gave %w", err)
	}
	if rep, err := s.Verify(ctx); err != nil || rep.Entries != acknowledged {
		return fmt.Errorf("%d entries, want the %d that were acknowledged: %w", rep.Entries, acknowledged, err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if _, err := s.Append(ctx, ledger.Position{}, ledgertest.Drafts(ledgertest.Gap("again"))); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	again, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	rep, err := again.Verify(ctx)
	if rep.Entries != acknowledged+1 {
		return fmt.Errorf("%d entries after a restart, want %d: %w", rep.Entries, acknowledged+1, err)
	}
	return errors.Join(err, again.Close())
}

// readOnly opens a ledger on a disk that was remounted to be read.
func readOnly(path, dir string) error {
	if out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("remount: %w: %s", err, out)
	}
	s, err := sqlite.Open(path, sqlite.Options{})
	if err == nil {
		return errors.Join(errors.New("a writer opened a ledger on a read-only disk"), s.Close())
	}
	if !strings.Contains(err.Error(), "read-only file system") {
		return fmt.Errorf("want one that says why: %w", err)
	}
	if err := sqlite.Init(path+"2", "os:test"); err == nil {
		return errors.New("a ledger was created on a read-only disk")
	}
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	// SQLite reads such a file only beside its log, which cannot be made there.
	if _, err := sqlite.OpenReader(path); err == nil || !strings.Contains(err.Error(), "check the permissions of the directory") {
		return fmt.Errorf("a reader: want one that says why: %w", err)
	}
	return nil
}

func TestReplacedUnderTheWriter(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(grown(t, 3), path) },
		"linked": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink(path+".old", path))
		},
		"log removed": func(path string) error { return os.Remove(path + "-wal") },
		"log replaced": func(path string) error {
			return errors.Join(os.Rename(path+"-wal", path+".old"), os.WriteFile(path+"-wal", nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newLedger(t)
			s := openLedger(t, path)
			check(t, replace(path))
			_, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(ledgertest.Gap("lost")))
			if err == nil || !strings.Contains(err.Error(), "was removed or replaced while open") {
				t.Errorf("got %v", err)
			}
			_ = s.Close()
		})
	}
}

// TestLoweredClock: after a clock that ran ahead a person sets the time of the
// chain back. What was claimed then stays claimed, whatever a state still holds.
func TestLoweredClock(t *testing.T) {
	path := newLedger(t)
	real := time.Now().Truncate(time.Microsecond)
	now := real.Add(365 * 24 * time.Hour)
	s, err := sqlite.Open(path, sqlite.Options{Now: func() time.Time { return now }})
	check(t, err)
	r := newReplica(s)
	check(t, r.catchUp())
	w := gate.WindowAt(now, 10*time.Minute)
	c := claimOn("a", "x", w.Start/600)
	check(t, r.append(func(s *ledger.State) (ledger.Draft, error) { return ledger.ClaimDraft(s, "a", c, s.Head) }))
	now = real.Add(time.Minute)
	if at, err := s.Clock(t.Context()); err != nil || at.Before(real.Add(time.Hour)) {
		t.Errorf("the clock of the chain says %s, %v", at, err)
	}
	_, err = s.Append(t.Context(), r.state.Head, ledger.PlanFrom(r.state, func(s *ledger.State) ([]ledger.Draft, error) {
		return ledger.LoweredDrafts(s, map[string]gate.WindowID{"a": gate.WindowAt(now, 10*time.Minute)}, "os:test", "NTP", now)
	}))
	check(t, err)
	check(t, r.catchUp())
	if !r.state.Time.Equal(now.UTC()) {
		t.Errorf("the chain goes on at %s, want %s", r.state.Time, now)
	}
	if at, err := s.Clock(t.Context()); err != nil || !at.Equal(now) {
		t.Errorf("the clock says %s, %v, want %s", at, err, now)
	}
	_, err = s.Append(t.Context(), r.state.Head, ledgertest.Drafts(ledger.Draft{
		Kind: ledger.KindClaim, Service: "a", Unique: "claim/" + string(c.Key), Body: c,
	}))
	if !errors.Is(err, ledger.ErrExists) {
		t.Errorf("the key of the future was claimed again: %v", err)
	}
	present := claimOn("a", "x", gate.WindowAt(now, 10*time.Minute).Start/600)
	check(t, r.append(func(s *ledger.State) (ledger.Draft, error) { return ledger.ClaimDraft(s, "a", present, s.Head) }))
	check(t, s.Close())
	got, err := found(t, path)
	if err != nil || uint64(len(got)) != r.state.Head.Seq {
		t.Errorf("after a restart: %d entries, %v", len(got), err)
	}
}
