package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

// TestPostgres tells the stories of a ledger that several hosts share, on a
// real server.
func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	stories(t, "testdata/postgres", map[string]func(*testscript.TestScript, bool, []string){
		// postgres <file> makes a database and writes its connection string.
		"postgres": func(ts *testscript.TestScript, _ bool, args []string) {
			// Stories run at the same time, each on a database of its own.
			dsn, err := server.Database(strings.ReplaceAll(ts.Name(), "-", "_"))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(withPassword(dsn, "canary-password")), 0o600))
		},
		// wrong-password <file> makes it a connection to nobody.
		"wrong-password": func(ts *testscript.TestScript, _ bool, args []string) {
			dsn := strings.Replace(ts.ReadFile(args[0]), "@"+server.Addr()+"/", "@127.0.0.1:1/", 1)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(dsn), 0o600))
		},
	})
}

// withPassword adds a password, which a server that trusts its host ignores.
func withPassword(dsn, password string) string {
	before, after, _ := strings.Cut(dsn, "@")
	return before + ":" + password + "@" + after
}
