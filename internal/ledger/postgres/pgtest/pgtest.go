// Package pgtest runs Debian's PostgreSQL server for tests and for the lab. It
// takes a folder and gives a server on a loopback port with empty databases.
//
// The server ends with the process that started it, however that ends: a shell
// between the two waits for the end of a pipe, stops the server by its pid and
// removes its data.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoServer says that PostgreSQL is not installed.
var ErrNoServer = errors.New("no PostgreSQL server: initdb and postgres are neither in PATH nor in /usr/lib/postgresql/*/bin; install Debian's postgresql package")

// User is the superuser of every server. It needs no password.
const User = "setpoint"

// GuardedRole is the name of a role that has to give its password once somebody
// creates it.
const GuardedRole = "guarded"

const (
	// tries is how often another port is tried when somebody took the first.
	tries     = 3
	startsIn  = 60 * time.Second
	stopsIn   = 30 * time.Second
	firstPoll = 20 * time.Millisecond
)

// Server is a running PostgreSQL server.
type Server struct {
	dir  string
	port int
	// life ends the server when it is closed, by us or by our end.
	life *os.File
	// ended is closed when the server, its keeper and its folder are gone.
	ended chan struct{}
	stop  sync.Once
	err   error
}

// shared is the one server of a test binary.
var shared = sync.OnceValues(func() (*Server, error) { return Run(os.TempDir()) })

// Start gives the server of this test binary and starts it for the first test
// that asks. Without an installed PostgreSQL the test is skipped, in CI it
// fails.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := shared()
	switch {
	case errors.Is(err, ErrNoServer) && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return s
}

// Run starts a server with its data in a new folder in dir, which any user must
// be able to enter. PostgreSQL refuses to run as root: then it runs as another
// user.
func Run(dir string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	var s *Server
	for range tries {
		if s, err = run(dir, bin); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func run(dir, bin string) (*Server, error) {
	home, err := os.MkdirTemp(dir, "pgtest-")
	if err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	s := &Server{dir: home}
	for _, step := range []func() error{
		func() error { return own(home) },
		func() error { return s.create(bin) },
		func() error { return s.start(bin) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(home))
		}
	}
	return s, nil
}

// binaries is the folder of the newest server.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && executable(filepath.Join(filepath.Dir(path), "postgres")) {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("postgresql: %w", err)
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	for _, bin := range found {
		if executable(filepath.Join(bin, "initdb")) && executable(filepath.Join(bin, "postgres")) {
			return bin, nil
		}
	}
	return "", ErrNoServer
}

func version(bin string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// create makes the data folder. Every role but the guarded one comes in without
// a password: only loopback reaches the server.
func (s *Server) create(bin string) error {
	// Nothing in a new data folder is worth an fsync; the running server does
	// them all.
	cmd := exec.Command(filepath.Join(bin, "initdb"), "--pgdata="+s.data(), "--username="+User, //nolint:noctx // it ends by itself
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.dir, attributes(), environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("postgresql: initdb: %w\n%s", err, out)
	}
	rules := "local all all trust\nhost all " + GuardedRole + " 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		return fmt.Errorf("postgresql: %w", err)
	}
	return nil
}

// environment is ours without what PostgreSQL's programs read from it.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
}

// keeper starts the server and waits for the end of its input. SIGINT is
// PostgreSQL's fast shutdown; SIGQUIT, for when that hangs, its immediate one.
const keeper = `
"$@" >>"$HOME/log" 2>&1 </dev/null 3<&- &
pid=$!
(
	cat >/dev/null
	kill -INT "$pid"
	n=0
	while [ $n -lt 200 ] && [ ! -e "$HOME/over" ]; do sleep 0.1; n=$((n + 1)); done
	kill -QUIT "$pid"
) <&3 3<&- 2>/dev/null &
exec 3<&-
wait "$pid"
: >"$HOME/over"
wait
cd /
rm -rf -- "$HOME"
`

func (s *Server) start(bin string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.port = port
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("postgresql: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-c", keeper, "pgtest", filepath.Join(bin, "postgres"), "-D", s.data(), //nolint:noctx // stop ends it
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(port), "-c", "unix_socket_directories="+s.dir,
		"-c", "max_connections=500", "-c", "shared_buffers=16MB", "-c", "log_min_messages=warning")
	cmd.Dir, cmd.SysProcAttr, cmd.ExtraFiles = s.dir, attributes(), []*os.File{read}
	cmd.Env = append(environment(), "HOME="+s.dir)
	err = errors.Join(cmd.Start(), read.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("postgresql: %w", err), write.Close())
	}
	s.life, s.ended = write, make(chan struct{})
	go func() {
		// How the server ended is in its log.
		_ = cmd.Wait()
		close(s.ended)
	}()
	if err := s.ready(); err != nil {
		return errors.Join(err, s.end())
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return 0, fmt.Errorf("postgresql: %w", err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil || !ok {
		return 0, fmt.Errorf("postgresql: no free port: %w", err)
	}
	return addr.Port, nil
}

// ready waits until the server answers.
func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startsIn)
	defer cancel()
	for {
		err := s.ours(ctx)
		if err == nil {
			return nil
		}
		if _, err := os.Stat(filepath.Join(s.dir, "over")); err == nil {
			return fmt.Errorf("postgresql ended at its start:\n%s", s.logged())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("postgresql does not answer: %w\n%s", err, s.logged())
		case <-time.After(firstPoll):
		}
	}
}

// ours reports whether the server on the port is this one: another may have
// taken the port since it was free.
func (s *Server) ours(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var data string
	if err := conn.QueryRow(ctx, `SHOW data_directory`).Scan(&data); err != nil {
		return err
	}
	if data != s.data() {
		return fmt.Errorf("another server is on port %d", s.port)
	}
	return nil
}

func (s *Server) logged() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// end stops the server and waits for it.
func (s *Server) end() error {
	err := s.life.Close()
	select {
	case <-s.ended:
		return err
	case <-time.After(stopsIn):
		return errors.Join(err, fmt.Errorf("postgresql on port %d does not end", s.port))
	}
}

// Stop ends the server and removes its folder. It may be called again.
func (s *Server) Stop() error {
	s.stop.Do(func() { s.err = errors.Join(s.end(), os.RemoveAll(s.dir)) })
	return s.err
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN names a database that exists.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", User, s.Addr(), database)
}

// Database makes an empty database and returns its DSN.
func (s *Server) Database(name string) (dsn string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startsIn)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return "", fmt.Errorf("postgresql: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("postgresql: %w", err)
	}
	return s.DSN(name), nil
}
