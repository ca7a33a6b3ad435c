package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
)

// childEnv makes the test binary a replica on the ledger of that DSN.
const childEnv = "SETPOINT_TEST_POSTGRES"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childEnv); dsn != "" {
		replica(dsn)
	}
	flag.Parse()
	// The tests wait for the server's disk, not for a processor.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// replica appends batches of three for ever. It says when it decides and what
// was acknowledged; for each line that it gets it may go on from a decision.
func replica(dsn string) {
	ctx := context.Background()
	s, err := postgres.Open(ctx, dsn)
	if err != nil {
		panic(err)
	}
	in := bufio.NewScanner(os.Stdin)
	for {
		es, err := s.Append(ctx, ledger.Position{}, func([]ledger.Entry) ([]ledger.Draft, error) {
			fmt.Println("deciding")
			in.Scan()
			return []ledger.Draft{ledgertest.Gap("child"), ledgertest.Gap("child"), ledgertest.Gap("child")}, nil
		})
		if err != nil {
			panic(err)
		}
		fmt.Println("wrote", len(es))
	}
}

// child is a running replica.
type child struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startChild(t *testing.T, dsn string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dsn)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		// Already ended where the test went well.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &child{cmd, in, bufio.NewScanner(out)}
}

// says waits for a line and gives the number in it.
func (c *child) says(t *testing.T, what string) (n int) {
	t.Helper()
	if !c.out.Scan() || !strings.HasPrefix(c.out.Text(), what) {
		t.Fatalf("the replica says %q, want %q, %v", c.out.Text(), what, c.out.Err())
	}
	_, _ = fmt.Sscanf(c.out.Text(), what+" %d", &n)
	return n
}

func (c *child) goOn(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(c.in, "\n")
	check(t, err)
}

// TestStoppedReplica: one that is stopped while it holds the head holds the
// others up for seconds only, and writes once when it comes back.
func TestStoppedReplica(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	c := startChild(t, dsn)
	c.says(t, "deciding")
	check(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	begin := time.Now()
	if es := grow(t, s, 1); len(es) != 2 {
		t.Errorf("beside a stopped replica: %d entries, want 2", len(es))
	}
	if took := time.Since(begin); took < time.Second || took > 14*time.Second {
		t.Errorf("the stopped replica was in the way for %s", took)
	}
	check(t, c.cmd.Process.Signal(syscall.SIGCONT))
	c.goOn(t)
	// Its transaction is gone: it decides again, on what it had missed.
	c.says(t, "deciding")
	c.goOn(t)
	if n := c.says(t, "wrote"); n != 5 {
		t.Errorf("the replica that came back sees %d entries, want 5", n)
	}
}

// TestKilledReplica: kill -9 at any moment leaves whole batches, with all that
// were acknowledged.
func TestKilledReplica(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	for round := range 3 {
		c := startChild(t, dsn)
		acknowledged := 0
		for range 3 + round {
			c.says(t, "deciding")
			c.goOn(t)
			acknowledged = c.says(t, "wrote")
		}
		c.says(t, "deciding")
		if round > 0 {
			c.goOn(t)
		}
		check(t, c.cmd.Process.Kill())
		_ = c.cmd.Wait()
		// Only once the server knows: an entry that was under way may still come.
		_, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts())
		check(t, err)
		rep, err := s.Verify(t.Context())
		if err != nil || int(rep.Entries) < acknowledged || rep.Entries%3 != 1 {
			t.Errorf("after kill %d: %d entries, %v; %d were acknowledged", round, rep.Entries, err, acknowledged)
		}
	}
}

// TestIdleSession: any session with our settings lets go of the head, and who
// waits for it gets it.
func TestIdleSession(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	conn := postgres.Session(t, dsn)
	_, err := conn.Exec(t.Context(), `BEGIN; SELECT FROM ledger_head FOR UPDATE`)
	check(t, err)
	// A caller with less time than that leaves in time.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Append(ctx, ledger.Position{}, ledgertest.Drafts()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	begin := time.Now()
	grow(t, s, 1)
	if took := time.Since(begin); took < time.Second || took > 14*time.Second {
		t.Errorf("the idle session was in the way for %s", took)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the idle session lives")
	}
}

