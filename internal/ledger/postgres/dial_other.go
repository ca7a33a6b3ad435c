//go:build !linux

package postgres

import "syscall"

// userTimeout needs a socket option that only Linux has; elsewhere the kernel's
// own retransmission ends the connection, in minutes.
func userTimeout(string, string, syscall.RawConn) error { return nil }
