package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// opened is a ledger to write to, with what its kind brings beside the chain.
type opened struct {
	ledger.Store
	clock func(ctx context.Context) (time.Time, error)
	// hints tell that another process appended; nil where there is none.
	hints <-chan struct{}
	// shared: other processes wrote to it when it was opened. process is this
	// one's name among them.
	shared  bool
	process string
	// fault says why nothing may be written, nor done.
	fault error
}

// openLedger opens the ledger for writing and verifies its chain from the
// newest checkpoint on. It refuses a chain that is older than what this host
// has seen of it.
func (a *app) openLedger(ctx context.Context, s site) (*opened, error) {
	o, err := a.openAny(ctx, s)
	if err != nil {
		return nil, err
	}
	seen, err := seenfile.Open(ctx, o.Store, s.seenFile())
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	o.Store = seen
	return o, nil
}

// openToRun opens the ledger for an agent. One that is broken, or older than
// what this host has seen, keeps no agent from observing and paging: an agent
// that does not start tells nobody of a missed SLO.
func (a *app) openToRun(ctx context.Context, s site) (*opened, error) {
	o, fault := a.openLedger(ctx, s)
	if !errors.Is(fault, ledger.ErrCorrupt) && !distrusted(fault) {
		return o, fault
	}
	out := &opened{fault: fmt.Errorf("%w; nothing is done until it is repaired: restore the newest good copy (`setpoint ledger verify` tells) and start again", fault)}
	if r, err := readLedger(ctx, s); err == nil {
		out.Store = readOnly{r}
	}
	return out, nil
}

// distrusted: the ledger may not be the one that this host has seen, which only a
// named person can say.
func distrusted(err error) bool {
	return errors.Is(err, seenfile.ErrOlder) || errors.Is(err, seenfile.ErrUnreadable)
}

// Close closes what was opened.
func (o *opened) Close() error {
	if o.Store == nil {
		return nil
	}
	return o.Store.Close()
}

// openAny opens the ledger whatever this host has seen of it.
func (a *app) openAny(ctx context.Context, s site) (*opened, error) {
	if s.cfg.Ledger.Postgres == nil {
		store, err := sqlite.Open(s.cfg.Ledger.SQLite.Path, sqlite.Options{Now: a.now})
		if err != nil {
			return nil, err
		}
		return &opened{Store: store, clock: store.Clock}, nil
	}
	dsn, err := s.dsn()
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &opened{Store: store, clock: store.Clock, hints: store.Hints(), shared: !store.Lone(), process: processName()}, nil
}

// processName tells replicas apart, for people and for each other.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// dsn is the connection string of PostgreSQL, which holds a password.
func (s site) dsn() (string, error) {
	secret, err := readSecret("ledger.postgres.dsnFile", s.cfg.Ledger.Postgres.DSNFile)
	if err != nil {
		return "", err
	}
	return secret.Reveal(), nil
}

// seenFile is where this host remembers how far it has seen the chain.
func (s site) seenFile() string {
	if s.cfg.Ledger.Postgres != nil {
		return filepath.Join(s.cfg.Ledger.FreezeDir, ".seen")
	}
	return s.cfg.Ledger.SQLite.Path + ".seen"
}

// where names the ledger for people, without its password.
func (s site) where() string {
	if s.cfg.Ledger.Postgres != nil {
		return "PostgreSQL (" + s.cfg.Ledger.Postgres.DSNFile + ")"
	}
	return s.cfg.Ledger.SQLite.Path
}

// reader is a ledger that is only read, beside whoever writes it.
type reader interface {
	ledger.Past
	ledger.Source
	Verify(ctx context.Context) (ledger.Report, error)
	Close() error
}

func readLedger(ctx context.Context, s site) (reader, error) {
	if s.cfg.Ledger.Postgres == nil {
		return sqlite.OpenReader(s.cfg.Ledger.SQLite.Path)
	}
	dsn, err := s.dsn()
	if err != nil {
		return nil, err
	}
	return postgres.OpenReader(ctx, dsn)
}

// readOnly is a Store for plans: nothing can be appended through it.
type readOnly struct{ reader }

var errReadOnly = errors.New("the ledger is open for reading only")

// Append refuses.
func (readOnly) Append(context.Context, ledger.Position, ledger.Plan) ([]ledger.Entry, error) {
	return nil, errReadOnly
}

// createLedger makes an empty ledger; one that is there is never touched.
func createLedger(ctx context.Context, s site) error {
	if s.cfg.Ledger.Postgres != nil {
		dsn, err := s.dsn()
		if err != nil {
			return err
		}
		return postgres.Init(ctx, dsn, actor())
	}
	path := s.cfg.Ledger.SQLite.Path
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	return sqlite.Init(path, actor())
}
