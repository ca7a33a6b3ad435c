//go:build !linux

package web

import (
	"errors"
	"net"
)

// peerUID is not known on this platform, so the socket serves reads only and
// writes need a token over TCP.
func peerUID(net.Conn) (uint32, error) {
	return 0, errors.New("peer credentials are not supported on this platform")
}
