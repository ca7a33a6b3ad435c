package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// entriesEnv is how long the chain of BenchmarkStart is; its ledger takes about
// a gigabyte and some minutes for a million entries.
const entriesEnv = "SETPOINT_BENCH_ENTRIES"

// moment is one commit of an executed action, and why it cannot wait for the
// next.
type moment struct {
	why   string
	draft func(*ledger.State) (ledger.Draft, error)
}

// action is an executed action as a pass records it, commit by commit.
func action(service string, window int64, decision func() string) []moment {
	c := claimOn(service, "target of "+service, window)
	id := gate.WindowID{Start: 600 * window, Length: 600}.String()
	at := time.Unix(600*window, 0).UTC()
	var decided ledger.Position
	return []moment{
		{"asked: a model that was asked is not asked again after a crash", func(s *ledger.State) (ledger.Draft, error) {
			return ledger.AskDraft(s, service, ledger.Asked{Window: id, Deadline: at}, propose.Limits{}, at)
		}},
		{"proposal: what it said is final for the window, whatever is decided", func(s *ledger.State) (ledger.Draft, error) {
			p := propose.Proposal{Kind: propose.KindAction, Action: c.Action.Name}
			return ledger.ProposalDraft(s, service, ledger.Proposed{Window: id, Proposal: p}, []byte("request "+c.Key), []byte("reply "+c.Key))
		}},
		{"decision: the claim names it, and rests on its position", func(s *ledger.State) (ledger.Draft, error) {
			decided = ledger.Position{Seq: s.Head.Seq + 1}
			return ledger.Draft{Kind: ledger.KindDecision, Service: service, Body: ledger.Decided{
				Window: id, Key: c.Key, Decision: gate.Decision{Verdict: gate.Auto, Digest: c.Digest, Key: c.Key}, State: compare.Breached,
			}}, nil
		}},
		{"claim: nobody else may have the key while everything is measured again", func(s *ledger.State) (ledger.Draft, error) {
			c.Decision = decision()
			return ledger.ClaimDraft(s, service, c, decided)
		}},
		{"started: from here on it may have been sent", func(s *ledger.State) (ledger.Draft, error) { return ledger.StartDraft(s, c.Key) }},
		{"receipt: what the actuator said is heard once", func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ReceiptDraft(s, c.Key, execute.Receipt{Effect: execute.Applied, At: at})
		}},
		{"outcome: minutes later, and it frees service and target", func(s *ledger.State) (ledger.Draft, error) {
			return ledger.OutcomeDraft(s, ledger.Outcome{Key: c.Key, Judgement: compare.Judgement{Outcome: compare.OutcomeNoChange, Decided: true}, Cost: 1})
		}},
	}
}

// act runs an action to its end, one commit after the other.
func (r *replica) act(service string, window int64) (commits int, err error) {
	newest := func() string { return ledger.DecisionID(r.state.Head.Seq) }
	for _, m := range action(service, window, newest) {
		if err := r.append(m.draft); err != nil {
			return commits, fmt.Errorf("%s: %w", m.why, err)
		}
		commits++
	}
	return commits, nil
}

// syncs is what is done beside the commits.
const seenSync = "seen file: which position this host has seen, before anything is sent, so that an older copy is refused"

// actionsEnv makes the test binary execute ten actions in a ledger and end.
const actionsEnv = "SETPOINT_TEST_ACTIONS"

