package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// ErrUnknown says that nobody could find out whether a commit happened. The next
// append sees the entries if it did.
var ErrUnknown = errors.New("whether the entries were written is unknown")

// The codes of PostgreSQL that something is made of here.
const (
	codeUnique        = "23505"
	codeLockTimeout   = "55P03"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeIdle          = "25P03"
	codeNoTable       = "42P01"
)

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// fault is a failure with the ledger's name, which has no secret in it.
type fault struct {
	text string
	err  error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.err }

// explain says what a failure means for a ledger and what to do.
func explain(name, what string, err error) error {
	var done *fault
	if err == nil || errors.As(err, &done) {
		return err
	}
	// The error of a connection attempt carries the whole configuration; only
	// its cause is kept.
	inner := cause(err)
	unreached := inner != err //nolint:errorlint // whether cause took something off
	err = inner
	if errors.Is(err, puddle.ErrClosedPool) {
		err = os.ErrClosed
	}
	words := meanings()[code(err)]
	if words == "" && unreached {
		words = "the server cannot be reached; check that it runs and that the DSN names it"
	}
	if words != "" {
		words += ": "
	}
	if code(err) == codeNoTable {
		err = fmt.Errorf("%w: %w", ledger.ErrMissing, err)
	}
	// Some of pgx's errors have a line for each address.
	cause := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' }), "; ")
	return &fault{text: fmt.Sprintf("ledger %s: %s: %s%s", name, what, words, cause), err: err}
}

// meanings are what to do about the failures that a person can mend.
func meanings() map[string]string {
	const (
		stopping = "the server is stopping or starting"
		damaged  = "the server's disk or data is damaged; see its log"
		held     = "another replica holds the ledger"
	)
	return map[string]string{
		"28P01":     "the server refuses the user or the password of the DSN",
		"28000":     "the server refuses the user or the password of the DSN",
		"3D000":     "the database does not exist; create it first",
		"42501":     "the user of the DSN lacks a permission; let it own the database",
		"42704":     "a setting is unknown to the server; PostgreSQL 14 or newer is needed, and no pooler before it",
		codeNoTable: "its tables are gone; restore them, or run `setpoint ledger init`",
		"53100":     "the disk of the server is full; free space on it",
		"53300":     "the server has no free connection; raise max_connections",
		"25006":     "the server takes no writes; name the primary in the DSN",
		"22021":     "a name is no UTF-8 text",
		"57014":     "the server took too long",
		"57P01":     stopping, "57P02": stopping, "57P03": stopping,
		"58030": damaged, "XX000": damaged, "XX001": damaged, "XX002": damaged,
		codeLockTimeout: held, codeSerialization: held, codeDeadlock: held, codeIdle: held,
	}
}

// contended reports a failure that another session of the ledger caused, or
// our own absence: it may be gone in a moment.
func contended(c string) bool {
	return c == codeLockTimeout || c == codeSerialization || c == codeDeadlock || c == codeIdle
}

// fault explains a failure. It gives the context's error where that is the
// cause, so that a cancelled pass is not taken for a broken ledger.
func (r *Reader) fault(ctx context.Context, what string, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(r.name, what, err)
}

// hangUp closes a connection in a bounded time.
func hangUp(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), connectsIn)
	defer cancel()
	return conn.Close(ctx)
}

// cause is an error without the configuration that pgx packs into it.
func cause(err error) error {
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		return failed.Unwrap()
	}
	return err
}
