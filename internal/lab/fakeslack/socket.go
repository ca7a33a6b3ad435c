package fakeslack

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Why a socket is told to go.
const (
	// RefreshRequested: it is closed, and the app connects again.
	RefreshRequested = "refresh_requested"
	// Warning: it will be closed soon, and is not yet.
	Warning = "warning"
	// LinkDisabled: Socket Mode was switched off for the app.
	LinkDisabled = "link_disabled"
)

// maxAck is from which size Slack drops an acknowledgement without a word.
const maxAck = 20 << 10

// hub are the open sockets and what was sent on them. Slack.mu guards it.
type hub struct {
	// tickets are those that were not used yet.
	tickets   map[string]bool
	links     []*link
	opened    int
	turn      int
	envelopes map[string]*envelope
	order     []string
}

// link is one open socket.
type link struct {
	id   int
	conn *websocket.Conn
	// writing is held while a frame is written.
	writing sync.Mutex
}

func (l *link) write(v any) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	return l.conn.WriteJSON(v)
}

// open is apps.connections.open: a URL on this Slack that works once.
func (s *Slack) open(url.Values) (map[string]any, *refusal) {
	ticket := s.id("ticket")
	s.hub.tickets[ticket] = true
	ws := "ws" + s.base[len("http"):] + "/link?" + url.Values{"ticket": {ticket}, "app_id": {s.o.App}}.Encode()
	return map[string]any{"url": ws}, nil
}

// link opens a socket for a ticket, and reads it until it ends.
func (s *Slack) link(w http.ResponseWriter, req *http.Request) {
	treated := s.fault(SocketMethod)
	if s.before(treated, w, req) != "" {
		return
	}
	if !s.useTicket(req.URL.Query().Get("ticket")) {
		http.Error(w, "the ticket was used, or never given", http.StatusUnauthorized)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, req, nil)
	if err != nil {
		return // The upgrader has answered.
	}
	defer func() { _ = conn.Close() }()
	if treated.DropReply {
		return
	}
	l, count := s.join(conn)
	gone := make(chan struct{})
	defer close(gone)
	defer s.leave(l)
	if l.write(s.hello(count)) != nil {
		return
	}
	go s.ping(l, gone)
	s.deliverWaiting(l)
	s.read(l)
}

func (s *Slack) useTicket(ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	good := s.hub.tickets[ticket]
	delete(s.hub.tickets, ticket)
	return good
}

func (s *Slack) join(conn *websocket.Conn) (*link, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.opened++
	l := &link{id: s.hub.opened, conn: conn}
	s.hub.links = append(s.hub.links, l)
	return l, len(s.hub.links)
}

func (s *Slack) leave(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.links = slices.DeleteFunc(s.hub.links, func(other *link) bool { return other == l })
	for _, e := range s.hub.envelopes {
		if !e.acked() && e.last == l.id {
			e.lost()
		}
	}
}

func (s *Slack) hello(connections int) map[string]any {
	return map[string]any{
		"type": "hello", "num_connections": connections, "connection_info": map[string]any{"app_id": s.o.App},
		"debug_info": map[string]any{"host": "applink-lab", "build_number": 1, "approximate_connection_time": 18060},
	}
}

// ping keeps a client content that drops a silent socket.
func (s *Slack) ping(l *link, gone <-chan struct{}) {
	if s.o.PingEvery < 0 {
		return
	}
	for {
		// A control frame may be written beside others.
		if l.conn.WriteControl(websocket.PingMessage, []byte("lab"), time.Now().Add(time.Second)) != nil {
			return
		}
		select {
		case <-time.After(s.o.PingEvery):
		case <-gone:
			return
		case <-s.ended:
			return
		}
	}
}

// read takes acknowledgements until the socket ends.
func (s *Slack) read(l *link) {
	for {
		_, data, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		if len(data) >= maxAck || json.Unmarshal(data, &ack) != nil {
			continue
		}
		s.mu.Lock()
		if e := s.hub.envelopes[ack.EnvelopeID]; e != nil {
			e.ack(ack.Payload)
		}
		s.mu.Unlock()
	}
}

// Connections are how many sockets are open.
func (s *Slack) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hub.links)
}

// Opened is how many sockets were ever opened.
func (s *Slack) Opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub.opened
}

// Disconnect tells every socket to go, and closes it unless it is a Warning.
func (s *Slack) Disconnect(reason string) {
	for _, l := range s.links() {
		// One that cannot be told is gone.
		_ = l.write(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-lab"}})
		if reason != Warning {
			_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, reason), time.Now().Add(time.Second))
			_ = l.conn.Close()
		}
	}
}

// DropConnections ends every socket without a word.
func (s *Slack) DropConnections() {
	for _, l := range s.links() {
		_ = l.conn.NetConn().Close()
	}
}

func (s *Slack) links() []*link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hub.links)
}