// actions opens a ledger as the product does and executes so many actions.
func actions(path string, n int64) (err error) {
	if v, ok := os.LookupEnv(actionsEnv + "_N"); ok {
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			return err
		}
	}
	inner, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	store, err := seenfile.Open(context.Background(), inner, path+".seen")
	if err != nil {
		return errors.Join(err, inner.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := newReplica(store)
	if err := r.catchUp(); err != nil {
		return err
	}
	for i := range n {
		if _, err := r.act("checkout", i+1); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkFsyncs counts the commits of one executed action and, where the
// system calls of a process can be watched, its real syncs.
func BenchmarkFsyncs(b *testing.B) {
	store := openLedger(b, newLedger(b))
	defer func() { check(b, store.Close()) }()
	r := newReplica(store)
	check(b, r.catchUp())
	commits := 0
	for i := int64(1); b.Loop(); i++ {
		n, err := r.act("checkout", i)
		check(b, err)
		commits = n
	}
	for i, m := range action("checkout", 1, nil) {
		b.Logf("%d. %s", i+1, m.why)
	}
	b.Logf("%d. %s", commits+1, seenSync)
	b.ReportMetric(float64(commits), "commits/action")
	b.ReportMetric(float64(commits+1), "syncs-by-design/action")
	few, err := syncsOf(b, 10)
	if err != nil {
		b.Logf("system calls were not counted: %v", err)
		return
	}
	many, err := syncsOf(b, 30)
	check(b, err)
	b.ReportMetric(float64(many-few)/20, "syncs-counted/action")
}

// syncsOf counts the syncs of a process that executes so many actions.
func syncsOf(b *testing.B, n int) (int, error) {
	b.Helper()
	path, out := newLedger(b), filepath.Join(b.TempDir(), "calls")
	cmd := exec.CommandContext(b.Context(), "strace", "-f", "-e", "trace=fsync,fdatasync", "-o", out, os.Args[0])
	cmd.Env = append(os.Environ(), actionsEnv+"="+path, actionsEnv+"_N="+strconv.Itoa(n))
	if said, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, said)
	}
	calls, err := os.ReadFile(out)
	if err != nil {
		return 0, err
	}
	// A call that is interrupted by another thread's has two lines.
	return len(regexp.MustCompile(`(?m)^\d+ +f(data)?sync\(`).FindAll(calls, -1)), nil
}

// bare is a table like that of entries, with SQLite's own durability and
// nothing of ours.
func bare(b *testing.B) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(2)&_txlock=immediate")
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	db.SetMaxOpenConns(1)
	var mode string
	var level int
	check(b, db.QueryRowContext(b.Context(), `PRAGMA journal_mode`).Scan(&mode))
	check(b, db.QueryRowContext(b.Context(), `PRAGMA synchronous`).Scan(&level))
	if mode != "wal" || level != 2 {
		b.Fatalf("journal mode %s, synchronous %d", mode, level)
	}
	_, err = db.ExecContext(b.Context(), `CREATE TABLE bare (seq INTEGER PRIMARY KEY, prev TEXT, hash TEXT, time TEXT, kind TEXT, service TEXT, name TEXT UNIQUE, body TEXT)`)
	check(b, err)
	return db
}

