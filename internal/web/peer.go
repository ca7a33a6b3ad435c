package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// ListenUnix listens on a unix socket that the agent's own user and group (and
// root) may open: on-call engineers are members of the group, and each is known
// by the uid that the kernel gives of the peer. A socket that a dead agent left behind is replaced; one that
// answers, or a file that is no socket, is an error.
func ListenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("web.socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		_ = l.Close() // The error that matters is why it stays open to others.
		return nil, fmt.Errorf("web.socket %s cannot be closed to other users: %w", path, err)
	}
	return l, nil
}

func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("web.socket: %w", err)
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("web.socket %s is there and no socket; remove it or name another path", path)
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close() // It was only knocked at.
		return fmt.Errorf("web.socket %s is in use by another process", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("web.socket %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("web.socket: stale socket: %w", err)
	}
	return nil
}

// withPeer asks the kernel who is at the other end of a unix connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	uid, err := peerUID(c)
	if err != nil {
		return ctx // Then there is no actor, and no write is accepted.
	}
	return context.WithValue(ctx, peerKey, OSActor(uid))
}

func peerActor(ctx context.Context) (by string, ok bool) {
	by, ok = ctx.Value(peerKey).(string)
	return by, ok
}

// OSActor is the principal of an operating-system user: "os:alice", or
// "os:#1234" for a uid without a name, which no user name can look like.
func OSActor(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err != nil || u.Username == "" {
		return "os:#" + id
	}
	return "os:" + u.Username
}
