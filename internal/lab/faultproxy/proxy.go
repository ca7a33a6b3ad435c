// Package faultproxy stands between a client and one upstream and lets a
// chosen thing go wrong on each connection. It takes rules (Set, Next), which
// may change while it runs, and gives a log of what passed on each connection
// in each direction, which says what client and upstream can have seen.
//
// Faults of bytes work for any protocol, PostgreSQL's too. Faults of HTTP parse
// HTTP/1.1 just enough to find where the first request and its reply end; they
// end the connection after it, and do not know Expect: 100-continue.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// keep is how many ended connections the log holds.
const keep = 10_000

// Options are what a proxy needs beside its upstream; all may be zero.
type Options struct {
	// Listen is the address of the proxy; empty is a free port of 127.0.0.1.
	Listen string
	// Now stamps the log; nil is the system's clock.
	Now func() time.Time
	// Wait ends after d, or with an error when ctx ends before; nil is a timer.
	// A test that injects it decides when a delay is over.
	Wait func(ctx context.Context, d time.Duration) error
}

// Proxy is one listener with one upstream. It is safe for concurrent use.
type Proxy struct {
	upstream, address string
	o                 Options
	ctx               context.Context
	stop              context.CancelFunc
	running           sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while refused, and after Close
	always   Fault
	next     Fault
	left     int
	open     map[*connection]struct{}
	log      []*connection
	count    int
	// gate is closed when held connections go on; nil is not held.
	gate chan struct{}
	// heard is the connection that got the latest reply.
	heard *connection
}

// New starts a proxy in front of an upstream (host:port). It passes everything
// until a fault is set.
func New(upstream string, o Options) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(upstream); err != nil {
		return nil, fmt.Errorf("upstream %q: write host:port, e.g. 127.0.0.1:5432: %w", upstream, err)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	p := &Proxy{upstream: upstream, address: o.Listen, o: o, always: Fault{Kind: Pass}, open: map[*connection]struct{}{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if err := p.listen(); err != nil {
		p.stop()
		return nil, err
	}
	p.address = p.listener.Addr().String()
	return p, nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Addr is where clients connect, host:port. It stays the same for the life of
// the proxy.
func (p *Proxy) Addr() string { return p.address }

// Set has all connections from now on meet a fault; those that stand keep
// theirs. What Next left over is dropped.
func (p *Proxy) Set(f Fault) error {
	if err := f.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return net.ErrClosed
	}
	p.always, p.left = f, 0
	switch {
	case f.Kind == Refuse && p.listener != nil:
		err := p.listener.Close()
		p.listener = nil
		return err
	case f.Kind != Refuse && p.listener == nil:
		return p.listen()
	}
	return nil
}

// Next has the next n connections meet a fault; then it is as before. Refuse
// cannot be counted, since nothing arrives.
func (p *Proxy) Next(n int, f Fault) error {
	if err := f.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case n < 1:
		return fmt.Errorf("fault %s: want a number of connections, not %d", f.Kind, n)
	case f.Kind == Refuse || p.always.Kind == Refuse:
		return errors.New("connections that are refused cannot be counted: set refuse, and set something else when it is over")
	}
	p.next, p.left = f, n
	return nil
}

// Rules are what connections meet: always, and before it next for so many.
func (p *Proxy) Rules() (always, next Fault, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.always, p.next, p.left
}

// Hold stops all bytes and closings in both directions, also of connections
// that stand, as a network that is cut does; Hold(false) lets them go on.
func (p *Proxy) Hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.gate == nil:
		p.gate = make(chan struct{})
	case !on && p.gate != nil:
		close(p.gate)
		p.gate = nil
	}
}

// Cut resets every connection that stands, on both sides.
func (p *Proxy) Cut() {
	for _, c := range p.standing() {
		c.abort("cut-by-hand")
	}
}

// Log says what happened to each connection, in the order of their arrival.
// Those that stand have no End yet.
func (p *Proxy) Log() []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	entries := make([]Entry, 0, len(p.log))
	for _, c := range p.log {
		entries = append(entries, c.said())
	}
	return entries
}

// Close ends the listener and every connection, and returns when nothing of
// the proxy runs any more.
func (p *Proxy) Close() error {
	p.stop()
	p.mu.Lock()
	var err error
	if p.listener != nil {
		err = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	for _, c := range p.standing() {
		c.abort("proxy-closed")
	}
	p.running.Wait()
	return err
}

func (p *Proxy) standing() []*connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	cs := make([]*connection, 0, len(p.open))
	for c := range p.open {
		cs = append(cs, c)
	}
	return cs
}

// listen opens the address, for the first time or again. Somebody's outgoing
// connection may have it for a moment.
func (p *Proxy) listen() error {
	var err error
	for range 50 {
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(p.ctx, "tcp", p.address); err == nil {
			p.listener = l
			p.running.Add(1)
			go p.accept(l)
			return nil
		}
		if wait(p.ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	return fmt.Errorf("listen on %s: %w", p.address, err)
}

func (p *Proxy) accept(l net.Listener) {
	defer p.running.Done()
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Out of descriptors, or a client that was gone at once.
			if wait(p.ctx, 5*time.Millisecond) != nil {
				return
			}
			continue
		}
		if c, ok := p.admit(conn.(*net.TCPConn)); ok {
			go func() {
				defer p.running.Done()
				defer p.dismiss(c)
				c.serve()
			}()
		}
	}
}

// admit gives a connection its number and its fault.
func (p *Proxy) admit(conn *net.TCPConn) (*connection, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		_ = conn.Close()
		return nil, false
	}
	f := p.always
	if p.left > 0 {
		f = p.next
		p.left--
	}
	p.count++
	c := &connection{p: p, client: conn, fault: f}
	c.entry = Entry{Conn: p.count, Fault: f.String(), Started: p.o.Now()}
	c.armed.Store(f.Match == "")
	p.open[c] = struct{}{}
	if p.log = append(p.log, c); len(p.log) > keep {
		p.log = p.log[1:]
	}
	p.running.Add(1)
	return c, true
}

func (p *Proxy) dismiss(c *connection) {
	c.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// released returns when connections are not held.
func (p *Proxy) released() error {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}
