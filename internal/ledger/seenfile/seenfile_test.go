package seenfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

const key = "checkout:1764400200-600"

// site is a ledger with its seen file.
type site struct {
	t          *testing.T
	path, seen string
}

func newSite(t *testing.T) site {
	t.Helper()
	dir := t.TempDir()
	s := site{t, filepath.Join(dir, "ledger.db"), filepath.Join(dir, "ledger.db.seen")}
	if err := sqlite.Init(s.path, "os:test"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s site) open() (*seenfile.Store, error) {
	s.t.Helper()
	inner, err := sqlite.Open(s.path, sqlite.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	store, err := seenfile.Open(s.t.Context(), inner, s.seen)
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return store, nil
}

func (s site) mustOpen() *seenfile.Store {
	s.t.Helper()
	store, err := s.open()
	if err != nil {
		s.t.Fatal(err)
	}
	return store
}

// send appends what precedes a send, and closes.
func (s site) send(kinds ...ledger.Kind) {
	s.t.Helper()
	store := s.mustOpen()
	es, err := store.Read(s.t.Context(), 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	var ds []ledger.Draft
	for _, k := range kinds {
		d := ledgertest.Gap("x")
		switch k {
		case ledger.KindStarted:
			d = ledger.Draft{Kind: k, Service: "checkout", Body: ledger.Started{Key: key}}
		case ledger.KindCeiling:
			d = ledger.Draft{Kind: k, Service: "checkout", Body: ledger.Ceiling{To: gate.Deny, By: "os:alice", Reason: "it flaps"}}
		}
		ds = append(ds, d)
	}
	if _, err := store.Append(s.t.Context(), es[len(es)-1].Position(), ledgertest.Drafts(ds...)); err != nil {
		s.t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s site) copy(from, to string) {
	s.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) func() ledger.Store {
		s := newSite(t)
		return func() ledger.Store { return s.mustOpen() }
	})
}

func TestOlderCopy(t *testing.T) {
	tests := map[string]struct {
		reason string
		then   func(s site, aside string)
		want   error
	}{
		"nothing": {"the chain goes on", func(site, string) {}, nil},
		"older": {"a started effect is not in it", func(s site, aside string) {
			s.copy(aside, s.path)
		}, seenfile.ErrOlder},
		"another": {"a fresh chain that has grown past it is another one", func(s site, _ string) {
			if err := os.Remove(s.path); err != nil {
				s.t.Fatal(err)
			}
			if err := sqlite.Init(s.path, "os:other"); err != nil {
				s.t.Fatal(err)
			}
		}, seenfile.ErrOlder},
		"adopted": {"a named person goes on with it", func(s site, aside string) {
			s.copy(aside, s.path)
			if err := seenfile.Forget(s.seen, ledger.Position{}); err != nil {
				s.t.Fatal(err)
			}
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.send(ledger.KindGap, ledger.KindStarted)
			aside := s.path + ".aside"
			s.copy(s.path, aside)
			s.send(ledger.KindGap, ledger.KindStarted, ledger.KindGap)
			tt.then(s, aside)
			store, err := s.open()
			if !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
				t.Fatalf("%s: got %v, want %v", tt.reason, err, tt.want)
			}
			if store != nil {
				_ = store.Close()
			}
		})
	}
}

// TestWhatMattersIsRemembered: what costs nothing to lose costs no sync.
func TestWhatMattersIsRemembered(t *testing.T) {
	s := newSite(t)
	s.send(ledger.KindGap)
	if at, err := seenfile.Seen(s.seen); err != nil || at.Seq != 0 {
		t.Errorf("a gap was remembered: %v, %v", at, err)
	}
	s.send(ledger.KindStarted)
	if at, err := seenfile.Seen(s.seen); err != nil || at.Seq != 3 {
		t.Errorf("remembered %v, %v, want entry 3", at, err)
	}
	s.send(ledger.KindCeiling)
	if at, err := seenfile.Seen(s.seen); err != nil || at.Seq != 4 {
		t.Errorf("a person's word: remembered %v, %v, want entry 4", at, err)
	}
}

// TestTornWrite cuts and garbles the newest slot at each byte: the other one
// stands, and a file without any whole slot is an error, not a fresh start.
func TestTornWrite(t *testing.T) {
	s := newSite(t)
	s.send(ledger.KindStarted)
	first, err := os.ReadFile(s.seen)
	if err != nil {
		t.Fatal(err)
	}
	s.send(ledger.KindStarted)
	whole, err := os.ReadFile(s.seen)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 140 {
		torn := append([]byte(nil), whole...)
		torn[512+i] ^= 0x01
		if err := os.WriteFile(s.seen, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		if at, err := seenfile.Seen(s.seen); err != nil || at.Seq != 2 && at.Seq != 3 {
			t.Fatalf("byte %d of the second slot: %v, %v", i, at, err)
		}
		if err := os.WriteFile(s.seen, first[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if at, err := seenfile.Seen(s.seen); i > 0 && err == nil && at.Seq != 2 {
			t.Fatalf("%d bytes of the only slot passed for %v", i, at)
		}
	}
}

// TestUnreadable: what nobody can read is told as such, hangs nobody, and a
// person can go on.
func TestUnreadable(t *testing.T) {
	tests := map[string]struct {
		reason string
		put    func(path string) error
	}{
		"garbage": {"no slot is whole", func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 1024)), 0o600) }},
		"pipe":    {"a pipe would be waited for", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		"folder":  {"a folder is none", func(path string) error { return os.Mkdir(path, 0o700) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if err := tt.put(s.seen); err != nil {
				t.Fatal(err)
			}
			if _, err := s.open(); !errors.Is(err, seenfile.ErrUnreadable) {
				t.Errorf("%s: open gave %v", tt.reason, err)
			}
			if _, err := seenfile.Seen(s.seen); !errors.Is(err, seenfile.ErrUnreadable) && name != "garbage" {
				t.Errorf("%s: seen gave %v", tt.reason, err)
			}
		})
	}
}
