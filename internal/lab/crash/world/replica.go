package world

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

// postgresLedger is the store of a site whose ledger is shared.
const postgresLedger = "postgres: {dsnFile: dsn}"

// dsnFile holds the connection string of a site.
const dsnFile = "dsn"

// NewShared makes a world whose ledger is a database of its own on a server, a
// copy of a prepared one. No agent runs in its site; Replica makes sites for
// them.
func (s *Slot) NewShared(ctx context.Context, pg *pgtest.Server, o Options) (*World, error) {
	if o.Class == "" {
		o.Class = "auto"
	}
	name := "s" + filepath.Base(s.dir) + o.Class
	dir, err := s.prepare(ctx, "pg-"+o.Class, o.Class, postgresLedger, func(dir string) error {
		dsn, err := pg.Database(name)
		if err != nil {
			return err
		}
		return writeDSN(dir, dsn)
	})
	if err != nil {
		return nil, fmt.Errorf("prepare a shared site: %w", err)
	}
	s.runs++
	to := filepath.Join(s.dir, fmt.Sprintf("r%d", s.runs))
	if err := copyTree(to, dir); err != nil {
		return nil, fmt.Errorf("copy the prepared site: %w", err)
	}
	run := name + "_run"
	if err := copyDatabase(ctx, pg, name, run); err != nil {
		return nil, err
	}
	if err := writeDSN(to, pg.DSN(run)); err != nil {
		return nil, err
	}
	w, err := s.world(to, o)
	if err != nil {
		return nil, err
	}
	w.dsn = pg.DSN(run)
	w.Source.Reset(time.Now().Add(-10 * time.Second))
	return w, nil
}

func writeDSN(dir, dsn string) error {
	return os.WriteFile(filepath.Join(dir, dsnFile), []byte(dsn+"\n"), 0o600)
}

// copyDatabase makes a database like another one.
func copyDatabase(ctx context.Context, pg *pgtest.Server, from, to string) (err error) {
	conn, err := pgx.Connect(ctx, pg.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("copy a database: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	// The copy of the run before goes: a server with many has much to sync when
	// it ends.
	source, copied := pgx.Identifier{from}.Sanitize(), pgx.Identifier{to}.Sanitize()
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + copied + " WITH (FORCE)", "CREATE DATABASE " + copied + " TEMPLATE " + source} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("copy a database: %w", err)
		}
	}
	return nil
}

// Replica is a site of its own on the shared ledger, which it reaches at addr
// (host:port). It shares source, actuator and pager.
func (w *World) Replica(name, addr string) (*World, error) {
	dsn, err := through(w.dsn, addr)
	if err != nil {
		return nil, err
	}
	r := *w
	r.Dir, r.replicas = w.Path(name), nil
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a replica: %w", err)
	}
	for _, file := range []string{ConfigFile, "checkout.yaml", "rules.yaml", "policies", "actuator.key"} {
		if err := copyTree(r.Path(file), w.Path(file)); err != nil {
			return nil, fmt.Errorf("make a replica: %w", err)
		}
	}
	if err := writeDSN(r.Dir, dsn); err != nil {
		return nil, fmt.Errorf("make a replica: %w", err)
	}
	r.dial()
	w.replicas = append(w.replicas, &r)
	return &r, nil
}

// through gives the connection string by another address.
func through(dsn, addr string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("the connection string: %w", err)
	}
	u.Host = addr
	return u.String(), nil
}

// allAcks are the acknowledged entries of the site and of its replicas.
func (w *World) allAcks() ([]ledger.Position, error) {
	all, err := lines[ledger.Position](w.Path(AcksFile))
	for _, r := range w.replicas {
		more, failed := lines[ledger.Position](r.Path(AcksFile))
		all, err = append(all, more...), errors.Join(err, failed)
	}
	return all, err
}
