package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Session is a connection with the settings of ours.
func Session(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, _, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg.ConnConfig)
}

// AskFor bounds how long a store asks whether a commit happened.
func (s *Store) AskFor(d time.Duration) { s.ask = d }
