package pgtest_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

// childEnv makes the test binary start a server in that folder and wait to be
// killed.
const childEnv = "PGTEST_CHILD"

func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := pgtest.Run(dir)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(s.Addr() + "\n")
	select {}
}

func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, pgtest.ErrNoServer) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// enterable is a folder that the server's user can enter; t.TempDir is not.
func enterable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.TempDir(), "pgtest-test-")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o755))
	return dir
}

// empty waits until nothing but empty folders and a log is left in a folder.
func empty(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left, err := filepath.Glob(filepath.Join(dir, "*", "data"))
		check(t, err)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v is left", left)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestRun(t *testing.T) {
	dir := enterable(t)
	s, err := pgtest.Run(dir)
	check(t, err)
	dsn, err := s.Database("one")
	check(t, err)
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	var database, fsync, sockets string
	check(t, conn.QueryRow(t.Context(), `SELECT current_database(), current_setting('fsync'), current_setting('unix_socket_directories')`).Scan(&database, &fsync, &sockets))
	if database != "one" || fsync != "on" || !strings.HasPrefix(sockets, dir) {
		t.Errorf("database %s, fsync %s, sockets in %s", database, fsync, sockets)
	}
	check(t, conn.Close(t.Context()))
	for range 2 {
		check(t, s.Stop())
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		_ = c.Close()
		t.Error("the server is still there")
	}
}

// TestEndsWithItsProcess: a test that is killed leaves no server.
func TestEndsWithItsProcess(t *testing.T) {
	if _, err := exec.LookPath("initdb"); err != nil && os.Getenv("CI") == "" {
		t.Skip("no initdb in PATH")
	}
	dir := enterable(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	var line [64]byte
	n, err := out.Read(line[:])
	check(t, err)
	addr := string(bytes.TrimSpace(line[:n]))
	c, err := net.Dial("tcp", addr)
	check(t, err)
	check(t, c.Close())
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	empty(t, dir)
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("the server is still there")
	}
}
