package faultproxy_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
)

// sight is what one side saw of a connection: the bytes and how it ended.
type sight struct{ Bytes, End string }

// ending puts an error into a word.
func ending(err error) string {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return "end"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return err.Error()
}

// answerer is an upstream of a made-up protocol: a line, then a reply.
type answerer struct {
	net.Listener
	mu   sync.Mutex
	seen []sight
}

func newAnswerer(t *testing.T) *answerer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &answerer{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { a.one(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return a
}

func (a *answerer) one(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var got bytes.Buffer
	buf := make([]byte, 100)
	for {
		n, err := conn.Read(buf)
		got.Write(buf[:n])
		if bytes.HasSuffix(buf[:n], []byte("\n")) {
			_, _ = io.WriteString(conn, reply)
		}
		if err != nil {
			a.mu.Lock()
			a.seen = append(a.seen, sight{got.String(), ending(err)})
			a.mu.Unlock()
			return
		}
	}
}

func (a *answerer) saw() []sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

func proxy(t *testing.T, upstream string, o faultproxy.Options) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.New(upstream, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func set(t *testing.T, p *faultproxy.Proxy, fault string) {
	t.Helper()
	f, err := faultproxy.Parse(fault)
	if err == nil {
		err = p.Set(f)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// soon polls until ok, which real sockets need.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ended waits until n connections are over, and gives the log without times.
func ended(t *testing.T, p *faultproxy.Proxy, n int) []faultproxy.Entry {
	t.Helper()
	soon(t, "the log", func() bool {
		es := p.Log()
		return len(es) == n && !slices.ContainsFunc(es, func(e faultproxy.Entry) bool { return e.Ended.IsZero() })
	})
	es := p.Log()
	for i := range es {
		es[i].Started, es[i].Ended = time.Time{}, time.Time{}
	}
	return es
}

// ask sends pieces over one connection and reads until its end.
func ask(address string, patience time.Duration, pieces ...string) sight {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return sight{End: ending(err)}
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var sent error
	for _, s := range pieces {
		_, err := io.WriteString(conn, s)
		sent = cmp.Or(sent, err)
	}
	if patience > time.Second {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	got, err := io.ReadAll(conn)
	// A reset is told once: where the write was told, the read sees an end.
	return sight{string(got), ending(cmp.Or(err, sent))}
}

// dial gives a connection that does not hang a test.
func dial(t *testing.T, p *faultproxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// waits records delays and lets them be over at once.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
	return ctx.Err()
}
