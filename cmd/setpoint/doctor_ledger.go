package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// verifyWithin bounds the reading of the whole chain; after it the end from the
// newest checkpoint on is read, as a start does.
const verifyWithin = 20 * time.Second

// ledgerChecks look at the record and at the brakes beside it.
func (e *examination) ledgerChecks() []examine {
	return []examine{
		{group: aboutLedger, subject: e.site.where(), limit: ledgerLimit, run: func(ctx context.Context) []checkItem {
			return []checkItem{e.chainItem(ctx)}
		}},
		{group: aboutLedger, subject: e.site.where(), limit: localLimit, run: func(ctx context.Context) []checkItem {
			if e.site.cfg.Ledger.Postgres != nil {
				return []checkItem{e.storeClockItem(ctx)}
			}
			return []checkItem{e.lockItem(), e.diskItem()}
		}},
		{group: aboutLedger, subject: e.site.cfg.Ledger.FreezeDir, limit: localLimit, run: func(ctx context.Context) []checkItem {
			return append([]checkItem{e.freezeDirItem()}, e.freezeItems(ctx)...)
		}},
	}
}

// chainSeen is what reading the ledger gave.
type chainSeen struct {
	// whole: every entry was read, not only those since the newest checkpoint.
	whole   bool
	entries uint64
	head    ledger.Position
	// ahead is how far its newest entry lies in this host's future.
	ahead time.Duration
	err   error
}

func (e *examination) chainItem(ctx context.Context) checkItem {
	return chainVerdict(subject{"ledger/chain", e.site.where()}, e.readChain(ctx))
}

func (e *examination) readChain(ctx context.Context) (seen chainSeen) {
	r, err := readLedger(ctx, e.site)
	if err != nil {
		return chainSeen{err: err}
	}
	defer func() { _ = r.Close() }() // It was only read.
	bounded, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	report, err := r.Verify(bounded)
	seen = chainSeen{whole: true, entries: report.Entries, head: report.Head, ahead: report.Last.Sub(e.app.now()), err: err}
	if errors.Is(err, context.DeadlineExceeded) {
		state, err := ledger.Load(ctx, r)
		if err == nil {
			err = foldOn(ctx, r, state)
		}
		seen = chainSeen{err: err}
		if err == nil {
			seen.head, seen.ahead = state.Head, state.Time.Sub(e.app.now())
		}
	}
	if seen.err == nil {
		seen.err = older(ctx, e.site, r)
	}
	return seen
}

// chainVerdict judges the record.
func chainVerdict(s subject, c chainSeen) checkItem {
	switch {
	case errors.Is(c.err, ledger.ErrMissing):
		return s.failed("there is no ledger: `run` does not start", "`setpoint ledger init` creates it; if it was there before, restore the newest copy instead")
	case errors.Is(c.err, ledger.ErrCorrupt):
		return s.failed(shortened(c.err), "restore the newest good copy (`setpoint ledger verify` tells); an agent on this one only observes and pages")
	case distrusted(c.err):
		return s.failed(shortened(c.err), "restore the newest copy, or go on with this one in your name: `setpoint ledger adopt --reason …`")
	case c.err != nil:
		return s.failed(shortened(c.err), "look at the database, its file and its folder: without it the agent only observes and pages; `setpoint ledger verify` tries again")
	case c.ahead > maxApart:
		return s.failed(fmt.Sprintf("its newest entry lies %s in the future, which holds everything until then", c.ahead.Round(time.Second)),
			"set this host's clock right (`timedatectl`); if it was the clock before that ran ahead: `setpoint ledger lower-mark --reason …`")
	case !c.whole:
		return s.fine("verified from the newest checkpoint to entry %d; `setpoint ledger verify` reads all of it", c.head.Seq)
	}
	return s.fine("%s verified, head %d %s", entryCount(c.entries), c.head.Seq, short(c.head.Hash))
}

func shortened(err error) string { return execute.CleanText(err.Error(), execute.MaxDetail) }

// lockItem says who may write. The lock is never taken, not even for a moment:
// an agent that starts just then would find it taken.
func (e *examination) lockItem() checkItem {
	path := e.site.cfg.Ledger.SQLite.Path + ".lock"
	s := subject{"ledger/writer", path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.fine("nobody ever wrote: no agent ran here")
	case err != nil:
		return s.failed(err.Error(), "run this as the agent's user or root")
	}
	w := writer{alive: true}
	if text, err := readRegular(path); err == nil {
		w.signed, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if w.signed > 0 {
		err := syscall.Kill(w.signed, 0)
		w.alive = err == nil || errors.Is(err, syscall.EPERM)
	}
	if locks, err := os.ReadFile("/proc/locks"); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			w.told = true
			w.holder, w.held = lockHolder(string(locks), st.Ino)
		}
	}
	w.answers = newAgent(e.site.cfg.Web.Socket).do(context.Background(), readWait, message{method: "GET", path: "/api/v1/freezes"}, nil) == nil
	return writerVerdict(s, w)
}

// writer is who holds the writer lock, as far as can be told without touching it.
type writer struct {
	// told: this host tells who holds which lock; held and holder are its word.
	told, held bool
	holder     int
	// signed is the process that the lock file names, and whether it lives.
	signed int
	alive  bool
	// answers: an agent answers on the socket.
	answers bool
}

// lockHolder finds an flock on a file in the text of /proc/locks.
func lockHolder(locks string, inode uint64) (pid int, held bool) {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		at := strings.LastIndexByte(f[5], ':')
		if n, err := strconv.ParseUint(f[5][at+1:], 10, 64); err != nil || n != inode {
			continue
		}
		pid, _ = strconv.Atoi(f[4])
		return pid, true
	}
	return 0, false
}

