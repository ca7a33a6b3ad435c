package pager

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Gate is a listener that can refuse: its port is closed for a while, and what
// was connected is cut off.
type Gate struct {
	address net.Addr

	mu      sync.Mutex
	changed *sync.Cond
	// l is nil while it refuses.
	l       net.Listener
	refused bool
	closed  bool
	conns   map[net.Conn]bool
}

// NewGate takes a listener of TCP over.
func NewGate(l net.Listener) *Gate {
	g := &Gate{address: l.Addr(), l: l, conns: map[net.Conn]bool{}}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// Addr is the address, open or not.
func (g *Gate) Addr() net.Addr { return g.address }

// Refuse closes the port, or opens it again at the same address.
func (g *Gate) Refuse(refuse bool) {
	for _, c := range g.turn(refuse) {
		_ = c.Close()
	}
}

// turn gives the connections that are to be cut off.
func (g *Gate) turn(refuse bool) []net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if refuse == g.refused || g.closed {
		return nil
	}
	g.refused = refuse
	if !refuse {
		g.reopen()
		return nil
	}
	if g.l != nil {
		_ = g.l.Close()
		g.l = nil
	}
	return slices.Collect(maps.Keys(g.conns))
}

// RefuseFor refuses so long by the real clock.
func (g *Gate) RefuseFor(d time.Duration) {
	g.Refuse(true)
	time.AfterFunc(d, func() { g.Refuse(false) })
}

// reopen listens again, later if somebody else has the port. The caller holds
// the lock.
func (g *Gate) reopen() {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), g.address.Network(), g.address.String())
	if err != nil {
		time.AfterFunc(10*time.Millisecond, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.l == nil && !g.refused && !g.closed {
				g.reopen()
			}
		})
		return
	}
	g.l = l
	g.changed.Broadcast()
}

// Accept waits for a connection, through every time of refusal.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		l := g.listener()
		if l == nil {
			return nil, net.ErrClosed
		}
		conn, err := l.Accept()
		if err == nil {
			if kept := g.keep(l, conn); kept != nil {
				return kept, nil
			}
			continue
		}
		g.mu.Lock()
		same := g.l == l && !g.closed
		g.mu.Unlock()
		if same {
			return nil, err
		}
	}
}

// listener is the open one, waited for; nil after Close.
func (g *Gate) listener() net.Listener {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.l == nil && !g.closed {
		g.changed.Wait()
	}
	if g.closed {
		return nil
	}
	return g.l
}

// keep holds a connection so that it can be cut; nil for one that came too late.
func (g *Gate) keep(l net.Listener, conn net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.l != l {
		_ = conn.Close()
		return nil
	}
	kept := &counted{Conn: conn, gate: g}
	g.conns[kept] = true
	return kept
}

// Close ends it.
func (g *Gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.changed.Broadcast()
	if g.l == nil {
		return nil
	}
	err := g.l.Close()
	g.l = nil
	return err
}

// counted is a connection that leaves the gate when it is closed.
type counted struct {
	net.Conn
	gate *Gate
}

// Close closes it and forgets it.
func (c *counted) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// SetLinger lets a fault reset the connection.
func (c *counted) SetLinger(seconds int) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetLinger(seconds)
	}
	return nil
}
