package fakeslack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Control lets another process see and change what this Slack holds.
//
//	PUT    /control/fault?method=chat.update&next=2   the body is a Fault; no next: until it is ended
//	PUT    /control/fault?method=*&for=10m            until so long from now
//	DELETE /control/fault?method=chat.update          no method: all
//	GET    /control/messages?channel=C…               no channel: the first one
//	DELETE /control/message?ticket=… | ?channel=C…&ts=…
//	PUT    /control/archive?channel=C…&off=true       off: the way back, here and below
//	PUT    /control/kick?channel=C…
//	PUT    /control/revoke?token=bot|app
//	PUT    /control/scope?scope=chat:write            takes it away
//	PUT    /control/interactivity                     the body is the URL
//	POST   /control/disconnect?reason=refresh_requested
//	POST   /control/click                             {"user", "channel", "ts" | "ticket", "action", "via", "team", "back", "times"}
//	POST   /control/redeliver?envelope=…
//	GET    /control/calls, /control/envelopes
func (s *Slack) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /control/fault", s.putFault)
	mux.HandleFunc("DELETE /control/fault", func(w http.ResponseWriter, req *http.Request) {
		s.ClearFaults(req.URL.Query().Get("method"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /control/messages", s.getMessages)
	mux.HandleFunc("DELETE /control/message", s.deleteMessage)
	mux.HandleFunc("PUT /control/archive", s.channelSwitch(s.Archive))
	mux.HandleFunc("PUT /control/kick", s.channelSwitch(s.Kick))
	mux.HandleFunc("PUT /control/revoke", s.putRevoke)
	mux.HandleFunc("PUT /control/scope", func(w http.ResponseWriter, req *http.Request) {
		s.TakeScope(req.URL.Query().Get("scope"), !off(req))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT /control/interactivity", func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(req.Body, 4096))
		s.SetInteractivity(string(body))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /control/disconnect", func(w http.ResponseWriter, req *http.Request) {
		s.Disconnect(or(req.URL.Query().Get("reason"), RefreshRequested))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /control/click", s.postClick)
	mux.HandleFunc("POST /control/redeliver", func(w http.ResponseWriter, req *http.Request) {
		done(w, s.Redeliver(req.URL.Query().Get("envelope")))
	})
	mux.HandleFunc("GET /control/calls", func(w http.ResponseWriter, _ *http.Request) { list(w, s.Calls()) })
	mux.HandleFunc("GET /control/envelopes", func(w http.ResponseWriter, _ *http.Request) { list(w, s.Envelopes()) })
	return mux
}

func off(req *http.Request) bool { return req.URL.Query().Get("off") == "true" }

// list writes a list, which is never null.
func list[T any](w http.ResponseWriter, items []T) {
	if items == nil {
		items = []T{}
	}
	reply(w, http.StatusOK, map[string]any{"items": items})
}

func done(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// strict reads one JSON object without unknown fields: a misspelled fault that
// does nothing would be a test that tests nothing.
func strict(req *http.Request, into any) error {
	dec := json.NewDecoder(io.LimitReader(req.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return nil
}

func (s *Slack) putFault(w http.ResponseWriter, req *http.Request) {
	var f Fault
	err := strict(req, &f)
	if err == nil {
		err = s.setFault(req.URL.Query(), f)
	}
	done(w, err)
}

func (s *Slack) setFault(q url.Values, f Fault) error {
	name := q.Get("method")
	_, known := methods()[name]
	switch {
	case !known && name != AnyMethod && name != SocketMethod:
		return fmt.Errorf("there is no method %q here; write one of the Web API, %q or %q", name, AnyMethod, SocketMethod)
	case f == Fault{}:
		return errors.New(`the body is no fault: write e.g. {"error": "message_not_found"}`)
	case q.Has("for"):
		return s.downFor(name, q.Get("for"), f)
	}
	next := 0
	if q.Has("next") {
		var err error
		if next, err = strconv.Atoi(q.Get("next")); err != nil || next < 1 {
			return errors.New("next is how many requests, at least 1")
		}
	}
	s.Fail(name, next, f)
	return nil
}

func (s *Slack) downFor(name, text string, f Fault) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("for is a duration such as 10m, not %q", text)
	}
	now := s.o.Now()
	s.Down(name, now, now.Add(d), f)
	return nil
}

// firstChannel is the one that a request means when it names none.
func (s *Slack) firstChannel(named string) string { return or(named, s.o.Channels[0].ID) }

func (s *Slack) getMessages(w http.ResponseWriter, req *http.Request) {
	id := s.firstChannel(req.URL.Query().Get("channel"))
	messages, ephemerals := s.Messages(id), s.Ephemerals(id)
	if messages == nil {
		messages = []Message{}
	}
	if ephemerals == nil {
		ephemerals = []Ephemeral{}
	}
	reply(w, http.StatusOK, map[string]any{"items": messages, "ephemerals": ephemerals})
}

func (s *Slack) deleteMessage(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	channelID, ts, err := s.meant(q.Get("ticket"), q.Get("channel"), q.Get("ts"))
	if err == nil && !s.Delete(channelID, ts) {
		err = fmt.Errorf("channel %s has no message %q", channelID, ts)
	}
	done(w, err)
}

// meant is the message that a ticket, or channel and ts, name.
func (s *Slack) meant(ticket, channelID, ts string) (string, string, error) {
	if ticket == "" {
		return s.firstChannel(channelID), ts, nil
	}
	m, ok := s.Holds(ticket)
	if !ok {
		return "", "", fmt.Errorf("no message is about the ticket %q", ticket)
	}
	return m.Channel, m.TS, nil
}

func (s *Slack) channelSwitch(do func(string, bool) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		id := s.firstChannel(req.URL.Query().Get("channel"))
		if !do(id, !off(req)) {
			done(w, fmt.Errorf("there is no channel %q", id))
			return
		}
		done(w, nil)
	}
}

func (s *Slack) putRevoke(w http.ResponseWriter, req *http.Request) {
	switch which := req.URL.Query().Get("token"); which {
	case "", "bot":
		s.Revoke(s.o.BotToken, !off(req))
	case "app":
		s.Revoke(s.o.AppToken, !off(req))
	default:
		done(w, fmt.Errorf("token is bot or app, not %q", which))
		return
	}
	done(w, nil)
}

func (s *Slack) postClick(w http.ResponseWriter, req *http.Request) {
	var c struct {
		User, Team, Workspace, Channel, TS, Ticket, Action string
		Via                                                Via
		Back, Times                                        int
	}
	err := strict(req, &c)
	if err == nil && c.Via != "" && c.Via != ViaHTTP && c.Via != ViaSocket {
		err = fmt.Errorf("via is http or socket, not %q", c.Via)
	}
	if err == nil && c.User == "" {
		err = errors.New("user is required")
	}
	if err == nil {
		c.Channel, c.TS, err = s.meant(c.Ticket, c.Channel, c.TS)
	}
	var o Outcome
	if err == nil {
		o, err = s.Press(req.Context(), Press{
			User: c.User, Team: c.Team, Workspace: c.Workspace, Channel: c.Channel, TS: c.TS, Action: c.Action,
			Back: c.Back, Via: c.Via, Times: c.Times,
		})
	}
	if err != nil {
		done(w, err)
		return
	}
	reply(w, http.StatusOK, o)
}