// writerVerdict judges who may write to the ledger.
func writerVerdict(s subject, w writer) checkItem {
	holder := w.holder
	if holder <= 0 {
		holder = w.signed
	}
	free := w.told && !w.held || !w.told && (w.signed == 0 || !w.alive)
	switch {
	case free && w.answers:
		return s.warned("an agent answers on the socket, and nobody holds the writer lock: it writes another ledger, or none",
			"look at the log of the agent and at its configuration: ledger.sqlite.path and web.socket there must be those of this one")
	case free:
		return s.fine("the writer lock is free: no agent runs, and commands write by themselves")
	case !w.answers:
		return s.warned(fmt.Sprintf("process %d holds the writer lock, and no agent answers on the socket: commands cannot write", holder),
			fmt.Sprintf("look at process %d (`ps -p %d`): a hung agent is to be restarted; or let web.socket in setpoint.yaml be the one that it listens on", holder, holder))
	}
	return s.fine("process %d writes, and answers", holder)
}

func (e *examination) diskItem() checkItem {
	folder := filepath.Dir(e.site.cfg.Ledger.SQLite.Path)
	s := subject{"ledger/disk", folder}
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return s.failed(fmt.Sprintf("its free space cannot be read: %v", err), "make the folder "+folder+", or change ledger.sqlite.path in setpoint.yaml")
	}
	return diskVerdict(s, float64(st.Bavail)*float64(st.Bsize))
}

// The free space below which a ledger is in danger: it grows by some kilobytes
// with each decision, and SQLite needs room for its log.
const (
	fewBytes  = 1 << 30
	tooFewLow = 64 << 20
)

// diskVerdict judges the free space beside the ledger, in bytes.
func diskVerdict(s subject, free float64) checkItem {
	text := fmt.Sprintf("%.3g GiB are free", free/(1<<30))
	remedy := "free space on the disk of " + s.name + ", or move the ledger (ledger.sqlite.path): a full disk stops every action"
	switch {
	case free < tooFewLow:
		return s.failed(text, remedy)
	case free < fewBytes:
		return s.warned(text, remedy)
	}
	return s.fine("%s", text)
}

// storeClockItem asks PostgreSQL, whose clock decides, for its time.
func (e *examination) storeClockItem(ctx context.Context) checkItem {
	s := subject{"ledger/clock", e.site.where()}
	r, err := readLedger(ctx, e.site)
	if err != nil {
		return s.skipped("it cannot be read, see ledger/chain")
	}
	defer func() { _ = r.Close() }() // It was only read.
	clocked, ok := r.(interface {
		Clock(ctx context.Context) (time.Time, error)
	})
	if !ok {
		return s.skipped("this store has no clock of its own")
	}
	began := e.app.now()
	at, err := clocked.Clock(ctx)
	if err != nil {
		return s.failed(shortened(err), "look at the database: its clock decides on the windows of all replicas")
	}
	middle := began.Add(e.app.now().Sub(began) / 2)
	return clockVerdict(s, at.Sub(middle))
}

// freezeDirItem looks whether a person could freeze, and the agent see it.
func (e *examination) freezeDirItem() checkItem {
	dir := e.site.cfg.Ledger.FreezeDir
	s := subject{"ledger/freezes", dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := syscall.Access(filepath.Dir(dir), 2|1); err != nil {
			return s.failed(fmt.Sprintf("it is not there, and cannot be made: %v", err), "make the folder as the agent's user: `mkdir "+dir+"`")
		}
		return s.fine("it is not there yet; `run` and `freeze` make it")
	case err != nil:
		return s.failed(err.Error(), "let the agent's user read "+dir+": what cannot be read holds everything")
	case !info.IsDir():
		return s.failed("it is no folder", "move it away, or change ledger.freezeDir in setpoint.yaml")
	}
	if _, err := e.app.freezeDir(dir).List(); err != nil {
		return s.failed(err.Error(), "let the agent's user read "+dir+": what cannot be read holds everything")
	}
	if err := syscall.Access(dir, 2|1); err != nil {
		return s.failed("this user may not write there, so nobody of it could freeze", "run this as the agent's user, or `chown` "+dir+" to it")
	}
	return s.fine("readable and writable")
}

// freezeItems are the freezes that are in force, by file or by the ledger.
func (e *examination) freezeItems(ctx context.Context) []checkItem {
	v := web.View{State: ledger.NewState(), Now: e.now}
	if r, err := readLedger(ctx, e.site); err == nil {
		defer func() { _ = r.Close() }() // It was only read.
		if state, err := ledger.Load(ctx, r); err == nil && foldOn(ctx, r, state) == nil {
			v.State = state
		}
	}
	v.Files, _ = e.app.freezeDir(e.site.cfg.Ledger.FreezeDir).List() // Its fault is the folder's line.
	var out []checkItem
	for _, f := range web.Freezes(v, web.Filter{Service: e.flags.service}).Items {
		if f.Active {
			out = append(out, freezeVerdict(f))
		}
	}
	return out
}

// freezeVerdict says that a freeze is in force.
func freezeVerdict(f web.Freeze) checkItem {
	what := "everything"
	if f.Service != "" {
		what = f.Service
	}
	until := ""
	if f.Until != nil {
		until = " until " + clock(*f.Until)
	}
	return subject{"ledger/frozen", f.ID}.warned(
		execute.CleanText(fmt.Sprintf("%s is frozen%s by %s: %s", what, until, f.By, f.Reason), execute.MaxDetail),
		"ask "+execute.CleanText(f.By, 60)+", then `setpoint thaw "+f.ID+"`")
}