// TestHeld: a session that never lets go is named, after some tries.
func TestHeld(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT FROM ledger_head FOR UPDATE`)
	check(t, err)
	s.Ask(t, `SELECT set_config('lock_timeout', '20ms', false)`)
	_, err = s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts())
	if err == nil || !strings.Contains(err.Error(), "another replica holds the ledger") || !strings.Contains(err.Error(), "tried 5 times") {
		t.Errorf("got %v", err)
	}
	// Reading and the clock do not wait.
	if es, err := s.Read(t.Context(), 0, 10); err != nil || len(es) != 1 {
		t.Errorf("beside a held head: %v, %v", es, err)
	}
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	check(t, err)
	s.Ask(t, `SELECT set_config('lock_timeout', '10s', false)`)
	grow(t, s, 1)
}

// TestHeldInCommit: the lock that NOTIFY takes at a commit is the server's, not
// the ledger's. A commit that waited for it too long wrote nothing and is tried
// again.
func TestHeldInCommit(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	// It takes a deferred trigger to wait for one ledger's commit alone.
	raw(t, dsn, `CREATE TABLE other (name TEXT);
		CREATE FUNCTION also () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM other FOR UPDATE; RETURN NULL; END $$;
		INSERT INTO other VALUES ('x');
		CREATE CONSTRAINT TRIGGER also AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION also ()`)
	conn := connected(t, dsn)
	_, err := conn.Exec(t.Context(), `BEGIN; SELECT FROM other FOR UPDATE`)
	check(t, err)
	s.Ask(t, `SELECT set_config('lock_timeout', '20ms', false)`)
	runs := 0
	es, err := s.Append(t.Context(), ledger.Position{}, func([]ledger.Entry) ([]ledger.Draft, error) {
		if runs++; runs == 3 {
			_, err := conn.Exec(t.Context(), `ROLLBACK`)
			check(t, err)
			return []ledger.Draft{ledgertest.Gap("third")}, nil
		}
		return []ledger.Draft{ledgertest.Gap("before")}, nil
	})
	if err != nil || runs < 3 || len(es) != 2 {
		t.Errorf("%d runs, %d entries, %v, want 3, 2 and no error", runs, len(es), err)
	}
}

// TestConnectionLostInThePlan: nothing was written, so the plan runs again.
func TestConnectionLostInThePlan(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	runs := 0
	es, err := s.Append(t.Context(), ledger.Position{}, func(since []ledger.Entry) ([]ledger.Draft, error) {
		if runs++; runs == 1 {
			raw(t, dsn, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()`)
		}
		return []ledger.Draft{ledgertest.Gap(fmt.Sprint(len(since)))}, nil
	})
	if err != nil || runs != 2 || len(es) != 2 {
		t.Errorf("%d runs, %d entries, %v, want 2, 2 and no error", runs, len(es), err)
	}
}

// TestSilentServer: a server process that hangs ends the append, not as if the
// caller had hung up, and the next one goes on.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	s.AnswersIn(500 * time.Millisecond)
	conn := connected(t, dsn)
	var pid int
	_, err := s.Append(t.Context(), ledger.Position{}, func([]ledger.Entry) ([]ledger.Draft, error) {
		check(t, conn.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()`).Scan(&pid))
		check(t, syscall.Kill(pid, syscall.SIGSTOP))
		return []ledger.Draft{ledgertest.Gap("silent")}, nil
	})
	check(t, syscall.Kill(pid, syscall.SIGCONT))
	if err == nil || !strings.Contains(err.Error(), "the server does not answer") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	s.AnswersIn(20 * time.Second)
	if es := grow(t, s, 1); len(es) != 2 {
		t.Errorf("afterwards: %d entries, want 2", len(es))
	}
}

// TestContendedNames: of the appenders of two replicas that want one name, one
// gets it, round after round.
func TestContendedNames(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	const rounds, appenders = 200, 8
	stores := []*postgres.Store{openLedger(t, dsn), openLedger(t, dsn)}
	var won [rounds]atomic.Int64
	var wg sync.WaitGroup
	for _, s := range stores {
		for range appenders {
			wg.Go(func() {
				var at ledger.Position
				for round := range rounds {
					d := ledgertest.Gap("contended")
					d.Unique = fmt.Sprint("round/", round)
					es, err := s.Append(t.Context(), at, ledgertest.Drafts(d))
					switch {
					case err == nil:
						won[round].Add(1)
						at = es[len(es)-1].Position()
					case !errors.Is(err, ledger.ErrExists) || !strings.Contains(err.Error(), d.Unique):
						t.Errorf("round %d: got %v, want %v", round, err, ledger.ErrExists)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for round := range won {
		if n := won[round].Load(); n != 1 {
			t.Errorf("round %d has %d winners, want 1", round, n)
		}
	}
	// Verify refuses times that turn back.
	if rep, err := stores[0].Verify(t.Context()); err != nil || rep.Entries != rounds+1 {
		t.Errorf("%d entries, %v, want %d", rep.Entries, err, rounds+1)
	}
}
