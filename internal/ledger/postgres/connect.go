package postgres

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// settings are what each of our sessions starts with, whatever the server, the
// role or the DSN say. The server checks them in the startup message.
func settings() map[string]string {
	return map[string]string{
		// A replica that is stopped or cut off while it decides would hold the
		// head, and with it every other replica, until it comes back.
		"idle_in_transaction_session_timeout": "5s",
		// Longer than the one above, so that a wait for such a replica ends well;
		// without it an append would wait for ever for whoever hangs otherwise.
		"lock_timeout": "10s",
		// A statement that hangs in the server (a disk that does not answer)
		// holds the head as well.
		"statement_timeout": "30s",
		// The session that listens and holds the advisory lock is idle by nature;
		// an administrator's limit on idle sessions must not end it.
		"idle_session_timeout": "0",
		// The host of a replica vanished: its session, with its locks, would stay
		// for the two hours of the kernel's own keepalive.
		"tcp_keepalives_idle":     "5",
		"tcp_keepalives_interval": "2",
		"tcp_keepalives_count":    "3",
		// A replica that is stopped while the server sends to it: a session that
		// waits for room in the socket is neither idle nor cancelled by a
		// timeout of statements.
		"tcp_user_timeout": "10s",
		// Names and errors are UTF-8 here, whatever PGCLIENTENCODING says.
		"client_encoding": "UTF8",
	}
}

const (
	// connectsIn bounds a connection attempt: a server that swallows packets must
	// not hang a pass.
	connectsIn = 5 * time.Second
	// answersIn bounds a try of an append from our side, for a server that keeps
	// its connections but does not answer, not even by its own timeouts.
	answersIn = 45 * time.Second
	// readers is how many reads run at once; each is short.
	readers = 4
)

var errDSN = errors.New("ledger: the DSN cannot be read; it looks like " +
	"postgres://user:password@host:5432/database?sslmode=verify-full, with special characters of the password percent-encoded")

// parse reads a DSN. Its errors say nothing of what is in it: in a malformed
// one, a part of the password may stand anywhere.
func parse(dsn string) (cfg *pgxpool.Config, name string, err error) {
	dsn = strings.TrimSpace(dsn)
	if dsn == "" {
		return nil, "", errors.New("ledger: the DSN is empty")
	}
	cfg, err = pgxpool.ParseConfig(dsn)
	if err != nil {
		// Without the cause, which quotes the DSN.
		return nil, "", errDSN
	}
	c := cfg.ConnConfig
	// What is left when a password has a slash that is not encoded.
	if c.Database == "" || strings.ContainsAny(c.Database, "@/") || strings.Contains(c.Host, "@") {
		return nil, "", errDSN
	}
	for key, value := range settings() {
		c.RuntimeParams[key] = value
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "setpoint"
	}
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > connectsIn {
		c.ConnectTimeout = connectsIn
	}
	c.DialFunc = dialer().DialContext
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = readers, 0, 0
	cfg.PingTimeout = connectsIn
	host := c.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
	}
	return cfg, "postgres " + host + "/" + c.Database, nil
}

// dialer finds out in seconds that the server's host is gone, also in the
// middle of a statement.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectsIn,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		Control:         userTimeout,
	}
}
