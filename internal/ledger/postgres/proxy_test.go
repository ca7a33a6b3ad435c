package postgres_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

// proxy stands between a store and its server, reads PostgreSQL's messages, and
// does something else with a COMMIT.
type proxy struct {
	listener net.Listener
	server   string

	mu sync.Mutex
	// accepted counts connections.
	accepted int
	// onCommit is called with the next COMMIT; forward sends it on.
	onCommit func(l link, forward func())
}

// link is one connection through the proxy.
type link struct{ client, server net.Conn }

// newProxy returns a proxy and the DSN through it.
func newProxy(t testing.TB, dsn string) (*proxy, string) {
	t.Helper()
	server := pgtest.Start(t).Addr()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{listener: l, server: server}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.accepted++
			p.mu.Unlock()
			go p.serve(client)
		}
	}()
	return p, strings.Replace(dsn, server, l.Addr().String(), 1)
}

// next sets what is done with the next COMMIT.
func (p *proxy) next(f func(l link, forward func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCommit = f
}

func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	l := link{client, server}
	in := bufio.NewReader(client)
	// The first message has no type.
	for head := 0; ; head = 1 {
		msg, err := message(in, head)
		if err != nil {
			return
		}
		forward := func() { _, _ = server.Write(msg) }
		if f := p.commit(msg); f != nil {
			f(l, forward)
			continue
		}
		forward()
	}
}

func message(in io.Reader, head int) ([]byte, error) {
	msg := make([]byte, head+4)
	if _, err := io.ReadFull(in, msg); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(msg[head:])-4)
	_, err := io.ReadFull(in, rest)
	return append(msg, rest...), err
}

func (p *proxy) commit(msg []byte) func(link, func()) {
	if msg[0] != 'Q' || !bytes.Contains(msg, []byte("COMMIT")) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.onCommit
	p.onCommit = nil
	return f
}

func (l link) cut() {
	_ = l.client.Close()
	_ = l.server.Close()
}
