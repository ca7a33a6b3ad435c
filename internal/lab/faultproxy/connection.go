package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Entry is what happened on one connection.
type Entry struct {
	// Conn counts from 1.
	Conn    int       `json:"conn"`
	Fault   string    `json:"fault"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// The bytes that the client sent, that the upstream was sent, that the
	// upstream sent, and that the client was sent.
	FromClient   int `json:"fromClient"`
	ToUpstream   int `json:"toUpstream"`
	FromUpstream int `json:"fromUpstream"`
	ToClient     int `json:"toClient"`
	// Upstreams is how many connections were made to the upstream.
	Upstreams int `json:"upstreams"`
	// End is why it ended: closed (by the two sides), broken (one side reset),
	// cut, answered, reset, swallowed, no-upstream, no-request, no-reply (the
	// HTTP of that side did not end), cut-by-hand or proxy-closed.
	End string `json:"end,omitempty"`
}

// orderly is how long a side that was told the end in order may take to end.
const orderly = 5 * time.Second

// maxReply is how much of a reply is kept for replay.
const maxReply = 1 << 20

type connection struct {
	p      *Proxy
	client *net.TCPConn
	fault  Fault
	// armed: the fault has begun. ending: both sides were told the end in
	// order, and what still comes is thrown away.
	armed, ending atomic.Bool
	// cutting: the last byte of a request that is cut is about to pass.
	cutting atomic.Bool

	mu    sync.Mutex
	entry Entry
	ups   []*net.TCPConn
	// aborted: a connection that is made from now on is too late.
	aborted bool
	// reply is what the upstream said, as far as it is kept.
	reply bytes.Buffer
}

func (c *connection) said() Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entry
}

// count changes the entry.
func (c *connection) count(change func(*Entry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.entry)
}

// end says why; the first reason stays.
func (c *connection) end(why string) {
	c.count(func(e *Entry) {
		if e.End == "" {
			e.End = why
		}
	})
}

// serve is one connection, from its arrival to its end.
func (c *connection) serve() {
	switch {
	case c.fault.Kind == Reset:
		c.abort("reset")
	case c.fault.Kind == Blackhole && c.fault.Match == "":
		c.swallow()
	case traits[c.fault.Kind].http:
		c.exchange()
	default:
		c.relay()
	}
}

// abort resets both sides.
func (c *connection) abort(why string) {
	c.end(why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	for _, side := range append(slices.Clone(c.ups), c.client) {
		_ = side.SetLinger(0) // Fails only on what is closed.
		_ = side.Close()
	}
}

// close ends what is left, in order, and dates the end.
func (c *connection) close() {
	c.end("closed")
	now := c.p.o.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entry.Ended = now
	for _, side := range append(slices.Clone(c.ups), c.client) {
		_ = side.Close()
	}
}

// cut ends both sides as the fault says.
func (c *connection) cut() {
	if !c.fault.FIN {
		c.abort("cut")
		return
	}
	c.tellEnd("cut")
}

// tellEnd ends both sides in order. What they still send has to be read: a
// socket that is closed with unread bytes sends a reset.
func (c *connection) tellEnd(why string) {
	c.end(why)
	c.ending.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, side := range append(slices.Clone(c.ups), c.client) {
		_ = side.CloseWrite()
		_ = side.SetReadDeadline(time.Now().Add(orderly))
	}
}

// swallow takes what comes until the client ends.
func (c *connection) swallow() {
	c.end("swallowed")
	buf := make([]byte, 32<<10)
	for {
		n, err := c.client.Read(buf)
		c.count(func(e *Entry) { e.FromClient += n })
		if err != nil {
			return
		}
	}
}

// dial connects to the upstream, unless the connection is at its end.
func (c *connection) dial() (*net.TCPConn, error) {
	if err := c.p.released(); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(c.p.ctx, "tcp", c.p.upstream)
	if err != nil {
		return nil, err
	}
	up := conn.(*net.TCPConn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		return nil, errors.Join(net.ErrClosed, up.Close())
	}
	c.ups = append(c.ups, up)
	c.entry.Upstreams++
	return up, nil
}

// relay passes bytes both ways until both sides have ended.
func (c *connection) relay() {
	if c.fault.Kind == DelayConnect && c.p.o.Wait(c.p.ctx, c.fault.Delay) != nil {
		return
	}
	up, err := c.dial()
	if err != nil {
		c.abort("no-upstream")
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.pump(&flow{c: c, src: up, dst: c.client})
	}()
	c.pump(&flow{c: c, src: c.client, dst: up, request: true})
	<-done
}

// pump passes one direction on until it ends.
func (c *connection) pump(f *flow) {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.src.Read(buf)
		f.came(n)
		if c.p.released() != nil {
			return
		}
		if n > 0 && !c.ending.Load() {
			if passed := f.pass(buf[:n]); passed != nil {
				err = passed
			}
		}
		switch {
		case err == nil:
		case c.ending.Load():
			return
		case errors.Is(err, io.EOF):
			if !f.hole() {
				_ = f.dst.CloseWrite() // The other direction says why, if it fails.
			}
			return
		default:
			c.abort("broken")
			return
		}
	}
}
