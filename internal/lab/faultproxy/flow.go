package faultproxy

import (
	"bytes"
	"net"
)

// flow is one direction of a connection.
type flow struct {
	c        *connection
	src, dst *net.TCPConn
	request  bool
	// faulty is how many bytes came since the fault began.
	faulty int
	// tail is the end of what passed before it began, for a match that comes in
	// two reads.
	tail []byte
}

// came counts bytes that were read.
func (f *flow) came(n int) {
	f.c.count(func(e *Entry) {
		if f.request {
			e.FromClient += n
		} else {
			e.FromUpstream += n
		}
	})
}

// write passes bytes on.
func (f *flow) write(b []byte) error {
	if f.request {
		return f.c.tell(f.dst, b)
	}
	return f.c.answer(b)
}

// tell writes to an upstream.
func (c *connection) tell(up *net.TCPConn, b []byte) error {
	n, err := up.Write(b)
	c.count(func(e *Entry) { e.ToUpstream += n })
	return err
}

// answer writes to the client.
func (c *connection) answer(b []byte) error {
	n, err := c.client.Write(b)
	c.count(func(e *Entry) { e.ToClient += n })
	return err
}

// hole reports whether nothing passes any more, closings included.
func (f *flow) hole() bool { return f.c.fault.Kind == Blackhole && f.c.armed.Load() }

// pass passes a piece on, as far as the fault lets it.
func (f *flow) pass(b []byte) error {
	if !f.request {
		f.c.hear(b)
	}
	if !f.c.armed.Load() {
		at := f.find(b)
		if err := f.write(b[:at]); err != nil || at == len(b) {
			return err
		}
		b = b[at:]
		f.c.armed.Store(true)
	}
	if f.hole() {
		return nil
	}
	if !f.request && f.c.cutting.Load() {
		return nil // An upstream that answers faster than the cut must not be heard.
	}
	switch f.mine() {
	case CutRequest, CutReply:
		return f.cutAt(b)
	case SlowRequest, SlowReply:
		return f.slowly(b)
	case DelayReply:
		return f.delayed(b)
	}
	return f.write(b)
}

// mine is the fault if it is of this direction.
func (f *flow) mine() Kind {
	k := f.c.fault.Kind
	if f.request == (k == CutRequest || k == SlowRequest) {
		return k
	}
	return Pass
}

// delayed passes a piece on, the first one after the delay.
func (f *flow) delayed(b []byte) error {
	if f.faulty == 0 {
		if err := f.c.p.o.Wait(f.c.p.ctx, f.c.fault.Delay); err != nil {
			return err
		}
	}
	f.faulty += len(b)
	return f.write(b)
}

// find is where in b the fault begins; len(b) is nowhere.
func (f *flow) find(b []byte) int {
	match := f.c.fault.Match
	if !f.request {
		return len(b)
	}
	all := append(f.tail, b...)
	at := bytes.Index(all, []byte(match))
	if at < 0 {
		f.tail = bytes.Clone(all[max(0, len(all)-len(match)+1):])
		return len(b)
	}
	return max(0, at-(len(all)-len(b)))
}

func (f *flow) cutAt(b []byte) error {
	n := min(len(b), f.c.fault.Bytes-f.faulty)
	f.faulty += n
	last := f.faulty >= f.c.fault.Bytes
	f.c.cutting.Store(last && f.request)
	err := f.write(b[:n])
	if err == nil && last {
		f.c.cut()
	}
	return err
}

func (f *flow) slowly(b []byte) error {
	for i := range b {
		if err := f.c.p.o.Wait(f.c.p.ctx, f.c.fault.Delay); err != nil {
			return err
		}
		if err := f.c.p.released(); err != nil {
			return err
		}
		if err := f.write(b[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// hear keeps what the upstream said, for replay.
func (c *connection) hear(b []byte) {
	c.mu.Lock()
	if room := maxReply - c.reply.Len(); room > 0 {
		c.reply.Write(b[:min(len(b), room)])
	}
	c.mu.Unlock()
	c.p.mu.Lock()
	c.p.heard = c
	c.p.mu.Unlock()
}
