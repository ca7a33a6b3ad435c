package faultproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// reply is one whole reply of HTTP/1.1: its head with the empty line, its body
// without chunks, and the bytes as they came.
type reply struct{ head, body, raw []byte }

// exchange is one request and what becomes of it.
func (c *connection) exchange() {
	raw, err := c.readRequest()
	switch {
	case err != nil:
		c.abort("no-request")
	case c.fault.Kind == Status:
		c.say(own(c.fault.Status, http.StatusServiceUnavailable))
	case c.fault.Kind == Replay:
		c.say(c.p.old())
	default:
		c.forwarded(raw)
	}
}

// forwarded is the rest of an exchange whose request the upstream gets.
func (c *connection) forwarded(raw []byte) {
	r, err := c.forward(raw)
	if c.fault.Kind == Duplicate {
		// The second is sent whatever became of the first: that is what harms.
		second, err2 := c.forward(raw)
		if c.fault.Last {
			r, err = second, err2
		}
	}
	if err != nil {
		c.abort("no-reply")
		return
	}
	switch f := c.fault; f.Kind {
	case StatusAfter:
		c.say(own(f.Status, http.StatusBadGateway))
	case DropReply:
		c.cut()
		c.drain()
	case Truncate:
		if c.send(relabel(r.head, strconv.Itoa(len(r.body))), r.body[:min(f.Bytes, len(r.body))]) == nil {
			c.cut()
			c.drain()
		}
	case WrongLength:
		c.say(append(relabel(r.head, strconv.Itoa(f.Length)), r.body...))
	case NoLength:
		if f.Bytes > 0 {
			r.body = r.body[:min(f.Bytes, len(r.body))]
		}
		c.say(append(relabel(r.head, ""), r.body...))
	default:
		c.say(r.raw)
	}
}

// send writes to the client; what fails ends the connection.
func (c *connection) send(parts ...[]byte) error {
	err := c.p.released()
	if err == nil {
		err = c.answer(bytes.Join(parts, nil))
	}
	if err != nil {
		c.abort("broken")
	}
	return err
}

// say answers, and ends the connection in order.
func (c *connection) say(b []byte) {
	if c.send(b) == nil {
		c.tellEnd("answered")
		c.drain()
	}
}

// drain reads the rest of what the client sends, if it may still send.
func (c *connection) drain() {
	if c.ending.Load() {
		_, _ = io.Copy(io.Discard, c.client) // Ends by the client or by the deadline.
	}
}

// readRequest takes one whole request off the client, as it came.
func (c *connection) readRequest() ([]byte, error) {
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(c.client, &raw))
	req, err := http.ReadRequest(in)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	c.count(func(e *Entry) { e.FromClient += raw.Len() })
	// What is buffered belongs to a next request.
	return raw.Bytes()[:raw.Len()-in.Buffered()], err
}

// forward sends a request over a fresh connection and reads the whole reply.
func (c *connection) forward(request []byte) (reply, error) {
	up, err := c.dial()
	if err != nil {
		return reply{}, err
	}
	if err := c.tell(up, request); err != nil {
		return reply{}, err
	}
	r, err := readReply(bufio.NewReader(up))
	c.count(func(e *Entry) { e.FromUpstream += len(r.raw) })
	if err == nil {
		c.hear(r.raw)
		err = up.Close()
	}
	return r, err
}

// readReply reads one whole reply. What came of it is returned beside an error.
func readReply(from *bufio.Reader) (reply, error) {
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(oneByOne{from}, &raw))
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return reply{raw: raw.Bytes()}, fmt.Errorf("read a reply: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = resp.Body.Close()
	}
	all := raw.Bytes()
	head := all[:bytes.Index(all, []byte("\r\n\r\n"))+4]
	return reply{head: head, body: body, raw: all}, err
}

// oneByOne gives one byte to each read, so that nothing behind a reply is taken.
type oneByOne struct{ from io.Reader }

// Read gives one byte.
func (o oneByOne) Read(b []byte) (int, error) { return o.from.Read(b[:min(1, len(b))]) }

// own is a reply of the proxy's.
func own(status, otherwise int) []byte {
	if status == 0 {
		status = otherwise
	}
	text := fmt.Sprintf("faultproxy: %d on purpose\n", status)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text)
}

// relabel gives a head another Content-Length; empty is none.
func relabel(head []byte, length string) []byte {
	var out bytes.Buffer
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	for i, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) {
		case "content-length", "transfer-encoding", "connection":
			if i > 0 {
				continue
			}
		}
		out.WriteString(line + "\r\n")
	}
	if length != "" {
		out.WriteString("Content-Length: " + length + "\r\n")
	}
	out.WriteString("Connection: close\r\n\r\n")
	return out.Bytes()
}

// old is the last whole reply that was heard.
func (p *Proxy) old() []byte {
	p.mu.Lock()
	from := p.heard
	p.mu.Unlock()
	if from == nil {
		return own(http.StatusBadGateway, 0)
	}
	from.mu.Lock()
	in := bufio.NewReader(bytes.NewReader(bytes.Clone(from.reply.Bytes())))
	from.mu.Unlock()
	last := own(http.StatusBadGateway, 0)
	for {
		r, err := readReply(in)
		if err != nil {
			return last
		}
		last = r.raw
	}
}
