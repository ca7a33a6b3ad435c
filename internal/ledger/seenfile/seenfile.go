// Package seenfile remembers, in a small file beside the ledger, how far this
// host has seen its chain. It takes a store and gives one that refuses to go on
// with an older copy or another chain: keys that were claimed in what is lost
// would look free.
//
// The file is written before anything is sent, and when people were asked or have
// spoken: it is behind the chain by what costs nothing to lose.
package seenfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Store is a ledger whose newest position is remembered. It adds one write and
// one sync to each effect and each word of a person.
type Store struct {
	ledger.Store
	file *os.File
	mu   sync.Mutex
	slot int64
}

// ErrOlder says that a chain ends before what this host has seen of it, or is
// another chain.
var ErrOlder = errors.New("the ledger is older than what this host has seen of it, or another one")

// ErrUnreadable says that nobody can tell how far this host has seen the chain.
var ErrUnreadable = errors.New("how far this host has seen the ledger cannot be told")

// openFile opens a regular file, and hangs on nothing else.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; move it away", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnreadable, err), f.Close())
	}
	return f, nil
}

// Open wraps a store with the file of that path, which is made when it is not
// there. On ErrOlder the store is closed by the caller, as on any error.
func Open(ctx context.Context, store ledger.Store, path string) (*Store, error) {
	f, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	s := &Store{Store: store, file: f}
	if err := s.check(ctx, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Seen reads how far this host has seen the chain; the zero Position without a
// file.
func Seen(path string) (ledger.Position, error) {
	f, err := openFile(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return ledger.Position{}, nil
	}
	if err != nil {
		return ledger.Position{}, err
	}
	at, _, err := read(f)
	return at, errors.Join(err, f.Close())
}

// Forget makes the file say that the chain was seen up to a position, whatever
// it said: a named person goes on with another chain.
func Forget(path string, at ledger.Position) error {
	f, err := openFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	s := &Store{file: f}
	if at.Seq > 0 {
		err = s.write(at)
	}
	return errors.Join(err, f.Close())
}

func (s *Store) check(ctx context.Context, path string) error {
	at, slot, err := read(s.file)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, path, err)
	}
	s.slot = slot
	err = ledger.Anchor(ctx, s.Store, at)
	if errors.Is(err, ledger.ErrCorrupt) {
		return fmt.Errorf("%w: entry %d is not in it; restore the newest copy, or go on with this one by `setpoint ledger adopt`", ErrOlder, at.Seq)
	}
	return err
}

// matters: losing the entry would send something again, undo what a person said,
// or give the id that a person was shown to something else.
func matters(d ledger.Draft) bool {
	switch d.Kind {
	case ledger.KindStarted, ledger.KindTicket, ledger.KindAnswer, ledger.KindSettled, ledger.KindFreeze, ledger.KindThaw,
		ledger.KindReset, ledger.KindCeiling, ledger.KindLowered, ledger.KindAdopted, ledger.KindAck:
		return true
	}
	return false
}

// Append remembers the newest position once something is about to be sent, or a
// person has been asked or has spoken. A position that cannot be remembered is a
// send that does not happen.
func (s *Store) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	var told bool
	entries, err := s.Store.Append(ctx, after, func(since []ledger.Entry) ([]ledger.Draft, error) {
		drafts, err := plan(since)
		told = slices.ContainsFunc(drafts, matters)
		return drafts, err
	})
	if err != nil || !told || len(entries) == 0 {
		return entries, err
	}
	if err := s.write(entries[len(entries)-1].Position()); err != nil {
		return nil, err
	}
	return entries, nil
}

// Close closes the store and the file.
func (s *Store) Close() error {
	err := s.file.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(s.Store.Close(), err)
}

// slotSize is one sector: a write of it is whole or not there. There are two,
// written in turn, so that a write that is neither leaves the other.
const slotSize = 512

func (s *Store) write(at ledger.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%d %s", at.Seq, at.Hash)
	sum := sha256.Sum256([]byte(line))
	block := make([]byte, slotSize)
	copy(block, line+" "+hex.EncodeToString(sum[:])+"\n")
	if _, err := s.file.WriteAt(block, s.slot*slotSize); err != nil {
		return fmt.Errorf("seen file: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("seen file: %w", err)
	}
	s.slot = 1 - s.slot
	return nil
}

// read gives the newest position of the file and the slot to write next. An
// empty file is that of a chain from which nothing was sent.
func read(f *os.File) (at ledger.Position, next int64, err error) {
	data, err := io.ReadAll(io.LimitReader(f, 4*slotSize))
	if err != nil {
		return at, 0, err
	}
	for i := range int64(2) {
		from := min(i*slotSize, int64(len(data)))
		if p, ok := parse(data[from:min(from+slotSize, int64(len(data)))]); ok && p.Seq >= at.Seq {
			at, next = p, 1-i
		}
	}
	if at.Seq == 0 && len(data) > 0 {
		return at, 0, errors.New("it holds no whole position; look at why, then `setpoint ledger adopt` writes it anew")
	}
	return at, next, nil
}

func parse(block []byte) (ledger.Position, bool) {
	line, _, ok := strings.Cut(string(block), "\n")
	fields := strings.Fields(line)
	if !ok || len(fields) != 3 {
		return ledger.Position{}, false
	}
	sum := sha256.Sum256([]byte(fields[0] + " " + fields[1]))
	seq, err := strconv.ParseUint(fields[0], 10, 64)
	return ledger.Position{Seq: seq, Hash: fields[1]}, err == nil && fields[2] == hex.EncodeToString(sum[:])
}