func insertBare(b *testing.B, db *sql.DB, e ledger.Entry) {
	b.Helper()
	tx, err := db.BeginTx(b.Context(), nil)
	check(b, err)
	_, err = tx.ExecContext(b.Context(), `INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Seq, e.Prev, e.Hash, e.Time.Format(time.RFC3339Nano), string(e.Kind), e.Service, e.Unique, string(e.Body))
	check(b, err)
	check(b, tx.Commit())
}

// BenchmarkClaim compares a claim, conditions and fold included, with the bare
// insert of the same bytes in a durable transaction, in turn in one run.
func BenchmarkClaim(b *testing.B) {
	store := openLedger(b, newLedger(b))
	defer func() { _ = store.Close() }()
	r, db := newReplica(store), bare(b)
	check(b, r.catchUp())
	var ours, theirs time.Duration
	for i := int64(1); b.Loop(); i++ {
		begin := time.Now()
		service := fmt.Sprint("s", i)
		es, err := store.Append(b.Context(), r.state.Head, ledger.PlanFrom(r.state, func(s *ledger.State) ([]ledger.Draft, error) {
			d, err := ledger.ClaimDraft(s, service, claimOn(service, service, i), s.Head)
			return []ledger.Draft{d}, err
		}))
		check(b, err)
		check(b, r.fold(es))
		ours += time.Since(begin)
		begin = time.Now()
		insertBare(b, db, es[0])
		theirs += time.Since(begin)
	}
	b.ReportMetric(float64(ours)/float64(theirs), "claim/insert")
	b.ReportMetric(float64(theirs.Nanoseconds())/float64(b.N), "insert-ns/op")
}

// BenchmarkClaims64 has 64 passes of one process claim at once, as they do on
// one state behind one lock, and compares with how often a file beside the
// ledger can be synced. Appends are one at a time, each with its own sync.
func BenchmarkClaims64(b *testing.B) {
	const writers = 64
	path := newLedger(b)
	store := openLedger(b, path)
	defer func() { check(b, store.Close()) }()
	r := newReplica(store)
	check(b, r.catchUp())
	raw, err := os.Create(path + ".raw")
	check(b, err)
	defer func() { check(b, raw.Close()) }()
	page := make([]byte, 4096)
	var mu sync.Mutex
	var ours, synced time.Duration
	for round := int64(1); b.Loop(); round++ {
		errs := make([]error, writers)
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range writers {
			wg.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				service := fmt.Sprint("s", i, "/", round)
				errs[i] = r.append(func(s *ledger.State) (ledger.Draft, error) {
					return ledger.ClaimDraft(s, service, claimOn(service, service, round), s.Head)
				})
			})
		}
		wg.Wait()
		ours += time.Since(begin)
		check(b, errors.Join(errs...))
		begin = time.Now()
		for range writers {
			_, err := raw.Write(page)
			check(b, errors.Join(err, syscall.Fdatasync(int(raw.Fd()))))
		}
		synced += time.Since(begin)
	}
	claims := float64(writers) * float64(b.N)
	b.ReportMetric(claims/ours.Seconds(), "claims/s")
	b.ReportMetric(claims/synced.Seconds(), "syncs/s")
	b.ReportMetric(float64(synced)/float64(ours), "claims/syncs")
}

// BenchmarkStart is a start on a long chain: the ledger opened, its state loaded
// and brought up to the newest entry; and the same without a checkpoint.
func BenchmarkStart(b *testing.B) {
	entries := 200_000
	if v, ok := os.LookupEnv(entriesEnv); ok {
		n, err := strconv.Atoi(v)
		check(b, err)
		entries = n
	}
	path := longLedger(b, entries)
	var with, without time.Duration
	b.Run("checkpoint", func(b *testing.B) {
		with = starts(b, path, func(s *sqlite.Store) *ledger.State {
			state, err := ledger.Load(b.Context(), s)
			check(b, err)
			if state.Head.Seq == 0 {
				b.Fatal("there is no checkpoint")
			}
			return state
		})
	})
	b.Run("whole", func(b *testing.B) {
		without = starts(b, path, func(*sqlite.Store) *ledger.State { return ledger.NewState() })
		if with > 0 {
			b.ReportMetric(float64(without)/float64(with), "whole/checkpoint")
		}
	})
}

// starts gives how long one start takes.
func starts(b *testing.B, path string, load func(*sqlite.Store) *ledger.State) time.Duration {
	b.Helper()
	heap, folded := 0.0, uint64(0)
	for b.Loop() {
		s, err := sqlite.Open(path, sqlite.Options{})
		check(b, err)
		r := &replica{store: s, state: load(s)}
		from := r.state.Head.Seq
		for before := r.state.Head; ; before = r.state.Head {
			check(b, r.catchUp())
			if r.state.Head == before {
				break
			}
		}
		folded = r.state.Head.Seq - from
		b.StopTimer()
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		heap = float64(m.HeapAlloc) / (1 << 20)
		runtime.KeepAlive(r)
		check(b, s.Close())
		b.StartTimer()
	}
	took := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(took.Seconds(), "s/start")
	b.ReportMetric(heap, "MB-heap")
	b.ReportMetric(float64(folded), "entries-folded")
	return took
}

// longLedger is one of so many entries: executed actions of ten services, one
// action in ten minutes, with a checkpoint whenever one is due.
func longLedger(b *testing.B, entries int) string {
	b.Helper()
	path := newLedger(b)
	// After the first entry, which is of the present.
	window := time.Now().Unix()/600 + 1
	now := time.Unix(600*window, 0)
	s, err := sqlite.Open(path, sqlite.Options{Now: func() time.Time { return now }})
	check(b, err)
	r := newReplica(s)
	check(b, r.catchUp())
	begin := time.Now()
	for int(r.state.Head.Seq) < entries {
		var batch []ledger.Draft
		// As many as a batch takes; conditions are those of a state that folds them.
		ahead := r.state.Clone()
		for range 100 {
			window++
			batch = append(batch, planned(b, ahead, fmt.Sprint("s", window%10), window)...)
		}
		now = time.Unix(600*window, 0)
		es, err := s.Append(b.Context(), r.state.Head, func([]ledger.Entry) ([]ledger.Draft, error) { return batch, nil })
		check(b, err)
		check(b, r.fold(es))
		if r.state.CheckpointDue() {
			d, err := ledger.CheckpointDraft(r.state)
			check(b, err)
			check(b, r.append(func(*ledger.State) (ledger.Draft, error) { return d, nil }))
		}
	}
	check(b, s.Close())
	info, err := os.Stat(path)
	check(b, err)
	b.Logf("%d entries, %d MB, made in %s", r.state.Head.Seq, info.Size()>>20, time.Since(begin).Round(time.Second))
	return path
}

// planned are the drafts of an action on a state, which folds them.
func planned(b *testing.B, s *ledger.State, service string, window int64) []ledger.Draft {
	b.Helper()
	var ds []ledger.Draft
	for _, m := range action(service, window, func() string { return ledger.DecisionID(s.Head.Seq) }) {
		d, err := m.draft(s)
		check(b, err)
		e, err := ledger.Link(s.Head, time.Unix(600*window, 0), d)
		check(b, err)
		check(b, s.Apply(e))
		ds = append(ds, d)
	}
	return ds
}
