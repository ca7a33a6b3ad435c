// Package world is what stands around an agent that is to crash: a site in a
// folder of its own, a source of measurements, a pager and an actuator on
// loopback, and the agent as a process. It takes the built agent and gives the
// files that a judgement rests on: the ledger's export, the actuator's journal,
// the acknowledged entries and the log.
//
// The servers are in this process, so that no kill of the agent touches them.
package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Slot is the servers of one run at a time. They keep their addresses, which
// the documents name: a ledger that was prepared for documents fits only those.
type Slot struct {
	bin, dir string
	at       places
	servers  []*http.Server
	current  atomic.Pointer[World]
	// seeds are prepared sites, by class.
	seeds map[string]string
	runs  int
	// ends are what Close does besides.
	ends []func() error
}

// NewSlot opens the servers. Everything is below dir, which is the caller's to
// remove; paths in it should be short, since a socket's may have 107 bytes.
func NewSlot(bin, dir string) (*Slot, error) {
	s := &Slot{bin: bin, dir: dir, seeds: map[string]string{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a slot: %w", err)
	}
	for _, door := range []struct {
		url  *string
		pick func(*World) http.Handler
	}{
		{&s.at.source, func(w *World) http.Handler { return w.Source }},
		{&s.at.pager, func(w *World) http.Handler { return w.Pager.Handler() }},
		{&s.at.actuator, func(w *World) http.Handler { return w.Actuator }},
		{&s.at.slack, func(w *World) http.Handler { return w.Slack.Handler() }},
	} {
		if err := s.open(door.url, door.pick); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.at.pager += "/page"
	return s, nil
}

// open serves what the current world says on a free port of loopback.
func (s *Slot) open(url *string, pick func(*World) http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := s.current.Load()
		if w == nil {
			http.Error(rw, "between two runs", http.StatusServiceUnavailable)
			return
		}
		pick(w).ServeHTTP(rw, r)
	})}
	s.servers = append(s.servers, server)
	go func() { _ = server.Serve(l) }() // It ends with Close, and its error is that.
	*url = "http://" + l.Addr().String()
	return nil
}

// OnClose has Close do something else besides.
func (s *Slot) OnClose(f func() error) { s.ends = append(s.ends, f) }

// Close ends the servers.
func (s *Slot) Close() error {
	var errs []error
	for _, end := range s.ends {
		errs = append(errs, end())
	}
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// sqliteLedger is the store of a site with one agent.
const sqliteLedger = "sqlite: {path: " + LedgerFile + "}"

// New makes a world for one run: a copy of a prepared site whose service was
// watched and met for long enough, so that an agent acts from its first two
// reads on. The service has been broken for ten seconds.
func (s *Slot) New(ctx context.Context, o Options) (*World, error) {
	if o.Class == "" {
		o.Class = "auto"
	}
	name, before := o.Class, func(string) error { return nil }
	if o.Slack != "" {
		name, before = o.Class+"-"+o.Slack, func(dir string) error { return writeSlack(dir, s.at.slack, o.Slack) }
	}
	seed, err := s.prepare(ctx, name, o.Class, sqliteLedger, before)
	if err != nil {
		return nil, fmt.Errorf("prepare a site: %w", err)
	}
	s.runs++
	dir := filepath.Join(s.dir, fmt.Sprintf("r%d", s.runs))
	if err := copyTree(dir, seed); err != nil {
		return nil, fmt.Errorf("copy the prepared site: %w", err)
	}
	w, err := s.world(dir, o)
	if err != nil {
		return nil, err
	}
	w.Source.Reset(time.Now().Add(-10 * time.Second))
	return w, nil
}

// prepare makes a site of a name once: its agent runs until its documents are
// settled. ledger is the YAML of the store; before is done first.
func (s *Slot) prepare(ctx context.Context, name, class, ledger string, before func(dir string) error) (string, error) {
	if dir, ok := s.seeds[name]; ok {
		return dir, nil
	}
	dir := filepath.Join(s.dir, name)
	if err := writeSite(dir, s.at, class, ledger); err != nil {
		return "", err
	}
	if err := before(dir); err != nil {
		return "", err
	}
	if err := s.watch(ctx, dir, class); err != nil {
		return "", err
	}
	// What belongs to the preparation is none of the run's.
	for _, file := range []string{LogFile, JournalFile, AcksFile, PointsFile, "setpoint.sock"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	s.seeds[name] = dir
	return dir, nil
}

// watch lets an agent watch a good service until its documents are settled.
func (s *Slot) watch(ctx context.Context, dir, class string) error {
	w, err := s.world(dir, Options{Class: class})
	if err != nil {
		return err
	}
	if err := w.must(ctx, "ledger", "init"); err != nil {
		return err
	}
	agent, err := Start(s.bin, dir, Rig{})
	if err != nil {
		return err
	}
	defer agent.Kill()
	settled := func() bool {
		services, err := w.Services(ctx)
		return err == nil && len(services) == 1 && services[0].State == "met" &&
			services[0].SinceSeconds != nil && *services[0].SinceSeconds > (HoldFor+500*time.Millisecond).Seconds()
	}
	if err := w.Until(ctx, agent, 15*time.Second, settled); err != nil {
		return err
	}
	// The ledger counts a time as watched up to its newest entry.
	if err := w.must(ctx, "freeze", "--reason", "prepared"); err != nil {
		return err
	}
	if err := w.must(ctx, "thaw", "--all", "--reason", "prepared"); err != nil {
		return err
	}
	return agent.Stop(5 * time.Second)
}

// must runs a command that has to succeed.
func (w *World) must(ctx context.Context, args ...string) error {
	out, code, err := w.Command(ctx, args...)
	if err != nil || code != 0 {
		return fmt.Errorf("setpoint %s: %w: %s", strings.Join(args, " "), errors.Join(err, errExit(code)), out)
	}
	return nil
}

// copyTree copies files as private ones, which secrets must be; sockets and
// locks are not copied.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rest)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
}
