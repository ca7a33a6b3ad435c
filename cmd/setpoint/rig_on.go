//go:build crashtest

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// rigEnv holds the rig of one process, JSON. Without it this build behaves as
// the one that people run.
const rigEnv = "SETPOINT_RIG"

// rig is what the crash suite does to an agent from inside, where no signal
// from outside would hit the same place twice. Its places are points, named by
// what they are and their number among those, e.g. "after started#1":
//
//	before <kinds>  an append's entries are known, none of them is on the disk
//	after <kinds>   they are on the disk, nobody knows yet
//	send, connected, look, sent
//	                before the executor is called; before the last look; after
//	                it said yes, with the first byte still to come; after the
//	                answer, with no receipt yet
type rig struct {
	// Points is the file to which each point is written when it is passed.
	Points string `json:"points"`
	// Acks is the file to which each entry is written once its append is about
	// to return.
	Acks string `json:"acks"`
	// Clock is a file with the duration by which this process's clock is wrong.
	Clock string `json:"clock"`
	// At is the point where Do is done: kill, stop (SIGSTOP) or fail (an append
	// that returns an error). Empty only counts.
	At string `json:"at"`
	Do string `json:"do"`
	// OneThread makes all appends by one thread, so that a tracer that counts
	// the system calls of each thread finds the same place again.
	OneThread bool `json:"oneThread"`

	mu   sync.Mutex
	seen map[string]int
}

func loadRig() *rig {
	text := os.Getenv(rigEnv)
	if text == "" {
		return nil
	}
	r := &rig{seen: map[string]int{}}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", rigEnv, err)
		os.Exit(1)
	}
	return r
}

// rigClock reads the offset at each look, so that a clock can be set while the
// agent runs.
func rigClock(now func() time.Time) func() time.Time {
	r := loadRig()
	if r == nil || r.Clock == "" {
		return now
	}
	return func() time.Time { return now().Add(offset(r.Clock)) }
}

func offset(file string) time.Duration {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	d, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		return 0 // half written; the next look sees it
	}
	return d
}

// rigged puts the rig around what may lose an effect or repeat one.
func rigged(o reconcile.Options) reconcile.Options {
	r := loadRig()
	if r == nil {
		return o
	}
	if o.Store != nil {
		s := &rigStore{Store: o.Store, rig: r}
		if r.OneThread {
			s.work = make(chan func())
			go s.thread()
		}
		o.Store = s
	}
	executors := make(map[string]execute.Executor, len(o.Executors))
	for name, ex := range o.Executors {
		executors[name] = &rigExecutor{Executor: ex, rig: r}
	}
	o.Executors = executors
	return o
}

// errRig is what an append says that was told to fail.
var errRig = errors.New("the rig failed this append")

// point passes a point: it is written down, and what was asked for happens.
func (r *rig) point(name string) error {
	r.mu.Lock()
	r.seen[name]++
	name = fmt.Sprintf("%s#%d", name, r.seen[name])
	r.mu.Unlock()
	line(r.Points, struct {
		Point string `json:"point"`
		At    int64  `json:"at"`
	}{name, time.Now().UnixMilli()})
	if name != r.At {
		return nil
	}
	switch r.Do {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		// The signal may reach this thread a moment later.
		time.Sleep(20 * time.Millisecond)
	case "fail":
		return errRig
	}
	return nil
}

// line appends one line by one write, which the kernel keeps when the process
// is killed.
func line(file string, v any) {
	if file == "" {
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // the disk of the test may be full on purpose
	}
	_, _ = f.Write(append(data, '\n'))
	_ = f.Close()
}

type rigStore struct {
	ledger.Store
	rig *rig
	// work is done by one thread; nil: by whoever appends.
	work chan func()
}

func (s *rigStore) thread() {
	runtime.LockOSThread()
	for f := range s.work {
		f()
	}
}

// Append is made by the one thread, where there is one.
func (s *rigStore) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) (entries []ledger.Entry, err error) {
	if s.work == nil {
		return s.append(ctx, after, plan)
	}
	done := make(chan struct{})
	s.work <- func() {
		defer close(done)
		entries, err = s.append(ctx, after, plan)
	}
	<-done
	return entries, err
}

// append has a point when its drafts are known and another when they are on
// the disk.
func (s *rigStore) append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	var kinds string
	var drafted int
	entries, err := s.Store.Append(ctx, after, func(since []ledger.Entry) ([]ledger.Draft, error) {
		drafts, err := plan(since)
		if err != nil || len(drafts) == 0 {
			drafted = 0
			return drafts, err
		}
		drafted, kinds = len(drafts), kindsOf(drafts)
		return drafts, s.rig.point("before " + kinds)
	})
	if err != nil || drafted == 0 {
		return entries, err
	}
	for _, e := range entries[max(0, len(entries)-drafted):] {
		line(s.rig.Acks, e.Position())
	}
	if err := s.rig.point("after " + kinds); err != nil {
		return nil, err
	}
	return entries, nil
}

func kindsOf(drafts []ledger.Draft) string {
	names := make([]string, len(drafts))
	for i, d := range drafts {
		names[i] = string(d.Kind)
	}
	return strings.Join(names, "+")
}

type rigExecutor struct {
	execute.Executor
	rig *rig
}

// Execute has the four points of a send.
func (e *rigExecutor) Execute(ctx context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	_ = e.rig.point("send")
	receipt, err := e.Executor.Execute(ctx, p, func() error {
		_ = e.rig.point("connected")
		if ready != nil {
			if err := ready(); err != nil {
				return err
			}
		}
		_ = e.rig.point("look")
		return nil
	})
	_ = e.rig.point("sent")
	return receipt, err
}
